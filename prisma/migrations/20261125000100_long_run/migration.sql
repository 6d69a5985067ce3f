-- What a gateway meets in the long run. What was pruned stays in the indexes until it is vacuumed: whoever looks for the
-- beginning of a log starts behind `pruned_through`, and so does not walk over it.

-- As before, but a log ends where the Int of GraphQL does: what no reader could be told is not taken.
CREATE OR REPLACE FUNCTION number_notification() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  PERFORM FROM notification_logs WHERE project_id = NEW.project_id FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'there is no project %', NEW.project_id USING ERRCODE = 'foreign_key_violation';
  END IF;
  IF NEW.created = '-infinity' THEN
    RAISE EXCEPTION 'a notification is created at a moment' USING ERRCODE = 'datetime_field_overflow';
  END IF;
  NEW.created := least(NEW.created, now());
  -- Above what is committed, and above the rows that this statement has inserted before.
  SELECT greatest(log.last_sequence, (
      SELECT max(sequence) FROM notifications WHERE project_id = NEW.project_id AND sequence > log.last_sequence
    )) + 1 INTO NEW.sequence FROM notification_logs AS log WHERE log.project_id = NEW.project_id;
  IF NEW.sequence > 2147483647 THEN
    RAISE EXCEPTION 'the log of project % is full: it has used its last number, 2147483647', NEW.project_id
      USING ERRCODE = 'sequence_generator_limit_exceeded';
  END IF;
  RETURN NEW;
END
$$;

-- Removes what was created before a moment from the beginning of a log, up to `at_most`, and says how many that were. The
-- watermark moves first. Null: the log is being written to, and was left as it is.
CREATE OR REPLACE FUNCTION prune_notification_log(of_project uuid, before timestamptz, at_most integer) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  already bigint;
  through bigint;
  pruned bigint;
BEGIN
  SELECT pruned_through INTO already FROM notification_logs WHERE project_id = of_project FOR NO KEY UPDATE SKIP LOCKED;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  SELECT coalesce(min(sequence) FILTER (WHERE created >= before) - 1, max(sequence)) INTO through
    FROM (
      SELECT sequence, created FROM notifications WHERE project_id = of_project AND sequence > already ORDER BY sequence LIMIT at_most
    ) AS eldest;
  UPDATE notification_logs SET pruned_through = greatest(pruned_through, through) WHERE project_id = of_project;
  -- A single read that is added at this moment goes when its user marks the next.
  DELETE FROM notification_reads WHERE project_id = of_project AND sequence > already AND sequence <= through;
  DELETE FROM notifications WHERE project_id = of_project AND sequence > already AND sequence <= through;
  GET DIAGNOSTICS pruned = ROW_COUNT;
  RETURN pruned;
END
$$;

-- The same of all logs in one transaction: for replicas of a version before, while a new one is brought out.
CREATE OR REPLACE FUNCTION prune_notifications(before timestamptz, at_most integer) RETURNS bigint LANGUAGE sql AS $$
  SELECT coalesce(sum(prune_notification_log(due.project_id, before, at_most)), 0)::bigint
  FROM (
    SELECT log.project_id FROM notification_logs AS log
    CROSS JOIN LATERAL (
      SELECT created FROM notifications WHERE project_id = log.project_id AND sequence > log.pruned_through ORDER BY sequence LIMIT 1
    ) AS oldest
    WHERE oldest.created < before
    ORDER BY log.project_id
  ) AS due
$$;

-- When a key ended: the gateway deletes it 90 days later.
CREATE INDEX api_keys_ended_idx ON api_keys (least(revoked, expires)) WHERE least(revoked, expires) IS NOT NULL;

-- When a console session ended: its record may be deleted some days later.
CREATE INDEX console_sessions_ended_idx ON console_sessions (ended) WHERE ended IS NOT NULL;
