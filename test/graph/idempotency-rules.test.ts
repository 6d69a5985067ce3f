import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { deleteOldStoredResponses, StoredResponse } from '../../src/graph/storedresponse.ts';
import { type Ask, countStatements, isPostgres, startRestingApp, type TestApp, type TestResponse } from '../support/app.ts';
import { openSocket } from '../support/feed.ts';
import { openConnection } from '../support/sql.ts';

const KEYS = 400;

let app: TestApp;
beforeAll(async () => {
  app = await startRestingApp({ RATE_LIMIT_USER: '1000000', IDEMPOTENCY_KEYS_PER_USER: String(KEYS) });
});
afterAll(() => app.close());

const run = (sql: string, ...values: unknown[]) => app.app.database.prisma.$executeRawUnsafe(sql, ...values);
const select = (sql: string, ...values: unknown[]) =>
  app.app.database.prisma.$queryRawUnsafe<Array<Record<string, unknown>>>(sql, ...values);

const create = 'mutation($input: CreateDashboardInput!) { createDashboard(input: $input) { dashboard { id name version created } } }';
const place = () => ({ organizationId: app.demo.organization_id, projectId: app.demo.project_id });
const boards = () => `${app.projectPath}/monitoring/dashboards`;
const withKey = (key: string | undefined) => (key === undefined ? {} : { 'idempotency-key': key });
const post = (key: string | undefined, body: unknown, as: Ask['as'] = 'owner') =>
  app.ask('POST', boards(), { as, headers: withKey(key), body });
const mutate = (key: string | null, rest: object, document = create, as: Ask['as'] = 'owner') =>
  app.graphql(document, { input: { ...place(), ...rest, idempotencyKey: key } }, { as });
const count = async (table: 'dashboards' | 'notifications' | 'api_keys' | 'kept_answers', where = 'true') =>
  Number((await select(`SELECT count(*) FROM ${table} WHERE ${where}`))[0]?.count);
const named = (name: string) => count('dashboards', `name = '${name}'`);
const bytesOf = ({ status, text, headers }: TestResponse) => ({ status, text, etag: headers.etag });
const codeOf = ({ json }: TestResponse) => json?.code ?? json?.errors?.[0]?.extensions.code;
const reused = [409, 'idempotency_key_reused'];

describe('the same request', () => {
  test('ignores white space, the order of fields and explicit defaults', async () => {
    const key = randomUUID();
    const first = await post(key, { name: 'A', widgets: { b: [1, { d: 1, c: 2 }], a: 1 } });
    expect(first.status).toBe(201);
    const again = await post(`"${key}"`, '{ "widgets": {"a":1, "b":[1,{"c":2,"d":1}]},\n  "is_public": false, "name": "\\u0041" }');
    expect(bytesOf(again)).toEqual(bytesOf(first));
    for (const other of [{ name: 'a' }, { name: 'A' }, { name: 'A', widgets: { b: [1, { d: 1, c: 3 }], a: 1 } }]) {
      const refused = await post(key, other);
      expect([refused.status, codeOf(refused)]).toEqual(reused);
      expect(refused.json.error).toBe(refused.json.detail);
    }
  });

  // JavaScript parses the last text of each row to the same value as the first.
  test.each([
    ['9007199254740993', ' 9007199254740993 ', '9007199254740992.0'],
    ['{"2":1,"1":-0}', ' { "1": -0, "2": 1 } ', '{"2":1,"1":0}'],
    ['{"b":[{"10":"é","9":1.50}],"a":null}', '{"a":null,"b":[{"9":1.50,"10":"\\u00e9"}]}', '{"b":[{"10":"é","9":1.5}],"a":null}'],
  ])('has the widgets %s to the digit, and comes back so', async (widgets, same, other) => {
    const ways: Record<string, (widgets: string, key: string | null) => Promise<TestResponse>> = {
      rest: (json, key) => post(key ?? undefined, `{"name":"digits","widgets":${json}}`),
      variables: (json, key) => {
        const input = JSON.stringify({ ...place(), name: 'digits', idempotencyKey: key }).replace(/}$/, `,"widgets":${json}}`);
        return app.ask('POST', '/graphql', { body: `{"query":${JSON.stringify(widgetsOf)},"variables":{"input":${input}}}` });
      },
    };
    const widgetsOf = 'mutation($input: CreateDashboardInput!) { createDashboard(input: $input) { dashboard { id widgets name } } }';
    for (const [way, send] of Object.entries(ways)) {
      const key = randomUUID();
      const made = await count('dashboards');
      const first = await send(widgets, key);
      expect(first.text.includes(`"widgets":${widgets},`), first.text).toBe(true);
      expect(bytesOf(await send(widgets, key)), way).toEqual(bytesOf(first));
      expect(bytesOf(await send(same, key)), way).toEqual(bytesOf(first));
      const refused = await send(other, key);
      expect([refused.status, codeOf(refused)]).toEqual([way === 'rest' ? 409 : 200, 'idempotency_key_reused']);
      expect(await count('dashboards')).toBe(made + 1);
    }
  });

  test('has the same version in `If-Match`, and is not another operation', async () => {
    const { id } = (await post(undefined, { name: 'versions' })).json;
    const key = randomUUID();
    const put = (tag: string) =>
      app.ask('PUT', `${boards()}/${id}`, { headers: { ...withKey(key), 'if-match': tag }, body: { name: 'versions' } });
    expect((await put('"1"')).status).toBe(200);
    // Without the key this would be a conflict, because the first request made it version 2.
    expect((await put('W/"1"')).headers.etag).toBe('"2"');
    for (const other of [await put('"2"'), await put('*'), await app.ask('DELETE', `${boards()}/${id}`, { headers: withKey(key) })])
      expect([other.status, codeOf(other)]).toEqual(reused);
  });

  test('has an equivalent selection in GraphQL, in any notation', async () => {
    const key = randomUUID();
    const first = await mutate(key, { name: 'written' });
    const rewritten = `mutation again($input: CreateDashboardInput!, $yes: Boolean! = true) {
      createDashboard(input: $input) { dashboard { id, name, version, created } } # as before
      other: __typename @include(if: $yes) }`;
    const again = await mutate(key, { name: 'written', description: '' }, rewritten);
    expect(again.json.data.createDashboard).toEqual(first.json.data.createDashboard);
    const literal = `mutation { mine: createDashboard(input: { organizationId: "${place().organizationId}", projectId: "${place().projectId}",
      name: "written", idempotencyKey: "${key}" }) { dashboard { id name version created } } }`;
    expect((await app.graphql(literal)).json.data.mine).toEqual(first.json.data.createDashboard);
    for (const selection of ['dashboard { id }', 'dashboard { ...all } ', 'dashboard { id name version created: modified }']) {
      const fragment = selection.includes('...') ? 'fragment all on Dashboard { id name version created }' : '';
      const document = `mutation($input: CreateDashboardInput!) { createDashboard(input: $input) { ${selection} } } ${fragment}`;
      expect(codeOf(await mutate(key, { name: 'written' }, document))).toBe('idempotency_key_reused');
    }
    expect(codeOf(await post(key, { name: 'written' }))).toBe('idempotency_key_reused');
    expect(await named('written')).toBe(1);
  });

  test('has the same variables and fragments in its selection', async () => {
    const document = (fragment: string) => `mutation($input: CreateDashboardInput!, $n: Int!, $no: Boolean!) {
      createDashboard(input: $input) { dashboard { ...board } } }
      fragment board on Dashboard { id ...more } fragment more on Dashboard { ${fragment} }`;
    const key = randomUUID();
    const ask = (fragment: string, n: number, no: boolean) =>
      app.graphql(document(fragment), { input: { ...place(), name: 'fragments', idempotencyKey: key }, n, no });
    const fragment = 'project { instances(first: $n) { nodes { id name } } } version @skip(if: $no)';
    const first = await ask(fragment, 1, false);
    expect(first.json.data.createDashboard.dashboard.project.instances.nodes).toHaveLength(1);
    expect(bytesOf(await ask(fragment, 1, false))).toEqual(bytesOf(first));
    for (const other of [await ask(fragment, 2, false), await ask(fragment, 1, true), await ask(`${fragment} name`, 1, false)])
      expect(codeOf(other)).toBe('idempotency_key_reused');
  });

  test('has the same response, including data beyond the written rows', async () => {
    const document = `mutation($input: PublishNotificationInput!) { publishNotification(input: $input) {
      notification { id sequence read data } } }`;
    const marked = `mutation($input: MarkNotificationsReadInput!) { markNotificationsRead(input: $input) {
      marked unreadCount project { unreadNotificationCount notifications(first: 2) { nodes { title read } } } notifications { title } } }`;
    const publish = {
      kind: 'test',
      severity: 'info',
      title: 'First',
      data: JSON.parse('{"__proto__":{"a":-0},"2":1,"1":[1e300,"\\u2028"]}'),
    };
    const key = randomUUID();
    const first = await mutate(key, publish, document);
    const { id } = first.json.data.publishNotification.notification;
    const second = randomUUID();
    const mark = await mutate(second, { notificationIds: [id] }, marked);
    expect(mark.json.data.markNotificationsRead.notifications).toEqual([{ title: 'First' }]);
    await mutate(null, { ...publish, title: 'Later' }, document);
    const notifications = await count('notifications');
    expect(bytesOf(await mutate(key, publish, document))).toEqual(bytesOf(first));
    expect(bytesOf(await mutate(second, { notificationIds: [id] }, marked))).toEqual(bytesOf(mark));
    expect(await count('notifications')).toBe(notifications);
  });

  test('may be one of several in a document, each with a key of its own', async () => {
    const document = `mutation($a: CreateDashboardInput!, $b: CreateDashboardInput!) {
      a: createDashboard(input: $a) { dashboard { id name } } b: createDashboard(input: $b) { dashboard { id name } } }`;
    const [a, b, c] = ['several a', 'several b', 'several c'].map((name) => ({ ...place(), name, idempotencyKey: randomUUID() }));
    const first = await app.graphql(document, { a, b });
    expect(bytesOf(await app.graphql(document, { a, b }))).toEqual(bytesOf(first));
    const mixed = await app.graphql(document, { a: c, b: a });
    expect(mixed.json.data.a.dashboard.name).toBe('several c');
    expect(mixed.json.data.b).toEqual(first.json.data.a);
    expect(await count('dashboards', "name LIKE 'several _'")).toBe(3);
    // The first field is executed before the second is rejected.
    const twice = await app.graphql(document, { a: b, b: { ...b, name: 'several d' } });
    expect([twice.json.data.a, twice.json.data.b]).toEqual([first.json.data.b, null]);
    expect(twice.json.errors.map(({ path }: { path: string[] }) => path)).toEqual([['b']]);
  });

  test('may be sent again through another socket or by HTTP', async () => {
    const input = { ...place(), name: 'by socket', idempotencyKey: randomUUID() };
    const overSocket = async () => {
      const socket = openSocket(app, '/graphql', {
        protocol: 'graphql-transport-ws',
        headers: { authorization: `Bearer ${app.demo.users.owner.token}` },
      });
      await new Promise((resolve) => socket.socket.once('open', resolve));
      socket.socket.send('{"type":"connection_init"}');
      await socket.until(({ type }) => type === 'connection_ack');
      socket.socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload: { query: create, variables: { input } } }));
      const { payload } = await socket.until(({ type }) => type === 'next');
      socket.socket.close();
      return payload;
    };
    const first = await overSocket();
    expect(first.errors).toBeUndefined();
    expect(await overSocket()).toEqual(first);
    expect((await app.graphql(create, { input })).json).toEqual(first);
    expect(await named('by socket')).toBe(1);
  });
});

describe('a refusal', () => {
  test('for the state of the data stays the response of its key', async () => {
    const { id } = (await post(undefined, { name: 'conflicts', is_default: true })).json;
    const key = randomUUID();
    const put = (as: string) =>
      app.ask('PUT', `${boards()}/${id}`, {
        headers: { ...withKey(as), 'if-match': '"2"' },
        body: { name: 'conflicts', is_default: true },
      });
    const refused = await put(key);
    expect([refused.status, refused.json.code, refused.json.context]).toEqual([409, 'conflict', { version: 1 }]);
    expect((await put(randomUUID())).status).toBe(409);
    await run('UPDATE dashboards SET version = 2 WHERE id = $1::uuid', id);
    expect(bytesOf(await put(key))).toEqual(bytesOf(refused));
    expect((await put(randomUUID())).headers.etag).toBe('"3"');
  });

  test('for the access, the role or the fields leaves nothing behind: the key is still free', async () => {
    const key = randomUUID();
    const kept = await count('kept_answers');
    const elsewhere = app.projectPath.replace(app.demo.project_id, app.demo.foreign.project_id);
    expect((await app.ask('POST', `${elsewhere}/monitoring/dashboards`, { headers: withKey(key), body: { name: 'x' } })).status).toBe(404);
    expect((await post(key, { name: '' })).json).toEqual({ name: ['This field may not be blank.'] });
    expect((await post(key, { name: 'by a viewer' }, 'viewer')).status).toBe(403);
    expect((await post(key, { name: 'x' }, null)).status).toBe(401);
    const session = await app.ask('POST', `${app.projectPath}/websocket-tickets`, {
      headers: withKey(key),
      as: { bearer: app.demo.users.owner.api_key },
      body: { target: 'notifications' },
    });
    expect([session.status, session.json.code]).toEqual([403, 'session_required']);
    const nowhere = await app.ask('DELETE', `${boards()}/${randomUUID()}`, { headers: withKey(key) });
    expect(nowhere.status).toBe(404);
    expect(await count('kept_answers')).toBe(kept);
    expect((await post(key, { name: 'still free' })).status).toBe(201);
  });

  test('for the access is returned although there is a stored response', async () => {
    const key = randomUUID();
    const body = { name: 'before they left' };
    const first = await post(key, body, 'member');
    expect(first.status).toBe(201);
    const member = app.demo.users.member.id;
    const [membership] = await select('SELECT role::text FROM project_members WHERE user_id = $1::uuid', member);
    const setRole = (role: unknown) => run('UPDATE project_members SET role = $1::project_role WHERE user_id = $2::uuid', role, member);
    await setRole('viewer');
    // The stored response is the member's own, and nothing is executed.
    expect(bytesOf(await post(key, body, 'member'))).toEqual(bytesOf(first));
    const rows = await select('SELECT project_id::text FROM project_members WHERE user_id = $1::uuid', member);
    await run('DELETE FROM project_members WHERE user_id = $1::uuid', member);
    const away = await post(key, body, 'member');
    expect([away.status, away.json.code]).toEqual([404, 'not_found']);
    expect((await post('not a key', { name: '' }, 'member')).status).toBe(400);
    for (const { project_id } of rows)
      await run(
        'INSERT INTO project_members (project_id, user_id, role) VALUES ($1::uuid, $2::uuid, $3::project_role)',
        project_id,
        member,
        membership?.role,
      );
  });

  test('for an API key is returned although its user’s session has a stored response', async () => {
    const key = randomUUID();
    const as = { bearer: app.demo.users.owner.api_key };
    const make = 'mutation($input: CreateApiKeyInput!) { createApiKey(input: $input) { key apiKey { id } } }';
    const input = { name: 'mine', idempotencyKey: key };
    const made = await app.graphql(make, { input });
    expect(made.json.data.createApiKey.key).toMatch(/^sk-portico-/);
    expect(codeOf(await app.graphql(make, { input }, { as }))).toBe('session_required');
    const revoke = 'mutation($input: RevokeApiKeyInput!) { revokeApiKey(input: $input) { apiKey { id } } }';
    const revoking = { id: made.json.data.createApiKey.apiKey.id, idempotencyKey: randomUUID() };
    expect((await app.graphql(revoke, { input: revoking })).json.errors).toBeUndefined();
    expect(codeOf(await app.graphql(revoke, { input: revoking }, { as }))).toBe('session_required');
    const ticket = { target: 'notifications' };
    const headers = withKey(randomUUID());
    const issued = await app.ask('POST', `${app.projectPath}/websocket-tickets`, { headers, body: ticket });
    expect(issued.status).toBe(201);
    expect((await app.ask('POST', `${app.projectPath}/websocket-tickets`, { headers, body: ticket, as })).status).toBe(403);
    // Keys of operations that do not require a session belong to the user, whichever credential is sent.
    const board = await post(key.slice(1), { name: 'by session' });
    expect(bytesOf(await post(key.slice(1), { name: 'by session' }, as))).toEqual(bytesOf(board));
  });
});

describe('a key', () => {
  const detail = 'Idempotency-Key must be 16 to 255 visible ASCII characters, without quotation marks and backslashes in it.';
  const long = 'the-key-of-a-request';
  const misspelled = [
    '',
    '"',
    '""',
    `${long} ${long}`,
    `"${long}`,
    `${long}"${long}`,
    `"${long}", "${long}"`,
    `${long}\\`,
    `${long}\u00e9`,
  ];
  const outsize = ['x'.repeat(15), 'x'.repeat(256), `"${'x'.repeat(15)}"`, `"${'x'.repeat(256)}"`];
  test.each([...misspelled, ...outsize])('may not be %j', async (key) => {
    const response = await post(key, { name: 'bad key' });
    expect([response.status, response.json]).toEqual([400, { detail, code: 'invalid_request', error: detail }]);
    const refused = await mutate(key, { name: 'bad key' });
    expect([codeOf(refused), refused.json.errors[0].extensions.fields]).toEqual([
      'validation_failed',
      { idempotencyKey: ['Must be 16 to 255 visible ASCII characters, without quotation marks and backslashes.'] },
    ]);
    expect(await named('bad key')).toBe(0);
  });

  test.each(['x'.repeat(16), "!#$%&'()*+,-./0:;<=>?@[]^_`{|}~", 'x'.repeat(255)])('may be %j', async (key) => {
    const first = await post(key, { name: 'good key' });
    expect(first.status).toBe(201);
    expect(bytesOf(await post(`"${key}"`, { name: 'good key' }))).toEqual(bytesOf(first));
  });

  test('given twice is none', async () => {
    const headers = [
      'Host',
      new URL(app.baseUrl).host,
      'Authorization',
      `Bearer ${app.demo.users.owner.token}`,
      'Content-Type',
      'application/json',
    ];
    const response = await app.ask('POST', boards(), {
      headers: [...headers, 'Idempotency-Key', 'one', 'Idempotency-Key', 'two'],
      body: { name: 'twice' },
    });
    expect([response.status, response.json.detail]).toEqual([400, detail]);
  });

  test('counts for what it is on writes alone, and a body cannot bring it', async () => {
    expect((await app.ask('GET', boards(), { headers: withKey('a b') })).status).toBe(200);
    const kept = await count('kept_answers');
    await post(undefined, { name: 'no header', idempotency_key: 'x', idempotencyKey: 'x' });
    await app.graphql('{ viewer { id } }', {}, { headers: withKey('x') });
    expect(await count('kept_answers')).toBe(kept);
  });

  test('may come from a page of an allowed origin', async () => {
    const headers = { origin: app.baseUrl, 'access-control-request-method': 'POST', 'access-control-request-headers': 'idempotency-key' };
    const response = await app.ask('OPTIONS', boards(), { as: null, headers });
    expect(response.headers['access-control-allow-headers']).toBe('idempotency-key');
  });
});

describe('a stored response', () => {
  test('can be read with the key, and not from the database alone', async () => {
    const key = `secret-${randomUUID()}`;
    const make = 'mutation($input: CreateApiKeyInput!) { createApiKey(input: $input) { key apiKey { name hint } } }';
    const made = await app.graphql(make, { input: { name: 'Sealed name', idempotencyKey: key } });
    const headers = withKey(`${key}-2`);
    const ticket = await app.ask('POST', `${app.projectPath}/websocket-tickets`, { headers, body: { target: 'notifications' } });
    expect(ticket.headers['cache-control']).toBe('no-store');
    const again = await app.ask('POST', `${app.projectPath}/websocket-tickets`, { headers, body: { target: 'notifications' } });
    expect([bytesOf(again), again.headers['cache-control']]).toEqual([bytesOf(ticket), 'no-store']);
    await post(`${key}-3`, { name: 'Sealed name', description: 'Sealed text' });
    const rows = await select("SELECT encode(key_hash || request_hash || content, 'hex') AS hex FROM kept_answers");
    const stored = rows.map(({ hex }) => Buffer.from(String(hex), 'hex').toString('latin1')).join('\n');
    const secrets = [key, made.json.data.createApiKey.key, ticket.json.ticket];
    for (const secret of [...secrets, 'Sealed name', 'Sealed text', 'dashboard']) expect(stored).not.toContain(secret);
    for (const secret of secrets) expect(app.logLines.join('\n')).not.toContain(secret);
  });

  test('is stored before it is sent: if that fails, a retry does not repeat the work', async () => {
    await run(
      `CREATE FUNCTION refuse_response() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'full' USING ERRCODE = '53100'; END $$`,
    );
    await run(
      'CREATE TRIGGER refuse_response BEFORE UPDATE ON kept_answers FOR EACH ROW WHEN (NEW.is_answered) EXECUTE FUNCTION refuse_response()',
    );
    const [restKey, key] = [randomUUID(), randomUUID()];
    const rest = await post(restKey, { name: 'unanswered', is_default: true });
    const graphql = await mutate(key, { name: 'unanswered' });
    expect([rest.status, graphql.status]).toEqual([503, 503]);
    expect(await named('unanswered')).toBe(2);
    await run('DROP TRIGGER refuse_response ON kept_answers');
    // The response shows the row as it was when written.
    await run(`UPDATE dashboards SET version = 9, description = 'changed since' WHERE name = 'unanswered'`);
    const first = await post(restKey, { name: 'unanswered', is_default: true });
    expect([first.status, first.headers.etag, first.json.description]).toEqual([201, '"1"', '']);
    expect(bytesOf(await post(restKey, { name: 'unanswered', is_default: true }))).toEqual(bytesOf(first));
    const said = await mutate(key, { name: 'unanswered' });
    expect(said.json.data.createDashboard.dashboard.version).toBe(1);
    expect(bytesOf(await mutate(key, { name: 'unanswered' }))).toEqual(bytesOf(said));
    expect(await named('unanswered')).toBe(2);
  });

  test('is claimed in the transaction of the work: if that fails, the work is rolled back', async () => {
    await run(
      `CREATE FUNCTION refuse_outcome() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'full' USING ERRCODE = '53100'; END $$`,
    );
    await run('CREATE TRIGGER refuse_outcome BEFORE UPDATE ON kept_answers FOR EACH ROW EXECUTE FUNCTION refuse_outcome()');
    const key = randomUUID();
    expect((await post(key, { name: 'undone' })).status).toBe(503);
    expect([await named('undone'), (await select('SELECT 1 FROM dashboards WHERE name = $1', 'undone')).length]).toEqual([0, 0]);
    await run('DROP TRIGGER refuse_outcome ON kept_answers');
    expect((await post(key, { name: 'undone' })).status).toBe(201);
  });

  test('is not one with errors: a retry may get a complete response', async () => {
    const instance = randomUUID();
    const document = `mutation($input: CreateDashboardInput!) { createDashboard(input: $input) {
      dashboard { id project { instance(id: "${instance}") { name } } } } }`;
    const ask = (key: string) => mutate(key, { name: 'answered better' }, document);
    const key = randomUUID();
    const first = await ask(key);
    expect([codeOf(first), first.json.data.createDashboard.dashboard.project]).toEqual(['not_found', { instance: null }]);
    expect(bytesOf(await ask(key))).toEqual(bytesOf(first));
    await run(
      `INSERT INTO instances (id, project_id, name, status, plan, region, vcpu, ram_mb, storage_gb)
       VALUES ($1::uuid, $2::uuid, 'late', 'active', 'vps-s', 'eu-test-1', 1, 1024, 10)`,
      instance,
      app.demo.project_id,
    );
    const { json } = await ask(key);
    const { id } = first.json.data.createDashboard.dashboard;
    expect(json).toEqual({ data: { createDashboard: { dashboard: { id, project: { instance: { name: 'late' } } } } } });
    expect(await named('answered better')).toBe(1);
  });

  test('expires after 24 hours, and is deleted an hour later', async () => {
    const key = randomUUID();
    const first = await post(key, { name: 'forgotten' });
    const age = (interval: string) => run(`UPDATE kept_answers SET created = now() - interval '${interval}'`);
    await age('23 hours 59 minutes');
    expect(bytesOf(await post(key, { name: 'forgotten' }))).toEqual(bytesOf(first));
    await age('24 hours 1 second');
    await deleteOldStoredResponses(app.app.database);
    expect(await count('kept_answers')).toBeGreaterThan(0);
    // The key counts as new, even for another request.
    const anew = await post(key, { name: 'forgotten again' });
    expect(anew.status).toBe(201);
    expect(bytesOf(await post(key, { name: 'forgotten again' }))).toEqual(bytesOf(anew));
    await age('25 hours 1 second');
    await deleteOldStoredResponses(app.app.database);
    expect(await count('kept_answers')).toBe(0);
  });

  test('is deleted with its user', async () => {
    const [{ id } = {}] = await select(`INSERT INTO users (email, name) VALUES ('gone@example.org', 'Gone') RETURNING id::text`);
    await run(`INSERT INTO kept_answers (user_id, key_hash, request_hash, content) VALUES ($1::uuid, '\\x00', '\\x00', '\\x00')`, id);
    await run('DELETE FROM users WHERE id = $1::uuid', id);
    expect(await count('kept_answers', `key_hash = '\\x00'`)).toBe(0);
  });

  test('takes a number of statements that does not depend on its content', async () => {
    const counted = async (request: () => Promise<TestResponse>) => (await countStatements(app, request)).statements;
    const key = randomUUID();
    const body = { name: 'counted' };
    // The session with the project; the claim, the write, its outcome and COMMIT; the stored response.
    expect(await counted(() => post(key, body))).toBe(1 + 4 + 1);
    // The claim, which fails, COMMIT, and the stored response.
    expect(await counted(() => post(key, body))).toBe(1 + 3);
    expect(await counted(() => post(undefined, body))).toBe(1 + 1);
  });
});

describe('a user', () => {
  const quota = { quota: 'idempotency_keys_per_user', limit: KEYS };
  const fill = async (user: string, rows: number, content: string) => {
    // The gateway's own connections would end the statement after five seconds.
    const connection = await openConnection(app);
    await connection.run(
      `INSERT INTO kept_answers (user_id, key_hash, request_hash, content)
       SELECT $1::uuid, sha256(convert_to('filled ' || number, 'UTF8')), '\\x00', ${content} FROM generate_series(1, ${rows}) AS number`,
      [user],
    );
    await connection.close();
  };
  const empty = (user: string) => run(`DELETE FROM kept_answers WHERE user_id = $1::uuid AND request_hash = '\\x00'`, user);

  const quotas: Array<[string, number, string]> = [
    ['as many keys as they may', KEYS, `'\\x00'::bytea`],
    ['as many bytes as they may', 2, `convert_to(repeat('x', 32 * 1024 * 1024), 'UTF8')`],
  ];
  // Writing that many bytes takes the embedded database seconds.
  test.each(isPostgres ? quotas : quotas.slice(0, 1))('with %s is refused another key, and nothing else', async (_name, rows, content) => {
    const { id } = app.demo.users.owner;
    const key = randomUUID();
    const first = await post(key, { name: 'before' });
    const revoke = 'mutation($input: RevokeApiKeyInput!) { revokeApiKey(input: $input) { apiKey { revoked } } }';
    const made = await app.graphql('mutation { createApiKey(input: { name: "quota" }) { apiKey { id } } }');
    const revoking = { id: made.json.data.createApiKey.apiKey.id };
    await fill(id, rows, content);
    const boardsBefore = await count('dashboards');
    const refused = await post(randomUUID(), { name: 'after' });
    expect([refused.status, refused.json.code, refused.json.context]).toEqual([409, 'conflict', quota]);
    expect((await mutate(randomUUID(), { name: 'after' })).json.errors[0].extensions).toEqual({ code: 'conflict', context: quota });
    const unrevoked = await app.graphql(revoke, { input: { ...revoking, idempotencyKey: randomUUID() } });
    expect(unrevoked.json.errors[0].extensions.context).toEqual(quota);
    expect(await count('api_keys', `id = '${revoking.id}' AND revoked IS NULL`)).toBe(1);
    expect(await count('dashboards')).toBe(boardsBefore);
    expect(bytesOf(await post(key, { name: 'before' }))).toEqual(bytesOf(first));
    expect((await post(undefined, { name: 'after' })).status).toBe(201);
    expect((await post(randomUUID(), { name: 'after' }, 'admin')).status).toBe(201);
    // A key of yesterday counts as new: it has no room either, and nothing is answered from what is still stored.
    await run(`UPDATE kept_answers SET created = now() - interval '24 hours 20 minutes' WHERE request_hash <> '\\x00'`);
    expect((await post(key, { name: 'before' })).json.context).toEqual(quota);
    expect((await post(key, { name: 'another' })).json.context).toEqual(quota);
    await run(`UPDATE kept_answers SET created = now() - interval '25 hours' WHERE request_hash = '\\x00'`);
    expect((await post(randomUUID(), { name: 'after' })).status).toBe(201);
    await empty(id);
  });

  test('cannot replay many large responses at once', async () => {
    const text = 'x'.repeat(9_000);
    const widgets = Array.from({ length: 27 }, () => text);
    const input = { ...place(), name: 'large', widgets, idempotencyKey: randomUUID() };
    const one = `mutation($input: CreateDashboardInput!) { answer: createDashboard(input: $input) { dashboard { widgets } } }`;
    const first = await app.graphql(one, { input });
    expect(first.text.length).toBeGreaterThan(240_000);
    expect(bytesOf(await app.graphql(one, { input }))).toEqual(bytesOf(first));
    const many = Array.from({ length: 45 }, (_, index) => `a${index}: createDashboard(input: $input) { dashboard { widgets } }`);
    const refused = await app.graphql(`mutation($input: CreateDashboardInput!) { ${many.join(' ')} }`, { input });
    expect([refused.status, codeOf(refused), refused.json.data]).toEqual([200, 'invalid_request', undefined]);
    expect(await named('large')).toBe(1);
  });

  test('gets a new response where the first is too large to be stored, without repeated work', async () => {
    const widgets = `["${'x'.repeat(200_000)}",9007199254740993,{"2":1,"1":-0}]`;
    const input = JSON.stringify({ ...place(), name: 'too large', idempotencyKey: randomUUID() }).replace(/}$/, `,"widgets":${widgets}}`);
    const document = `mutation($input: CreateDashboardInput!) { createDashboard(input: $input) {
      dashboard { id widgets a: widgets b: widgets } } }`;
    const body = `{"query":${JSON.stringify(document)},"variables":{"input":${input}}}`;
    const first = await app.ask('POST', '/graphql', { body });
    expect(first.text.length).toBeGreaterThan(600_000);
    expect(first.text.includes(`"widgets":${widgets},"a":${widgets},"b":${widgets}}`)).toBe(true);
    expect(bytesOf(await app.ask('POST', '/graphql', { body }))).toEqual(bytesOf(first));
    const kept = await select('SELECT max(octet_length(content)) AS most FROM kept_answers');
    expect(Number(kept[0]?.most)).toBeLessThan(600_000);
    expect(await named('too large')).toBe(1);
  });
});

test('the first of two responses to one outcome is stored', async () => {
  const { database } = app.app;
  const request = { userId: app.demo.users.owner.id, key: randomUUID(), fingerprint: 'the same', quota: 10_000 };
  const [one, other] = [new StoredResponse(database, request), new StoredResponse(database, request)];
  await database.transact(async (query) => {
    expect(await one.claim(query)).toBe(true);
    await one.storeOutcome(query, { id: 'made' });
  });
  expect([await one.storeResponse('first'), await other.storeResponse('second')]).toEqual([true, false]);
  expect(await other.read((load) => load(1_000))).toEqual({ kind: 'answer', value: 'first' });
});
