-- Whoever inserts an instance, a notification or a project needs no rights on what the triggers keep for it: they run
-- with the rights of their owner. Only the owner may make a trigger of them: on a table of somebody else's, with
-- arguments of their own, they would lend these rights to anybody.
DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY[
    'count_instances', 'count_resources', 'open_notification_log', 'number_notification', 'advance_notification_log', 'guard_notification'
  ]
  LOOP
    EXECUTE format('ALTER FUNCTION %I() SECURITY DEFINER SET search_path = public, pg_temp', name);
    EXECUTE format('REVOKE EXECUTE ON FUNCTION %I() FROM PUBLIC', name);
  END LOOP;
END
$$;
