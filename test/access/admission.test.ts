import { randomUUID } from 'node:crypto';
import { type OutgoingHttpHeaders, request as openRequest } from 'node:http';
import { json } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { admit } from '../../src/access/admission.ts';
import { openProject } from '../../src/access/scope.ts';
import type { Database } from '../../src/platform/database.ts';
import { countStatements, startRestingApp, type TestApp } from '../support/app.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startRestingApp({ RATE_LIMIT_USER: '1000000' });
});
afterAll(() => app.close());

/** A wrapper of the app's database, which counts the statements sent through it. */
function watch(): { database: Database; sent: () => number } {
  let sent = 0;
  const query = (...statement: Parameters<Database['query']>) => {
    sent += 1;
    return app.app.database.query(...statement);
  };
  return { database: { ...app.app.database, query } as unknown as Database, sent: () => sent };
}

const apply = (
  database: Database,
  project: { organizationId: string; projectId: string } | null,
  credential = app.demo.users.member.token ?? null,
) =>
  admit(
    { database, tokens: app.app.tokens, rateLimits: app.app.rateLimits },
    { readCredential: () => credential, readAddress: () => '127.0.0.1', readProject: () => project },
  );

describe('a request that names its project', () => {
  it('has the user and the project looked up by one statement', async () => {
    const { organization_id: organizationId, project_id: projectId } = app.demo;
    const { database, sent } = watch();
    const { viewer, prefetched } = await apply(database, { organizationId, projectId });
    const scope = viewer && (await openProject(database, viewer, { organizationId, projectId }, prefetched));
    expect(scope).toMatchObject({ projectId, role: 'member', viewer: { userId: app.demo.users.member.id } });
    expect(sent()).toBe(1);
  });

  it('has the project looked up while its key is checked, once the key has been valid before', async () => {
    const { organization_id: organizationId, project_id: projectId } = app.demo;
    const ids = { organizationId, projectId };
    const { database, sent } = watch();
    const made = await app.graphql('mutation { createApiKey(input: { name: "known" }) { key apiKey { id } } }');
    const { key, apiKey } = made.json.data.createApiKey;
    expect((await apply(database, ids, key)).prefetched).toBeNull();
    const before = sent();
    const admitting = apply(database, ids, key);
    // Both statements are sent in one iteration of the event loop: neither waits for the other.
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    expect(sent() - before).toBe(2);
    const { viewer, prefetched } = await admitting;
    const scope = viewer && (await openProject(database, viewer, ids, prefetched));
    expect(scope).toMatchObject({ projectId, viewer: { userId: app.demo.users.owner.id } });
    expect(sent() - before).toBe(2);
    await app.graphql('mutation($id: ID!) { revokeApiKey(input: { id: $id }) { apiKey { id } } }', { id: apiKey.id });
    expect(await apply(database, ids, key)).toMatchObject({ viewer: null, fault: { code: 'not_authenticated' } });
  });

  it('is not admitted by a lookup of another project, for another user, or from a while ago', async () => {
    const { organization_id: organizationId, project_id: projectId } = app.demo;
    const ids = { organizationId, projectId };
    const { database, sent } = watch();
    const { viewer, prefetched } = await apply(database, ids);
    if (!viewer || !prefetched) throw new Error('nothing was looked up');
    const openings = [
      () => openProject(database, viewer, { organizationId, projectId: viewer.userId }, prefetched),
      () => openProject(database, { ...viewer, userId: app.demo.users.outsider.id }, ids, prefetched),
      () => openProject(database, viewer, { projectId }, prefetched),
      () => openProject(database, viewer, ids, { ...prefetched, startedAt: performance.now() - 300 }),
    ];
    for (const [index, open] of openings.entries()) {
      await open().catch((failure) => expect(failure).toMatchObject({ code: 'not_found' }));
      expect(sent()).toBe(2 + index);
    }
    await expect(openings[0]?.()).rejects.toMatchObject({ code: 'not_found' });
    await expect(openings[1]?.()).rejects.toMatchObject({ code: 'not_found' });
    for (const open of openings.slice(2)) await expect(open()).resolves.toMatchObject({ projectId });
  });

  it('is refused when its user loses the project while its body arrives', async () => {
    const { database } = app.app;
    const [member] = await database.prisma.projectMember.findMany({
      where: { userId: app.demo.users.member.id, projectId: app.demo.project_id },
    });
    if (!member) throw new Error('the demo’s member is none');
    const body = JSON.stringify({ name: 'Half' });
    const request = openRequest(`${app.baseUrl}${app.projectPath}/monitoring/dashboards`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${app.demo.users.member.token}`,
        'content-type': 'application/json',
        'content-length': body.length,
      },
    });
    const answered = new Promise<{ status: number | undefined; body: unknown }>((resolve, reject) => {
      request.once('error', reject);
      request.once('response', async (response) => resolve({ status: response.statusCode, body: await json(response) }));
    });
    app.statements.length = 0;
    request.write(body.slice(0, 5));
    await vi.waitFor(() => expect(app.statements).toHaveLength(1), { timeout: 60_000 });
    try {
      await database.prisma.projectMember.deleteMany({ where: { userId: member.userId, projectId: member.projectId } });
      await sleep(300);
      request.end(body.slice(5));
      expect(await answered).toMatchObject({ status: 404, body: { code: 'not_found' } });
    } finally {
      await database.prisma.projectMember.create({ data: member });
    }
  });
});

describe('a GraphQL request', () => {
  const ways: Array<[string, string, (ids: Record<string, string>) => object]> = [
    ['by variables', 'query ($o: ID, $p: ID!) { project(organizationId: $o, id: $p) { name } }', (ids) => ids],
    ['by its id alone', 'query ($p: ID!) { mine: project(id: $p) { name } }', ({ p }) => ({ p })],
    ['in a fragment', 'query ($p: ID!) { ...F } fragment F on Query { project(id: $p) { name } }', ({ p }) => ({ p })],
    [
      'in an input',
      'mutation ($input: MarkNotificationsReadInput!) { markNotificationsRead(input: $input) { project { name } } }',
      ({ o, p }) => ({ input: { organizationId: o, projectId: p } }),
    ],
  ];
  it.each(ways)('that names its project %s has both looked up by one statement, once its document is known', async (_way, text, vary) => {
    const { demo } = app;
    const variables = vary({ o: demo.organization_id, p: demo.project_id }) as Record<string, unknown>;
    const sent: number[] = [];
    for (let time = 0; time < 3; time += 1) {
      const { response, statements } = await countStatements(app, () => app.graphql(text, variables, { as: 'member' }));
      expect(response.text).toContain('"name":"Production"');
      sent.push(statements);
    }
    expect(sent).toEqual([sent[0], Number(sent[0]) - 1, Number(sent[0]) - 1]);
  });

  it('that names another project first, a malformed id, or no project, has the same response each time', async () => {
    const { demo } = app;
    const text = `query ($first: ID!, $second: ID!) { first: project(id: $first) { id } second: project(id: $second) { id } viewer { id } }`;
    const [own, absent, broken] = [demo.project_id, demo.users.member.id, 'broken'];
    for (const [first, second] of [
      [own, absent],
      [absent, own],
      [broken, own],
      [own, broken],
      [own, own],
    ]) {
      const responses: string[] = [];
      for (let time = 0; time < 3; time += 1)
        responses.push(JSON.stringify((await app.graphql(text, { first, second }, { as: 'member' })).json));
      expect(new Set(responses).size).toBe(1);
      expect(JSON.parse(responses[0] ?? '')).toMatchObject({
        data: {
          first: first === own ? { id: own } : null,
          second: second === own ? { id: own } : null,
          viewer: { id: demo.users.member.id },
        },
      });
    }
  });

  it('has its budget charged before a large or compressed body is read', async () => {
    const { demo } = app;
    const text = `query ($p: ID!) { project(id: $p) { name } }`;
    const small = JSON.stringify({ query: text, variables: { p: demo.project_id } });
    await app.ask('POST', '/graphql', { as: 'member', body: small });
    const bodies: Array<[number, string | Buffer, OutgoingHttpHeaders]> = [
      [1, small, {}],
      [2, small + ' '.repeat(16 * 1024), {}],
      [2, gzipSync(small), { 'content-encoding': 'gzip' }],
    ];
    for (const [looks, body, headers] of bodies) {
      const { response, statements } = await countStatements(app, () => app.ask('POST', '/graphql', { as: 'member', body, headers }));
      expect([response.json.data.project.name, statements]).toEqual(['Production', looks]);
    }
  });

  it('is refused for its credential before its body', async () => {
    const bearer = (await app.app.tokens.local?.sign(randomUUID(), 60)) ?? '';
    for (const body of ['{', '{"query":"{viewer{id}}"}', ''])
      expect((await app.ask('POST', '/graphql', { as: { bearer }, body })).status).toBe(401);
    const broken = await app.ask('POST', '/graphql', { body: '{' });
    expect([broken.status, broken.json.errors[0].extensions.code]).toEqual([400, 'invalid_request']);
  });
});

it('a path that cannot be decoded needs a credential as any other does', async () => {
  const path = `/v1/organizations/%ff/projects/${app.demo.project_id}/compute/overview`;
  expect(await app.ask('GET', path, { as: null })).toMatchObject({ status: 401, json: { code: 'not_authenticated' } });
  const { status, json: found, headers } = await app.ask('GET', path);
  expect([status, found.code, typeof headers.ratelimit]).toEqual([404, 'not_found', 'string']);
});

describe.concurrent('a credential that is revoked while the body arrives', () => {
  it.for([
    ['v1, a small body', 10, '/monitoring/dashboards'],
    ['v1, a large body', 20_000, '/monitoring/dashboards'],
    ['GraphQL, a small body', 10, null],
    ['GraphQL, a large body', 20_000, null],
  ] as const)('is one of no right when it has come: %s', async ([_label, length, path], { expect }) => {
    const made = await app.graphql('mutation { createApiKey(input: { name: "held" }) { key apiKey { id } } }');
    const { key, apiKey } = made.json.data.createApiKey;
    const { organization_id: organizationId, project_id: projectId } = app.demo;
    const description = 'x'.repeat(length / 2);
    const query = 'mutation ($input: CreateDashboardInput!) { createDashboard(input: $input) { dashboard { id } } }';
    const input = { organizationId, projectId, name: 'held', description: 'x' };
    const body = JSON.stringify(
      path
        ? { name: 'held', description: 'x', widgets: [description, description] }
        : { query, variables: { input: { ...input, widgets: [description, description] } } },
    );
    const count = await app.app.database.prisma.dashboard.count();
    const { hostname, port } = new URL(app.baseUrl);
    const request = openRequest({
      hostname,
      port,
      method: 'POST',
      path: path ? `${app.projectPath}${path}` : '/graphql',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'content-length': body.length },
    });
    const responded = new Promise<number>((resolve) => {
      request.on('response', (response) => resolve(response.resume().statusCode ?? 0));
    });
    request.write(body.slice(0, 5));
    await sleep(1_200);
    const revoke = 'mutation ($input: RevokeApiKeyInput!) { revokeApiKey(input: $input) { apiKey { id } } }';
    expect((await app.graphql(revoke, { input: { id: apiKey.id } })).json.errors).toBeUndefined();
    request.end(body.slice(5));
    expect(await responded).toBe(401);
    expect(await app.app.database.prisma.dashboard.count()).toBe(count);
  });
});
