import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { pickCases } from '../support/cases.ts';
import { camelize, isAnonymous, type OperationName, operations, type Place } from '../support/contract.ts';
import { type Case, credentialOf, homeOf, sendRest, type Who } from '../support/doors.ts';
import { ABSENT_ID } from '../support/fixtures.ts';
import { graphqlDoors, verdictOf } from '../support/graphql-doors.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_USER: '100000', RATE_LIMIT_ANONYMOUS: '100000' });
});
afterAll(() => app.close());

const whos: readonly Who[] = ['owner', 'member', 'viewer', 'outsider', 'viewer by key', 'nobody', 'garbage'];

/** Where: at home, among strangers, nowhere, and by what is not an id. */
const placesOf = (): Record<string, Partial<Place>> => ({
  home: {},
  foreign: { organization_id: app.demo.foreign.organization_id, project_id: app.demo.foreign.project_id },
  'the project of another organization': { project_id: app.demo.foreign.project_id },
  absent: { project_id: ABSENT_ID },
  malformed: { project_id: 'main' },
  'a malformed organization': { organization_id: '{}' },
  'an absent dashboard': { dashboard_id: ABSENT_ID },
  'a malformed dashboard': { dashboard_id: 'x' },
  'a foreign dashboard': { dashboard_id: app.demo.foreign.dashboard_id },
  'a private dashboard': { dashboard_id: app.demo.dashboards.private },
});

const pages = [undefined, { page: 0 }, { page: 'x', page_size: -1 }, { page: 99 }];
const contents = [
  { name: 'Good' },
  { name: '' },
  { name: 'n'.repeat(256), description: 5, is_public: 'x' },
  { description: 'no name' },
  { name: 'Moved', project: 'x' },
];
const inputs: Readonly<Record<OperationName, ReadonlyArray<Record<string, unknown> | undefined>>> = {
  create_websocket_ticket: [
    { target: 'ssh' },
    {},
    { target: 'console' },
    { target: 'console', instance_id: 'x' },
    { target: 'notifications' },
  ],
  list_organizations: pages,
  list_projects: pages,
  list_dashboards: pages,
  create_dashboard: contents.slice(0, -1),
  get_dashboard: [undefined],
  update_dashboard: contents,
  delete_dashboard: [undefined],
  list_instances: [...pages, { status: 'lost' }, { status: 'active', page: 99 }],
  get_instance: [undefined],
  backup_trial_state: [undefined],
  list_tasks: [...pages, { status: 'lost' }, { status: 'failed', page: 0 }],
  compute_overview: [undefined],
  list_notifications: [...pages, { kind: 'k'.repeat(256) }, { severity: 'loud' }],
  mark_notifications_read: [{ notification_ids: ['x'] }, { notification_ids: Array(201).fill(ABSENT_ID) }, { notification_ids: 5 }],
};

/** What both APIs say, in the words of GraphQL. */
interface Verdict {
  readonly code: string | null;
  readonly fields?: unknown;
}

async function askRest(row: Case, place: Place): Promise<Verdict> {
  const { status, json } = await sendRest(app, row, place);
  if (status < 300) return { code: null };
  return typeof json.code === 'string' ? { code: json.code } : { code: 'validation_failed', fields: camelize(json) };
}

async function askGraphql({ operation, input = {}, version, as = 'owner' }: Case, place: Place): Promise<Verdict & { path?: unknown }> {
  const { document, variables } = operations[operation];
  const { json } = await app.graphql(document, variables({ place, input, version }), { as: credentialOf(app, as) });
  const [error] = json.errors ?? [];
  if (!error) return { code: isAnonymous(json.data) ? 'not_authenticated' : null };
  const { code, fields } = error.extensions;
  return { code, ...(fields && { fields }) };
}

describe.each(Object.entries(inputs))('%s', (operation, cases) => {
  it.each(whos)('answers %s the same in both APIs, for any combination of problems', async (as) => {
    // By another version nothing is deleted that the other API is asked about afterwards.
    const versions = { update_dashboard: [undefined, 99], delete_dashboard: [99] }[operation] ?? [undefined];
    const combinations = Object.entries(placesOf()).flatMap(([where, changed]) =>
      cases.flatMap((input) => versions.map((version) => ({ where, changed, input, version }))),
    );
    for (const { where, changed, input, version } of pickCases(combinations)) {
      const row = { name: '', operation: operation as OperationName, status: 200, as, input, version } as Case;
      const place = { ...homeOf(app), ...changed };
      const [rest, graphql] = [await askRest(row, place), await askGraphql(row, place)];
      expect(graphql, `${where}, ${JSON.stringify(input)?.slice(0, 80)}, version ${version}`).toEqual(rest);
    }
  });
});

describe('the check before the fields', () => {
  const literal = (project: string, rest = '') =>
    `mutation { a: createDashboard(input: {organizationId: "${app.demo.organization_id}", projectId: "${project}", name: ""}) { dashboard { id } } ${rest} }`;

  it('is the credential, also where a literal is wrong', async () => {
    const headers = { accept: 'application/graphql-response+json' };
    const { status, json } = await app.graphql(literal(app.demo.project_id), {}, { as: null, headers });
    const message = 'Authentication credentials were not provided.';
    expect({ status, json }).toEqual({
      status: 200,
      json: {
        data: { a: null },
        errors: [{ message, path: ['a'], locations: [{ line: 1, column: 12 }], extensions: { code: 'not_authenticated' } }],
      },
    });
  });

  it('is the credential, also where a variable is wrong: introspection alone needs none, and is not executed either', async () => {
    const query = `query ($name: String!) {
      __typename project(id: "x") { name } type: __type(name: $name) { name } __schema { queryType { name } }
    }`;
    const { status, json } = await app.graphql(query, { name: 5 }, { as: null });
    expect(status).toBe(200);
    expect(json).not.toHaveProperty('data');
    expect(json.errors.map(({ path, extensions }: { path: string[]; extensions: object }) => ({ path, ...extensions }))).toEqual([
      { path: ['project'], code: 'not_authenticated' },
    ]);
    const introspection = await app.graphql('query ($name: String!) { __type(name: $name) { name } }', { name: 5 }, { as: null });
    expect(introspection.json.errors[0].extensions).toEqual({ code: 'validation_failed', fields: { name: ['Not a valid string.'] } });
  });

  it('is nothing of a mutation that is carried out: sizes and cursors below it are checked before', async () => {
    const count = () => app.app.database.prisma.dashboard.count();
    const before = await count();
    for (const args of ['first: -1', 'last: -1', 'after: "¿"', 'before: "="']) {
      const create = `createDashboard(input: {organizationId: "${app.demo.organization_id}", projectId: "${app.demo.project_id}", name: "Once"})`;
      const { json } = await app.graphql(`mutation { ${create} { dashboard { project { dashboards(${args}) { totalCount } } } } }`);
      expect(json.errors[0].extensions.code, args).toBe('validation_failed');
      expect(json.data, args).toBeUndefined();
    }
    expect(await count()).toBe(before);
  });

  it.each(['foreign', 'absent', 'malformed'])('is the access, and nothing is executed: a project that is %s', async (which) => {
    const project = { foreign: app.demo.foreign.project_id, absent: ABSENT_ID, malformed: 'x' }[which] ?? '';
    const query = literal(
      project,
      `b: createDashboard(input: {organizationId: "${app.demo.organization_id}", projectId: "${app.demo.project_id}", name: " "}) { dashboard { id } }`,
    );
    for (let call = 0; call < 3; call += 1) {
      const { status, json } = await app.graphql(query);
      expect({ status, json }).toEqual({
        status: 200,
        json: {
          errors: [{ message: 'Not found.', path: ['a'], locations: [{ line: 1, column: 12 }], extensions: { code: 'not_found' } }],
        },
      });
    }
  });

  it('is the access, whose refusal has no errors of fields that are not executed', async () => {
    const query = `query ($first: Int) {
      viewer { id } organization(id: "${app.demo.organization_id}") { name } __schema { queryType { name } }
      project(id: "${ABSENT_ID}") { instances(first: $first) { nodes { id } } }
    }`;
    for (const [accept, expected] of [
      ['application/json', 200],
      ['application/graphql-response+json', 400],
    ] as const) {
      const { status, json } = await app.graphql(query, { first: -1 }, { headers: { accept } });
      const error = { message: 'Not found.', path: ['project'], locations: [{ line: 3, column: 7 }], extensions: { code: 'not_found' } };
      expect({ status, json }).toEqual({ status: expected, json: { errors: [error] } });
    }
  });

  it('is the access to what would be executed: neither a skipped field nor a type name is a null', async () => {
    const create = (alias: string, project: string, directive: string) =>
      `${alias}: createDashboard(input: {organizationId: "${app.demo.organization_id}", projectId: "${project}", name: ""}) ${directive} { dashboard { id } }`;
    const query = `mutation ($no: Boolean! = false) {
      __typename
      type: __typename @skip(if: $no)
      ${create('a', ABSENT_ID, '')}
      ${create('b', ABSENT_ID, '@include(if: $no)')}
      ... @skip(if: true) { ${create('c', ABSENT_ID, '')} }
    }`;
    const { json } = await app.graphql(query);
    expect(json.data).toEqual({ __typename: 'Mutation', type: 'Mutation', a: null });
    expect(json.errors.map(({ path }: { path: string[] }) => path)).toEqual([['a']]);
  });

  it('the role comes behind them', async () => {
    const { json } = await app.graphql(literal(app.demo.project_id), {}, { as: 'viewer' });
    expect(json.errors[0].extensions).toEqual({ code: 'validation_failed', fields: { name: ['This field may not be blank.'] } });
  });
});

describe.each(Object.entries(graphqlDoors))('the object that a mutation names comes before its fields, through %s', (_door, send) => {
  const place = () => `organizationId: "${app.demo.organization_id}", projectId: "${app.demo.project_id}"`;
  const mutations: Readonly<Record<string, (id: string) => string>> = {
    deleteDashboard: (id) => `deleteDashboard(input: {${place()}, id: "${id}", idempotencyKey: $key}) { deletedId }`,
    endConsoleSession: (id) => `endConsoleSession(input: {${place()}, id: "${id}", idempotencyKey: $key}) { consoleSession { id } }`,
    revokeApiKey: (id) => `revokeApiKey(input: {id: "${id}", idempotencyKey: $key}) { apiKey { id } }`,
  };

  it.each(Object.entries(mutations))('%s', async (name, write) => {
    for (const id of ['x', ABSENT_ID]) {
      const byVariable = { query: `mutation ($key: IdempotencyKey) { ${write(id)} }`, variables: { key: 'a' } };
      const byLiteral = { query: `mutation { ${write(id).replace('$key', '"a"')} }` };
      for (const request of [byVariable, byLiteral]) expect(verdictOf(await send(app, request))).toEqual([[[name], 'not_found']]);
    }
  });
});

it('an API key that names a key, of which it may know none, learns of its fields before it is refused', async () => {
  const revoke = (key: string) => `mutation { revokeApiKey(input: {id: "x", idempotencyKey: "${key}"}) { apiKey { id } } }`;
  const as = { bearer: app.demo.users.owner.api_key };
  const verdict = async (key: string) => verdictOf((await app.graphql(revoke(key), {}, { as })).json);
  expect(await verdict('a')).toEqual({ idempotencyKey: [expect.stringContaining('16 to 255')] });
  expect(await verdict('0123456789abcdef')).toEqual([[['revokeApiKey'], 'session_required']]);
});

it('of a key that there is, the fields are reported', async () => {
  const apiKey = await app.app.database.prisma.apiKey.findFirstOrThrow({ where: { userId: app.demo.users.owner.id } });
  const query = `mutation { revokeApiKey(input: {id: "${apiKey.id}", idempotencyKey: "a"}) { apiKey { id } } }`;
  expect(verdictOf((await app.graphql(query)).json)).toHaveProperty('idempotencyKey');
});
