import { expect, inject, it } from 'vitest';
import { openSnapshot } from './support/snapshot.ts';

const origin = inject('origin');
const path = 'snapshot' in origin ? origin.snapshot : '';

const count =
  'SELECT (SELECT count(*) FROM dashboards)::int AS dashboards, (SELECT sum(last_sequence) FROM notification_logs)::int AS entries';
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
