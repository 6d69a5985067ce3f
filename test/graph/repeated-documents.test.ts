import { getIntrospectionQuery } from 'graphql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { routes } from '../../src/transport/rest/routes.ts';
import { type Ask, isPostgres, startApp, type TestApp, type TestResponse } from '../support/app.ts';

// The first response to a document comes through Yoga's whole pipeline and later ones through the fast path; a client must not see
// a difference.
let app: TestApp;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.close());

const USES = isPostgres ? 6 : 3;
const absent = '00000000-0000-7000-8000-000000000000';

/** The parts of a response that a client can compare, without those that count or differ per request. */
function visible({ status, text, headers }: TestResponse): unknown {
  const own = ['x-request-id', 'ratelimit', 'date', 'connection', 'keep-alive', 'transfer-encoding', 'content-length'];
  return { status, text, headers: Object.fromEntries(Object.entries(headers).filter(([name]) => !own.includes(name))) };
}

async function expectAlike(body: unknown, ask: Ask = {}): Promise<TestResponse> {
  const responses: TestResponse[] = [];
  for (let use = 0; use < USES; use += 1) responses.push(await app.ask('POST', '/graphql', { ...ask, body }));
  const [first, ...others] = responses;
  for (const other of others) expect(visible(other)).toEqual(visible(first as TestResponse));
  return first as TestResponse;
}

const inProject = (selection: string, variables = '') =>
  `query Q($o: ID!, $p: ID!${variables}) {\n  project(organizationId: $o, id: $p) {\n    ${selection}\n  }\n}`;
const ids = () => ({ o: app.demo.organization_id, p: app.demo.project_id });

describe('a repeated query has the same response', () => {
  const selections: Record<string, [selection: string, variables?: string, values?: Record<string, unknown>]> = {
    'plain fields, aliases and __typename': ['id a: name b: name created role __typename'],
    'a fragment on the type, twice': [
      '... on Project { id name } ...F unreadNotificationCount } } fragment F on Project { name role x: id computeOverview { instancesTotal',
    ],
    'a field that is left out': [
      'id @skip(if: $yes) name @include(if: $yes) role @include(if: $no)',
      ', $yes: Boolean = true, $no: Boolean!',
      { no: false },
    ],
    'the overview': [
      'computeOverview { instancesTotal attention { tasksStuck } tasksByStatus { status count } resourcesAllocated { ramGb } }',
    ],
    'a connection with its defaults': [
      'instances { nodes { id name hypervisor cancellationAt backupTrial { reason blockers trial { id created } } } pageInfo { hasNextPage endCursor } }',
    ],
    'a connection by variables, some left out': [
      'notifications(first: $n, after: $after, filter: { unread: $unread, severity: $severity }) { edges { cursor node { id sequence read data created } } }',
      ', $n: Int = 3, $after: String, $unread: Boolean, $severity: Severity',
    ],
    'a filter as one variable': [
      'notifications(first: 2, filter: $f) { nodes { id severity } }',
      ', $f: NotificationFilter',
      { f: { severity: 'info' } },
    ],
    'nulls that are given': [
      'notifications(first: $n, filter: $f) { nodes { id } }',
      ', $n: Int = 2, $f: NotificationFilter',
      { n: null, f: null },
    ],
    'a page with defaults': ['notificationPage { count page pageSize totalPages results { id } }'],
    'a page by variables with defaults': [
      'dashboardPage(page: $page, pageSize: $size) { page pageSize results { id widgets } }',
      ', $page: Int! = 1, $size: Int! = 2',
    ],
    'errors beside data': [
      `name instance(id: "${absent}") { id } other: instance(id: $i) { name } dashboard(id: "nonsense") { id }`,
      ', $i: ID!',
      { i: absent },
    ],
    'an error in each of several aliases': [`a: dashboard(id: "one") { id }\r\n  b: dashboard(id: "two") {\r id }\n\n c: role`],
    'a field error of an argument': ['notifications(after: "bnVsbA") { nodes { id } } name'],
    'a field error of a cursor': ['dashboards(after: $after) { nodes { id } } name', ', $after: String', { after: 'nonsense' }],
  };

  it.each(Object.entries(selections))('%s', async (_name, [selection, variables, values]) => {
    const { json } = await expectAlike({ query: inProject(selection, variables), variables: { ...ids(), ...values } });
    expect(json).toHaveProperty('data');
  });

  it('a document that costs too much by a variable', async () => {
    const query = inProject(
      'instances(first: $n) { nodes { consoleSessions(first: 100) { nodes { id created kind ended a: id b: id } } } }',
      ', $n: Int',
    );
    for (const n of [1, 100, 2, 99]) {
      const { json } = await expectAlike({ query, variables: { ...ids(), n } });
      expect(Object.keys(json)).toEqual(n < 50 ? ['data'] : ['errors']);
    }
  });

  it('a document that costs too much in any case', async () => {
    const { json } = await expectAlike({ query: inProject(`tasks { nodes { ${'id '.repeat(501)} } }`), variables: ids() });
    expect(Object.keys(json)).toEqual(['errors']);
  });

  it('null where a variable may be null and the argument may not', async () => {
    const query = inProject('dashboardPage(pageSize: $size) { count }', ', $size: Int');
    expect((await expectAlike({ query, variables: { ...ids(), size: null } })).json).not.toHaveProperty('data');
    expect((await expectAlike({ query, variables: { ...ids(), size: 1 } })).json).toHaveProperty('data');
    const byPage = inProject('dashboardPage(page: $page) { count }', ', $page: Int');
    expect((await expectAlike({ query: byPage, variables: { ...ids(), page: null } })).json).not.toHaveProperty('data');
    expect((await expectAlike({ query: byPage, variables: { ...ids(), page: 1 } })).json).toHaveProperty('data');
  });

  it.each(routes.filter(({ method }) => method === 'get').map(({ operation }) => [/query (\w+)/.exec(operation)?.[1] ?? '', operation]))(
    'the table’s %s',
    async (_name, query) => {
      const { organization_id, project_id } = app.demo;
      const variables = { organization_id, project_id, dashboard_id: absent, instance_id: absent };
      const used = Object.fromEntries(Object.entries(variables).filter(([name]) => query.includes(`$${name}`)));
      await expectAlike({ query, variables: used });
      await expectAlike({ query: `${query} `, variables: { ...used, project_id: absent } });
    },
  );

  it('the viewer, introspection, and a project that is not visible', async () => {
    await expectAlike({ query: '{ viewer { id email organizations { nodes { id role projects(first: 2) { nodes { name } } } } } }' });
    await expectAlike({ query: getIntrospectionQuery({ inputValueDeprecation: true }) });
    await expectAlike({ query: '{ __typename }' }, { as: null });
    await expectAlike({ query: inProject('id'), variables: ids() }, { as: null });
    await expectAlike({ query: inProject('name'), variables: ids() }, { as: 'outsider' });
  });
});

describe('a repeated request has the same response', () => {
  const two = 'query A { viewer { id } } query B { viewer { name } } mutation C { revokeApiKey(input: { id: "x" }) { apiKey { id } } }';

  it.each(['A', 'B', 'C', 'D', null, 7])('operationName %j', async (operationName) => {
    await expectAlike({ query: two, operationName });
  });

  it.each([
    [undefined],
    ['*/*'],
    ['application/json'],
    ['application/graphql-response+json'],
    ['application/graphql-response+json, application/json;q=0.9'],
    ['application/json, application/graphql-response+json'],
    ['text/html, application/*;q=0.1'],
    ['application/json; charset=latin1, */*'],
    ['application/json; charset=latin1'],
    ['text/event-stream'],
    ['text/event-stream, application/json'],
    ['multipart/mixed, text/plain'],
    ['image/png'],
    [',;,'],
  ])('Accept: %s', async (accept) => {
    const headers = accept === undefined ? {} : { accept };
    const query = `{ viewer { id name } } # ${accept}`;
    await expectAlike({ query }, { headers });
    await expectAlike({ query: inProject(`id dashboard(id: "${absent}") { id } # ${accept}`), variables: ids() }, { headers });
    await expectAlike({ query: inProject(`id # ${accept}`), variables: { o: 'x', p: 7 } }, { headers });
  });

  it.each([
    [{ variables: null }],
    [{ variables: [] }],
    [{ variables: 'x' }],
    [{ extensions: null }],
    [{ extensions: {} }],
    [{ extensions: 5 }],
    [{ more: 1 }],
    [{ more: null }],
    [{ operationName: '' }],
  ])('a body with %j', async (others) => {
    await expectAlike({ query: `{ viewer { email } } # ${JSON.stringify(others)}`, ...others });
  });

  it('variables that do not fit, or are missing, or nested too deep', async () => {
    const query = inProject('notifications(first: $n, filter: $f) { nodes { id } }', ', $n: Int, $f: NotificationFilter');
    for (const values of [{ n: 'x' }, { f: { severity: 'bad' } }, { f: { nothing: 1 } }, { f: [] }, { n: 2 ** 40 }])
      await expectAlike({ query, variables: { ...ids(), ...values } });
    await expectAlike({ query, variables: {} });
    let deep: unknown = 1;
    for (let level = 0; level < 600; level += 1) deep = [deep];
    await expectAlike({ query, variables: { ...ids(), f: deep } });
  });

  it('a mutation with an omitted variable, and a refused one', async () => {
    const query = 'mutation M($input: UpdateDashboardInput!) { updateDashboard(input: $input) { dashboard { name } } }';
    const input = { organizationId: app.demo.organization_id, projectId: app.demo.project_id, id: absent, name: 'x' };
    await expectAlike({ query, variables: { input } });
    await expectAlike({ query, variables: { input: { ...input, name: '' } } });
    const mark =
      'mutation ($o: ID!, $p: ID!, $ids: [UUID!]) { markNotificationsRead(input: { organizationId: $o, projectId: $p, notificationIds: $ids }) { marked unreadCount } }';
    await expectAlike({ query: mark, variables: { ...ids(), ids: [absent] } });
  });
});
