import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { expectGraphql, expectUnharmed, type Fields, graphqlFields } from '../support/inputs.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.close());

/** Variables as JSON text: what JSON.stringify would tidy up arrives as it stands here. */
const send = (query: string, variables: string) =>
  app.ask('POST', '/graphql', { body: `{"query":${JSON.stringify(query)},"variables":${variables}}` });

const ids = () => `"organizationId":"${app.demo.organization_id}","projectId":"${app.demo.project_id}"`;
const integer = ['A valid integer is required.'];
const required = ['This field is required.'];
const noNull = ['This field may not be null.'];
const noObject = ['Must be an object.'];

const createDashboard = 'mutation($input: CreateDashboardInput!) { createDashboard(input: $input) { dashboard { id } } }';
const updateDashboard = 'mutation($input: UpdateDashboardInput!) { updateDashboard(input: $input) { dashboard { id } } }';
const mark = 'mutation($input: MarkNotificationsReadInput!) { markNotificationsRead(input: $input) { marked } }';
const publish = 'mutation($input: PublishNotificationInput!) { publishNotification(input: $input) { notification { id } } }';
const publishMany = 'mutation($input: PublishNotificationsInput!) { publishNotifications(input: $input) { notifications { id } } }';
const publishList = `mutation($o: ID!, $p: ID!, $list: [NewNotification!]!) {
  publishNotifications(input: {organizationId: $o, projectId: $p, notifications: $list}) { notifications { id } } }`;
const createKey = 'mutation($input: CreateApiKeyInput!) { createApiKey(input: $input) { apiKey { expires } } }';
const page =
  'query($o: ID!, $p: ID!, $page: Int!, $size: Int! = 5) { project(organizationId: $o, id: $p) { dashboardPage(page: $page, pageSize: $size) { count } } }';
const first =
  'query($o: ID!, $p: ID!, $first: Int, $filter: InstanceFilter) { project(organizationId: $o, id: $p) { instances(first: $first, filter: $filter) { nodes { id } } } }';
const place = () => `"o":"${app.demo.organization_id}","p":"${app.demo.project_id}"`;

describe('a variable', () => {
  it.each<[string, string, () => string, Fields]>([
    ['no input', createDashboard, () => '{}', { input: required }],
    ['input under another name', createDashboard, () => `{"__proto__":{"input":{${ids()},"name":"a"}}}`, { input: required }],
    ['null for the input', createDashboard, () => '{"input":null}', { input: noNull }],
    ['a list for the input', createDashboard, () => '{"input":[]}', { input: noObject }],
    ['a text for the input', createDashboard, () => '{"input":"{}"}', { input: noObject }],
    ['an empty input', createDashboard, () => '{"input":{}}', { name: required, organizationId: required, projectId: required }],
    [
      'unknown fields',
      createDashboard,
      () => `{"input":{${ids()},"name":"a","is_public":true,"id":1}}`,
      { is_public: ['Unknown field.'], id: ['Unknown field.'] },
    ],
    [
      'ids of other types',
      createDashboard,
      () => '{"input":{"organizationId":true,"projectId":{"a":1},"name":"a"}}',
      { organizationId: ['Not a valid id.'], projectId: ['Not a valid id.'] },
    ],
    [
      'null ids',
      createDashboard,
      () => '{"input":{"organizationId":null,"projectId":null,"name":"a"}}',
      { organizationId: noNull, projectId: noNull },
    ],
    [
      '2^31 as a version',
      updateDashboard,
      () => `{"input":{${ids()},"id":"${app.demo.dashboards.public}","name":"a","expectedVersion":2147483648}}`,
      { expectedVersion: integer },
    ],
    [
      '-2^31 - 1 as a version',
      updateDashboard,
      () => `{"input":{${ids()},"id":"${app.demo.dashboards.public}","name":"a","expectedVersion":-2147483649}}`,
      { expectedVersion: integer },
    ],
    [
      '1.5 as a version',
      updateDashboard,
      () => `{"input":{${ids()},"id":"${app.demo.dashboards.public}","name":"a","expectedVersion":1.5}}`,
      { expectedVersion: integer },
    ],
    [
      '1e400 as a version',
      updateDashboard,
      () => `{"input":{${ids()},"id":"${app.demo.dashboards.public}","name":"a","expectedVersion":1e400}}`,
      { expectedVersion: integer },
    ],
    [
      'a text as a version',
      updateDashboard,
      () => `{"input":{${ids()},"id":"${app.demo.dashboards.public}","name":"a","expectedVersion":"1"}}`,
      { expectedVersion: integer },
    ],
    ['true as a sequence', mark, () => `{"input":{${ids()},"throughSequence":true}}`, { throughSequence: integer }],
    [
      'a single value for a list',
      mark,
      () => `{"input":{${ids()},"notificationIds":"${app.demo.notification_ids[0]}"}}`,
      { notificationIds: ['Expected a list of items.'] },
    ],
    [
      'a list of lists',
      mark,
      () => `{"input":{${ids()},"notificationIds":[["${app.demo.notification_ids[0]}"]]}}`,
      { notificationIds: ['Item 1: Must be a valid UUID.'] },
    ],
    [
      'a wrong enum',
      publish,
      () => `{"input":{${ids()},"kind":"a","title":"a","severity":"INFO"}}`,
      { severity: ['"INFO" is not a valid choice.'] },
    ],
    [
      'a number for an enum',
      publish,
      () => `{"input":{${ids()},"kind":"a","title":"a","severity":0}}`,
      { severity: ['Not a valid choice.'] },
    ],
    [
      'null for what may be left out, but not null',
      publish,
      () => `{"input":{${ids()},"kind":"a","title":"a","severity":"info","body":null,"data":null}}`,
      { body: noNull, data: noNull },
    ],
    [
      'wrong items of a list',
      publishMany,
      () =>
        `{"input":{${ids()},"notifications":[null,5,[],{"kind":"a","title":"a","severity":"info","data":[],"x":1},{"kind":"\\u0000"}]}}`,
      {
        notifications: ['Item 1: This field may not be null.', 'Item 2: Must be an object.', 'Item 3: Must be an object.'],
        'notifications.x': ['Item 4: Unknown field.'],
        'notifications.data': ['Item 4: Must be a JSON object.'],
        'notifications.kind': ['Item 5: Null characters are not allowed.'],
        'notifications.severity': ['Item 5: This field is required.'],
        'notifications.title': ['Item 5: This field is required.'],
      },
    ],
    [
      'a list of its own, and a wrong item in it',
      publishList,
      () => `{${place()},"list":[{"kind":"a","title":" ","severity":"info","body":null}]}`,
      { 'list.title': ['Item 1: This field may not be blank.'], 'list.body': ['Item 1: This field may not be null.'] },
    ],
    ['an object for the list', publishList, () => `{${place()},"list":{"kind":"a"}}`, { list: ['Expected a list of items.'] }],
    [
      'page 0',
      page,
      () => `{${place()},"page":0,"size":-1}`,
      { page: ['Ensure this value is greater than or equal to 1.'], size: ['Ensure this value is greater than or equal to 1.'] },
    ],
    ['page 1.5', page, () => `{${place()},"page":1.5}`, { page: integer }],
    ['null for a page', page, () => `{${place()},"page":null,"size":null}`, { page: noNull, size: noNull }],
    ['2^31 for a size', first, () => `{${place()},"first":2147483648}`, { first: integer }],
    ['a list as a filter', first, () => `{${place()},"filter":[{"status":"active"}]}`, { filter: noObject }],
    [
      'wrong enums in a filter',
      first,
      () => `{${place()},"filter":{"status":"ACTIVE","attention":5,"x":1}}`,
      { x: ['Unknown field.'], attention: ['Not a valid choice.'], status: ['"ACTIVE" is not a valid choice.'] },
    ],
  ])('%s', async (_label, query, variables, fields) => {
    expectGraphql(await send(query, variables()), 200, graphqlFields(fields));
  });

  it('is not null where null is not allowed, though its type and a default there allow the document', async () => {
    const input = `organizationId: "${app.demo.organization_id}", projectId: "${app.demo.project_id}"`;
    const create = (type: string) => `mutation($n: Text, $d: ${type}) {
      a: createDashboard(input: {${input}, name: "first"}) { dashboard { id } }
      b: createDashboard(input: {${input}, name: "second", description: $n, isDefault: $d}) { dashboard { id } } }`;
    const read = `query($o: ID!, $p: ID!, $n: Int, $d: OrderDirection, $x: Boolean = true) { project(organizationId: $o, id: $p) {
      name @include(if: $x) instancePage(page: $n) { count } instances(orderBy: {field: name, direction: $d}) { totalCount } } }`;
    const countDashboards = () => app.app.database.prisma.dashboard.count();
    const before = await countDashboards();
    expectGraphql(await send(create('Boolean'), '{"n":null,"d":null}'), 200, graphqlFields({ n: noNull, d: noNull }));
    expectGraphql(await send(create('Boolean = null'), '{"n":""}'), 200, graphqlFields({ d: noNull }));
    expect(await countDashboards()).toBe(before);
    const byDefault = read.replace('$n: Int', '$n: Int = null');
    expectGraphql(await send(byDefault, `{${place()}}`), 200, graphqlFields({ n: noNull }));
    expect((await send(byDefault, `{${place()},"n":1}`)).json.errors).toBeUndefined();
    expectGraphql(await send(read, `{${place()},"n":null,"d":null,"x":null}`), 200, graphqlFields({ n: noNull, d: noNull, x: noNull }));
    expect((await send(read, `{${place()}}`)).json.errors).toBeUndefined();
  });

  it.each(['__proto__', 'constructor', 'toString'])('%s is a field like any other where it is not declared', async (name) => {
    const { text } = await send(createDashboard, `{"input":{${ids()},"name":"a","${name}":{"isPublic":true}}}`);
    const extensions = `{"code":"validation_failed","fields":{"${name}":["Unknown field."]}}`;
    expect(text).toBe(`{"errors":[{"message":"Some fields are not valid.","extensions":${extensions}}]}`);
  });

  it.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty', '__typename'])('may be called %s', async (name) => {
    const query = (type: string) => `mutation($${name}: ${type}) { createDashboard(input: {organizationId: "${app.demo.organization_id}",
      projectId: "${app.demo.project_id}", name: "a", widgets: $${name}}) { dashboard { widgets } } }`;
    const kept = (json: string) => `{"data":{"createDashboard":{"dashboard":{"widgets":${json}}}}}`;
    expect((await send(query('JSON'), `{"${name}":{"x":[1]}}`)).text).toBe(kept('{"x":[1]}'));
    expect((await send(query('JSON = 5'), '{}')).text).toBe(kept('5'));
    expect((await send(query('JSON'), '{}')).text).toBe(kept('[]'));
    expect((await send(query('JSON'), `{"${name}":null}`)).text).toBe(kept('null'));
    const inside = query('JSON').replace(`widgets: $${name}`, `widgets: {a: $${name}, b: [$${name}]}`);
    expect((await send(inside, `{"${name}":"x"}`)).text).toBe(kept('{"a":"x","b":["x"]}'));
    expect((await send(inside, '{}')).text).toBe(kept('{"b":[null]}'));
  });

  it('is checked within a literal, too', async () => {
    const query = `mutation($w: JSON) { createDashboard(input: {organizationId: "${app.demo.organization_id}",
      projectId: "${app.demo.project_id}", name: "a", widgets: [$w]}) { dashboard { widgets } } }`;
    for (const value of ['"\\u0000"', '{"\\ud800":1}', '1e400']) {
      const { status, json } = await send(query, `{"w":${value}}`);
      expect({ status, code: json.errors[0].extensions.code, data: json.data }).toEqual({
        status: 200,
        code: 'validation_failed',
        data: undefined,
      });
    }
  });
});

describe('a date-time', () => {
  const wrong = ['Not a valid date-time: use ISO 8601 with a time zone.'];
  it.each([
    '"2099-02-30T00:00:00Z"',
    '"2099-02-29T00:00:00Z"',
    '"2099-04-31T00:00:00Z"',
    '"2099-00-01T00:00:00Z"',
    '"2099-01-00T00:00:00Z"',
    '"2099-13-01T00:00:00Z"',
    '"2099-01-01T25:00:00Z"',
    '"2099-01-01T00:60:00Z"',
    '"2099-01-01T00:00:60Z"',
    '"2099-01-01T00:00:00+99:99"',
    '"2099-01-01T00:00:00"',
    '"2099-01-01"',
    '"2099-01-01 00:00:00Z"',
    '"2099-01-01t00:00:00z"',
    '" 2099-01-01T00:00:00Z"',
    '"+012099-01-01T00:00:00Z"',
    '"9999-12-31T23:59:59-00:01"',
    '"0000-01-01T00:00:00+00:01"',
    '"٢٠٩٩-01-01T00:00:00Z"',
    '"now"',
    '""',
    '4070908800',
    '1e400',
    '{}',
    '["2099-01-01T00:00:00Z"]',
  ])('that is none: %s', async (text) => {
    expectGraphql(await send(createKey, `{"input":{"name":"k","expires":${text}}}`), 200, graphqlFields({ expires: wrong }));
  });

  it.each([
    ['2096-02-29T00:00:00Z', '2096-02-29T00:00:00.000Z'],
    ['2099-01-31T23:59:59.5+02:00', '2099-01-31T21:59:59.500Z'],
    ['2099-12-31T24:00:00Z', '2100-01-01T00:00:00.000Z'],
    ['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
    ['2099-01-01T00:00:00.123456Z', '2099-01-01T00:00:00.123Z'],
  ])('%s is %s', async (text, expires) => {
    const response = await send(createKey, `{"input":{"name":"k","expires":"${text}"}}`);
    expectGraphql(response, 200, { data: { createApiKey: { apiKey: { expires } } } });
    expect(await app.app.database.prisma.apiKey.findFirst({ orderBy: { id: 'desc' }, select: { expires: true } })).toEqual({
      expires: new Date(expires),
    });
  });
});

const spellings: Record<string, (id: string) => string> = {
  braces: (id) => `{${id}}`,
  'no hyphens': (id) => id.replaceAll('-', ''),
  urn: (id) => `urn:uuid:${id}`,
  'a blank before': (id) => ` ${id}`,
  'a line break behind': (id) => `${id}\n`,
  NUL: (id) => `${id}\0`,
  'a lone surrogate': (id) => `${id.slice(0, -1)}\ud800`,
  nothing: () => '',
  '20,000 characters': () => 'a'.repeat(20_000),
};

describe.each(Object.entries(spellings))('an id that says where: %s', (_label, spell) => {
  const absent = { message: 'Not found.', extensions: { code: 'not_found' } };
  const wholes: Array<[string, () => Record<string, unknown>]> = [
    ['query($id: ID!) { organization(id: $id) { id } }', () => ({ id: app.demo.organization_id })],
    [
      'query($o: ID!, $p: ID!) { project(organizationId: $o, id: $p) { id } }',
      () => ({ o: app.demo.organization_id, p: app.demo.project_id }),
    ],
    [
      'query($o: ID!, $p: ID!, $id: ID!) { project(organizationId: $o, id: $p) { dashboard(id: $id) { id } } }',
      () => ({ o: app.demo.organization_id, p: app.demo.project_id, id: app.demo.dashboards.public }),
    ],
    [
      'query($o: ID!, $p: ID!, $id: ID!) { project(organizationId: $o, id: $p) { instance(id: $id) { id } } }',
      () => ({ o: app.demo.organization_id, p: app.demo.project_id, id: app.demo.instances.eligible }),
    ],
    [
      'mutation($o: ID!, $p: ID!, $id: ID!) { deleteDashboard(input: {organizationId: $o, projectId: $p, id: $id}) { deletedId } }',
      () => ({ o: app.demo.organization_id, p: app.demo.project_id, id: app.demo.dashboards.public }),
    ],
    ['mutation($id: ID!) { revokeApiKey(input: {id: $id}) { apiKey { id } } }', () => ({ id: app.demo.users.owner.id })],
  ];

  it.each(wholes)('%s', async (query, values) => {
    for (const name of Object.keys(values())) {
      const variables = { ...values(), [name]: spell(String(values()[name])) };
      const { status, json } = await app.graphql(query, variables);
      const [{ locations: _locations, path: _path, ...error }, ...others] = json.errors;
      expect({ status, error, others }).toEqual({ status: 200, error: absent, others: [] });
    }
  });
});

it('an id in capitals is the same, and is answered in small letters', async () => {
  const { organization_id: o, project_id: p, dashboards, instances } = app.demo;
  const query = `query($o: ID!, $p: ID!, $d: ID!, $i: ID!) { organization(id: $o) { id }
    project(organizationId: $o, id: $p) { id organizationId dashboard(id: $d) { id } instance(id: $i) { id } } }`;
  const upper = { o: o.toUpperCase(), p: p.toUpperCase(), d: dashboards.public.toUpperCase(), i: instances.eligible.toUpperCase() };
  expectGraphql(await app.graphql(query, upper), 200, {
    data: {
      organization: { id: o },
      project: { id: p, organizationId: o, dashboard: { id: dashboards.public }, instance: { id: instances.eligible } },
    },
  });
});

it('a list of hundreds of thousands of items has one error, and one of a thousand items an error for each', async () => {
  const { organization_id, project_id } = app.demo;
  const query = `mutation ($x: [Int!]!) { createDashboard(input: {organizationId: "${organization_id}", projectId: "${project_id}", name: "x", widgets: {a: $x}}) { dashboard { id } } }`;
  const fieldsOf = async (count: number) => (await app.graphql(query, { x: Array(count).fill('') })).json.errors[0].extensions.fields;
  expect(await fieldsOf(300_000)).toEqual({ x: ['Ensure this field has no more than 1000 items.'] });
  const fields = await fieldsOf(1_000);
  expect(fields.x).toHaveLength(1_000);
  expect(fields.x.slice(0, 2)).toEqual(['Item 1: A valid integer is required.', 'Item 2: A valid integer is required.']);
});

it('leaves the server unharmed', () => expectUnharmed(app));

it('the required fields of an input are checked in its own variables, not in those of another input', async () => {
  const place = { organizationId: app.demo.organization_id, projectId: app.demo.project_id };
  const ticket = (name: string, number: number) =>
    `${name}: createWebsocketTicket(input: { organizationId: $o, projectId: $p, target: $t${number}, instanceId: $i${number} }) { path }`;
  const document = `mutation ($o: ID!, $p: ID!, $t1: TicketTarget!, $i1: UUID, $t2: TicketTarget!, $i2: UUID) { ${ticket('a', 1)} ${ticket('b', 2)} }`;
  const variables = { o: place.organizationId, p: place.projectId, t1: 'console', i1: app.demo.instances.eligible, t2: 'notifications' };
  const { json } = await app.graphql(document, variables, { as: 'member' });
  expect(json.errors).toBeUndefined();
  expect(json.data.b.path).toMatch(/notifications\/ws$/);
  const { i1: _, ...without } = variables;
  const refused = await app.graphql(document, without, { as: 'member' });
  expect(refused.json.errors[0].extensions.fields).toEqual({ i1: ['This field is required for a console.'] });
});
