-- Quotas are exact: whoever asks for room takes a lock and holds it to the end of the transaction, and the count is made
-- after that, so that two at once do not both get the last place. Each counts no further than the quota.

-- Whether a project may have one more dashboard.
CREATE FUNCTION has_dashboard_room(of_project uuid, quota bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM projects WHERE id = of_project FOR NO KEY UPDATE;
  RETURN (SELECT count(*) < quota FROM (SELECT FROM dashboards WHERE project_id = of_project LIMIT quota) AS present);
END
$$;

-- The keys that are neither revoked nor expired, whatever else a user had: one without an end expires never.
CREATE INDEX api_keys_good_idx ON api_keys (user_id, coalesce(expires, 'infinity')) WHERE revoked IS NULL;

-- Whether a user may have one more API key that is good. (Not the user's row is locked: the gateway has no right to write it.)
CREATE FUNCTION has_key_room(of_user uuid, quota bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('api_keys ' || of_user::text, 0));
  RETURN (
    SELECT count(*) < quota FROM (
      SELECT FROM api_keys
      WHERE user_id = of_user AND revoked IS NULL AND coalesce(expires, 'infinity') > clock_timestamp()
      LIMIT quota
    ) AS good
  );
END
$$;
