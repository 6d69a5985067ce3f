import type { TestApp } from './app.ts';
import { openConnection } from './sql.ts';

/**
 * Runs a statement with the table's limits disabled, to create rows as long as those from before the limits. The gateway's own
 * connections would end it after five seconds, which many large rows may take on a slow machine.
 */
export async function runUnlimited(app: TestApp, table: string, sql: string, ...values: unknown[]): Promise<void> {
  const { run, close } = await openConnection(app);
  await run(`ALTER TABLE ${table} DISABLE TRIGGER USER`);
  await run(sql, values);
  await run(`ALTER TABLE ${table} ENABLE TRIGGER USER`);
  await close();
}

/** Adds a hundred dashboards of 750 KB, and as many notifications, tasks and SSH keys. Returns the id of one of the dashboards. */
export async function addLargeRows(app: TestApp): Promise<string> {
  const { demo } = app;
  await runUnlimited(
    app,
    'dashboards',
    `INSERT INTO dashboards (project_id, created_by, name, description)
     SELECT $1::uuid, $2::uuid, 'Large ' || number, repeat('x', 750000) FROM generate_series(1, 100) AS number`,
    demo.project_id,
    demo.users.owner.id,
  );
  await runUnlimited(
    app,
    'tasks',
    `INSERT INTO tasks (project_id, kind, status, error, started, finished)
     SELECT $1::uuid, 'test', 'failed', repeat('x', 750000), now(), now() FROM generate_series(1, 100)`,
    demo.project_id,
  );
  await runUnlimited(
    app,
    'ssh_keys',
    `INSERT INTO ssh_keys (project_id, name, public_key, fingerprint)
     SELECT $1::uuid, 'Large', repeat('x', 750000), '' FROM generate_series(1, 100)`,
    demo.project_id,
  );
  const [log] = await app.app.database.query<{ last: number }>`
    SELECT last_sequence::int AS last FROM notification_logs WHERE project_id = ${demo.project_id}::uuid`;
  await runUnlimited(
    app,
    'notifications',
    `INSERT INTO notifications (project_id, sequence, kind, severity, title, body, data)
     SELECT $1::uuid, $2::bigint + number, 'test', 'info', 'Large', repeat('x', 750000), json_build_object('x', repeat('y', 250000))
     FROM generate_series(1, 100) AS number`,
    demo.project_id,
    log?.last ?? 0,
  );
  await app.app.database.query`
    UPDATE notification_logs SET last_sequence = last_sequence + 100 WHERE project_id = ${demo.project_id}::uuid`;
  const [dashboard] = await app.app.database.query<{ id: string }>`SELECT id FROM dashboards WHERE name = 'Large 1'`;
  return dashboard?.id ?? '';
}
