import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { deleteEndedApiKeys } from '../../src/accounts/service.ts';
import { deleteOldTaskCounters } from '../../src/compute/overview.ts';
import { deleteOldRecords } from '../../src/consoles/store.ts';
import { deleteOldStoredResponses } from '../../src/graph/storedresponse.ts';
import { deleteInBatches } from '../../src/platform/cleanup.ts';
import type { Database } from '../../src/platform/database.ts';
import { deleteOldTickets } from '../../src/tickets/service.ts';
import { startRestingApp, type TestApp } from '../support/app.ts';
import { passSeconds } from '../support/clock.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startRestingApp();
});
afterAll(() => app.close());
afterEach(() => void vi.useRealTimers());

const run = (sql: string) => app.app.database.prisma.$executeRawUnsafe(sql);
const count = async (sql: string) => {
  const [row] = await app.app.database.prisma.$queryRawUnsafe<Array<{ count: number }>>(`SELECT count(*)::int AS count FROM ${sql}`);
  return row?.count;
};

const someUser = '(SELECT id FROM users LIMIT 1)';
const someProject = '(SELECT id FROM projects LIMIT 1)';

interface Cleanup {
  readonly table: string;
  readonly clean: (database: Database, signal?: AbortSignal) => Promise<void>;
  /** The age of rows that are not old enough. */
  readonly kept: string;
  readonly row: string;
  readonly columns: string;
}

describe.each<Cleanup>([
  {
    table: 'websocket_tickets',
    clean: deleteOldTickets,
    kept: '59 minutes',
    row: `sha256(i::text::bytea), 'notifications', ${someProject}, ${someUser}, now(), now() - age, now()`,
    columns: 'ticket_hash, target, project_id, user_id, created, expires, session_expires',
  },
  {
    table: 'kept_answers',
    clean: deleteOldStoredResponses,
    kept: '24 hours',
    row: `${someUser}, sha256(i::text::bytea), 'x', 'x', now() - age`,
    columns: 'user_id, key_hash, request_hash, content, created',
  },
  {
    table: 'task_counters',
    clean: deleteOldTaskCounters,
    kept: '25 hours',
    row: `${someProject}, now() - age - i * interval '1 millisecond', 0, 0, 0, 0, 0, 0, 0`,
    columns: 'project_id, since, slot, pending, running, succeeded, failed, cancelled, failures',
  },
  {
    table: 'console_sessions',
    clean: (database, signal) => deleteOldRecords(database, 90, signal),
    kept: '89 days',
    row: `uuid_v7(), ${someProject}, uuid_v7(), 'x', uuid_v7(), 'x', 'serial', now() - age, 'ended', uuid_v7()`,
    columns: 'id, project_id, instance_id, instance_name, user_id, user_email, kind, ended, end_reason, owner',
  },
  {
    table: 'api_keys',
    clean: deleteEndedApiKeys,
    kept: '89 days',
    row: `${someUser}, 'Key', 'hint', sha256(i::text::bytea), CASE WHEN i % 3 > 0 THEN now() - age END,
      CASE i % 3 WHEN 0 THEN now() - age WHEN 1 THEN now() + age END`,
    columns: 'user_id, name, hint, secret_hash, revoked, expires',
  },
])('old rows of $table', ({ table, clean, kept, row, columns }) => {
  const fill = (from: number, rows: number, age: string) =>
    run(
      `INSERT INTO ${table} (${columns})
       SELECT ${row} FROM generate_series(${from}, ${from + rows - 1}) AS i CROSS JOIN (SELECT interval '${age}' AS age) AS one`,
    );
  beforeAll(() => run(`DELETE FROM ${table}`));

  test('are deleted in batches, each in its own transaction, until the job is stopped', async () => {
    await fill(1, 1_700, '91 days');
    const stopping = new AbortController();
    // Within the second batch the process is told to stop.
    let deletions = 0;
    app.listen((sql) => {
      deletions += Number(sql.includes(`DELETE FROM ${table}`));
      if (deletions === 2) stopping.abort();
    });
    await clean(app.app.database, stopping.signal);
    expect([deletions, await count(table)]).toEqual([2, 700]);
  });

  test('are all deleted, and no others, though the clock of the replica is two days ahead', async () => {
    passSeconds(2 * 86_400);
    await fill(5_000, 3, kept);
    await clean(app.app.database);
    expect(await count(table)).toBe(3);
    await clean(app.app.database);
    expect(await count(table)).toBe(3);
  });
});

test('a stopped job ends during the pause before its next batch', async () => {
  const stopping = new AbortController();
  const clock = vi.spyOn(performance, 'now').mockReturnValueOnce(0).mockReturnValueOnce(1_000_000);
  const deleteBatch = async (limit: number) => {
    setTimeout(() => stopping.abort(), 20);
    return Array(limit);
  };
  await deleteInBatches(deleteBatch, stopping.signal);
  expect(clock).toHaveBeenCalledTimes(2);
  clock.mockRestore();
});

test('a key that is valid is kept, however old it is', async () => {
  await run('DELETE FROM api_keys');
  await run(
    `INSERT INTO api_keys (user_id, name, hint, secret_hash, created, expires)
     SELECT ${someUser}, 'Key', 'hint', sha256(i::text::bytea), now() - interval '2 years', CASE i WHEN 2 THEN now() + interval '1 day' END
     FROM generate_series(1, 2) AS i`,
  );
  await deleteEndedApiKeys(app.app.database);
  expect(await count('api_keys')).toBe(2);
});

test('the record of a session that has not ended is kept, however old it is', async () => {
  await run('DELETE FROM console_sessions');
  await run(
    `INSERT INTO console_sessions (id, project_id, instance_id, instance_name, user_id, user_email, kind, created, owner)
     VALUES (uuid_v7(), ${someProject}, uuid_v7(), 'x', uuid_v7(), 'x', 'serial', now() - interval '2 years', uuid_v7())`,
  );
  await deleteOldRecords(app.app.database, 90);
  expect(await count('console_sessions')).toBe(1);
});

test('creating keys keeps 10,000 of the ended keys of a user', async () => {
  await run('DELETE FROM api_keys');
  const { owner, member } = app.demo.users;
  await run(
    `INSERT INTO api_keys (user_id, name, hint, secret_hash, revoked)
     SELECT '${member.id}'::uuid, 'Key of another ' || i, 'hint', sha256(('other ' || i)::bytea), now() FROM generate_series(1, 12) AS i`,
  );
  await run(
    `INSERT INTO api_keys (user_id, name, hint, secret_hash, revoked, expires)
     SELECT '${owner.id}'::uuid, 'Key ' || i, 'hint', sha256(i::text::bytea), CASE WHEN i % 2 = 0 THEN now() END,
       CASE WHEN i % 2 = 1 THEN now() END
     FROM generate_series(1, 10012) AS i ORDER BY i`,
  );
  const create = 'mutation { createApiKey(input: { name: "new" }) { apiKey { id } } }';
  const oldest = await app.app.database.prisma.apiKey.findMany({ where: { userId: owner.id }, orderBy: { id: 'asc' }, take: 12 });
  const left: Array<number | undefined> = [];
  for (let time = 0; time < 3; time += 1) {
    expect((await app.graphql(create)).json.errors).toBeUndefined();
    left.push(await app.app.database.prisma.apiKey.count({ where: { userId: owner.id } }));
  }
  expect(left).toEqual([10_003, 10_002, 10_003]);
  expect(await app.app.database.prisma.apiKey.count({ where: { id: { in: oldest.map(({ id }) => id) } } })).toBe(0);
  expect(await app.app.database.prisma.apiKey.count({ where: { userId: member.id } })).toBe(12);
});
