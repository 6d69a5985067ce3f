-- As before, but each notification, and each next single read, is looked up: joined, all of a user in a project were read where most
-- notifications or reads belong to one.
CREATE OR REPLACE FUNCTION mark_notifications_read(
  of_project uuid, of_user uuid, ids uuid[], up_to bigint, OUT marked bigint, OUT unread_count bigint
) LANGUAGE plpgsql AS $$
DECLARE
  log notification_logs;
  state notification_states;
  through bigint;
BEGIN
  INSERT INTO notification_states (project_id, user_id) VALUES (of_project, of_user) ON CONFLICT DO NOTHING;
  SELECT * INTO state FROM notification_states
    WHERE project_id = of_project AND user_id = of_user FOR UPDATE;
  SELECT * INTO log FROM notification_logs WHERE project_id = of_project;
  IF state.project_id IS NULL OR log.project_id IS NULL THEN
    RAISE EXCEPTION 'there is no project % with user %', of_project, of_user USING ERRCODE = 'foreign_key_violation';
  END IF;
  through := greatest(state.read_through, log.pruned_through);

  IF ids IS NOT NULL THEN
    WITH single AS (
      INSERT INTO notification_reads (project_id, user_id, sequence, version)
      SELECT of_project, of_user, one.sequence, state.version + 1 FROM unnest(ids) AS wanted (id)
      CROSS JOIN LATERAL (SELECT project_id, sequence FROM notifications WHERE notifications.id = wanted.id LIMIT 1) AS one
      WHERE one.project_id = of_project AND one.sequence > through
      ON CONFLICT DO NOTHING RETURNING 1
    )
    SELECT count(*) INTO marked FROM single;
  ELSE
    up_to := least(coalesce(up_to, log.last_sequence), log.last_sequence);
    SELECT greatest(up_to - through, 0) - count(*) INTO marked FROM notification_reads
      WHERE project_id = of_project AND user_id = of_user AND sequence > through AND sequence <= up_to;
    through := greatest(through, up_to);
  END IF;

  IF marked > 0 THEN
    -- The watermark moves over single reads that now adjoin it.
    WITH RECURSIVE run (sequence) AS (
      SELECT through
      UNION ALL
      SELECT next.sequence FROM run CROSS JOIN LATERAL (
        SELECT single.sequence FROM notification_reads AS single
        WHERE single.project_id = of_project AND single.user_id = of_user AND single.sequence = run.sequence + 1 LIMIT 1
      ) AS next
    )
    SELECT max(sequence) INTO through FROM run;
    DELETE FROM notification_reads WHERE project_id = of_project AND user_id = of_user AND sequence <= through;
    IF ids IS NOT NULL AND (
      SELECT count(*) FROM (
        SELECT FROM notification_reads WHERE project_id = of_project AND user_id = of_user AND sequence > through LIMIT 100001
      ) AS single
    ) > 100000 THEN
      RAISE EXCEPTION 'user % has more than 100000 single reads in project %', of_user, of_project USING ERRCODE = 'QU001';
    END IF;
    UPDATE notification_states SET read_through = through, version = state.version + 1
      WHERE project_id = of_project AND user_id = of_user;
  END IF;
  unread_count := unread_notifications(of_project, of_user);
END
$$;
