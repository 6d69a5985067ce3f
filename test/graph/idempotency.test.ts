import { randomUUID } from 'node:crypto';
import { getNamedType, isInputObjectType } from 'graphql';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { schema } from '../../src/schema.ts';
import { startApp, type TestApp, type TestResponse } from '../support/app.ts';
import { pickCases } from '../support/cases.ts';
import { send } from '../support/matrix.ts';
import { graphqlOperations, type Operation, routeOperations, variantsOf } from '../support/operations.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_USER: '1000000' });
});
afterAll(() => app.close());

const mutations = [...routeOperations(), ...graphqlOperations()].filter(
  // `renewCredential` writes nothing and concerns only the socket on which it is sent.
  ({ isMutation, name }) => isMutation && name !== 'mutation renewCredential',
);

type Who = 'owner' | 'admin';
type Values = Readonly<Record<string, unknown>>;

const run = (sql: string, ...values: unknown[]) => app.app.database.prisma.$executeRawUnsafe(sql, ...values);
const select = (sql: string, ...values: unknown[]) =>
  app.app.database.prisma.$queryRawUnsafe<Array<Record<string, unknown>>>(sql, ...values);

async function insert(sql: string, ...values: unknown[]): Promise<string> {
  const [row] = await select(`${sql} RETURNING id::text`, ...values);
  return String(row?.id);
}

/** Values for all variables of an operation; the rows that it changes are created for it. */
async function valuesFor(operation: Operation, who: Who = 'owner'): Promise<Values> {
  const { demo } = app;
  const user = demo.users[who];
  const own: Record<string, unknown> = {
    organization_id: demo.organization_id,
    project_id: demo.project_id,
    dashboard_id: await insert(
      `INSERT INTO dashboards (project_id, created_by, name) VALUES ($1::uuid, $2::uuid, 'As it was')`,
      demo.project_id,
      user.id,
    ),
    api_key_id: await insert(
      `INSERT INTO api_keys (user_id, name, hint, secret_hash) VALUES ($1::uuid, 'A key', 'hint', sha256(uuid_send(gen_random_uuid())))`,
      user.id,
    ),
    console_session_id: await insert(
      `INSERT INTO console_sessions (id, project_id, instance_id, instance_name, user_id, user_email, kind, owner)
       VALUES ($1::uuid, $2::uuid, $3::uuid, 'web', $4::uuid, $5, 'serial', uuid_v7())`,
      randomUUID(),
      demo.project_id,
      demo.instances.eligible,
      user.id,
      user.email,
    ),
    instance_id: demo.instances.eligible,
    target: 'console',
    // A patch of nothing changes nothing.
    ...(operation.name === 'mutation patchDashboard' && { name: 'As it is' }),
  };
  const [base] = variantsOf(operation);
  const known = operation.variables.filter(({ name }) => name in own).map(({ name }) => [name, own[name]]);
  return { ...base?.values, ...Object.fromEntries(known) };
}

function sendAs(who: Who, operation: Operation, values: Values): Promise<TestResponse> {
  const caller = { name: who, bearer: app.demo.users[who].token ?? '', user: who, isSession: true } as const;
  return send(app, { caller, operation, values });
}

const expectDone = (operation: Operation, { status, json }: TestResponse) => {
  expect(status, operation.name).toBe(operation.route?.status ?? 200);
  expect(json?.errors, operation.name).toBeUndefined();
};

/** The parts of a response that must be identical when it is replayed. */
const bytesOf = ({ status, text, headers }: TestResponse) => ({ status, text, etag: headers.etag, type: headers['content-type'] });
const codeOf = ({ json }: TestResponse) => json?.code ?? json?.errors?.[0]?.extensions.code;

/** The content of the database, without stored responses and the times at which credentials were last used. */
async function digest(): Promise<unknown> {
  const tables = await select(
    `SELECT table_name::text AS name FROM information_schema.tables
     WHERE table_schema = 'public' AND table_name NOT IN ('_prisma_migrations', 'kept_answers') ORDER BY 1`,
  );
  const parts = tables.map(
    ({ name }) =>
      `SELECT '${name}' AS name, count(*), sum(hashtextextended((to_jsonb(t) - 'last_used')::text, 0)) AS sum FROM "${name}" AS t`,
  );
  return select(`${parts.join(' UNION ALL ')} ORDER BY name`);
}

const countKept = async () => Number((await select('SELECT count(*) FROM kept_answers'))[0]?.count);

test('every mutation takes a key, and may be null in a response', () => {
  const fields = Object.values(schema.getMutationType()?.getFields() ?? {});
  const without = fields.filter((field) => {
    const input = getNamedType(field.args.find(({ name }) => name === 'input')?.type);
    const key = isInputObjectType(input) ? input.getFields().idempotencyKey : undefined;
    return String(key?.type) !== 'IdempotencyKey' || String(field.type).endsWith('!');
  });
  expect(without.map(({ name }) => name)).toEqual(['renewCredential']);
  const routes = routeOperations().filter(({ route }) => route && route.method !== 'GET');
  expect(routes.filter(({ variables }) => !variables.some(({ name }) => name === 'idempotency_key'))).toEqual([]);
  expect(mutations.length).toBe(routes.length + fields.length - 1);
});

test.each(mutations.map((operation) => [operation.name, operation] as const))(
  '%s is done once, and answered as the first time, whatever has happened in between',
  async (_name, operation) => {
    const values: Values = { ...(await valuesFor(operation)), idempotency_key: randomUUID() };
    const untouched = await digest();
    const first = await sendAs('owner', operation, values);
    expectDone(operation, first);
    const done = await digest();
    expect(done).not.toEqual(untouched);
    expect(bytesOf(await sendAs('owner', operation, values))).toEqual(bytesOf(first));
    expect(await digest()).toEqual(done);
    await run(`UPDATE dashboards SET name = 'As it is now', version = version + 7, modified = now()`);
    await run(`UPDATE api_keys SET name = 'Another name', revoked = now() WHERE name = 'A key'`);
    await run(`UPDATE notification_states SET read_through = 0`);
    await run(`DELETE FROM dashboards WHERE id = $1::uuid`, values.dashboard_id ?? randomUUID());
    const changed = await digest();
    expect(bytesOf(await sendAs('owner', operation, values))).toEqual(bytesOf(first));
    expect(await digest()).toEqual(changed);
  },
);

/** The other checks for each mutation. */
const checks: Readonly<Record<string, (operation: Operation) => Promise<void>>> = {
  'is refused with the key of another request, and nothing is done': async (operation) => {
    const key = randomUUID();
    expectDone(operation, await sendAs('owner', operation, { ...(await valuesFor(operation)), idempotency_key: key }));
    const fresh = await valuesFor(operation);
    const elsewhere = 'project_id' in fresh ? { project_id: app.demo.empty_project_id } : { name: 'another' };
    const other = { ...fresh, ...elsewhere, idempotency_key: key };
    const before = await digest();
    const refused = await sendAs('owner', operation, other);
    expect([refused.status, codeOf(refused)]).toEqual([operation.route ? 409 : 200, 'idempotency_key_reused']);
    expect(await digest()).toEqual(before);
  },
  'knows nothing of the key of another user': async (operation) => {
    const key = randomUUID();
    const values = { ...(await valuesFor(operation, 'admin')), idempotency_key: key };
    const other = { ...(await valuesFor(operation, 'owner')), idempotency_key: key };
    expectDone(operation, await sendAs('owner', operation, other));
    // Notifications that the admin has already read cannot be marked again.
    await run(`UPDATE notification_states SET read_through = 0`);
    await run(`DELETE FROM notification_reads`);
    const before = await digest();
    expectDone(operation, await sendAs('admin', operation, values));
    expect(await digest()).not.toEqual(before);
  },
  'is done once where 20 are sent at once': async (operation) => {
    const values = { ...(await valuesFor(operation)), idempotency_key: randomUUID() };
    const kept = await countKept();
    const responses = await Promise.all(Array.from({ length: 20 }, () => sendAs('owner', operation, values)));
    for (const response of responses) expectDone(operation, response);
    expect(new Set(responses.map((response) => JSON.stringify(bytesOf(response)))).size).toBe(1);
    expect(await countKept()).toBe(kept + 1);
  },
  'without a key leaves nothing behind': async (operation) => {
    const kept = await countKept();
    expectDone(operation, await sendAs('owner', operation, await valuesFor(operation)));
    expect(await countKept()).toBe(kept);
  },
};

const cases = mutations.flatMap((operation) =>
  Object.entries(checks).map(([title, check]) => [`${operation.name} ${title}`, operation, check] as const),
);

test.each(pickCases(cases))('%s', (_title, operation, check) => check(operation));
