/** Runs a statement on the database of the server under test. */
type RunSql = (sql: string, values?: readonly unknown[]) => Promise<unknown>;

/** Removes the limits on notifications, because rows may be older than the limits. */
const liftLimits = `
  DO $$
  DECLARE name text;
  BEGIN
    FOR name IN SELECT conname FROM pg_constraint
      WHERE conrelid = 'notifications'::regclass AND contype = 'c' AND conname <> 'notifications_data_check'
    LOOP
      EXECUTE format('ALTER TABLE notifications DROP CONSTRAINT %I', name);
    END LOOP;
    FOR name IN SELECT tgname FROM pg_trigger
      WHERE tgrelid = 'notifications'::regclass AND NOT tgisinternal
        AND tgname NOT IN ('number_notification', 'advance_notification_log', 'guard_notification')
    LOOP
      EXECUTE format('ALTER TABLE notifications DISABLE TRIGGER %I', name);
    END LOOP;
  END
  $$`;

/** Inserts notifications whose `body` and `data` take `bytes` bytes each. */
export async function insertLarge(run: RunSql, projectId: string, count: number, bytes: number): Promise<void> {
  await run(liftLimits);
  const insert = `INSERT INTO notifications (project_id, kind, severity, title, body, data)
    SELECT $1::uuid, 'test.large', 'info', 'large', repeat('b', $2::int), json_build_object('text', repeat('d', $2::int))
    FROM generate_series(1, $3::int)`;
  for (let done = 0; done < count; done += 10) await run(insert, [projectId, bytes, Math.min(10, count - done)]);
}
