import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { runUnlimited } from '../support/large.ts';

let app: TestApp;
let place: { organizationId: string; projectId: string };
beforeAll(async () => {
  app = await startApp();
  place = { organizationId: app.demo.organization_id, projectId: app.demo.project_id };
});
afterAll(() => app.close());

const create = 'mutation ($input: CreateDashboardInput!) { createDashboard(input: $input) { dashboard { id } } }';
const publish = 'mutation ($input: PublishNotificationInput!) { publishNotification(input: $input) { notification { id } } }';
const createKey = 'mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { apiKey { id } } }';
const notification = { kind: 'test', severity: 'info', title: 'Test' };

/** `length` code points, each of which takes two UTF-16 units and four bytes in UTF-8. */
const emoji = (length: number) => '😀'.repeat(length);
/** A value whose JSON text has `bytes` bytes. */
const json = (bytes: number) => 'x'.repeat(bytes - 2);
const object = (bytes: number) => ({ x: 'x'.repeat(bytes - '{"x":""}'.length) });
const characters = (limit: number) => `Ensure this field has no more than ${limit} characters.`;
const bytes = (limit: number) => `Ensure this value takes no more than ${limit} bytes.`;

interface Limit {
  readonly field: string;
  readonly query: string;
  readonly input: (value: unknown) => Record<string, unknown>;
  readonly make: (length: number) => unknown;
  readonly limit: number;
  readonly message: (limit: number) => string;
}

const dashboardText = (field: string, limit: number): Limit => ({
  field,
  query: create,
  input: (value) => ({ ...place, name: 'Long', [field]: value }),
  make: emoji,
  limit,
  message: characters,
});
const notificationText = (field: string, limit: number): Limit => ({
  ...dashboardText(field, limit),
  query: publish,
  input: (value) => ({ ...place, ...notification, [field]: value }),
});

const limits: readonly Limit[] = [
  dashboardText('name', 255),
  dashboardText('description', 10_000),
  { ...dashboardText('widgets', 262_144), make: json, message: bytes },
  notificationText('kind', 255),
  notificationText('title', 500),
  notificationText('body', 20_000),
  notificationText('resourceType', 255),
  notificationText('resourceId', 255),
  { ...notificationText('data', 65_536), make: object, message: bytes },
  { ...dashboardText('name', 255), query: createKey, input: (name) => ({ name }) },
];

describe.each(limits)('$field of at most $limit', ({ field, query, input, make, limit, message }) => {
  it('is taken at its limit, and refused as a field above it', async () => {
    const taken = await app.graphql(query, { input: input(make(limit)) });
    expect(taken.json.errors).toBeUndefined();
    const refused = await app.graphql(query, { input: input(make(limit + 1)) });
    expect(refused.json.errors?.[0].extensions).toEqual({ code: 'validation_failed', fields: { [field]: [message(limit)] } });
  });
});

it('v1 refuses all fields that are too long at once', async () => {
  const { status, json: fields } = await app.ask('POST', `${app.projectPath}/monitoring/dashboards`, {
    body: { name: emoji(256), description: emoji(10_001), widgets: json(262_145) },
  });
  expect({ status, fields }).toEqual({
    status: 400,
    fields: { name: [characters(255)], description: [characters(10_000)], widgets: [bytes(262_144)] },
  });
});

it('a filter is bounded, too', async () => {
  const { json: fields, status } = await app.ask('GET', `${app.projectPath}/notifications?kind=${'k'.repeat(256)}`);
  expect({ status, fields }).toEqual({ status: 400, fields: { kind: [characters(255)] } });
});

describe('the database', () => {
  const execute = (sql: string, ...values: unknown[]) => app.app.database.prisma.$executeRawUnsafe(sql, ...values);
  const insertDashboard = (column: string, value: string) =>
    `INSERT INTO dashboards (project_id, created_by, ${column === 'name' ? 'name' : `name, ${column}`})
     VALUES ('${app.demo.project_id}', '${app.demo.users.owner.id}', ${column === 'name' ? value : `'x', ${value}`})`;
  const insertNotification = (column: string, value: string) => {
    const columns: Record<string, string> = { kind: `'x'`, severity: `'info'`, title: `'x'`, [column]: value };
    return `INSERT INTO notifications (project_id, ${Object.keys(columns).join(', ')})
      VALUES ('${app.demo.project_id}', ${Object.values(columns).join(', ')})`;
  };
  const text = (length: number) => `repeat('é', ${length})`;

  it.each<[string, number, (length: number) => string]>([
    ['dashboards.name', 255, (length) => insertDashboard('name', text(length))],
    ['dashboards.description', 10_000, (length) => insertDashboard('description', text(length))],
    ['dashboards.widgets', 262_144, (length) => insertDashboard('widgets', `to_json(repeat('x', ${length - 2}))`)],
    ['notifications.kind', 255, (length) => insertNotification('kind', text(length))],
    ['notifications.title', 500, (length) => insertNotification('title', text(length))],
    ['notifications.body', 20_000, (length) => insertNotification('body', text(length))],
    ['notifications.resource_type', 255, (length) => insertNotification('resource_type', text(length))],
    ['notifications.resource_id', 255, (length) => insertNotification('resource_id', text(length))],
    ['notifications.data', 65_536, (length) => insertNotification('data', `('{"x":"' || repeat('x', ${length - 8}) || '"}')::json`)],
    [
      'api_keys.name',
      255,
      (length) =>
        `INSERT INTO api_keys (user_id, name, hint, secret_hash)
         VALUES ('${app.demo.users.owner.id}', ${text(length)}, 'x', '\\x${length.toString(16).padStart(4, '0')}')`,
    ],
    ['organizations.name', 255, (length) => `INSERT INTO organizations (name) VALUES (${text(length)})`],
    [
      'tasks.error',
      10_000,
      (length) => `INSERT INTO tasks (project_id, kind, status, error) VALUES ('${app.demo.project_id}', 'x', 'pending', ${text(length)})`,
    ],
  ])('takes %s up to %i, from any program, and no more', async (column, limit, insert) => {
    await execute(insert(limit));
    await expect(execute(insert(limit + 1))).rejects.toThrow(`${column} takes at most ${limit}`);
  });

  it('limits every text, but those that only the gateway writes, from limited ones', async () => {
    const rows = await app.app.database.prisma.$queryRawUnsafe<Array<{ name: string }>>(`
      SELECT relname || '.' || attname AS name FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
      WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relname !~ '^_' AND attnum > 0 AND NOT attisdropped
        AND atttypid IN ('text'::regtype, 'json'::regtype, 'jsonb'::regtype)
        AND (SELECT count(*) FROM pg_trigger WHERE tgrelid = attrelid
          AND tgname IN ('limit_' || attname || '_insert', 'limit_' || attname || '_update')) <> 2
      ORDER BY 1`);
    expect(
      rows.map(({ name }) => name),
      'a column of text or JSON needs a limit: two triggers in its migration (CONTRIBUTING.md, “Add a field”)',
    ).toEqual(['api_keys.hint', 'console_sessions.instance_name', 'console_sessions.user_email']);
  });

  it('leaves the log without a gap where it refuses', async () => {
    const last = async () =>
      (
        await app.app.database.query<{ last: number }>`
      SELECT last_sequence::int AS last FROM notification_logs WHERE project_id = ${app.demo.project_id}::uuid`
      )[0]?.last;
    const before = await last();
    await expect(execute(insertNotification('title', text(501)))).rejects.toThrow('notifications.title');
    expect(await last()).toBe(before);
  });

  it('keeps longer texts from before readable, and the other fields of their rows changeable', async () => {
    await runUnlimited(
      app,
      'dashboards',
      `INSERT INTO dashboards (project_id, created_by, name, description, is_default, widgets)
       VALUES ($1::uuid, $2::uuid, repeat('n', 300), repeat('d', 750000), true, to_json(repeat('w', 300000)))`,
      app.demo.empty_project_id,
      app.demo.users.owner.id,
    );
    const path = `/v1/organizations/${place.organizationId}/projects/${app.demo.empty_project_id}/monitoring/dashboards`;
    const [old] = (await app.ask('GET', path)).json.results;
    expect([old.name.length, old.description.length, old.widgets.length]).toEqual([300, 750_000, 300_000]);
    // Another dashboard becomes the default, which updates the old one.
    expect((await app.ask('POST', path, { body: { name: 'New', is_default: true } })).status).toBe(201);
    const after = await app.ask('GET', `${path}/${old.id}`);
    expect(after.json).toEqual({ ...old, is_default: false, modified: expect.any(String) });
    // Some programs write all columns, including an unchanged text.
    await execute('UPDATE dashboards SET name = name, description = description, widgets = widgets WHERE id = $1::uuid', old.id);
    await expect(execute(`UPDATE dashboards SET description = description || 'x' WHERE id = $1::uuid`, old.id)).rejects.toThrow(
      'dashboards.description takes at most 10000',
    );
    const replaced = await app.ask('PUT', `${path}/${old.id}`, { body: { name: 'Short' } });
    expect({ status: replaced.status, name: replaced.json.name, description: replaced.json.description }).toEqual({
      status: 200,
      name: 'Short',
      description: '',
    });
  });
});

describe('the valid keys of a user are bounded', () => {
  it('which excludes revoked and expired ones', async () => {
    await app.app.database.prisma.$executeRaw`DELETE FROM api_keys WHERE user_id = ${app.demo.users.viewer.id}::uuid`;
    await app.app.database.prisma.$executeRaw`
      INSERT INTO api_keys (user_id, name, hint, secret_hash, expires, revoked)
      SELECT ${app.demo.users.viewer.id}::uuid, 'One of many', 'x', sha256(convert_to('viewer' || number, 'UTF8')),
        CASE WHEN number > 99 AND number <= 200 THEN now() - interval '1 hour' WHEN number % 2 = 0 THEN now() + interval '1 hour' END,
        CASE WHEN number > 200 THEN now() END
      FROM generate_series(1, 300) AS number`;
    const add = () => app.graphql(createKey, { input: { name: 'One more' } }, { as: 'viewer' });
    expect((await add()).json.errors).toBeUndefined();
    const { json: refused } = await add();
    expect(refused.errors[0]).toMatchObject({
      message: 'The user has as many API keys as they may have.',
      extensions: { code: 'conflict', context: { quota: 'keys_per_user', limit: 100 } },
    });
    await app.app.database.prisma.$executeRaw`
      UPDATE api_keys SET revoked = now() WHERE user_id = ${app.demo.users.viewer.id}::uuid AND revoked IS NULL AND expires > now()`;
    expect((await add()).json.errors).toBeUndefined();
  });
});
