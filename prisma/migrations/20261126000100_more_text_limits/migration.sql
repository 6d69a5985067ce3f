-- The texts that were left out of 20261121000100_text_limits, by the same two triggers each.
DO $$
DECLARE
  text_of record;
BEGIN
  FOR text_of IN
    SELECT * FROM (VALUES
      ('backup_trials', 'instance_name'),
      ('backup_options', 'plan'),
      ('backup_option_prices', 'plan'),
      ('backup_option_prices', 'cycle'),
      ('billing_clients', 'name'),
      ('billing_services', 'cycle'),
      ('console_endpoints', 'host'),
      ('console_endpoints', 'socket_path')
    ) AS limited (place, field)
  LOOP
    EXECUTE format(
      'CREATE TRIGGER %I BEFORE INSERT ON %I FOR EACH ROW WHEN (char_length(NEW.%I) > 255) '
        'EXECUTE FUNCTION refuse_long_text(%L, 255, ''characters'')',
      'limit_' || text_of.field || '_insert', text_of.place, text_of.field, text_of.field
    );
    EXECUTE format(
      'CREATE TRIGGER %I BEFORE UPDATE OF %I ON %I FOR EACH ROW WHEN (char_length(NEW.%I) > 255 AND NEW.%I IS DISTINCT FROM OLD.%I) '
        'EXECUTE FUNCTION refuse_long_text(%L, 255, ''characters'')',
      'limit_' || text_of.field || '_update', text_of.field, text_of.place, text_of.field, text_of.field, text_of.field, text_of.field
    );
  END LOOP;
END
$$;
