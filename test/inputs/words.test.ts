import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { graphqlDoors, verdictOf } from '../support/graphql-doors.ts';
import { expectUnharmed } from '../support/inputs.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.close());

const place = () => `organizationId: "${app.demo.organization_id}", projectId: "${app.demo.project_id}"`;
const create = (fields: string, variables = '') =>
  `mutation ${variables} { createDashboard(input: {${place()}, ${fields}}) { dashboard { id } } }`;
const publish = (fields: string, variables = '') =>
  `mutation ${variables} { publishNotification(input: {${place()}, kind: "a", title: "a", severity: info, ${fields}}) { notification { id } } }`;

const noText = ['Not a valid string.'];
const noJson = ['Not a JSON value.'];
const noKey = ['Must be 16 to 255 visible ASCII characters, without quotation marks and backslashes.'];

describe.each(Object.entries(graphqlDoors))('an unquoted word, through %s,', (_door, send) => {
  it.each<[string, () => string, object]>([
    ['a name', () => create('name: foo'), { name: noText }],
    ['a name by its default', () => create('name: $n', '($n: Name! = foo)'), { n: noText }],
    ['a text', () => create('name: "a", description: foo'), { description: noText }],
    [
      'a text of a filter',
      () => `{ project(id: "${app.demo.project_id}") { notifications(filter: {kind: foo}) { totalCount } } }`,
      { kind: noText },
    ],
    ['an idempotency key', () => create('name: "a", idempotencyKey: abcdefghijklmnopqrstuvwxyz'), { idempotencyKey: noKey }],
    [
      'a date-time',
      () => 'mutation { createApiKey(input: {name: "a", expires: today}) { key } }',
      { expires: ['Not a valid date-time: use ISO 8601 with a time zone.'] },
    ],
    ['JSON', () => create('name: "a", widgets: foo'), { widgets: noJson }],
    ['part of JSON', () => create('name: "a", widgets: {a: True, c: [NULL]}'), { widgets: noJson }],
    ['part of JSON beside a variable', () => create('name: "a", widgets: [$w, [{a: foo}]]', '($w: JSON)'), { widgets: noJson }],
    ['part of JSON by its default', () => create('name: "a", widgets: $w', '($w: JSON = [[foo]])'), { w: noJson }],
    ['a JSON object', () => publish('data: foo'), { data: noJson }],
    ['part of a JSON object', () => publish('data: {a: {b: foo}}'), { data: noJson }],
    ['several fields', () => create('name: foo, description: bar, widgets: [baz]'), { name: noText, description: noText, widgets: noJson }],
  ])('is not %s', async (_label, query, fields) => {
    const { prisma } = app.app.database;
    const count = async () => [await prisma.dashboard.count(), await prisma.notification.count(), await prisma.apiKey.count()];
    const before = await count();
    expect(verdictOf(await send(app, { query: query() }))).toEqual(fields);
    expect(await count()).toEqual(before);
  });

  it('is a value of an enum, and what JSON calls by a word is JSON', async () => {
    const document = `mutation { createDashboard(input: {${place()}, name: "words", widgets: [true, false, null, {foo: "foo"}]}) { dashboard { widgets } } }`;
    expect(verdictOf(await send(app, { query: document }))).toEqual({
      data: { createDashboard: { dashboard: { widgets: [true, false, null, { foo: 'foo' }] } } },
    });
  });
});

it('harms nobody', () => expectUnharmed(app));
