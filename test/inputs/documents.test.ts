import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { expectGraphql, expectUnharmed, type Fields, graphqlFields, graphqlInvalid } from '../support/inputs.ts';

let app: TestApp;
let project: string;
let ids: string;
beforeAll(async () => {
  app = await startApp();
  const { organization_id, project_id } = app.demo;
  project = `project(organizationId: "${organization_id}", id: "${project_id}")`;
  ids = `organizationId: "${organization_id}", projectId: "${project_id}"`;
});
afterAll(() => app.close());

/** Twice: what Yoga keeps of a document must not change the second response. */
async function expectTwice(document: string, body: unknown, variables?: Record<string, unknown>): Promise<void> {
  expectGraphql(await app.graphql(document, variables), 200, body);
  expectGraphql(await app.graphql(document, variables), 200, body);
}

const nest = (depth: number, inner = '') => '['.repeat(depth) + inner + ']'.repeat(depth);
const repeat = (count: number, part: (index: number) => string) => Array.from({ length: count }, (_, index) => part(index)).join(' ');

describe('a document beyond a limit', () => {
  const tooDeep = graphqlInvalid('The document is nested deeper than 520 levels.');
  const tooLong = graphqlInvalid('A name has more than 255 characters.');
  const tooMany = graphqlInvalid('Syntax Error: Token limit of 2000 exceeded.');

  it.each<[string, () => string, unknown]>([
    [
      'a list literal of 5,000 levels',
      () => `mutation { createDashboard(input: {${ids}, name: "a", widgets: ${nest(5_000)}}) { dashboard { id } } }`,
      tooDeep,
    ],
    ['a list literal of 5,000 levels for an id', () => `{ organization(id: ${nest(5_000)}) { id } }`, tooDeep],
    ['a list literal of 5,000 levels as a default', () => `query($a: JSON = ${nest(5_000)}) { __typename }`, tooDeep],
    ['5,000 brackets', () => `{ organization(id: ${'['.repeat(5_000)}`, tooDeep],
    ['an object literal of 5,000 levels', () => `{ organization(id: ${'{a:'.repeat(5_000)}1${'}'.repeat(5_000)}) { id } }`, tooDeep],
    ['a selection of 5,000 levels', () => '{ viewer '.repeat(5_000) + '}'.repeat(5_000), tooDeep],
    ['inline fragments of 5,000 levels', () => `{ ${'... { '.repeat(5_000)} __typename ${'}'.repeat(5_000)} }`, tooDeep],
    ['a type of 5,000 levels', () => `query($a: ${'['.repeat(5_000)}Int${']'.repeat(5_000)}) { __typename }`, tooDeep],
    ['5,000 braces in front of blanks', () => '{'.repeat(5_000) + ' '.repeat(60_000), tooDeep],
    ['a name of 256 letters', () => `{ ${'a'.repeat(256)} }`, tooLong],
    ['an alias of 256 letters', () => `{ ${'a'.repeat(256)}: viewer { id } }`, tooLong],
    [
      'a name of 60,000 letters, which a hundred errors would repeat',
      () => `query ${'a'.repeat(60_000)}(${repeat(100, (index) => `$v${index}: Int`)}) { viewer { id } }`,
      tooLong,
    ],
    ['3,000 aliases', () => `{ ${repeat(3_000, (index) => `a${index}: viewer { id }`)} }`, tooMany],
    ['2,001 tokens', () => `{ ${repeat(1_999, () => '__typename')} }`, tooMany],
    ['30,000 tokens', () => `{ ${repeat(30_000, () => 'a')} }`, tooMany],
    [
      '51 aliases',
      () => `{ ${repeat(51, (index) => `a${index}: viewer { id }`)} }`,
      graphqlInvalid('Syntax Error: Aliases limit of 50 exceeded, found 51.'),
    ],
  ])('%s', async (_label, write, body) => expectTwice(write(), body));

  it('cost, depth and breadth', async () => {
    const wide = `{ ${repeat(200, () => 'viewer { id name }')} }`;
    const { json } = await app.graphql(wide);
    expect(json.errors).toHaveLength(1);
    expect(json.errors[0]).toMatchObject({
      message: 'The document is too large: breadth 600, at most 500.',
      extensions: { code: 'invalid_request' },
    });
    const tasks = 'tasks(first: 100) { nodes { id kind status created } }';
    const dear = `{ ${project} { instances(first: 100) { nodes { ${tasks} } } } }`;
    const response = await app.graphql(dear);
    expect(response.json.errors[0]).toMatchObject({
      message: expect.stringMatching(/^The document is too large: \w+ \d+, at most \d+\.$/),
      extensions: { code: 'invalid_request' },
    });
    expect(response.json).not.toHaveProperty('data');
  });

  it('cost, by a variable that says how long a page is', async () => {
    const inner = 'consoleSessions(first: 100) { nodes { id created kind ended endReason } }';
    const document = `query($first: Int) { ${project} { instances(first: $first) { nodes { ${inner} } } } }`;
    for (let round = 0; round < 4; round += 1) {
      expect((await app.graphql(document, { first: 1 })).json.data.project.instances.nodes).toHaveLength(1);
      expect((await app.graphql(document)).json).toHaveProperty('data');
      const { json } = await app.graphql(document, { first: 100 });
      expect(json).toEqual(graphqlInvalid('The document is too large: complexity 60202, at most 50000.'));
    }
  });

  it('null for how long a page is, where it cannot be null', async () => {
    const document = `query($size: Int, $page: Int) { ${project} { dashboardPage(page: $page, pageSize: $size) { count } } }`;
    for (let round = 0; round < 4; round += 1) {
      for (const variable of ['size', 'page']) {
        const refused = graphqlFields({ [variable]: ['This field may not be null.'] });
        expectGraphql(await app.graphql(document, { [variable]: null }), 200, refused);
      }
      expect((await app.graphql(document)).json.data.project.dashboardPage.count).toBeGreaterThan(0);
    }
  });

  it('variables of 5,000 levels', async () => {
    const query = 'mutation($input: CreateDashboardInput!) { createDashboard(input: $input) { dashboard { id } } }';
    const send = (variables: string) =>
      app.ask('POST', '/graphql', { body: `{"query":${JSON.stringify(query)},"variables":${variables}}` });
    const refused = graphqlInvalid('The variables are nested deeper than 520 levels.');
    expectGraphql(await send(`{"input":{"widgets":${nest(5_000)}}}`), 200, refused);
    expectGraphql(await send(`{"unused":${nest(5_000)}}`), 200, refused);
    expectGraphql(await send(`{"input":${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}}`), 200, refused);
  });
});

describe('a document up to a limit', () => {
  it('a large variable that a JSON literal names hundreds of times', async () => {
    const names = Array.from({ length: 450 }, (_, index) => `k${index}: $x`).join(' ');
    const query = `mutation ($x: String) { createDashboard(input: { organizationId: "x", projectId: "y", name: "z", widgets: { ${names} } }) { dashboard { id } } }`;
    const before = process.memoryUsage().rss;
    const response = await app.graphql(query, { x: 'x'.repeat(1_000_000) }, { as: null });
    expect(response.json.errors).toHaveLength(1);
    expect(process.memoryUsage().rss - before).toBeLessThan(300 * 2 ** 20);
  });

  it('500 levels of a literal, which come back', async () => {
    const document = `mutation { createDashboard(input: {${ids}, name: "a", widgets: ${nest(500, '1')}}) { dashboard { widgets } } }`;
    const { text } = await app.graphql(document);
    expect(text).toBe(`{"data":{"createDashboard":{"dashboard":{"widgets":${nest(500, '1')}}}}}`);
    await expectTwice(document.replace(nest(500, '1'), nest(501, '1')), graphqlFields({ widgets: ['Nested deeper than 500 levels.'] }));
  });

  it('2,000 tokens and 50 aliases', async () => {
    const items = (count: number) => repeat(count, () => '1');
    const write = (count: number) =>
      `mutation { createDashboard(input: {${ids}, name: "a", widgets: [${items(count)}]}) { dashboard { name } } }`;
    expectGraphql(await app.graphql(write(1_971)), 200, { data: { createDashboard: { dashboard: { name: 'a' } } } });
    await expectTwice(write(1_972), graphqlInvalid('Syntax Error: Token limit of 2000 exceeded.'));
    const { json } = await app.graphql(`{ ${repeat(50, (index) => `a${index}: viewer { id }`)} }`);
    expect(Object.keys(json.data)).toHaveLength(50);
  });

  it('8,192 characters and 300 lines, so that its errors have locations: an operation may have thousands of errors', async () => {
    const failing = '{ nope }';
    const ends = (text: string) => text.padEnd(8_192);
    const located = [failing, ends(failing), ends('\n'.repeat(299) + failing), '\r\n'.repeat(299) + failing];
    for (const query of located) expect((await app.graphql(query)).json.errors[0].locations, query.trim()).toHaveLength(1);
    for (const query of [`${ends(failing)} `, ...['\n', '\r', '\r\n', '#\n'].map((line) => line.repeat(300) + failing)]) {
      const { json } = await app.graphql(query);
      expect(json.errors[0].message).toMatch(/^Cannot query field "nope"/);
      expect(json.errors[0]).not.toHaveProperty('locations');
    }
    const denied = 'mutation { createApiKey(input: { name: "k" }) { key } }';
    const errorOf = async (query: string) => (await app.graphql(query, {}, { as: null })).json.errors[0];
    const { locations, ...error } = await errorOf(denied);
    expect(locations).toEqual([{ line: 1, column: 12 }]);
    expect(await errorOf(`${denied}${' '.repeat(8_192)}`)).toEqual(error);
  });

  it('65,536 characters', async () => {
    const padded = (length: number) => `{ __typename }${' '.repeat(length - '{ __typename }'.length)}`;
    expectGraphql(await app.graphql(padded(65_536)), 200, { data: { __typename: 'Query' } });
    const tooLong = graphqlInvalid('The document has more than 65536 characters: send long values as variables.');
    expectGraphql(await app.graphql(padded(65_537)), 200, tooLong);
  });

  it('200 fields of one name in the response, also in an unused fragment', async () => {
    const write = (count: number) => `fragment F on Query { ${repeat(count, (index) => `a: b${index}`)} } { viewer { id } }`;
    const { json } = await app.graphql(write(200));
    expect(json.errors[0].message).toMatch(/^Fields "a" conflict|^Cannot query field|^Fragment "F" is never used/);
    await expectTwice(write(201), graphqlInvalid('The document repeats the names of fields too often.'));
    const plain = `{ viewer { ${'id email __typename '.repeat(160)} } }`;
    expect((await app.graphql(plain)).json.errors).toBeUndefined();
    const mixed = `{ viewer { ${'email '.repeat(150)} ${'email: email '.repeat(150)} } }`;
    await expectTwice(mixed, graphqlInvalid('The document repeats the names of fields too often.'));
  });

  it('brackets in texts and comments are none', async () => {
    const text = '[{('.repeat(2_000);
    const document = `# ${text}\nmutation { createDashboard(input: {${ids}, name: "a", description: "${text}", widgets: """${text}"""}) { dashboard { description widgets } } }`;
    expectGraphql(await app.graphql(document), 200, { data: { createDashboard: { dashboard: { description: text, widgets: text } } } });
  });
});

describe('fragments and introspection', () => {
  const cycle = (name: string, via: string, columns: number[]) =>
    graphqlInvalid(`Cannot spread fragment "${name}" within itself${via}.`, { locations: columns.map((column) => ({ line: 1, column })) });

  it('a fragment in itself', () => expectTwice('{ ...A } fragment A on Query { __typename ...A }', cycle('A', '', [43])));
  it('two fragments in each other', () =>
    expectTwice('{ ...A } fragment A on Query { ...B } fragment B on Query { ...A }', cycle('A', ' via "B"', [32, 61])));
  it('fragments that double 25 times are counted, not walked', () => {
    const fragments = repeat(25, (index) => `fragment A${index} on Query { ...A${index + 1} ...A${index + 1} }`);
    const tooWide = graphqlInvalid('The document is too large: breadth 33554432, at most 500.');
    return expectTwice(`{ ...A0 } ${fragments} fragment A25 on Query { __typename }`, tooWide);
  });
  it('deep introspection', async () => {
    const { status, json } = await app.graphql(`{ __type(name: "Query") ${'{ fields { type '.repeat(6)} { name } ${'} }'.repeat(6)} }`);
    expect(status).toBe(200);
    expect(json.data).toBeUndefined();
    for (const { message, extensions } of json.errors) {
      expect({ message, extensions }).toEqual({ message: 'Maximum introspection depth exceeded', extensions: { code: 'invalid_request' } });
    }
  });
  it('900 times one field is too large, and not compared', () =>
    expectTwice(`{ viewer { ${repeat(900, () => 'id')} } }`, graphqlInvalid('The document is too large: breadth 901, at most 500.')));
  it('a subscription is not answered to a POST of JSON', async () => {
    const { status, json } = await app.graphql('subscription { nothing }');
    expect({ status, data: json.data, code: json.errors[0].extensions.code }).toEqual({
      status: 200,
      data: undefined,
      code: 'invalid_request',
    });
  });
  it('aliases named like prototypes', async () => {
    const { text } = await app.graphql('{ __proto__: __typename constructor: __typename viewer { __proto__: email toString: email } }');
    const { email } = app.demo.users.owner;
    expect(text).toBe(`{"data":{"__proto__":"Query","constructor":"Query","viewer":{"__proto__":"${email}","toString":"${email}"}}}`);
  });
});

describe('a literal', () => {
  const create = (members: string) => `mutation { createDashboard(input: {${ids}, ${members}}) { dashboard { widgets } } }`;
  const mark = (members: string) => `mutation { markNotificationsRead(input: {${ids}, ${members}}) { marked } }`;
  const publish = (members: string) =>
    `mutation { publishNotification(input: {${ids}, severity: info, ${members}}) { notification { id } } }`;
  const publishMany = (...members: string[]) =>
    `mutation { publishNotifications(input: {${ids}, notifications: [${members.map((one) => `{severity: info, ${one}}`)}]}) { project { id } } }`;
  const nul = ['Null characters are not allowed.'];
  const range = ['A number is out of range.'];
  const noUuid = 'Must be a valid UUID.';

  it.each<[string, () => string, Fields]>([
    ['NUL in a name', () => create('name: "\\u0000"'), { name: nul }],
    ['NUL in braces', () => create('name: "\\u{0}"'), { name: nul }],
    ['NUL in a widget', () => create('name: "a", widgets: [{a: "\\u0000"}]'), { widgets: nul }],
    ['1e400', () => create('name: "a", widgets: 1e400'), { widgets: range }],
    ['-1e400', () => create('name: "a", widgets: {a: [-1e400]}'), { widgets: range }],
    ['an integer of 400 digits', () => create(`name: "a", widgets: ${'9'.repeat(400)}`), { widgets: range }],
    ['a name of 256 letters', () => create(`name: "${'a'.repeat(256)}"`), { name: ['Ensure this field has no more than 255 characters.'] }],
    [
      'several at once',
      () => create('name: " ", description: "\\u0000", widgets: 1e400'),
      { name: ['This field may not be blank.'], description: nul, widgets: range },
    ],
    ['a number as a name', () => create('name: 5'), { name: ['Not a valid string.'] }],
    [
      'no UUIDs',
      () => mark('notificationIds: ["x", 5, "019b76da-a800-7444-963f-2077aab6cec1"]'),
      { notificationIds: [`Item 1: ${noUuid}`, `Item 2: ${noUuid}`] },
    ],
    [
      '201 ids',
      () => mark(`notificationIds: [${repeat(201, () => '"019b76da-a800-7444-963f-2077aab6cec1"')}]`),
      { notificationIds: ['Ensure this field has no more than 200 items.'] },
    ],
    ['NUL in a kind and a title', () => publish('kind: "\\u0000", title: "\\u0000"'), { kind: nul, title: nul }],
    ['a list as data', () => publish('kind: "a", title: "a", data: []'), { data: ['Must be a JSON object.'] }],
    [
      'wrong items of a list',
      () => publishMany('kind: "a", title: "a"', 'kind: "\\u0000", title: " "', 'kind: "a", title: "a", data: [[{a: 1e400}]]'),
      {
        'notifications.kind': [`Item 2: ${nul[0]}`],
        'notifications.title': ['Item 2: This field may not be blank.'],
        'notifications.data': ['Item 3: Must be a JSON object.'],
      },
    ],
    [
      '101 items',
      () => publishMany(...Array.from({ length: 101 }, () => 'kind: "a", title: "a"')),
      { notifications: ['Ensure this field has no more than 100 items.'] },
    ],
    ['null as data', () => publish('kind: "a", title: "a", data: null'), { data: ['This field may not be null.'] }],
  ])('%s', async (_label, write, fields) => expectTwice(write(), graphqlFields(fields)));

  it.each<[string, () => string, string]>([
    ['a lone surrogate', () => create('name: "\\ud800"'), 'Syntax Error: Invalid Unicode escape sequence: "\\ud800".'],
    ['a lone surrogate in braces', () => create('name: "\\u{d800}"'), 'Syntax Error: Invalid Unicode escape sequence: "\\u{d800}".'],
    ['a raw lone surrogate', () => create('name: "\ud800"'), 'Syntax Error: Invalid character within String: U+D800.'],
    ['a key given twice', () => create('name: "a", widgets: {a: 1, a: 2}'), 'There can be only one input field named "a".'],
    [
      'an unknown field',
      () => create('name: "a", nope: 1'),
      'Field "nope" is not defined by type "CreateDashboardInput". Did you mean "name"?',
    ],
    [
      'a field __proto__',
      () => create('name: "a", __proto__: {isPublic: true}'),
      'Field "__proto__" is not defined by type "CreateDashboardInput".',
    ],
    ['null for what has no null', () => create('name: null'), 'Expected value of type "Name!", found null.'],
    [
      'a text for an enum',
      () => publish('kind: "a", title: "a"').replace('severity: info', 'severity: "info"'),
      'Enum "Severity" cannot represent non-enum value: "info". Did you mean the enum value "info"?',
    ],
    [
      'a wrong enum',
      () => publish('kind: "a", title: "a"').replace('severity: info', 'severity: worse'),
      'Value "worse" does not exist in "Severity" enum.',
    ],
    [
      '2^31 for an Int',
      () => `{ ${project} { dashboardPage(page: 2147483648) { count } } }`,
      'Int cannot represent non 32-bit signed integer value: 2147483648',
    ],
    ['1.5 for an Int', () => `{ ${project} { dashboardPage(page: 1.5) { count } } }`, 'Int cannot represent non-integer value: 1.5'],
    ['true for an id', () => '{ organization(id: true) { id } }', 'ID cannot represent a non-string and non-integer value: true'],
  ])('%s', async (_label, write, message) => {
    for (let time = 0; time < 2; time += 1) {
      const { status, json } = await app.graphql(write());
      const [{ locations, ...error }] = json.errors;
      expect({ status, error, data: json.data }).toEqual({ status: 200, error: { message, extensions: { code: 'invalid_request' } } });
      expect(locations).not.toHaveLength(0);
    }
  });

  it('of any JSON is returned unchanged', async () => {
    const literal = '{__proto__: {x: 1}, constructor: null, b: [1, 2.50, -0, "\\u{1F600}", true, """block\n  "text\\"""" """], a: {}}';
    const { text } = await app.graphql(create(`name: "a", widgets: ${literal}`));
    const kept = '{"__proto__":{"x":1},"constructor":null,"b":[1,2.50,-0,"😀",true,"block\\n\\"text\\"\\"\\"\\" "],"a":{}}';
    expect(text).toBe(`{"data":{"createDashboard":{"dashboard":{"widgets":${kept}}}}}`);
  });

  it('of a single value is accepted as a list, as GraphQL specifies', async () => {
    const [id] = app.demo.notification_ids;
    const { json } = await app.graphql(mark(`notificationIds: "${id}"`));
    expect(json.data.markNotificationsRead.marked).toBeLessThanOrEqual(1);
  });
});

it('leaves the server unharmed', () => expectUnharmed(app));
