import fc from 'fast-check';
import { buildSchema, type DocumentNode, type ExecutionResult, parse, validate } from 'graphql';
import { describe, expect, it } from 'vitest';
import type { Context } from '../../src/graph/context.ts';
import { schema } from '../../src/schema.ts';
import { EventRenderer, RendererCache } from '../../src/transport/delivery/renderer.ts';
import { countCases } from '../support/cases.ts';

describe('the renderer that subscribers share', () => {
  const declared = '($o: ID = "o", $p: ID!, $after: Int = 3, $a: Boolean = true, $b: Boolean = false, $c: Boolean! = false)';
  const roots = [
    'notificationFeed(organizationId: $o, projectId: $p, after: $after)',
    'feed: notificationFeed(projectId: $p, organizationId: "o")',
  ];
  const parts = [
    '__typename',
    '... on FeedReady { sequence x: unreadCount @include(if: $a) }',
    '... on FeedReady @skip(if: $b) { readThrough constructor: type }',
    '...F @include(if: $c)',
    '... on NotificationAdded { notification { id read @skip(if: $a) title data } }',
    '... @include(if: $a) { ... on FeedGap { from to @skip(if: $c) } }',
  ];
  const fragment = ' fragment F on FeedEvent { ... on NotificationAdded { sequence @include(if: $a) } ... on FeedReady { type } }';
  const operation = fc.record({
    root: fc.constantFrom(...roots),
    body: fc.uniqueArray(fc.constantFrom(...parts), { minLength: 1, maxLength: 1 }),
  });
  const document = fc.tuple(operation, operation).map(([one, other]) => {
    const write = (name: string, { root, body }: typeof one) =>
      `subscription ${name}${declared} { ${root} { __typename ${body.join(' ')} } }`;
    return `${write('A', one)} ${write('constructor', other)}${one.body.concat(other.body).some((part) => part.startsWith('...F')) ? fragment : ''}`;
  });
  const value = <Value>(...given: Value[]) => fc.constantFrom<Value | undefined | null>(...given, ...given, ...given, undefined, null);
  const variables = fc
    .record({
      o: value('o', 'x'),
      p: value('p', 'other'),
      after: value(0, 7),
      a: value(true, false),
      b: value(true, false),
      c: value(true, false),
    })
    .map((all) => Object.fromEntries(Object.entries(all).filter(([, given]) => given !== undefined)));
  const subscriber = (documents: fc.Arbitrary<string>) =>
    fc.record({
      query: documents,
      operationName: fc.constantFrom('A', 'A', 'constructor'),
      variables,
      viewer: fc.record({ userId: fc.constantFrom('u', 'v'), role: fc.constantFrom('owner', 'viewer') }),
    });
  const pair = document.chain((text) => fc.tuple(subscriber(fc.constant(text)), subscriber(fc.oneof(fc.constant(text), document))));
  const events = [
    { type: 'ready', sequence: 4, readThrough: 2, unreadCount: 2 },
    { type: 'notification', sequence: 5, notification: { id: 'n', read: false, title: 't', data: { a: 1 } } },
    { type: 'gap', from: 1, to: 3 },
  ];
  const parsed = new Map<string, DocumentNode>();
  const parseValid = (text: string) => {
    const known = parsed.get(text) ?? parse(text);
    const problems = parsed.has(text) ? [] : validate(schema, known).filter(({ message }) => !/is never used/.test(message));
    if (problems.length > 0) throw new AggregateError(problems, text);
    parsed.set(text, known);
    return known;
  };
  const formatResult = ({ data, errors }: ExecutionResult) => JSON.stringify({ errors: errors?.map((error) => error.toJSON()), data });

  it('renders for each the text that it would receive alone', () => {
    const runs = countCases(3_000);
    let [shared, apart] = [0, 0];
    fc.assert(
      fc.property(pair, fc.constantFrom(...events), (both, drawn) => {
        const open = ({ query, operationName, variables: variableValues, viewer }: (typeof both)[0]) => {
          const contextValue = { viewer } as unknown as Context;
          return { args: { schema, document: parseValid(query), operationName, variableValues, contextValue }, contextValue };
        };
        const [renderers, event] = [new RendererCache(), { ...drawn, isShared: true }];
        const opened = both.map(open);
        const told = opened.map(({ args }) => renderers.forSubscription(args, formatResult));
        const texts = opened.map(({ contextValue }, index) => String(told[index]?.render(event, () => contextValue)));
        const alone = opened.map(({ args, contextValue }) =>
          String(new RendererCache().forSubscription(args, formatResult).render({ ...drawn, isShared: true }, () => contextValue)),
        );
        expect(texts).toEqual(alone);
        if (told[0] === told[1]) shared += 1;
        else apart += 1;
      }),
      { numRuns: runs, seed: 6 },
    );
    // Whoever asks alike is told by one renderer: that is what a feed of thousands lives by.
    expect(shared).toBeGreaterThan(runs / 30);
    expect(apart).toBeGreaterThan(runs / 3);
  });
});

it('an event whose rendering has an error is rendered anew for the next subscriber', () => {
  const ofViewers = buildSchema('type Query { name: String } type Subscription { name: String }');
  const renderer = new EventRenderer({ schema: ofViewers, document: parse('subscription { name }') }, (result) =>
    JSON.stringify(result.data),
  );
  const name = (_args: unknown, { viewer }: Context) => {
    if (!viewer) throw new Error('there is no viewer');
    return viewer.name;
  };
  const event = { isShared: true, name };
  const renderFor = (viewer: { name: string } | null) => String(renderer.render(event, () => ({ viewer }) as Context));
  expect([renderFor(null), renderFor({ name: 'one' }), renderFor({ name: 'other' })]).toEqual([
    '{"name":null}',
    '{"name":"one"}',
    '{"name":"one"}',
  ]);
});
