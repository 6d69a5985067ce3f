import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { pruneNotifications } from '../../src/notifications/retention.ts';
import { startApp, type TestApp } from '../support/app.ts';
import { type Connection, openConnection } from '../support/sql.ts';

const LIMIT = 2 ** 20;
/** The bytes of one of the notifications below, without those of its title. */
const SIZE = 300 + 3 * 'test.large'.length + 60_000 + '{"a":"é"}'.length + 1;

let portico: TestApp;
let connection: Connection;
beforeAll(async () => {
  portico = await startApp({ NOTIFICATION_MIB_PER_PROJECT: '1', RATE_LIMIT_USER: '1000000' });
  connection = await openConnection(portico);
});
afterAll(async () => {
  await connection.close();
  await portico.close();
});

const makeNotifications = (titles: readonly string[]) =>
  titles.map((title) => ({ kind: 'test.large', severity: 'info', title, body: '語'.repeat(20_000), data: { a: 'é' } }));

/** Publishes them in as many calls, under aliases of one document. */
function publish(projectId: string, calls: ReadonlyArray<readonly string[]>) {
  const inputs = calls.map((titles) => ({
    organizationId: portico.demo.organization_id,
    projectId,
    notifications: makeNotifications(titles),
  }));
  const aliases = inputs.map((_, index) => `a${index}: publishNotifications(input: $i${index}) { notifications { sequence } }`);
  const parameters = inputs.map((_, index) => `$i${index}: PublishNotificationsInput!`);
  return portico.graphql(
    `mutation (${parameters.join(', ')}) { ${aliases.join(' ')} }`,
    Object.fromEntries(inputs.map((input, index) => [`i${index}`, input])),
  );
}

async function readBytes(projectId: string) {
  const [row] = await connection.run(`SELECT notification_bytes('${projectId}')::int AS bytes`);
  return row?.bytes;
}

async function createProject(): Promise<string> {
  const [row] = await connection.run(
    `INSERT INTO projects (organization_id, name) VALUES ('${portico.demo.organization_id}', 'large') RETURNING id`,
  );
  return String(row?.id);
}

describe('the bytes of a log', () => {
  test('are those of its entries but the oldest, for single and joint inserts of any program', async () => {
    const projectId = await createProject();
    expect(await readBytes(projectId)).toBe(0);
    await publish(projectId, [['oldest'], ['12', '345']]);
    expect(await readBytes(projectId)).toBe(2 * SIZE + 5);
    await connection.run(
      `INSERT INTO notifications (project_id, kind, severity, title, resource_type, resource_id)
       SELECT '${projectId}', 'é', 'info', 'ab', 'vm', 'xyz' FROM generate_series(1, 3)`,
    );
    expect(await readBytes(projectId)).toBe(2 * SIZE + 5 + 3 * (300 + 3 * 2 + 2 + 2 + 3 * 3 + 2));
  });

  test('fall as the oldest are deleted, to nothing, and grow again from there', async () => {
    const projectId = await createProject();
    const insert = (age: string) =>
      connection.run(
        `INSERT INTO notifications (project_id, kind, severity, title, created)
         VALUES ('${projectId}', 'k', 'info', 't', now() - interval '${age}')`,
      );
    const one = 300 + 6;
    for (const age of ['9 days', '9 days', '2 days', '2 days', '2 days']) await insert(age);
    expect(await readBytes(projectId)).toBe(4 * one);
    await pruneNotifications(portico.app.database, 5);
    expect(await readBytes(projectId)).toBe(2 * one);
    await pruneNotifications(portico.app.database, 1);
    expect(await readBytes(projectId)).toBe(0);
    for (const age of ['1 hour', '1 hour']) await insert(age);
    expect(await readBytes(projectId)).toBe(one);
  });

  test('cannot be set by an insert', async () => {
    const projectId = await createProject();
    await connection.run(
      `INSERT INTO notifications (project_id, kind, severity, title, bytes_through)
       SELECT '${projectId}', 'k', 'info', 't', -1000000000000 FROM generate_series(1, 2)`,
    );
    expect(await readBytes(projectId)).toBe(306);
  });
});

test('a project at its quota of notification bytes is refused more until some are deleted, unlike other projects', async () => {
  const [full, other] = [await createProject(), await createProject()];
  const calls = Array.from({ length: 5 }, (_, index) => ['one', 'two', 'three'].map((title) => `${title} ${index}`));
  const first = await publish(full, calls);
  expect(first.json.errors).toBeUndefined();
  const refused = await publish(full, [...calls, ['last']]);
  // The one that passes the limit is the last that is taken.
  expect(Object.values(refused.json.data).map((payload) => payload !== null)).toEqual([true, true, false, false, false, false]);
  for (const error of refused.json.errors) {
    expect(error).toMatchObject({
      message: 'The notifications of the project take as many bytes as they may.',
      extensions: { code: 'conflict', context: { quota: 'notification_bytes_per_project', limit: LIMIT } },
    });
  }
  const bytes = await readBytes(full);
  expect(bytes).toBeGreaterThanOrEqual(LIMIT);
  expect(bytes).toBeLessThan(LIMIT + 256 * 1024);
  const [{ count } = { count: null }] = await connection.run(
    `SELECT count(*)::int AS count FROM notifications WHERE project_id = '${full}'`,
  );
  expect(count).toBe(21);

  expect((await publish(other, [['one']])).json.errors).toBeUndefined();
  await connection.run(`UPDATE notifications SET created = created - interval '9 days' WHERE project_id = '${full}' AND sequence <= 3`);
  await pruneNotifications(portico.app.database, 5);
  expect((await publish(full, [['again']])).json.data.a0.notifications).toEqual([{ sequence: 22 }]);
});
