import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startApp, type TestApp, type TestResponse } from '../support/app.ts';
import { countCases } from '../support/cases.ts';
import { openPlainFeed, openSocket } from '../support/feed.ts';
import { expectUnharmed } from '../support/inputs.ts';
import { jsonText, literalJson, toLiteral } from '../support/json-texts.ts';

let app: TestApp;
let dashboards: string;
/** The dashboard that is changed; v1's PUT and GraphQL's mutations take it. */
let id: string;
/** The newest entry of the log. */
let last: number;
beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_USER: '100000000' });
  dashboards = `${app.projectPath}/monitoring/dashboards`;
  id = (await app.ask('POST', dashboards, { body: { name: 'digits' } })).json.id;
  last = (await app.ask('GET', `${app.projectPath}/notifications?page_size=1`)).json.results[0].sequence;
});
afterAll(() => app.close());

const runs = (full: number) => ({ numRuns: countCases(full) });
const ids = () => `"organizationId":"${app.demo.organization_id}","projectId":"${app.demo.project_id}"`;
const literalIds = () => ids().replace(/"(\w+)":/g, '$1: ');
const payload = '{ dashboard { widgets } }';

/** A request whose body is written here, variables as JSON text. */
const byGraphql = (query: string, variables = '{}', more = '', headers: Record<string, string> = {}) =>
  app.ask('POST', '/graphql', { body: `{"query":${JSON.stringify(query)},"variables":${variables}${more}}`, headers });

const update = (mutation: string, type: string) => `mutation ($input: ${type}!) { ${mutation}(input: $input) ${payload} }`;
const input = (json: string, name = ',"name":"digits"') => `{"input":{${ids()},"id":"${id}"${name},"widgets":${json}}}`;

/** Every way in by which widgets come as JSON; each answers them too. */
const waysIn: Record<string, (json: string) => Promise<TestResponse>> = {
  'v1 PUT': (json) => app.ask('PUT', `${dashboards}/${id}`, { body: `{"name":"digits","widgets":${json}}` }),
  // In a transaction, as it takes the place of another default.
  'v1 PUT of a default': (json) => app.ask('PUT', `${dashboards}/${id}`, { body: `{"name":"digits","widgets":${json},"is_default":true}` }),
  'an input object': (json) => byGraphql(update('updateDashboard', 'UpdateDashboardInput'), input(json)),
  patchDashboard: (json) => byGraphql(update('patchDashboard', 'PatchDashboardInput'), input(json, '')),
  'a variable of its own': (json) =>
    byGraphql(
      `mutation ($w: JSON) { patchDashboard(input: { ${literalIds()}, id: "${id}", widgets: $w }) ${payload} }`,
      `{"unused":1.0,"w":${json}}`,
    ),
  'a request that is unusual': (json) =>
    byGraphql(update('patchDashboard', 'PatchDashboardInput'), input(json, ''), ',"extensions":{"a":1.0}'),
  'a client of streams': (json) =>
    byGraphql(update('patchDashboard', 'PatchDashboardInput'), input(json, ''), '', { accept: 'text/event-stream' }),
  'beside an error': (json) =>
    byGraphql(
      `mutation ($input: PatchDashboardInput!) { patchDashboard(input: $input) ${payload}
        wrong: deleteDashboard(input: { ${literalIds()}, id: "nothing" }) { deletedId } }`,
      input(json, ''),
    ),
};

const readDocument = () => `{ project(id: "${app.demo.project_id}") { dashboard(id: "${id}") { widgets } } }`;

/** Every way out besides. */
const waysOut: Record<string, () => Promise<TestResponse>> = {
  'v1 GET': () => app.ask('GET', `${dashboards}/${id}`),
  'the list of v1': () => app.ask('GET', `${dashboards}?page_size=100`),
  'POST of a query': () => byGraphql(readDocument()),
  'GET of a query': () => app.ask('GET', `/graphql?query=${encodeURIComponent(readDocument())}`),
  'a connection': () => byGraphql(`{ project(id: "${app.demo.project_id}") { dashboards(last: 3) { nodes { widgets } } } }`),
  'the lists of projects': () =>
    byGraphql(`{ organization(id: "${app.demo.organization_id}") { projects { nodes { dashboards(last: 3) { nodes { widgets } } } } } }`),
  node: () => byGraphql(`{ node(id: "${id}") { ... on Dashboard { widgets } } }`),
};

const expectWidgets = (way: string, { status, text }: TestResponse, json: string) =>
  expect([way, status, text.includes(`"widgets":${json}${way.includes('v1') ? ',"is_default"' : '}'}`)], text).toEqual([way, 200, true]);

it('widgets come back to the digit, by whichever ways they go in and out', async () => {
  await fc.assert(
    fc.asyncProperty(jsonText, async (json) => {
      const created = await app.ask('POST', dashboards, { body: `{"name":"made","widgets":${json}}` });
      expect([created.status, created.text.includes(`"widgets":${json},"is_default"`)], created.text).toEqual([201, true]);
      expect((await app.ask('DELETE', `${dashboards}/${created.json.id}`)).status).toBe(204);
      for (const [way, send] of Object.entries(waysIn)) expectWidgets(way, await send(json), json);
      for (const [way, read] of Object.entries(waysOut)) expectWidgets(way, await read(), json);
    }),
    runs(60),
  );
}, 180_000);

it('a literal comes back to the digit, also as a default and around a variable', async () => {
  await fc.assert(
    fc.asyncProperty(literalJson, jsonText, async (json, inner) => {
      const literal = toLiteral(json);
      const patch = (widgets: string) => `patchDashboard(input: { ${literalIds()}, id: "${id}", widgets: ${widgets} }) ${payload}`;
      expectWidgets('a literal', await byGraphql(`mutation { ${patch(literal)} }`), json);
      expectWidgets('a default', await byGraphql(`mutation ($w: JSON = ${literal}) { ${patch('$w')} }`), json);
      const around = await byGraphql(
        `mutation ($w: JSON) { ${patch(`{a: [${literal}, $w], b: $gone}`).replace('$gone', '1.50')} }`,
        `{"w":${inner}}`,
      );
      expectWidgets('around a variable', around, `{"a":[${json},${inner}],"b":1.50}`);
    }),
    runs(100),
  );
});

it('inputs of other types are read as usual, also next to numbers whose text is kept', async () => {
  const { headers } = await app.ask('GET', `${dashboards}/${id}`);
  const version = Number(String(headers.etag).slice(1, -1));
  const response = await byGraphql(
    update('patchDashboard', 'PatchDashboardInput'),
    `{"input":{${ids()},"id":"${id}","expectedVersion":${version}.0,"widgets":{"2":1.0,"1":-0}}}`,
  );
  expect(response.text).toBe('{"data":{"patchDashboard":{"dashboard":{"widgets":{"2":1.0,"1":-0}}}}}');
  const two = `mutation ($none: PatchDashboardInput!, $w: JSON) {
    a: patchDashboard(input: $none) ${payload} b: patchDashboard(input: { ${literalIds()}, id: "${id}", widgets: $w }) ${payload} }`;
  const { errors } = (await byGraphql(two, '{"none":null,"w":1.0}')).json;
  expect(errors[0].extensions.fields).toEqual({ none: ['This field may not be null.'] });
  const refused = await app.ask('POST', dashboards, { body: '{"name":1.0,"description":-0,"widgets":1.0,"is_public":1E0}' });
  expect(refused.json).toStrictEqual({
    name: ['Not a valid string.'],
    description: ['Not a valid string.'],
    is_public: ['Must be a valid boolean.'],
  });
});

it('the bound of 256 KiB counts the bytes as they are kept', async () => {
  const most = 256 * 1024;
  const digits = (length: number) => `0.${'1'.repeat(length - 2)}`;
  const send = (json: string) => app.ask('PUT', `${dashboards}/${id}`, { body: `{"name":"digits","widgets":${json}}` });
  expectWidgets('v1 PUT', await send(digits(most)), digits(most));
  expect((await send(digits(most + 1))).json).toEqual({ widgets: ['Ensure this value takes no more than 262144 bytes.'] });
  expectWidgets('v1 PUT', await send(`[1.0,${' '.repeat(most)}"2"]`), '[1.0,"2"]');
  const items = (count: number) => `[${'1.0,'.repeat(count)}1.0]`;
  expectWidgets('v1 PUT', await send(items(65_534)), items(65_534));
  expect((await send(items(65_535))).json).toEqual({ widgets: ['Ensure this value takes no more than 262144 bytes.'] });
  // JavaScript would spell each with 21 digits.
  const powers = (count: number, behind: string) => `[${'1e20,'.repeat(count)}${behind}]`;
  expectWidgets('v1 PUT', await send(powers(52_428, '10')), powers(52_428, '10'));
  expect((await send(powers(52_428, '100'))).json).toEqual({ widgets: ['Ensure this value takes no more than 262144 bytes.'] });
});

it('the data of a notification come back to the digit, in lists and in every feed', async () => {
  const texts = fc.sample(jsonText, countCases(100)).map((json) => `{"value":${json},"10":1.0,"9":-0}`);
  const select =
    'notificationFeed(organizationId: $o, projectId: $p, after: $after) { ... on NotificationAdded { notification { data } } }';
  const query = `subscription ($o: ID!, $p: ID!, $after: Int) { ${select} }`;
  const variables = { o: app.demo.organization_id, p: app.demo.project_id, after: last };
  const received = { plain: [] as string[], graphql: [] as string[] };
  const plain = openPlainFeed(app, { after: last });
  plain.socket.on('message', (frame) => received.plain.push(String(frame)));
  const graphql = openSocket(app, '/graphql', { protocol: 'graphql-transport-ws' });
  const say = (message: unknown) => graphql.socket.send(typeof message === 'string' ? message : JSON.stringify(message));
  graphql.socket.on('message', (frame) => received.graphql.push(String(frame)));
  graphql.socket.on('open', () => say({ type: 'connection_init', payload: { authorization: `Bearer ${app.demo.users.owner.token}` } }));
  await graphql.until(({ type }) => type === 'connection_ack');
  say({ id: 'feed', type: 'subscribe', payload: { query, variables } });

  const document = 'mutation ($input: PublishNotificationInput!) { publishNotification(input: $input) { notification { data } } }';
  const publication = (json: string) => `{"input":{${ids()},"kind":"digits","severity":"info","title":"digits","data":${json}}}`;
  for (const [index, json] of texts.entries()) {
    const whole = `{"data":{"publishNotification":{"notification":{"data":${json}}}}}`;
    if (index % 2) expect((await byGraphql(document, publication(json))).text).toBe(whole);
    else {
      const message = `{"id":"${index}","type":"subscribe","payload":{"query":${JSON.stringify(document)},"variables":${publication(json)}}}`;
      say(message);
      await graphql.until((frame) => frame.id === String(index) && frame.type === 'complete');
      expect(received.graphql).toContain(`{"id":"${index}","type":"next","payload":${whole}}`);
    }
    const { text } = await app.ask('GET', `${app.projectPath}/notifications?page_size=1`);
    expect(text.includes(`"data":${json},`), text).toBe(true);
    const found = await byGraphql(`{ project(id: "${app.demo.project_id}") { notifications(first: 1) { nodes { data } } } }`);
    expect(found.text.includes(`{"data":${json}}`), found.text).toBe(true);
  }
  const isLast = (sequence: number) => sequence === last + texts.length;
  await plain.until((frame) => frame.type === 'notification' && isLast(frame.sequence));
  const inPlain = received.plain.filter((frame) => frame.startsWith('{"type":"notification"'));
  for (const [index, json] of texts.entries()) expect(inPlain[index]?.includes(`"data":${json},`), inPlain[index]).toBe(true);
  await expect
    .poll(() => received.graphql.filter((frame) => frame.startsWith('{"id":"feed"') && frame.includes('"data":{"value"')).length)
    .toBe(texts.length);
  const inGraphql = received.graphql.filter((frame) => frame.startsWith('{"id":"feed"') && frame.includes('"data":{"value"'));
  for (const [index, json] of texts.entries()) expect(inGraphql[index]?.includes(`{"data":${json}}`), inGraphql[index]).toBe(true);
  plain.socket.terminate();
  graphql.socket.terminate();

  const stream = await fetch(`${app.baseUrl}/graphql`, {
    method: 'POST',
    headers: { authorization: `Bearer ${app.demo.users.owner.token}`, accept: 'text/event-stream', 'content-type': 'application/json' },
    body: JSON.stringify({ query, variables }),
  });
  let events = '';
  for await (const part of stream.body ?? []) {
    events += Buffer.from(part).toString();
    if (events.split('"data":{"value"').length > texts.length) break;
  }
  for (const json of texts) expect(events.includes(`{"data":${json}}`)).toBe(true);
});

it('leaves the server unharmed', () => expectUnharmed(app));

it('the data of notifications that are published together come back to the digit', async () => {
  const document = 'mutation ($input: PublishNotificationsInput!) { publishNotifications(input: $input) { notifications { data } } }';
  const texts = fc.sample(jsonText, countCases(50)).map((json) => `{"value":${json},"10":1.0,"9":-0}`);
  const items = texts.map((json) => `{"kind":"digits","severity":"info","title":"digits","data":${json}}`);
  const { text } = await byGraphql(document, `{"input":{${ids()},"notifications":[${items}]}}`);
  expect(text).toBe(`{"data":{"publishNotifications":{"notifications":[${texts.map((json) => `{"data":${json}}`)}]}}}`);
});
