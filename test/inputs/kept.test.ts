import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startApp, type TestApp, type TestResponse } from '../support/app.ts';
import { expectDashboard, expectUnharmed } from '../support/inputs.ts';

let app: TestApp;
let dashboards: string;
beforeAll(async () => {
  app = await startApp();
  dashboards = `${app.projectPath}/monitoring/dashboards`;
});
afterAll(() => app.close());

/**
 * What must come back as it was sent, without white space, whichever way it came in and goes out. Where no second text says how,
 * that is what JavaScript makes of it.
 */
const widgets: Record<string, string | readonly [string, string]> = {
  null: 'null',
  false: 'false',
  zero: '0',
  'empty text': '""',
  'an empty list': '[]',
  'an empty object': '{}',
  'a number beyond the whole ones': ['12345678901234567890', '12345678901234567890'],
  'the largest number': ['1.7976931348623157e308', '1.7976931348623157e308'],
  'the smallest number': '5e-324',
  'a number below the smallest': ['1e-400', '1e-400'],
  fractions: ['[0.1,1.10,1E2,1e-7]', '[0.1,1.10,1E2,1e-7]'],
  'nulls in lists and objects': '[null,{"a":null,"b":[null]}]',
  'the order of keys': '{"b":1,"a":2,"B":3,"":4," ":5}',
  'keys like numbers': [
    '{"b":0,"10":1,"2":2,"-1":3,"01":4,"1.5":5,"4294967296":6}',
    '{"b":0,"10":1,"2":2,"-1":3,"01":4,"1.5":5,"4294967296":6}',
  ],
  'a zero below zero': ['-0', '-0'],
  'zeros that say nothing': ['[1.0,-0.0,0e0,10.00]', '[1.0,-0.0,0e0,10.00]'],
  'a number between whole ones': ['{"id":9007199254740993}', '{"id":9007199254740993}'],
  'more digits than a number has': [`[0.${'1'.repeat(100_000)}]`, `[0.${'1'.repeat(100_000)}]`],
  'white space around numbers': ['[ 1.0 , {"a" :\n-0 } ]', '[1.0,{"a":-0}]'],
  'keys given twice, with such a number': ['{"a":1.0,"b":2,"a":3.0}', '{"a":3.0,"b":2}'],
  'a number like that in a text': '["1.0","-0",":1.0","\\\\",",1E2]"]',
  'keys given twice': '{"a":1,"b":2,"a":3}',
  'a key __proto__': '{"a":1,"__proto__":{"isAdmin":true},"b":2}',
  'a key __proto__ in depth': '[{"__proto__":{"__proto__":null}},{"__proto__":5}]',
  'keys of prototypes': '{"constructor":{"prototype":{"x":1}},"toString":1,"toJSON":"x","hasOwnProperty":null,"valueOf":[],"then":2}',
  'keys of databases': '{"$ne":1,"$$":2,"a.b":3,"\'; DROP TABLE dashboards; --":4}',
  'characters of all planes': '["é","e\\u0301","ﬀ","日本","😀","\\ud83d\\ude00","\\uffff","\\u2028\\u2029","\\u202e","\\ufeff","\\u007f"]',
  'control characters': '["\\u0001\\b\\t\\n\\f\\r\\u001f"]',
  markup: '["<script>alert(1)</script>","</script>","&amp;","%00","\\\\u0000","{{7*7}}"]',
  'JSON in a text': JSON.stringify('{"a":"\\u0000"}'),
  'white space around': ' \t\r\n [ 1 , { "a" : 2 } ] ',
  '500 lists in one another': `${'['.repeat(500)}${']'.repeat(500)}`,
  '250 objects in one another': `${'{"a":['.repeat(250)}${']}'.repeat(250)}`,
  '256 KiB': JSON.stringify('é'.repeat(131_071)),
  '5,000 keys': JSON.stringify(Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`k${index}`, index]))),
};

const texts: Record<string, string> = {
  '255 letters': 'a'.repeat(255),
  '255 emoji': '😀'.repeat(255),
  'white space at both ends': '  a\t',
  'a line break': 'a\nb',
  'characters that change the direction': '\u202eabc\u202c',
  'a byte order mark inside': 'a\ufeff',
  quotes: `'"\`\\`,
  'a statement': `'); DELETE FROM dashboards; --`,
  'escapes as text': '\\u0000 %00 &#0;',
  'an emoji of several': '👩‍👩‍👧‍👦',
};

const createDocument = `mutation($input: CreateDashboardInput!) {
  createDashboard(input: $input) { dashboard { id name description widgets } }
}`;
const readDocument = `query($organization: ID!, $project: ID!, $id: ID!) {
  project(organizationId: $organization, id: $project) { dashboard(id: $id) { id name description widgets } }
}`;

function byGraphql(query: string, variables: string): Promise<TestResponse> {
  return app.ask('POST', '/graphql', { body: `{"query":${JSON.stringify(query)},"variables":${variables}}` });
}

const ids = () => `"organizationId":"${app.demo.organization_id}","projectId":"${app.demo.project_id}"`;
const place = (id: string) => `{"organization":"${app.demo.organization_id}","project":"${app.demo.project_id}","id":"${id}"}`;

describe.each(Object.entries(widgets))('widgets: %s', (_label, row) => {
  const [json, back] = typeof row === 'string' ? [row, JSON.stringify(JSON.parse(row))] : row;
  const content = () => ({ name: 'kept', widgetsText: back });
  const made: string[] = [];

  it('POST', async () => {
    const created = await app.ask('POST', dashboards, { body: `{"name":"kept","widgets":${json}}` });
    expectDashboard(app, created, 201, content());
    expectDashboard(app, await app.ask('GET', `${dashboards}/${created.json.id}`), 200, content());
    made.push(created.json.id);
  });

  it('PUT', async () => {
    const { json: empty } = await app.ask('POST', dashboards, { body: { name: 'before' } });
    made.push(empty.id);
    const replaced = await app.ask('PUT', `${dashboards}/${empty.id}`, { body: `{"name":"kept","widgets":${json}}` });
    expectDashboard(app, replaced, 200, content());
    expectDashboard(app, await app.ask('GET', `${dashboards}/${empty.id}`), 200, content());
  });

  it('GraphQL', async () => {
    const response = await byGraphql(createDocument, `{"input":{${ids()},"name":"kept","widgets":${json}}}`);
    const { id } = response.json.data.createDashboard.dashboard;
    made.push(id);
    const dashboard = `{"id":"${id}","name":"kept","description":"","widgets":${back}}`;
    expect(response.text === `{"data":{"createDashboard":{"dashboard":${dashboard}}}}`).toBe(true);
    const read = await byGraphql(readDocument, place(id));
    expect(read.text === `{"data":{"project":{"dashboard":${dashboard}}}}`).toBe(true);
  });

  it('in a list', async () => {
    const { text } = await app.ask('GET', `${dashboards}?page_size=100`);
    expect(text.split(`"widgets":${back},"is_default"`).length - 1).toBeGreaterThanOrEqual(3);
    for (const id of made) expect((await app.ask('DELETE', `${dashboards}/${id}`)).status).toBe(204);
  });
});

describe.each(Object.entries(texts))('text: %s', (_label, text) => {
  it('REST', async () => {
    const content = { name: text, description: text };
    const created = await app.ask('POST', dashboards, { body: content });
    expectDashboard(app, created, 201, content);
    expectDashboard(app, await app.ask('GET', `${dashboards}/${created.json.id}`), 200, content);
  });

  it('GraphQL', async () => {
    const input = `{${ids()},"kind":${JSON.stringify(text)},"title":${JSON.stringify(text)},"body":${JSON.stringify(text)},"severity":"info"}`;
    const document =
      'mutation($input: PublishNotificationInput!) { publishNotification(input: $input) { notification { kind title body data } } }';
    const response = await byGraphql(document, `{"input":${input}}`);
    expect(response.json).toStrictEqual({
      data: { publishNotification: { notification: { kind: text, title: text, body: text, data: {} } } },
    });
    const { json } = await app.ask('GET', `${app.projectPath}/notifications?page_size=1&kind=${encodeURIComponent(text)}`);
    expect(json.results[0]).toMatchObject({ kind: text, title: text, body: text });
  });
});

describe('members that v1 does not declare', () => {
  const undeclared = `"__proto__":{"is_public":true,"name":"x"},"constructor":{"name":"x"},"id":"x","organization":"x","isPublic":true,"0":1`;

  it('are nothing to it', async () => {
    const created = await app.ask('POST', dashboards, { body: `{${undeclared},"name":"kept","organization_id":"x","if_match":5}` });
    expectDashboard(app, created, 201, { name: 'kept' });
    expect(Object.getOwnPropertyNames({}).concat(Object.keys(Object.prototype))).toEqual([]);
  });

  it('cannot name another project: the path counts', async () => {
    const { organization_id, project_id } = app.demo.foreign;
    const body = { target: 'notifications', organization_id, project_id, organizationId: organization_id, projectId: project_id };
    const response = await app.ask('POST', `${app.projectPath}/websocket-tickets`, { body });
    expect(response.json).toStrictEqual({
      ticket: expect.stringMatching(/^[\w-]{43}$/),
      path: `${app.projectPath}/notifications/ws`,
      expires_in: 30,
    });
  });
});

it('leaves the server unharmed', () => expectUnharmed(app));
