-- What a gateway meets in the long run.

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
  SELECT greatest(log.last_sequence, (SELECT max(sequence) FROM notifications WHERE project_id = NEW.project_id)) + 1
    INTO NEW.sequence FROM notification_logs AS log WHERE log.project_id = NEW.project_id;
  IF NEW.sequence > 2147483647 THEN
    RAISE EXCEPTION 'the log of project % is full: it has used its last number, 2147483647', NEW.project_id
      USING ERRCODE = 'sequence_generator_limit_exceeded';
  END IF;
  RETURN NEW;
END
$$;
