-- As before, except that `kind` and `resource_id` count three times: they are in the row, and in an index whose pages are half full.
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
  NEW.bytes_through := coalesce(previous.bytes_through, 0) + 300 + octet_length(NEW.title) + octet_length(NEW.body)
    + octet_length(NEW.data::text) + coalesce(octet_length(NEW.resource_type), 0)
    + 3 * (octet_length(NEW.kind) + coalesce(octet_length(NEW.resource_id), 0));
  RETURN NEW;
END
$$;
