-- What happens at the edges: a project that is being deleted, and moments that no clock shows.

-- The log has the order of its numbers, and retention ends at the first entry that is too young: an entry from the future
-- would keep all behind it, so none is newer than its insertion. Without its log, the project is being deleted.
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
  SELECT greatest(log.last_sequence, (SELECT max(sequence) FROM notifications WHERE project_id = NEW.project_id)) + 1
    INTO NEW.sequence FROM notification_logs AS log WHERE log.project_id = NEW.project_id;
  RETURN NEW;
END
$$;

-- As before, but a project or a user that is being deleted is a foreign key that is violated, no query without a row.
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
      SELECT of_project, of_user, sequence, state.version + 1 FROM notifications
      WHERE id = ANY (ids) AND project_id = of_project AND sequence > through
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
      SELECT single.sequence FROM run JOIN notification_reads AS single
        ON single.project_id = of_project AND single.user_id = of_user AND single.sequence = run.sequence + 1
    )
    SELECT max(sequence) INTO through FROM run;
    DELETE FROM notification_reads WHERE project_id = of_project AND user_id = of_user AND sequence <= through;
    UPDATE notification_states SET read_through = through, version = state.version + 1
      WHERE project_id = of_project AND user_id = of_user;
  END IF;
  unread_count := unread_notifications(of_project, of_user);
END
$$;

-- The counters of a project are kept by its id: a new id would count all that belongs to it a second time.
CREATE FUNCTION keep_project_id() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'a project keeps its id' USING ERRCODE = 'integrity_constraint_violation';
END
$$;
CREATE TRIGGER keep_project_id BEFORE UPDATE ON projects FOR EACH ROW WHEN (NEW.id <> OLD.id) EXECUTE FUNCTION keep_project_id();
