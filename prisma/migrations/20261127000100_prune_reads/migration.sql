-- As before, but single reads are left to the gateway, which deletes them afterwards, user by user: they are found by user only, so
-- that this function would look at all of a project's under the lock of its log. Up to `pruned_through` they count nowhere.
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
  DELETE FROM notifications WHERE project_id = of_project AND sequence > already AND sequence <= through;
  GET DIAGNOSTICS pruned = ROW_COUNT;
  RETURN pruned;
END
$$;
