-- Every text has a limit, whoever writes it. Triggers hold it, and no checks: a check, NOT VALID or not, is held against
-- each row that changes, so a row from before that is longer could not change in anything else. A trigger is asked where
-- the text itself is written; and adding one neither scans the table nor locks out its readers.
CREATE FUNCTION refuse_long_text() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '%.% takes at most % %', TG_TABLE_NAME, TG_ARGV[0], TG_ARGV[1], TG_ARGV[2]
    USING ERRCODE = 'check_violation', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME, COLUMN = TG_ARGV[0], CONSTRAINT = TG_NAME;
END
$$;

DO $$
DECLARE
  text_of record;
  size text;
BEGIN
  FOR text_of IN
    SELECT * FROM (VALUES
      ('dashboards', 'name', 255, 'characters'),
      ('dashboards', 'description', 10000, 'characters'),
      ('dashboards', 'widgets', 262144, 'bytes'),
      ('notifications', 'kind', 255, 'characters'),
      ('notifications', 'title', 500, 'characters'),
      ('notifications', 'body', 20000, 'characters'),
      ('notifications', 'resource_type', 255, 'characters'),
      ('notifications', 'resource_id', 255, 'characters'),
      ('notifications', 'data', 65536, 'bytes'),
      ('api_keys', 'name', 255, 'characters'),
      ('users', 'name', 255, 'characters'),
      ('users', 'email', 255, 'characters'),
      ('organizations', 'name', 255, 'characters'),
      ('projects', 'name', 255, 'characters'),
      ('instances', 'name', 255, 'characters'),
      ('instances', 'plan', 255, 'characters'),
      ('instances', 'region', 255, 'characters'),
      ('instances', 'hypervisor', 255, 'characters'),
      ('volumes', 'name', 255, 'characters'),
      ('snapshots', 'name', 255, 'characters'),
      ('backups', 'name', 255, 'characters'),
      ('vpcs', 'name', 255, 'characters'),
      ('vpcs', 'cidr', 255, 'characters'),
      ('ssh_keys', 'name', 255, 'characters'),
      ('ssh_keys', 'public_key', 20000, 'characters'),
      ('ssh_keys', 'fingerprint', 255, 'characters'),
      ('tasks', 'kind', 255, 'characters'),
      ('tasks', 'error', 10000, 'characters'),
      ('backup_trials', 'status', 255, 'characters'),
      ('backup_trials', 'source', 255, 'characters'),
      ('backup_trials', 'cycle', 255, 'characters'),
      ('backup_trials', 'failure_reason', 10000, 'characters')
    ) AS limited (place, field, most, unit)
  LOOP
    size := format(CASE text_of.unit WHEN 'bytes' THEN 'octet_length(NEW.%I::text)' ELSE 'char_length(NEW.%I)' END, text_of.field);
    EXECUTE format(
      'CREATE TRIGGER %I BEFORE INSERT ON %I FOR EACH ROW WHEN (%s > %s) EXECUTE FUNCTION refuse_long_text(%L, %L, %L)',
      'limit_' || text_of.field || '_insert', text_of.place, size, text_of.most, text_of.field, text_of.most, text_of.unit
    );
    -- What a statement writes as it was is left alone, too.
    EXECUTE format(
      'CREATE TRIGGER %I BEFORE UPDATE OF %I ON %I FOR EACH ROW WHEN (%s > %s AND NEW.%I::text IS DISTINCT FROM OLD.%I::text) '
        'EXECUTE FUNCTION refuse_long_text(%L, %L, %L)',
      'limit_' || text_of.field || '_update', text_of.field, text_of.place, size, text_of.most, text_of.field, text_of.field,
      text_of.field, text_of.most, text_of.unit
    );
  END LOOP;
END
$$;
