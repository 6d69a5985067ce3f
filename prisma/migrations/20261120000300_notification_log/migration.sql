-- The notification log. `notification_logs` has one row a project, made with the project. An insert into `notifications`
-- takes the next number under that row's lock and holds the lock to commit: so the numbers have no gaps and come in
-- commit order, whoever inserts.

CREATE FUNCTION open_notification_log() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO notification_logs (project_id) VALUES (NEW.id);
  RETURN NULL;
END
$$;
CREATE TRIGGER open_notification_log AFTER INSERT ON projects FOR EACH ROW EXECUTE FUNCTION open_notification_log();

CREATE FUNCTION number_notification() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM notification_logs WHERE project_id = NEW.project_id FOR NO KEY UPDATE;
  -- Above what is committed, and above the rows that this statement has inserted before.
  SELECT greatest(log.last_sequence, (SELECT max(sequence) FROM notifications WHERE project_id = NEW.project_id)) + 1
    INTO NEW.sequence FROM notification_logs AS log WHERE log.project_id = NEW.project_id;
  RETURN NEW;
END
$$;
CREATE TRIGGER number_notification BEFORE INSERT ON notifications FOR EACH ROW EXECUTE FUNCTION number_notification();

-- Only a row that was inserted uses its number up: one that repeats an id (ON CONFLICT DO NOTHING, a retry) leaves no gap.
CREATE FUNCTION advance_notification_log() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE notification_logs AS log SET last_sequence = added.last
    FROM (SELECT project_id, max(sequence) AS last FROM new_rows GROUP BY project_id) AS added
    WHERE log.project_id = added.project_id;
  RETURN NULL;
END
$$;
CREATE TRIGGER advance_notification_log AFTER INSERT ON notifications REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION advance_notification_log();

-- The log only grows at its end and shrinks at its beginning, so that counts are arithmetic.
CREATE FUNCTION guard_notification() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN
    IF (NEW.id, NEW.project_id, NEW.sequence) IS DISTINCT FROM (OLD.id, OLD.project_id, OLD.sequence) THEN
      RAISE EXCEPTION 'a notification keeps its id, project and sequence' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
  END IF;
  IF EXISTS (SELECT FROM notification_logs WHERE project_id = OLD.project_id AND pruned_through < OLD.sequence) THEN
    RAISE EXCEPTION 'a notification is deleted only after notification_logs.pruned_through has passed it'
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN OLD;
END
$$;
CREATE TRIGGER guard_notification BEFORE UPDATE OR DELETE ON notifications FOR EACH ROW EXECUTE FUNCTION guard_notification();

-- How many notifications of the project the user has not read. NULL where there is no such project.
CREATE FUNCTION unread_notifications(of_project uuid, of_user uuid) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT log.last_sequence - mark.through - (
    SELECT count(*) FROM notification_reads AS single
    WHERE single.project_id = of_project AND single.user_id = of_user AND single.sequence > mark.through
  )
  FROM notification_logs AS log
  LEFT JOIN notification_states AS state ON state.project_id = log.project_id AND state.user_id = of_user
  CROSS JOIN LATERAL (SELECT greatest(state.read_through, log.pruned_through) AS through) AS mark
  WHERE log.project_id = of_project
$$;

-- Marks as read: the notifications `ids`, or (ids NULL) all up to `up_to`, or (both NULL) all that there are now.
-- Unknown ids are ignored. `marked` counts what was unread before. The state's row is locked first, so that two calls
-- of one user count nothing twice; the log is looked at after that.
CREATE FUNCTION mark_notifications_read(
  of_project uuid, of_user uuid, ids uuid[], up_to bigint, OUT marked bigint, OUT unread_count bigint
) LANGUAGE plpgsql AS $$
DECLARE
  log notification_logs;
  state notification_states;
  through bigint;
BEGIN
  INSERT INTO notification_states (project_id, user_id) VALUES (of_project, of_user) ON CONFLICT DO NOTHING;
  SELECT * INTO STRICT state FROM notification_states
    WHERE project_id = of_project AND user_id = of_user FOR UPDATE;
  SELECT * INTO STRICT log FROM notification_logs WHERE project_id = of_project;
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

-- Retention: removes what was created before a moment from the beginning of every log, up to `at_most` of each, and
-- says how many that were. The watermark moves first. A log that is being written to is left for the next time.
CREATE FUNCTION prune_notifications(before timestamptz, at_most integer) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  project uuid;
  through bigint;
  deleted bigint;
  pruned bigint := 0;
BEGIN
  FOR project IN
    SELECT log.project_id FROM notification_logs AS log
    CROSS JOIN LATERAL (
      SELECT created FROM notifications WHERE project_id = log.project_id ORDER BY sequence LIMIT 1
    ) AS oldest
    WHERE oldest.created < before
    ORDER BY log.project_id
    FOR NO KEY UPDATE OF log SKIP LOCKED
  LOOP
    SELECT coalesce(min(sequence) FILTER (WHERE created >= before) - 1, max(sequence)) INTO through
      FROM (SELECT sequence, created FROM notifications WHERE project_id = project ORDER BY sequence LIMIT at_most) AS eldest;
    UPDATE notification_logs SET pruned_through = greatest(pruned_through, through) WHERE project_id = project;
    DELETE FROM notification_reads WHERE project_id = project AND sequence <= through;
    DELETE FROM notifications WHERE project_id = project AND sequence <= through;
    GET DIAGNOSTICS deleted = ROW_COUNT;
    pruned := pruned + deleted;
  END LOOP;
  RETURN pruned;
END
$$;
