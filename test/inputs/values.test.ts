import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { camel, expectGraphql, expectRest, expectUnharmed, type Fields, graphqlFields, graphqlInvalid } from '../support/inputs.ts';

let app: TestApp;
let before: unknown;
beforeAll(async () => {
  app = await startApp();
  before = await readAll();
});
afterAll(() => app.close());

/** What an operation is called in either API. */
const operations = {
  create: { method: 'POST', path: '/monitoring/dashboards', mutation: 'createDashboard', selection: 'dashboard { id }' },
  update: { method: 'PUT', path: '/monitoring/dashboards/:id', mutation: 'updateDashboard', selection: 'dashboard { id }' },
  ticket: { method: 'POST', path: '/websocket-tickets', mutation: 'createWebsocketTicket', selection: 'ticket' },
  mark: { method: 'POST', path: '/notifications/read', mutation: 'markNotificationsRead', selection: 'marked' },
  publish: { method: null, path: '', mutation: 'publishNotification', selection: 'notification { id }' },
} as const;

interface Row {
  readonly label: string;
  readonly on: ReadonlyArray<keyof typeof operations>;
  /** The members of the body in v1's names, as JSON text: no client library stands in between. */
  readonly members: string;
  readonly fields: Fields;
  /** Where GraphQL refuses for another reason. */
  readonly graphql?: unknown;
}

const dashboards = ['create', 'update'] as const;
const nul = ['Null characters are not allowed.'];
const mark = ['A byte order mark at the beginning is not allowed.'];
const surrogate = ['Not valid Unicode: it contains a lone surrogate.'];
const range = ['A number is out of range.'];
const deep = ['Nested deeper than 500 levels.'];
const blank = ['This field may not be blank.'];
const long = ['Ensure this field has no more than 255 characters.'];
const noNull = ['This field may not be null.'];
const noString = ['Not a valid string.'];
const noBoolean = ['Must be a valid boolean.'];
const noUuid = ['Must be a valid UUID.'];
const required = ['This field is required.'];

const nest = (depth: number, inner = '') => '['.repeat(depth) + inner + ']'.repeat(depth);
const widgets = (json: string) => `"name":"a","widgets":${json}`;
const id = '019b76da-a800-7444-963f-2077aab6cec1';
const spellings = {
  braces: `{${id}}`,
  'no hyphens': id.replaceAll('-', ''),
  urn: `urn:uuid:${id}`,
  'a space before': ` ${id}`,
  'a line break behind': `${id}\\n`,
  'a letter too many': `${id}0`,
  'hyphens elsewhere': '019b76daa8-007444-963f-2077-aab6cec1',
};

const rows: Row[] = [
  { label: 'NUL in a name', on: dashboards, members: '"name":"a\\u0000b"', fields: { name: nul } },
  { label: 'NUL in a description', on: dashboards, members: '"name":"a","description":"\\u0000"', fields: { description: nul } },
  { label: 'NUL in a widget', on: dashboards, members: widgets('[{"a":["\\u0000"]}]'), fields: { widgets: nul } },
  { label: 'NUL in a key of a widget', on: dashboards, members: widgets('[{"a\\u0000":1}]'), fields: { widgets: nul } },
  {
    label: 'NUL in a kind and a title',
    on: ['publish'],
    members: '"kind":"\\u0000","title":"\\u0000","severity":"info"',
    fields: { kind: nul, title: nul },
  },
  { label: 'a byte order mark before a name', on: dashboards, members: '"name":"\ufeffa"', fields: { name: mark } },
  {
    label: 'a byte order mark before a kind and a body',
    on: ['publish'],
    members: '"kind":"\\ufeff","title":"a","severity":"info","body":"\\ufeff"',
    fields: { kind: mark, body: mark },
  },
  { label: 'a lone high surrogate in a name', on: dashboards, members: '"name":"a\\ud800b"', fields: { name: surrogate } },
  { label: 'a lone low surrogate in a name', on: dashboards, members: '"name":"\\udc00"', fields: { name: surrogate } },
  { label: 'surrogates the wrong way round', on: dashboards, members: '"name":"\\ude00\\ud83d"', fields: { name: surrogate } },
  {
    label: 'a lone surrogate in a description',
    on: dashboards,
    members: '"name":"a","description":"\\udfff"',
    fields: { description: surrogate },
  },
  { label: 'a lone surrogate in a widget', on: dashboards, members: widgets('"\\ud800"'), fields: { widgets: surrogate } },
  { label: 'a lone surrogate in a key of a widget', on: dashboards, members: widgets('{"\\udc00":1}'), fields: { widgets: surrogate } },
  {
    label: 'a lone surrogate in a kind, a title and data',
    on: ['publish'],
    members: '"kind":"\\ud800","title":"\\ud800","severity":"info","data":{"a":"\\ud800"}',
    fields: { kind: surrogate, title: surrogate, data: surrogate },
  },
  { label: '1e400', on: dashboards, members: widgets('1e400'), fields: { widgets: range } },
  { label: '-1e400', on: dashboards, members: widgets('[{"a":-1e400}]'), fields: { widgets: range } },
  {
    label: '1e400 in data',
    on: ['publish'],
    members: '"kind":"a","title":"a","severity":"info","data":{"a":1e400}',
    fields: { data: range },
  },
  {
    label: 'an array as data',
    on: ['publish'],
    members: '"kind":"a","title":"a","severity":"info","data":[]',
    fields: { data: ['Must be a JSON object.'] },
  },
  { label: 'null as data', on: ['publish'], members: '"kind":"a","title":"a","severity":"info","data":null', fields: { data: noNull } },
  { label: 'widgets of 501 levels', on: dashboards, members: widgets(nest(501)), fields: { widgets: deep } },
  {
    label: 'widgets of 20,000 levels',
    on: dashboards,
    members: widgets(nest(20_000)),
    fields: { widgets: deep },
    graphql: graphqlInvalid('The variables are nested deeper than 520 levels.'),
  },
  {
    label: 'a name of 20,000 levels',
    on: dashboards,
    members: `"name":${nest(20_000)}`,
    fields: { name: noString },
    graphql: graphqlInvalid('The variables are nested deeper than 520 levels.'),
  },
  {
    label: 'widgets of a byte over 256 KiB',
    on: dashboards,
    members: widgets(`"${'é'.repeat(131_071)}x"`),
    fields: { widgets: ['Ensure this value takes no more than 262144 bytes.'] },
  },
  { label: 'no name', on: dashboards, members: '"widgets":[]', fields: { name: required } },
  { label: 'an empty name', on: dashboards, members: '"name":""', fields: { name: blank } },
  { label: 'a name of white space', on: dashboards, members: '"name":" \\t\\n\\u00a0\\u2003\\u2028\\ufeff"', fields: { name: blank } },
  { label: 'a name of 256 letters', on: dashboards, members: `"name":"${'a'.repeat(256)}"`, fields: { name: long } },
  { label: 'a name of 256 characters of two bytes', on: dashboards, members: `"name":"${'é'.repeat(256)}"`, fields: { name: long } },
  { label: 'a name of 256 emoji', on: dashboards, members: `"name":"${'😀'.repeat(256)}"`, fields: { name: long } },
  {
    label: 'null for all that has no null',
    on: dashboards,
    members: '"name":null,"description":null,"widgets":null,"is_default":null,"is_public":null',
    fields: { name: noNull, description: noNull, is_default: noNull, is_public: noNull },
  },
  { label: 'null as the project to move to', on: ['update'], members: '"name":"a","project":null', fields: { project: noNull } },
  {
    label: 'values of other types, nothing converted',
    on: dashboards,
    members: '"name":5,"description":["a"],"is_default":"true","is_public":1',
    fields: { name: noString, description: noString, is_default: noBoolean, is_public: noBoolean },
  },
  {
    label: 'objects with names of prototypes',
    on: dashboards,
    members: '"name":{"__proto__":"a"},"description":{"toString":1},"is_public":{"valueOf":true}',
    fields: { name: noString, description: noString, is_public: noBoolean },
  },
  ...Object.entries(spellings).flatMap(([label, text]): Row[] => [
    { label: `a project spelled with ${label}`, on: ['update'], members: `"name":"a","project":"${text}"`, fields: { project: noUuid } },
    {
      label: `an instance and a session spelled with ${label}`,
      on: ['ticket'],
      members: `"target":"console","instance_id":"${text}","session_id":"${text}"`,
      fields: { instance_id: noUuid, session_id: noUuid },
    },
    {
      label: `a notification spelled with ${label}`,
      on: ['mark'],
      members: `"notification_ids":["${id}","${text}"]`,
      fields: { notification_ids: ['Item 2: Must be a valid UUID.'] },
    },
  ]),
  { label: 'no target', on: ['ticket'], members: '', fields: { target: required } },
  { label: 'an unknown target', on: ['ticket'], members: '"target":"Console"', fields: { target: ['"Console" is not a valid choice.'] } },
  {
    label: 'a target named like a prototype',
    on: ['ticket'],
    members: '"target":"__proto__"',
    fields: { target: ['"__proto__" is not a valid choice.'] },
  },
  { label: 'a target in a list', on: ['ticket'], members: '"target":["console"]', fields: { target: ['Not a valid choice.'] } },
  {
    label: 'a target of 101 letters',
    on: ['ticket'],
    members: `"target":"${'x'.repeat(101)}"`,
    fields: { target: ['Not a valid choice.'] },
  },
  {
    label: 'a target with NUL',
    on: ['ticket'],
    members: '"target":"\\u0000\\ud800"',
    fields: { target: ['"\u0000\ud800" is not a valid choice.'] },
  },
  {
    label: '201 ids',
    on: ['mark'],
    members: `"notification_ids":${JSON.stringify(Array(201).fill(id))}`,
    fields: { notification_ids: ['Ensure this field has no more than 200 items.'] },
  },
  {
    label: 'one id for a list',
    on: ['mark'],
    members: `"notification_ids":"${id}"`,
    fields: { notification_ids: ['Expected a list of items.'] },
  },
  {
    label: 'an object for a list',
    on: ['mark'],
    members: `"notification_ids":{"0":"${id}"}`,
    fields: { notification_ids: ['Expected a list of items.'] },
  },
  {
    label: 'ids of every other type',
    on: ['mark'],
    members: `"notification_ids":[null,5,"x",["${id}"],{},true]`,
    fields: {
      notification_ids: ['Item 1: This field may not be null.', ...[2, 3, 4, 5, 6].map((item) => `Item ${item}: Must be a valid UUID.`)],
    },
  },
];

/** All that the operations could have changed. */
function readAll() {
  const { dashboard, websocketTicket, notificationLog, notificationState } = app.app.database.prisma;
  return Promise.all([dashboard.findMany(), websocketTicket.findMany(), notificationLog.findMany(), notificationState.findMany()]);
}

const at = (path: string) => app.projectPath + path.replace(':id', app.demo.dashboards.public);

function askGraphql(on: keyof typeof operations, members: string) {
  const { mutation, selection } = operations[on];
  const type = `${mutation.charAt(0).toUpperCase()}${mutation.slice(1)}Input`;
  const query = `mutation($input: ${type}!) { ${mutation}(input: $input) { ${selection} } }`;
  const ids = `"organizationId":"${app.demo.organization_id}","projectId":"${app.demo.project_id}"`;
  const all = [ids, ...(on === 'update' ? [`"id":"${app.demo.dashboards.public}"`] : []), ...(members ? [members] : [])].join(',');
  const variables = `{"input":{${all.replace(/"(\w+)":/g, (_, name: string) => `"${camel(name)}":`)}}}`;
  return app.ask('POST', '/graphql', { body: `{"query":${JSON.stringify(query)},"variables":${variables}}` });
}

describe.each(rows)('$label', ({ on, members, fields, graphql }) => {
  for (const operation of on) {
    const { method, path, mutation } = operations[operation];
    if (method) {
      it(`by REST: ${operation}`, async () => {
        expectRest(await app.ask(method, at(path), { body: `{${members}}` }), 400, fields);
      });
    }
    it(`by GraphQL: ${mutation}`, async () => {
      const renamed = Object.fromEntries(Object.entries(fields).map(([name, messages]) => [camel(name), messages]));
      expectGraphql(await askGraphql(operation, members), 200, graphql ?? graphqlFields(renamed));
    });
  }
});

describe('the server', () => {
  it('leaves no trace in the database', async () => {
    expect(await readAll()).toEqual(before);
  });

  it('is unharmed by refused values', () => expectUnharmed(app));
});
