-- Retention, log by log: each in a transaction of its own, so that its lock, for which publishers wait, is short.

-- Removes what was created before a moment from the beginning of a log, up to `at_most`, and says how many that were. The
-- watermark moves first. Null: the log is being written to, and was left as it is.
CREATE FUNCTION prune_notification_log(of_project uuid, before timestamptz, at_most integer) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  through bigint;
  pruned bigint;
BEGIN
  PERFORM FROM notification_logs WHERE project_id = of_project FOR NO KEY UPDATE SKIP LOCKED;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  SELECT coalesce(min(sequence) FILTER (WHERE created >= before) - 1, max(sequence)) INTO through
    FROM (SELECT sequence, created FROM notifications WHERE project_id = of_project ORDER BY sequence LIMIT at_most) AS eldest;
  UPDATE notification_logs SET pruned_through = greatest(pruned_through, through) WHERE project_id = of_project;
  DELETE FROM notification_reads WHERE project_id = of_project AND sequence <= through;
  DELETE FROM notifications WHERE project_id = of_project AND sequence <= through;
  GET DIAGNOSTICS pruned = ROW_COUNT;
  RETURN pruned;
END
$$;

-- The same of all logs in one transaction: for replicas of the version before, while a new one is brought out.
CREATE OR REPLACE FUNCTION prune_notifications(before timestamptz, at_most integer) RETURNS bigint LANGUAGE sql AS $$
  SELECT coalesce(sum(prune_notification_log(due.project_id, before, at_most)), 0)::bigint
  FROM (
    SELECT log.project_id FROM notification_logs AS log
    CROSS JOIN LATERAL (
      SELECT created FROM notifications WHERE project_id = log.project_id ORDER BY sequence LIMIT 1
    ) AS oldest
    WHERE oldest.created < before
    ORDER BY log.project_id
  ) AS due
$$;
