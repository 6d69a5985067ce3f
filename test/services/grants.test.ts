import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import WebSocket from 'ws';
import { addApiKey, addMember, addUser, removeMember, revokeUserKey, setDisabled } from '../../src/accounts/operatorcommands.ts';
import { listAllMembers, listAllOrganizations, listAllProjects, listUserKeys, listUsers } from '../../src/accounts/operatorlists.ts';
import { deleteEndedApiKeys } from '../../src/accounts/service.ts';
import { deleteOldTaskCounters } from '../../src/compute/overview.ts';
import {
  claimSession,
  deleteOldRecords,
  endSilentSessions,
  readClock,
  readHandover,
  saveHandover,
  takeSession,
} from '../../src/consoles/store.ts';
import { deleteOldStoredResponses } from '../../src/graph/storedresponse.ts';
import { Lifecycle } from '../../src/kernel/lifecycle.ts';
import { pruneNotifications } from '../../src/notifications/retention.ts';
import { openDatabase } from '../../src/platform/database.ts';
import { describeFailure, OperatorError } from '../../src/platform/operatorerror.ts';
import { listRights } from '../../src/platform/rights.ts';
import { deleteOldTickets } from '../../src/tickets/service.ts';
import { routes } from '../../src/transport/rest/routes.ts';
import { copyTemplate, startApp, type TestApp } from '../support/app.ts';
import { openConsole, openGuest } from '../support/console.ts';
import { homeOf } from '../support/doors.ts';
import { codeOf, send } from '../support/matrix.ts';
import { graphqlOperations, variantsOf } from '../support/operations.ts';
import { connectTo, databaseUrl, execute } from '../support/sql.ts';

// The scripts of docs/operations.md are tested: they are run unchanged, except that the roles have names of this run.
const services = ['accounts', 'compute', 'billing', 'notifier'] as const;
const roles = ['owner', 'gateway', ...services] as const;
type Role = (typeof roles)[number];

const guide = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8');
const run = randomBytes(4).toString('hex');
const nameOf = (role: Role) => `portico_${role}_${run}`;
const [makeRoles = '', handOver = '', grant = ''] = readScripts();

function readScripts(): string[] {
  const [section = ''] = guide.slice(guide.indexOf('\n### Roles\n')).split(/\n##? /);
  const scripts = [...section.matchAll(/```sql\n(.*?)```/gs)].map(([, sql = '']) => sql);
  return scripts.map((sql) => sql.replaceAll(new RegExp(`\\bportico_(${roles.join('|')})\\b`, 'g'), `$&_${run}`));
}

const origin = inject('origin');
if (!('template' in origin)) throw new Error('this needs TEST_DATABASE_URL');
const { server } = origin;
const emptyName = `${origin.template}_${run}`;
let url: string;
let app: TestApp;
const connections = new Map<Role | null, pg.Client>();

/** The database URL for a role; null for the user who created the database. */
function urlOf(role: Role | null, of = url): string {
  const address = new URL(of);
  if (role) [address.username, address.password] = [nameOf(role), run];
  return address.href;
}

/** Runs a statement as a role. */
async function as(role: Role | null, sql: string, values: readonly unknown[] = []): Promise<Array<Record<string, unknown>>> {
  let connection = connections.get(role);
  if (!connection) {
    connection = await connectTo(urlOf(role));
    connections.set(role, connection);
  }
  return (await connection.query(sql, [...values])).rows;
}

/** The SQLSTATE with which a statement fails. */
const refusal = (role: Role, sql: string) =>
  as(role, sql).then(
    () => `${role} may: ${sql}`,
    (failure: { code?: string }) => failure.code,
  );
const INSUFFICIENT_PRIVILEGE = '42501';

beforeAll(async () => {
  url = await copyTemplate(origin);
  await as(null, makeRoles);
  for (const role of roles) await as(null, `ALTER ROLE ${nameOf(role)} PASSWORD '${run}'`);
  await as(null, handOver);
  await as('owner', grant);
  app = await startApp({ DATABASE_URL: urlOf('gateway'), DRAIN_SECONDS: '0' });
});

afterAll(async () => {
  await app?.close();
  for (const connection of connections.values()) await connection.end();
  for (const name of [emptyName, new URL(url).pathname.slice(1)]) await execute(server, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
  for (const role of roles) await execute(server, `DROP ROLE IF EXISTS ${nameOf(role)}`);
});

/** The differences between the counters and the rows; empty if they agree. */
async function findMiscounts() {
  return as(
    null,
    `WITH said AS (
      SELECT project_id, status::text AS what, sum(instances) AS count, sum(vcpu) AS vcpu, sum(ram_mb) AS ram_mb, sum(storage_gb) AS storage_gb,
        sum(without_hypervisor) AS without_hypervisor, sum(throttled) AS throttled
      FROM instance_counters GROUP BY project_id, status HAVING sum(instances) <> 0
      UNION ALL
      SELECT project_id, kind::text, sum(resources), 0, 0, sum(storage_gb), 0, 0
      FROM resource_counters GROUP BY project_id, kind HAVING sum(resources) <> 0
    ), resources AS (
      SELECT project_id, 'volumes' AS what, size_gb FROM volumes
      UNION ALL SELECT project_id, 'snapshots', size_gb FROM snapshots
      UNION ALL SELECT project_id, 'backups', size_gb FROM backups
      UNION ALL SELECT project_id, 'vpcs', 0 FROM vpcs
      UNION ALL SELECT project_id, 'ssh_keys', 0 FROM ssh_keys
    ), there AS (
      SELECT project_id, status::text AS what, count(*) AS count, sum(vcpu) AS vcpu, sum(ram_mb) AS ram_mb, sum(storage_gb) AS storage_gb,
        count(*) FILTER (WHERE hypervisor IS NULL) AS without_hypervisor, count(*) FILTER (WHERE throttled) AS throttled
      FROM instances GROUP BY project_id, status
      UNION ALL
      SELECT project_id, what, count(*), 0, 0, sum(size_gb), 0, 0 FROM resources GROUP BY project_id, what
    )
    (SELECT 'said' AS by, * FROM said EXCEPT SELECT 'said', * FROM there) UNION ALL (SELECT 'there', * FROM there EXCEPT SELECT 'there', * FROM said)`,
  );
}

interface Column {
  readonly table: string;
  readonly name: string;
  readonly type: string;
  /** `nullable`, or the default, or empty. */
  readonly rest: string;
}

/** Parses the columns from the tables of the guide. */
function readColumns(): Column[] {
  const section = guide.slice(guide.indexOf('\n## Tables that other services write\n'), guide.indexOf('\n### Roles\n'));
  const quoted = (cell = '') => [...cell.matchAll(/`([^`]+)`/g)].map(([, text = '']) => text);
  let tables: string[] = [];
  return section.split('\n').flatMap((line, index, lines) => {
    const [, first, second, third = ''] = line.split(' | ').length > 2 ? ['', ...line.slice(2).split(' | ')] : [];
    if (first === undefined) return [];
    if (lines[index + 1]?.startsWith('| --')) {
      tables = quoted(first);
      return [];
    }
    const rest = third.trim() === 'nullable' ? 'nullable' : (quoted(third)[0] ?? '');
    return tables.flatMap((table) => quoted(first).map((name) => ({ table, name, type: quoted(second)[0] ?? '', rest })));
  });
}

it('docs/operations.md names every column of the tables, with its type and its default', async () => {
  const said = readColumns();
  const tables = [...new Set(said.map(({ table }) => table))];
  expect(tables).toHaveLength(19);
  const there = await as(
    null,
    `SELECT attrelid::regclass::text AS table, attname::text AS name, format_type(atttypid, atttypmod) AS type,
      CASE WHEN attnotnull THEN coalesce(pg_get_expr(adbin, adrelid), '') ELSE 'nullable' END AS rest
    FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
    WHERE attrelid = ANY ($1::regclass[]) AND attnum > 0 AND NOT attisdropped`,
    [tables],
  );
  const spell = (text: unknown) =>
    String(text)
      .replace('timestamp(3) with time zone', 'timestamptz')
      .replace('character varying', 'varchar')
      .replace('CURRENT_TIMESTAMP', 'now()')
      .replace(/::\w+$/, '');
  const inFull = there.map(({ table, name, type, rest }) => ({ table, name, type: spell(type), rest: spell(rest) })) as Column[];
  const usual = ({ name, type, rest }: Column) =>
    (name === 'id' && type === 'uuid' && rest === 'uuid_v7()') || (name === 'created' && type === 'timestamptz' && rest === 'now()');
  const order = (columns: readonly Column[]) => columns.map((column) => Object.values(column).join(' ')).sort();
  const remarkable = (columns: readonly Column[]) => columns.filter((column) => !usual(column) && column.name !== 'id');
  expect(order(remarkable(said))).toEqual(order(remarkable(inFull)));
});

describe('the gateway, with its own role', () => {
  it('answers every route of v1', async () => {
    const project = app.projectPath;
    const organization = project.replace(/\/projects\/.*/, '');
    const dashboards = `${project}/monitoring/dashboards`;
    const created = await app.ask('POST', dashboards, { body: { name: 'Made', is_default: true } });
    const dashboard = `${dashboards}/${created.json.id}`;
    const asked: Array<[string, string, number, object?]> = [
      ['POST', `${project}/websocket-tickets`, 201, { target: 'notifications' }],
      ['POST', dashboards, 201, { name: 'Another', is_default: true }],
      ['GET', dashboards, 200],
      ['GET', dashboard, 200],
      ['PUT', dashboard, 200, { name: 'Changed', is_default: true }],
      ['DELETE', dashboard, 204],
      ['GET', '/v1/organizations', 200],
      ['GET', `${organization}/projects`, 200],
      ['GET', `${project}/compute/instances`, 200],
      ['GET', `${project}/compute/instances/${app.demo.instances.eligible}`, 200],
      ['GET', `${project}/compute/tasks`, 200],
      ['GET', `${project}/compute/instances/${app.demo.instances.eligible}/backup-trial`, 200],
      ['GET', `${project}/compute/overview`, 200],
      ['GET', `${project}/notifications?unread=true`, 200],
      ['POST', `${project}/notifications/read`, 200, { notification_ids: app.demo.notification_ids.slice(-2) }],
      ['POST', `${project}/notifications/read`, 200],
    ];
    for (const [method, path, status, body] of asked) {
      expect(await app.ask(method, path, { body }), `${method} ${path}`).toMatchObject({ status });
    }
    const ids: Record<string, string> = { ...homeOf(app), dashboard_id: created.json.id };
    const all = routes.map(({ method, path }) => `${method.toUpperCase()} ${path.replace(/:(\w+)/g, (text, name) => ids[name] ?? text)}`);
    expect(new Set(asked.map(([method, path]) => `${method} ${path.split('?')[0]}`))).toEqual(new Set(all));
  });

  it('has every right that a mutation needs', async () => {
    const caller = { name: 'owner', bearer: app.demo.users.owner.token ?? '', user: 'owner', isSession: true } as const;
    const ids: Record<string, unknown> = { organization_id: app.demo.organization_id, project_id: app.demo.project_id };
    const refused: string[] = [];
    for (const operation of graphqlOperations().filter(
      ({ isMutation, descriptions }) => isMutation && !descriptions.includes('On a WebSocket'),
    )) {
      for (const { label, values } of variantsOf(operation)) {
        const own = Object.fromEntries(
          operation.variables.map(({ name, model }) => [name, ids[name] ?? (model && randomUUID())]).filter(([, id]) => id),
        );
        const response = await send(app, { caller, operation, values: { ...own, ...values } });
        const code = codeOf(operation, response);
        if (code === 'internal_error' || code === 'service_unavailable') refused.push(`${operation.name} (${label})`);
      }
    }
    expect(refused).toEqual([]);
  });

  it('redeems a ticket, and delivers the notifier’s notifications', async () => {
    const { json } = await app.ask('POST', `${app.projectPath}/websocket-tickets`, { body: { target: 'notifications' } });
    const socket = new WebSocket(`${app.baseUrl.replace('http', 'ws')}${json.path}?ticket=${json.ticket}`);
    const told: Array<{ type: string; notification?: { title: string } }> = [];
    socket.on('message', (text) => told.push(JSON.parse(String(text))));
    await once(socket, 'open');
    await expect.poll(() => told.map(({ type }) => type)).toEqual(['ready']);
    const insert = 'INSERT INTO notifications (project_id, kind, severity, title) VALUES ($1, $2, $3, $4)';
    await as('notifier', insert, [app.demo.project_id, 'test.live', 'info', 'Live']);
    await expect.poll(() => told.at(-1)?.notification?.title).toBe('Live');
    socket.terminate();
  });

  it('connects a console with an endpoint of the compute service, which it cannot write itself', async () => {
    const { database } = app.app;
    const instance = app.demo.instances.eligible;
    const guest = await openGuest((line) => line.write('hello'));
    const write = `INSERT INTO console_endpoints (instance_id, kind, host, port) VALUES ('${instance}', 'serial', '127.0.0.1', ${guest.port})`;
    for (const role of ['gateway', 'accounts', 'billing', 'notifier'] as const)
      expect(await refusal(role, write)).toBe(INSUFFICIENT_PRIVILEGE);
    await as('compute', write);
    expect(await refusal('gateway', 'UPDATE console_endpoints SET port = 22')).toBe(INSUFFICIENT_PRIVILEGE);
    expect(await refusal('gateway', 'DELETE FROM console_sessions')).toBe(INSUFFICIENT_PRIVILEGE);
    const first = await openConsole(app, instance);
    await first.until('hello');
    first.socket.terminate();
    const again = await openConsole(app, instance, { sessionId: first.sessionId(), after: 0 });
    await again.until('hello');
    const { organization_id: organizationId, project_id: projectId } = app.demo;
    const ended = await app.graphql(
      'mutation ($input: EndConsoleSessionInput!) { endConsoleSession(input: $input) { consoleSession { endReason bytesOut } } }',
      { input: { organizationId, projectId, id: first.sessionId() } },
    );
    expect(ended.json.data.endConsoleSession.consoleSession).toEqual({ endReason: 'ended', bytesOut: 5 });
    const left = await openConsole(app, instance);
    await left.until('hello');
    const tally = { id: left.sessionId(), bytesIn: 0, bytesOut: 5 };
    const session = await database.prisma.consoleSession.findUniqueOrThrow({ where: { id: tally.id } });
    const processId = randomUUID();
    const formerProcessIds = (await claimSession(database, { ...session, processId })) ?? [];
    await saveHandover(database, session.owner, tally, { position: 5, scrollback: Buffer.from('hello') });
    expect(await readHandover(database, tally.id, formerProcessIds)).toMatchObject({ position: 5 });
    expect(await takeSession(database, processId, tally.id)).toEqual(tally);
    expect(await readHandover(database, tally.id, formerProcessIds)).toBeNull();
    await endSilentSessions(database, await readClock(database));
    const sessions = () => as(null, 'SELECT FROM console_sessions WHERE id = $1', [first.sessionId()]);
    await as(null, `UPDATE console_sessions SET ended = now() - interval '31 days' WHERE id = $1`, [first.sessionId()]);
    expect(await sessions()).toHaveLength(1);
    const [, grantDeletion = ''] = /-- Only if CONSOLE_RECORD_DAYS is set: (.*;)/.exec(grant) ?? [];
    await as('owner', grantDeletion);
    await deleteOldRecords(database, 30);
    expect(await sessions()).toEqual([]);
    left.socket.terminate();
    await guest.close();
  });

  it('makes, uses and revokes keys, publishes, and cleans up', async () => {
    const { json: made } = await app.graphql(
      'mutation { createApiKey(input: { name: "made" }) { key apiKey { id } } }',
      {},
      { as: { bearer: app.demo.users.owner.token ?? '' } },
    );
    const { key, apiKey } = made.data.createApiKey;
    const idempotencyKey = randomUUID();
    const keep = () =>
      app.graphql('mutation ($key: IdempotencyKey) { createApiKey(input: { name: "kept", idempotencyKey: $key }) { apiKey { id } } }', {
        key: idempotencyKey,
      });
    const kept = await keep();
    expect(kept.json.errors).toBeUndefined();
    expect((await keep()).text).toBe(kept.text);
    const { organization_id: organizationId, project_id: projectId } = app.demo;
    const input = { organizationId, projectId, kind: 'test.published', severity: 'info', title: 'Published' };
    const published = await app.graphql(
      'mutation ($input: PublishNotificationInput!) { publishNotification(input: $input) { notification { sequence } } }',
      { input },
      { as: { bearer: key } },
    );
    expect(published.json).toEqual({ data: { publishNotification: { notification: { sequence: expect.any(Number) } } } });
    const revoked = await app.graphql('mutation ($id: ID!) { revokeApiKey(input: { id: $id }) { apiKey { revoked lastUsed } } }', {
      id: apiKey.id,
    });
    expect(revoked.json.data.revokeApiKey.apiKey).toEqual({ revoked: expect.any(String), lastUsed: expect.any(String) });
    await as(null, `UPDATE websocket_tickets SET expires = now() - interval '1 day'`);
    await deleteOldTickets(app.app.database);
    expect(await as('gateway', 'SELECT FROM websocket_tickets')).toEqual([]);
    await as(null, `UPDATE kept_answers SET created = now() - interval '2 days'`);
    await deleteOldStoredResponses(app.app.database);
    expect(await as('gateway', 'SELECT FROM kept_answers')).toEqual([]);
    await as(null, `UPDATE task_counters SET since = since - interval '2 days'`);
    await deleteOldTaskCounters(app.app.database);
    expect(await as('gateway', 'SELECT FROM task_counters')).toEqual([]);
    await as(null, `UPDATE api_keys SET revoked = now() - interval '91 days' WHERE id = $1`, [apiKey.id]);
    await deleteEndedApiKeys(app.app.database);
    expect(await as('gateway', 'SELECT FROM api_keys WHERE id = $1', [apiKey.id])).toEqual([]);
    expect(await pruneNotifications(app.app.database, 3)).toBeGreaterThan(0);
  });

  it('cannot write the columns of other services', async () => {
    const denied = [
      'UPDATE instances SET throttled = true',
      'INSERT INTO projects (organization_id, name) SELECT id, name FROM organizations',
      'DELETE FROM projects',
      "UPDATE organization_members SET role = 'owner'",
      'UPDATE notifications SET title = title',
      'UPDATE notification_logs SET last_sequence = 0',
      'UPDATE instance_counters SET instances = 0',
      'UPDATE task_counters SET failures = 0',
      'CREATE TABLE more (id int)',
      'CREATE TEMP TABLE more (id int)',
    ];
    for (const sql of denied) expect(await refusal('gateway', sql), sql).toBe(INSUFFICIENT_PRIVILEGE);
  });
});

describe('a missing right', () => {
  const open = async (rights: Parameters<typeof listRights>[0] | null, role: Role = 'gateway') => {
    const lifecycle = new Lifecycle();
    const options = rights ? { rights: listRights(rights) } : {};
    try {
      await openDatabase({ dataDir: tmpdir(), database: { url: urlOf(role), poolSize: 1 } }, lifecycle, options);
    } finally {
      await lifecycle.close();
    }
  };
  const sentence = (rights: string) =>
    new OperatorError(`The role ${nameOf('gateway')} lacks ${rights}: run the script of docs/operations.md (Roles).`);

  it.each([
    ['INSERT ON kept_answers', 'INSERT on kept_answers'],
    ['UPDATE (revoked) ON api_keys', 'UPDATE (revoked) on api_keys'],
    ['SELECT ON users', 'SELECT on users'],
    ['UPDATE ON dashboards, kept_answers, notification_states, notification_reads', /lacks (UPDATE on \w+, ){3}1 more: run/],
  ])('ends a start with one sentence: %s', async (right, said) => {
    await as('owner', `REVOKE ${right} FROM ${nameOf('gateway')}`);
    const started = startApp({ DATABASE_URL: urlOf('gateway') });
    await expect(started.finally(() => as('owner', grant))).rejects.toThrow(typeof said === 'string' ? sentence(said) : said);
  });

  it('to delete console records matters only where they are deleted', async () => {
    await expect(open({ deletesConsoleRecords: true })).rejects.toThrow(sentence('DELETE on console_sessions'));
    await expect(open({ deletesConsoleRecords: false })).resolves.toBeUndefined();
    await expect(open({ deletesConsoleRecords: true }, 'owner')).resolves.toBeUndefined();
  });

  it('does not matter to a command', async () => {
    await as('owner', `REVOKE INSERT ON kept_answers FROM ${nameOf('gateway')}`);
    await expect(open(null).finally(() => as('owner', grant))).resolves.toBeUndefined();
  });

  it('is answered with 503 until it is granted, with one line in the log', async () => {
    const create = () => app.ask('POST', `${app.projectPath}/monitoring/dashboards`, { body: { name: 'Granted' } });
    await as('owner', `REVOKE INSERT ON dashboards FROM ${nameOf('gateway')}`);
    app.logLines.length = 0;
    const refused = await Promise.all([create(), create(), create()]).finally(() => as('owner', grant));
    for (const { status, headers } of refused) expect([status, headers['retry-after']]).toEqual([503, '1']);
    const lines = app.logLines.map((line) => JSON.parse(line)).filter(({ level }) => level === 'warn' || level === 'error');
    expect(lines).toEqual([
      expect.objectContaining({
        msg: 'the role lacks a right: run the script of docs/operations.md (Roles)',
        err: expect.objectContaining({ message: expect.stringContaining('permission denied for table dashboards') }),
      }),
    ]);
    expect(await create()).toMatchObject({ status: 201 });
  });
});

it('the operator lists, and adds and revokes keys, with the role of the gateway, and changes access with that of the owner', async () => {
  const gateway = app.app.database;
  const lifecycle = new Lifecycle();
  try {
    const { database: owner } = await openDatabase({ dataDir: tmpdir(), database: { url: urlOf('owner'), poolSize: 2 } }, lifecycle);
    const { organization_id: organization, project_id: project } = app.demo;
    const email = 'operated@new.example';
    await addUser(owner, { email, name: 'Operated' });
    for (const role of ['admin', 'member']) await addMember(owner, { email, organization, role });
    await addMember(owner, { email, organization, project, role: 'viewer' });
    await addApiKey(gateway, { email, name: 'operated' });
    const lists = await Promise.all([
      listUsers(gateway, {}),
      listAllOrganizations(gateway, {}),
      listAllProjects(gateway, organization, {}),
      listAllMembers(gateway, { organization }),
      listAllMembers(gateway, { organization, project }),
      listUserKeys(gateway, email, {}),
    ]);
    for (const { lines } of lists) expect(lines.length).toBeGreaterThan(0);
    const [key = ''] = lists.at(-1)?.lines[0]?.split('\t') ?? [];
    expect(await revokeUserKey(gateway, key)).toContain(email);
    for (const change of [
      () => setDisabled(gateway, email, true),
      () => removeMember(gateway, { email, organization }),
      () => addMember(gateway, { email, organization, role: 'owner' }),
    ]) {
      const failure = await change().catch((thrown: unknown) => thrown);
      expect(describeFailure(failure)).toMatch(/^PostgreSQL refuses: .*permission denied for table/);
    }
    const accounts = openDatabase({ dataDir: tmpdir(), database: { url: urlOf('accounts'), poolSize: 1 } }, lifecycle);
    await expect(accounts).rejects.toThrow(/permission denied/);
    expect(await removeMember(owner, { email, organization, project })).toContain(email);
    expect(await removeMember(owner, { email, organization })).toContain(email);
    expect(await setDisabled(owner, email, true)).toBe(`${email} is disabled.`);
  } finally {
    await lifecycle.close();
  }
});

describe('the accounts', () => {
  it('makes users, organizations and projects, which are visible at once, and removes them with all their content', async () => {
    const [user] = await as('accounts', `INSERT INTO users (email, name) VALUES ('new@new.example', 'New') RETURNING id`);
    const [organization] = await as('accounts', `INSERT INTO organizations (name) VALUES ('New') RETURNING id`);
    const [project] = await as('accounts', `INSERT INTO projects (organization_id, name) VALUES ($1, 'New') RETURNING id`, [
      organization?.id,
    ]);
    await as('accounts', `INSERT INTO organization_members VALUES ($1, $2, 'member')`, [organization?.id, user?.id]);
    await as('accounts', `INSERT INTO project_members VALUES ($1, $2, 'viewer')`, [project?.id, user?.id]);
    const bearer = await app.app.tokens.local?.sign(String(user?.id), 60);
    const path = `/v1/organizations/${organization?.id}/projects/${project?.id}/notifications`;
    const look = () => app.ask('GET', path, { as: { bearer: bearer ?? '' } });
    const insert = 'INSERT INTO notifications (project_id, kind, severity, title) VALUES ($1, $2, $3, $4)';
    await as('notifier', insert, [project?.id, 'test.new', 'info', 'New']);
    await as('compute', `INSERT INTO volumes (project_id, name, size_gb) VALUES ($1, 'new', 7)`, [project?.id]);
    await as('compute', `INSERT INTO tasks (project_id, kind, status) VALUES ($1, 'new', 'pending')`, [project?.id]);
    await as(
      'compute',
      `INSERT INTO instances (project_id, name, status, plan, region, vcpu, ram_mb, storage_gb) VALUES ($1, 'new', 'active', 'p', 'r', 1, 2, 3)`,
      [project?.id],
    );
    expect(await look()).toMatchObject({ status: 200, json: { count: 1, results: [{ sequence: 1, title: 'New', read: false }] } });
    expect(await findMiscounts()).toEqual([]);

    await as('accounts', 'DELETE FROM organizations WHERE id = $1', [organization?.id]);
    expect((await look()).status).toBe(404);
    for (const table of [
      'notification_logs',
      'notifications',
      'instances',
      'volumes',
      'tasks',
      'instance_counters',
      'resource_counters',
      'task_counters',
    ]) {
      expect(await as(null, `SELECT FROM ${table} WHERE project_id = $1`, [project?.id]), table).toEqual([]);
    }
    await as('accounts', 'UPDATE users SET disabled_at = now() WHERE id = $1', [user?.id]);
    expect((await look()).status).toBe(401);
    await as('accounts', 'DELETE FROM users WHERE id = $1', [user?.id]);
  });
});

describe('the compute service', () => {
  it('writes instances, resources and tasks, and the counters follow', async () => {
    const { project_id: projectId, empty_project_id: emptyId } = app.demo;
    const overview = async () => (await app.ask('GET', `${app.projectPath}/compute/overview`)).json[0];
    const before = await overview();
    const [instance] = await as(
      'compute',
      `INSERT INTO instances (project_id, name, status, plan, region, vcpu, ram_mb, storage_gb)
       VALUES ($1, 'one', 'provisioning', 'p', 'r', 4, 8192, 100), ($1, 'two', 'active', 'p', 'r', 1, 1024, 10) RETURNING id`,
      [projectId],
    );
    const resources = [
      ['volumes', 'size_gb', '5'],
      ['snapshots', 'size_gb', '5'],
      ['backups', 'size_gb', '5'],
      ['vpcs', 'cidr', `'10.0.0.0/16'`],
      ['ssh_keys', 'public_key, fingerprint', `'k', 'f'`],
    ];
    for (const [table, columns, values] of resources) {
      await as('compute', `INSERT INTO ${table} (project_id, name, ${columns}) VALUES ($1, 'one', ${values}), ($1, 'two', ${values})`, [
        projectId,
      ]);
      await as('compute', `UPDATE ${table} SET project_id = $1 WHERE name = 'one'`, [emptyId]);
      await as('compute', `DELETE FROM ${table} WHERE project_id = $1`, [emptyId]);
    }
    await as('compute', `UPDATE instances SET status = 'suspended', throttled = true, hypervisor = 'hv', modified = now() WHERE id = $1`, [
      instance?.id,
    ]);
    await as('compute', `INSERT INTO tasks (project_id, instance_id, kind, status) VALUES ($1, $2, 'boot', 'running')`, [
      projectId,
      instance?.id,
    ]);
    await as('compute', `UPDATE tasks SET status = 'failed', finished = now(), error = 'no host' WHERE instance_id = $1`, [instance?.id]);
    const after = await overview();
    expect(await findMiscounts()).toEqual([]);
    expect(after.instances_total - before.instances_total).toBe(2);
    expect(after.resources_allocated.vcpu - before.resources_allocated.vcpu).toBe(5);
    expect(after.attention).toEqual({
      ...before.attention,
      instances_suspended: before.attention.instances_suspended + 1,
      instances_throttled: before.attention.instances_throttled + 1,
      instances_without_hypervisor: before.attention.instances_without_hypervisor + 1,
      tasks_failed_24h: before.attention.tasks_failed_24h + 1,
    });
    for (const key of ['volumes', 'snapshots', 'backups', 'vpcs', 'ssh_keys'])
      expect(after.resources_count[key] - before.resources_count[key]).toBe(1);
    await as('compute', 'DELETE FROM instances WHERE id = $1', [instance?.id]);
    expect(await findMiscounts()).toEqual([]);
    expect((await overview()).instances_total - before.instances_total).toBe(1);
  });
});

describe('the billing', () => {
  it('determines whether the trial is offered', async () => {
    const { organization_id: organizationId, instances } = app.demo;
    const id = instances.eligible;
    const offer = async () => (await app.ask('GET', `${app.projectPath}/compute/instances/${id}/backup-trial`)).json;
    await as('billing', 'UPDATE instances SET billing_service_id = NULL, modified = now() WHERE id = $1', [id]);
    expect(await offer()).toMatchObject({ eligible: false, reason: 'missing_billing_service' });
    await as('billing', `INSERT INTO billing_clients (id, organization_id, name) VALUES (700001, $1, 'New')`, [organizationId]);
    await as('billing', `INSERT INTO billing_services (id, cycle) VALUES (700002, 'fortnightly')`);
    await as('billing', 'UPDATE instances SET billing_service_id = 700002 WHERE id = $1', [id]);
    expect(await offer()).toMatchObject({ reason: 'missing_billing_client' });
    await as('billing', 'UPDATE billing_services SET client_id = 700001 WHERE id = 700002');
    expect(await offer()).toMatchObject({ reason: 'unsupported_billing_cycle' });
    const options = `INSERT INTO backup_options (plan, monthly_price, currency, trial_days) SELECT plan, 4.5, 'USD', 9 FROM instances WHERE id = $1
      ON CONFLICT (plan) DO UPDATE SET monthly_price = 4.5, currency = 'USD', trial_days = 9`;
    await as('billing', options, [id]);
    await as('billing', `INSERT INTO backup_option_prices SELECT plan, 'fortnightly', 2.25 FROM instances WHERE id = $1`, [id]);
    expect(await offer()).toMatchObject({ eligible: true, reason: '', monthly_price: '4.50', currency: 'USD', trial_days: 9 });
    const trial = `INSERT INTO backup_trials (instance_id, instance_name, status, source, cycle, monthly_price, cycle_price)
      SELECT id, name, 'pending', 'panel', 'fortnightly', 4.5, 2.25 FROM instances WHERE id = $1`;
    await as('billing', trial, [id]);
    expect(await offer()).toMatchObject({ reason: 'trial_already_open', trial: { status: 'pending' } });
    await as('billing', `UPDATE backup_trials SET status = 'cancelled', resolved_at = now() WHERE instance_id = $1`, [id]);
    expect(await offer()).toMatchObject({ eligible: true, trial: { status: 'cancelled' } });
    await as('billing', 'UPDATE instances SET cancellation_at = now() WHERE id = $1', [id]);
    await as('billing', 'DELETE FROM billing_clients WHERE id = 700001');
    expect(await offer()).toMatchObject({ reason: 'missing_billing_client' });
    expect(await findMiscounts()).toEqual([]);
  });
});

describe('the notifier', () => {
  it('appends to the logs: numbers without gaps, and a retry changes nothing', async () => {
    const { project_id: projectId, empty_project_id: emptyId } = app.demo;
    const readLog = async (id: string) =>
      Number((await as('gateway', `SELECT last_sequence AS n FROM notification_logs WHERE project_id = $1`, [id]))[0]?.n);
    const [last, lastOfEmpty] = [await readLog(projectId), await readLog(emptyId)];
    const id = '0190a0a0-0000-7000-8000-000000000001';
    const insert = `INSERT INTO notifications (id, project_id, kind, severity, title, data)
      VALUES ($1, $2, 'test.retry', 'critical', 'Retry', '{"a": 1}') ON CONFLICT (id) DO NOTHING RETURNING sequence::int`;
    expect(await as('notifier', insert, [id, projectId])).toEqual([{ sequence: last + 1 }]);
    expect(await as('notifier', insert, [id, projectId])).toEqual([]);
    const many = `INSERT INTO notifications (project_id, kind, severity, title) SELECT id, 'test.many', 'info', 'Many' FROM projects, generate_series(1, 3)
      WHERE id = ANY ($1) ORDER BY id`;
    await as('notifier', many, [[projectId, emptyId]]);
    expect([await readLog(projectId), await readLog(emptyId)]).toEqual([last + 4, lastOfEmpty + 3]);
    const listed = await app.ask('GET', `${app.projectPath}/notifications?page_size=5`);
    expect(listed.json.results.map(({ sequence, kind }: { sequence: number; kind: string }) => [sequence, kind])).toEqual([
      [last + 4, 'test.many'],
      [last + 3, 'test.many'],
      [last + 2, 'test.many'],
      [last + 1, 'test.retry'],
      [last, expect.any(String)],
    ]);
  });
});

describe('a statement beyond the rights of a service', () => {
  const denied: Record<(typeof services)[number], readonly string[]> = {
    accounts: [
      'SELECT FROM notifications',
      'SELECT FROM instances',
      `INSERT INTO api_keys (user_id, name, hint, secret_hash) SELECT id, 'x', 'x', 'x' FROM users`,
      'UPDATE notification_logs SET last_sequence = 0',
    ],
    compute: [
      'UPDATE instances SET billing_service_id = NULL',
      'UPDATE instances SET cancellation_at = NULL',
      'UPDATE projects SET name = name',
      'SELECT FROM users',
      'SELECT FROM backup_trials',
      'UPDATE instance_counters SET instances = 0',
      'DELETE FROM resource_counters',
      'DELETE FROM task_counters',
    ],
    billing: [
      `INSERT INTO notifications (project_id, kind, severity, title) SELECT id, 'x', 'info', 'x' FROM projects`,
      `UPDATE instances SET status = 'suspended'`,
      'DELETE FROM instances',
      'UPDATE organizations SET currency = currency',
      'SELECT FROM users',
    ],
    notifier: [
      `INSERT INTO notifications (project_id, kind, severity, title, sequence) SELECT id, 'x', 'info', 'x', 1 FROM projects`,
      'SELECT title FROM notifications',
      'UPDATE notifications SET title = title',
      'DELETE FROM notifications',
      'UPDATE notification_logs SET pruned_through = last_sequence',
      'SELECT FROM instances',
    ],
  };

  it.each(services)('of %s is refused, and has no effect', async (service) => {
    const everyone = ['api_keys', 'websocket_tickets', 'dashboards', 'notification_states', 'notification_reads', '_prisma_migrations'];
    const reads = everyone.map((table) => `SELECT FROM ${table}`);
    const makes = [
      'CREATE TABLE more (id int)',
      'CREATE TEMP TABLE more (id int)',
      'CREATE FUNCTION more() RETURNS int LANGUAGE sql AS $$ SELECT 1 $$',
    ];
    for (const sql of [...reads, ...makes, ...denied[service]]) expect(await refusal(service, sql), sql).toBe(INSUFFICIENT_PRIVILEGE);
    expect(await refusal(service, 'SELECT mark_notifications_read(uuid_v7(), uuid_v7(), NULL, NULL)')).toBe(INSUFFICIENT_PRIVILEGE);
    expect(await refusal(service, 'SELECT prune_notification_log(uuid_v7(), now(), 1)')).toBe(INSUFFICIENT_PRIVILEGE);
  });

  it('cannot use a SECURITY DEFINER function, which names its schemas and is executable by its owner alone', async () => {
    const lenders = `SELECT proname::text AS name, proconfig AS settings FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND prosecdef`;
    for (const { name, settings } of await as(null, lenders)) {
      expect(settings, String(name)).toEqual(['search_path=public, pg_temp']);
      for (const role of ['gateway', ...services] as const) {
        const [row] = await as(null, 'SELECT has_function_privilege($1, $2, $3) AS may', [nameOf(role), `${name}()`, 'EXECUTE']);
        expect(row, `${role} ${name}`).toEqual({ may: false });
      }
    }
    // A default database grants the privilege to create temporary tables to everybody.
    await as(null, `GRANT TEMPORARY ON DATABASE ${new URL(url).pathname.slice(1)} TO ${nameOf('notifier')}`);
    await as('notifier', 'CREATE TEMP TABLE bait (project_id uuid)');
    const trap = `CREATE TRIGGER trap AFTER INSERT ON bait REFERENCING NEW TABLE AS new_rows
      FOR EACH STATEMENT EXECUTE FUNCTION count_resources('volumes', '(SELECT count(*) FROM api_keys)')`;
    expect(await refusal('notifier', trap)).toBe(INSUFFICIENT_PRIVILEGE);
  });
});

it('an empty database is made ready in the order of the guide, and the gateway then starts on it', async () => {
  const open = async (role: Role) => {
    const lifecycle = new Lifecycle();
    try {
      await openDatabase({ dataDir: tmpdir(), database: { url: urlOf(role, databaseUrl(server, emptyName)), poolSize: 1 } }, lifecycle);
    } finally {
      await lifecycle.close();
    }
  };
  await execute(server, `CREATE DATABASE ${emptyName}`);
  // Roles belong to the server and exist already; only their privileges are created.
  await execute(databaseUrl(server, emptyName), makeRoles.replace(/^CREATE ROLE .*$/gm, ''));
  await expect(open('gateway')).rejects.toThrow(/permission denied/);
  await open('owner');
  await execute(urlOf('owner', databaseUrl(server, emptyName)), grant);
  await open('gateway');
});
