CREATE TABLE "kept_answers" (
    "user_id" UUID NOT NULL,
    "key_hash" BYTEA NOT NULL,
    "request_hash" BYTEA NOT NULL,
    "content" BYTEA NOT NULL,
    "is_answered" BOOLEAN NOT NULL DEFAULT false,
    "created" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "kept_answers_pkey" PRIMARY KEY ("user_id","key_hash"),
    CONSTRAINT "kept_answers_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE CASCADE
);

CREATE INDEX "kept_answers_created_idx" ON "kept_answers"("created");

-- What is encrypted cannot be made smaller.
ALTER TABLE kept_answers ALTER COLUMN content SET STORAGE EXTERNAL;

-- Whether one more answer may be kept for a user. No lock is taken, so that those who write at once do not wait for each
-- other: together they may pass the quota by as many as they are.
CREATE FUNCTION has_answer_room(of_user uuid, most_answers bigint, most_bytes bigint) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT count(*) < most_answers AND coalesce(sum(bytes), 0) < most_bytes FROM (
    SELECT octet_length(content) AS bytes FROM kept_answers
    WHERE user_id = of_user AND created > now() - interval '24 hours'
    LIMIT most_answers
  ) AS present
$$;
