import { type FragmentDefinitionNode, Kind, parse } from 'graphql';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { RevocationWatcher } from '../../src/access/revocation.ts';
import { findConditionalRoots } from '../../src/pipeline/conditionalroots.ts';
import { startApp, type TestApp } from '../support/app.ts';
import { openSocket } from '../support/feed.ts';
import { ABSENT_ID } from '../support/fixtures.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.close());

const feed = 'notificationFeed(organizationId: $o, projectId: $p)';
const plain = 'subscription ($o: ID!, $p: ID!)';
const head = 'subscription ($o: ID!, $p: ID!, $yes: Boolean = true)';
const refused: Record<string, string> = {
  'a variable': `${head} { ${feed} @include(if: $yes) { __typename } }`,
  'a literal that would leave it out': `${plain} { ${feed} @skip(if: true) { __typename } }`,
  'a literal that leaves it in': `${plain} { ${feed} @include(if: true) { __typename } }`,
  'an inline fragment': `${head} { ... @skip(if: $yes) { ${feed} { __typename } } }`,
  'a field in an inline fragment': `${head} { ... on Subscription { ${feed} @skip(if: $yes) { __typename } } }`,
  'a spread': `${head} { ...F @include(if: $yes) } fragment F on Subscription { ${feed} { __typename } }`,
  'a field in a fragment of a fragment': `${head} { ...F } fragment F on Subscription { ...G } fragment G on Subscription { ${feed} @skip(if: $yes) { __typename } }`,
  'a field in the second fragment of a name': `${head} { ...F } fragment F on Subscription { ${feed} { __typename } } fragment F on Subscription { ${feed} @skip(if: $yes) { __typename } }`,
};
const variables = (yes?: boolean | null) => ({ o: app.demo.organization_id, p: app.demo.project_id, ...(yes !== undefined && { yes }) });
const isRefusal = { message: expect.stringMatching(/^The root field of a subscription takes no `@(skip|include)`\.$/) };

describe.each(Object.entries(refused))('a subscription whose root field is conditional by %s', (_name, query) => {
  it.each(['application/graphql-response+json', 'application/json', 'text/event-stream'])('is refused as %s', async (accept) => {
    for (const yes of [true, false, null, undefined]) {
      const { status, text } = await app.ask('POST', '/graphql', { body: { query, variables: variables(yes) }, headers: { accept } });
      expect(status).toBe(accept === 'application/graphql-response+json' ? 400 : 200);
      const [, json = text] = /^data: (\{.*)$/m.exec(text) ?? [];
      const { errors, data } = JSON.parse(json);
      expect(data).toBeUndefined();
      expect(errors[0]).toMatchObject({ ...isRefusal, extensions: { code: 'invalid_request' } });
    }
  });

  it('is refused on a socket, which stays open', async () => {
    const { socket, until } = openSocket(app, '/graphql', {
      protocol: 'graphql-transport-ws',
      headers: { authorization: `Bearer ${app.demo.users.owner.token}` },
    });
    socket.on('open', () => socket.send('{"type":"connection_init"}'));
    await until(({ type }) => type === 'connection_ack');
    for (const [id, yes] of Object.entries([true, false, null])) {
      socket.send(JSON.stringify({ id, type: 'subscribe', payload: { query, variables: variables(yes) } }));
      const frame = await until((one) => one.id === id);
      expect(frame).toMatchObject({ type: 'error', payload: [isRefusal] });
    }
    socket.send('{"type":"ping"}');
    await until(({ type }) => type === 'pong');
    socket.terminate();
    expect(app.logLines.filter((line) => ['error', 'fatal'].includes(JSON.parse(line).level))).toEqual([]);
  });
});

describe.each([
  ['application/graphql-response+json', 400],
  ['application/json', 200],
])('a subscription that cannot begin, as %s', (mediaType, expected) => {
  const after =
    'subscription ($o: ID!, $p: ID!, $after: Int) { notificationFeed(organizationId: $o, projectId: $p, after: $after) { __typename } }';
  it.each<[what: string, query: string, code: string, as: 'owner' | null, changed: object]>([
    ['an absent project', `${plain} { ${feed} { __typename } }`, 'not_found', 'owner', { p: ABSENT_ID }],
    ['an absent project and a field error', after, 'not_found', 'owner', { p: ABSENT_ID, after: 'x' }],
    ['a field error', after, 'validation_failed', 'owner', { after: 'x' }],
    ['no credential', `${plain} { ${feed} { __typename } }`, 'not_authenticated', null, {}],
    ['no credential and a field error', after, 'not_authenticated', null, { after: 'x' }],
  ])(`is ${expected} for %s`, async (_what, query, code, as, changed) => {
    const headers = { accept: `${mediaType}, text/event-stream;q=0.5` };
    const { status, json, ...response } = await app.graphql(query, { ...variables(), ...changed }, { as, headers });
    expect([status, response.headers['content-type']]).toEqual([expected, `${mediaType}; charset=utf-8`]);
    expect(json).toEqual({ errors: [expect.objectContaining({ extensions: expect.objectContaining({ code }) })] });
    expect(json.errors[0].extensions).not.toHaveProperty('http');
  });

  it(`is ${expected === 400 ? 500 : expected} for a mistake of ours`, async () => {
    const failing = vi.spyOn(RevocationWatcher.prototype, 'add').mockImplementation(() => {
      throw new Error('a mistake');
    });
    const headers = { accept: `${mediaType}, text/event-stream;q=0.5` };
    const { status, json } = await app.graphql(`${plain} { ${feed} { __typename } }`, variables(), { headers });
    failing.mockRestore();
    expect([status, json.errors[0].extensions, json.data]).toEqual([
      expected === 400 ? 500 : expected,
      { code: 'internal_error' },
      undefined,
    ]);
  });
});

it('a subscription may have conditional fields below its root field', async () => {
  const query = `${head} { ${feed} { __typename @include(if: $yes) ... on FeedReady @skip(if: $yes) { sequence } } }`;
  const { socket, until } = openSocket(app, '/graphql', {
    protocol: 'graphql-transport-ws',
    headers: { authorization: `Bearer ${app.demo.users.owner.token}` },
  });
  socket.on('open', () => socket.send('{"type":"connection_init"}'));
  await until(({ type }) => type === 'connection_ack');
  socket.send(JSON.stringify({ id: 'a', type: 'subscribe', payload: { query, variables: variables() } }));
  const frame = await until((one) => one.id === 'a');
  expect(frame).toMatchObject({ type: 'next', payload: { data: { notificationFeed: { __typename: 'FeedReady' } } } });
  socket.terminate();
});

it('reads a fragment once, however many subscriptions use it', () => {
  const subscriptions = Array.from({ length: 100 }, (_, index) => `subscription S${index} { ...F }`).join(' ');
  const document = parse(`${subscriptions} fragment F on Subscription { ${'... { '.repeat(200)} a @skip(if: true) ${'} '.repeat(200)} }`);
  const fragment = document.definitions.find(({ kind }) => kind === Kind.FRAGMENT_DEFINITION) as FragmentDefinitionNode;
  const { selections } = fragment.selectionSet;
  const read = vi.fn(() => selections);
  Object.defineProperty(fragment.selectionSet, 'selections', { get: read });
  expect(findConditionalRoots(document)).toMatchObject([isRefusal]);
  expect(read).toHaveBeenCalledTimes(1);
});

it('reports a hundred errors at most, as graphql-js does', () => {
  const many = parse(`subscription { ${'a @skip(if: true) '.repeat(300)} }`);
  expect(findConditionalRoots(many)).toHaveLength(100);
});
