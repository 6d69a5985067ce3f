import { parse } from 'graphql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ValidDocuments } from '../../src/pipeline/documents.ts';
import { startApp, type TestApp } from '../support/app.ts';
import { documentOf, openGraphqlSocket, openStream, projectOf } from '../support/subscriptions.ts';

describe('the documents of open subscriptions', () => {
  const parsedOf = (length: number, name: string) => parse(`{ ${name.padEnd(length - 4)} }`);

  it('count once for all subscriptions with the same text, until the last of them ends', () => {
    const documents = new ValidDocuments(1_000);
    const large = parsedOf(60_000, 'a');
    const releases = Array.from({ length: 100 }, () => documents.reserve('one', large));
    const other = parsedOf(10_000, 'b');
    expect(() => documents.reserve('one', other)).toThrow(
      expect.objectContaining({ code: 'conflict', context: { quota: 'subscription_documents_per_user', limit: 65_536 } }),
    );
    for (const release of releases.splice(1)) release();
    expect(() => documents.reserve('one', other)).toThrow(/Too many different documents/);
    documents.reserve('two', other);
    releases[0]?.();
    documents.reserve('one', other);
  });

  it('are bounded over all users, and an open document costs nothing more', () => {
    const documents = new ValidDocuments(1_000);
    const held = Array.from({ length: 16 }, (_, number) => parsedOf(60_000, `a${number}`));
    const releases = held.map((document, number) => documents.reserve(`user ${number}`, document));
    const last = parsedOf(60_000, 'b');
    expect(() => documents.reserve('late', last)).toThrow(
      expect.objectContaining({ code: 'conflict', context: { quota: 'subscription_documents', limit: 1_000_000 } }),
    );
    documents.reserve('late', held[0] as (typeof held)[0]);
    releases[1]?.();
    documents.reserve('later', last);
  });

  it('stay cached for as long as they are open, however many other documents arrive', () => {
    const documents = new ValidDocuments(1_000);
    const kept = parsedOf(1_000, 'a');
    const text = kept.loc?.source.body ?? '';
    documents.set(text, kept);
    const release = documents.reserve('one', kept);
    for (let number = 0; number < 2_000; number += 1) documents.set(`${number}`, kept);
    expect(documents.get(text)).toBe(kept);
    release();
    expect(documents.get(text)).toBeUndefined();
  });
});

const SUBSCRIPTIONS = 53;

describe('over the transports', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startApp({ RATE_LIMIT_USER: '100000000', SUBSCRIPTIONS_PER_USER: `${SUBSCRIPTIONS}`, LOG_LEVEL: 'error' });
  });
  afterAll(() => app.close());

  const tooMany = expect.objectContaining({ extensions: expect.objectContaining({ code: 'conflict' }) });

  it('the distinct documents of a user’s subscriptions are bounded, over sockets and streams together', async () => {
    const [one, two] = [await openGraphqlSocket(app), await openGraphqlSocket(app)];
    expect(await one.subscribe('a', documentOf('A', 30_000))).toBe('FeedReady');
    const stream = await openStream(app, documentOf('B', 30_000));
    expect(stream.text).toContain('FeedReady');
    // The same again costs nothing, another one is refused, and the socket goes on.
    expect(await two.subscribe('a', documentOf('A', 30_000))).toBe('FeedReady');
    expect(await two.subscribe('c', documentOf('C', 30_000))).toEqual([tooMany]);
    expect(await two.subscribe('d', documentOf('D', 0))).toBe('FeedReady');
    expect((await openStream(app, documentOf('E', 30_000))).text).toContain('"code":"conflict"');
    stream.close();
    await expect.poll(() => one.subscribe(crypto.randomUUID(), documentOf('F', 30_000))).toBe('FeedReady');
    one.socket.terminate();
    two.socket.terminate();
    await expect.poll(async () => (await openStream(app, documentOf('G', 60_000))).text).toContain('FeedReady');
  });

  it('the open subscriptions of a user are bounded, over sockets and streams together', async () => {
    const query = documentOf('S', 0);
    const [one, two, other] = [
      await openGraphqlSocket(app, 'viewer'),
      await openGraphqlSocket(app, 'viewer'),
      await openGraphqlSocket(app),
    ];
    const began = Array.from({ length: SUBSCRIPTIONS - 1 }, (_, index) => (index < 50 ? one : two).subscribe(`${index}`, query));
    expect(await Promise.all(began)).toEqual(began.map(() => 'FeedReady'));
    const stream = await openStream(app, query, undefined, { as: 'viewer' });
    expect(stream.text).toContain('FeedReady');
    const beyond = expect.objectContaining({
      message: `A user may have ${SUBSCRIPTIONS} subscriptions open at once.`,
      extensions: { code: 'conflict', context: { quota: 'subscriptions_per_user', limit: SUBSCRIPTIONS } },
    });
    expect(await two.subscribe('beyond', query)).toEqual([beyond]);
    expect((await openStream(app, query, undefined, { as: 'viewer' })).text).toContain('"quota":"subscriptions_per_user"');
    // Another user has subscriptions of their own, and one that ends makes room.
    expect(await other.subscribe('a', query)).toBe('FeedReady');
    stream.close();
    await expect.poll(() => two.subscribe(crypto.randomUUID(), query)).toBe('FeedReady');
    for (const { socket } of [one, two, other]) socket.terminate();
  });

  it('the variables of a subscription and the request for a stream are bounded in size', async () => {
    const variables = { ...projectOf(app), undeclared: 'x'.repeat(1_000) };
    const socket = await openGraphqlSocket(app);
    const refused = [{ message: expect.stringMatching(/at most 1000 characters/), extensions: { code: 'invalid_request' } }];
    expect(await socket.subscribe('a', documentOf('H', 0), variables)).toEqual([expect.objectContaining(refused[0])]);
    expect(await socket.subscribe('b', documentOf('H', 0))).toBe('FeedReady');
    expect((await openStream(app, documentOf('H', 0), variables)).text).toContain('at most 1000 characters');
    for (const padding of [{ others: { extensions: { x: 'x'.repeat(70_000) } } }, { blanks: 70_000 }])
      expect((await openStream(app, documentOf('H', 0), undefined, padding)).text).toContain('takes at most 65536 bytes');
    socket.socket.terminate();
  });
});
