-- As before, but the last number never falls: an operator's trigger on `notifications` may insert others, which have higher numbers and
-- are counted first.
CREATE OR REPLACE FUNCTION advance_notification_log() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  UPDATE notification_logs AS log SET last_sequence = greatest(log.last_sequence, added.last)
    FROM (SELECT project_id, max(sequence) AS last FROM new_rows GROUP BY project_id) AS added
    WHERE log.project_id = added.project_id;
  RETURN NULL;
END
$$;
