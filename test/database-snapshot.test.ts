import { expect, inject, it } from 'vitest';
import { openSnapshot } from './support/snapshot.ts';

const origin = inject('origin');
const path = 'snapshot' in origin ? origin.snapshot : '';

const count =
  'SELECT (SELECT count(*) FROM dashboards)::int AS dashboards, (SELECT sum(last_sequence) FROM notification_logs)::int AS entries';

/** The rows of all tables, and how many columns have statistics. */
async function digest(database: Awaited<ReturnType<typeof openSnapshot>>) {
  const { rows: tables } = await database.query<{ name: string }>(`SELECT relname AS name FROM pg_stat_user_tables ORDER BY relname`);
  const parts = tables.map(({ name }) => `SELECT '${name}' AS name, md5(string_agg(t::text, '' ORDER BY t::text)) AS rows FROM ${name} t`);
  const { rows } = await database.query(
    `${parts.join(' UNION ALL ')} UNION ALL SELECT 'statistics', count(*)::text FROM pg_stats WHERE schemaname = 'public'`,
  );
  return rows;
}

const publish = `INSERT INTO notifications (project_id, kind, severity, title) SELECT id, 'test', 'info', 'New' FROM projects`;

it.runIf(path)('a database that an app has used is given to the next one as it was loaded', async () => {
  const used = await openSnapshot(path);
  const before = (await used.query(count)).rows;
  await used.exec(`${publish}; DELETE FROM dashboards; SET TIME ZONE 'Asia/Tokyo'; PREPARE one AS SELECT 1`);
  expect((await used.query(count)).rows).not.toEqual(before);
  await used.close();
  expect(() => used.query('SELECT 1')).toThrow('PGlite is closed');

  const next = await openSnapshot(path);
  expect((await next.query(count)).rows).toEqual(before);
  expect((await next.query('SHOW TIME ZONE')).rows).not.toEqual([{ TimeZone: 'Asia/Tokyo' }]);
  expect((await next.query('SELECT name FROM pg_prepared_statements')).rows).toEqual([]);
  // Triggers are enabled again: a publication gets the next sequence.
  await next.exec(publish);
  expect((await next.query(count)).rows).not.toEqual(before);
  await next.close();
});

it.runIf(path).each([
  'SELECT 1',
  publish,
  'UPDATE users SET name = name || name',
  `BEGIN; ${publish}; ROLLBACK; DELETE FROM dashboards`,
  'TRUNCATE instances CASCADE',
  // What depends on a row is deleted by foreign keys.
  'DELETE FROM projects',
  `${publish}; ANALYZE`,
])('a changed database has the rows of the snapshot for the next app: %s', async (work) => {
  const first = await openSnapshot(path);
  const before = await digest(first);
  await first.exec(work);
  await first.close();
  const next = await openSnapshot(path);
  expect(await digest(next)).toEqual(before);
  await next.close();
});

it.runIf(path)('a database whose tables or functions were changed is not used again', async () => {
  for (const change of [
    'ALTER TABLE dashboards ADD COLUMN added text',
    'ALTER TABLE notifications DISABLE TRIGGER ALL',
    'DROP FUNCTION uuid_v7() CASCADE',
  ]) {
    const changed = await openSnapshot(path);
    await changed.exec(change);
    await changed.close();
    const next = await openSnapshot(path);
    await next.exec(`INSERT INTO notifications (project_id, kind, severity, title) SELECT id, 'test', 'info', 'New' FROM projects LIMIT 1`);
    const { rows } = await next.query(`SELECT column_name FROM information_schema.columns WHERE column_name = 'added'`);
    expect(rows, change).toEqual([]);
    await next.close();
  }
});
