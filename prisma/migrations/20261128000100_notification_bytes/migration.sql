-- The bytes of a log are arithmetic, as its counts are: each entry knows those up to its own end. Entries from before count nothing.
ALTER TABLE notifications ADD COLUMN bytes_through bigint NOT NULL DEFAULT 0;

-- As before, and adds up the bytes: those of the texts, and 300 of each entry for the row and its places in the indexes.
CREATE OR REPLACE FUNCTION number_notification() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  last bigint;
  previous record;
BEGIN
  SELECT last_sequence INTO last FROM notification_logs WHERE project_id = NEW.project_id FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'there is no project %', NEW.project_id USING ERRCODE = 'foreign_key_violation';
  END IF;
  IF NEW.created = '-infinity' THEN
    RAISE EXCEPTION 'a notification is created at a moment' USING ERRCODE = 'datetime_field_overflow';
  END IF;
  NEW.created := least(NEW.created, now());
  -- The last that is committed, unless it was pruned, or that this statement has inserted before.
  SELECT sequence, bytes_through INTO previous FROM notifications
    WHERE project_id = NEW.project_id AND sequence >= last ORDER BY sequence DESC LIMIT 1;
  NEW.sequence := coalesce(previous.sequence, last) + 1;
  IF NEW.sequence > 2147483647 THEN
    RAISE EXCEPTION 'the log of project % is full: it has used its last number, 2147483647', NEW.project_id
      USING ERRCODE = 'sequence_generator_limit_exceeded';
  END IF;
  NEW.bytes_through := coalesce(previous.bytes_through, 0) + 300 + octet_length(NEW.kind) + octet_length(NEW.title)
    + octet_length(NEW.body) + octet_length(concat(NEW.resource_type, NEW.resource_id)) + octet_length(NEW.data::text);
  RETURN NEW;
END
$$;

-- The bytes that a project's notifications take, without those of the oldest.
CREATE FUNCTION notification_bytes(of_project uuid) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT coalesce((
    SELECT bytes_through FROM notifications
    WHERE project_id = of_project AND sequence > log.pruned_through ORDER BY sequence DESC LIMIT 1
  ) - (
    SELECT bytes_through FROM notifications
    WHERE project_id = of_project AND sequence > log.pruned_through ORDER BY sequence LIMIT 1
  ), 0)
  FROM notification_logs AS log WHERE log.project_id = of_project
$$;
