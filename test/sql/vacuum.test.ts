import { afterAll, beforeAll, expect, it } from 'vitest';
import { vacuumEmbedded } from '../../src/platform/database.ts';
import { isPostgres, startApp, type TestApp } from '../support/app.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.close());

it.skipIf(isPostgres)('the embedded database releases the space of deleted rows, and keeps no log of them', async () => {
  const { database } = app.app;
  const read = async (sql: string) => Object.values((await database.prisma.$queryRawUnsafe<object[]>(sql))[0] ?? {})[0];
  const size = () => read("SELECT pg_relation_size('websocket_tickets')::int");
  const checkpoint = () => read('SELECT redo_lsn::text FROM pg_control_checkpoint()');
  const before = { size: await size(), checkpoint: await checkpoint() };
  await database.prisma.$executeRawUnsafe(
    `INSERT INTO websocket_tickets (ticket_hash, target, project_id, user_id, created, expires, session_expires)
     SELECT sha256(number::text::bytea), 'notifications', $1::uuid, $2::uuid, now(), now(), now() FROM generate_series(1, 5000) AS number`,
    app.demo.project_id,
    app.demo.users.owner.id,
  );
  await database.prisma.$executeRawUnsafe('DELETE FROM websocket_tickets');
  expect(await size()).toBeGreaterThan(Number(before.size) + 300_000);
  await vacuumEmbedded(database);
  expect(await size()).toBeLessThanOrEqual(Number(before.size) + 8_192);
  expect(await checkpoint()).not.toBe(before.checkpoint);
});
