import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { getIntrospectionQuery, parse } from 'graphql';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { ValidDocuments } from '../../src/pipeline/documents.ts';
import { collectGarbage } from '../../src/platform/garbage.ts';
import { startApp, type TestApp } from '../support/app.ts';
import { openSocket } from '../support/feed.ts';

describe('the documents of open subscriptions', () => {
  const documentOf = (length: number, name: string) => parse(`{ ${name.padEnd(length - 4)} }`);

  it('count once for all that have the same, until the last of them ends', () => {
    const documents = new ValidDocuments(1_000);
    const large = documentOf(60_000, 'a');
    const releases = Array.from({ length: 100 }, () => documents.reserve('one', large));
    const other = documentOf(10_000, 'b');
    expect(() => documents.reserve('one', other)).toThrow(
      expect.objectContaining({ code: 'conflict', context: { quota: 'subscription_documents_per_user', limit: 65_536 } }),
    );
    for (const release of releases.splice(1)) release();
    expect(() => documents.reserve('one', other)).toThrow(/Too many different documents/);
    documents.reserve('two', other);
    releases[0]?.();
    documents.reserve('one', other);
  });

  it('are bounded over all users, and a document that is open already costs nothing more', () => {
    const documents = new ValidDocuments(1_000);
    const held = Array.from({ length: 16 }, (_, number) => documentOf(60_000, `a${number}`));
    const releases = held.map((document, number) => documents.reserve(`user ${number}`, document));
    const last = documentOf(60_000, 'b');
    expect(() => documents.reserve('late', last)).toThrow(
      expect.objectContaining({ code: 'conflict', context: { quota: 'subscription_documents', limit: 1_000_000 } }),
    );
    documents.reserve('late', held[0] as (typeof held)[0]);
    releases[1]?.();
    documents.reserve('later', last);
  });

  it('are found for as long as they are open, whatever else is asked meanwhile', () => {
    const documents = new ValidDocuments(1_000);
    const kept = documentOf(1_000, 'a');
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

/** The bytes that the heap has grown by when everything that nothing holds has been collected. */
async function measureGrowth(act: () => Promise<void>): Promise<number> {
  await collectGarbage();
  const before = process.memoryUsage().heapUsed;
  await act();
  await collectGarbage();
  return process.memoryUsage().heapUsed - before;
}

describe('over the transports', () => {
  let app: TestApp;
  let project: { o: string; p: string };
  beforeAll(async () => {
    app = await startApp({ RATE_LIMIT_USER: '100000000', SUBSCRIPTIONS_PER_USER: `${SUBSCRIPTIONS}`, LOG_LEVEL: 'error' });
    project = { o: app.demo.organization_id, p: app.demo.project_id };
  });
  afterAll(() => app.close());

  const documentOf = (name: string, characters: number) =>
    `subscription ${name}($o: ID!, $p: ID!) { notificationFeed(organizationId: $o, projectId: $p) { __typename } }${' '.repeat(characters)}`;

  async function openGraphqlSocket(as: 'owner' | 'viewer' = 'owner') {
    const socket = openSocket(app, '/graphql', {
      protocol: 'graphql-transport-ws',
      headers: { authorization: `Bearer ${app.demo.users[as].token}` },
    });
    await new Promise((resolve) => socket.socket.once('open', resolve));
    socket.socket.send(JSON.stringify({ type: 'connection_init' }));
    await socket.until(({ type }) => type === 'connection_ack');
    return {
      ...socket,
      async subscribe(id: string, query: string, variables: object = project) {
        socket.socket.send(JSON.stringify({ id, type: 'subscribe', payload: { query, variables } }));
        const { type, payload } = await socket.until((frame) => frame.id === id);
        return type === 'next' ? (payload.errors ?? payload.data.notificationFeed.__typename) : payload;
      },
    };
  }

  async function openStream(
    query: string,
    variables: object = project,
    { as = 'owner' as 'owner' | 'viewer', others = {}, blanks = 0 } = {},
  ) {
    const leaving = new AbortController();
    const response = await fetch(`${app.baseUrl}/graphql`, {
      method: 'POST',
      signal: leaving.signal,
      headers: {
        authorization: `Bearer ${app.demo.users[as].token}`,
        'content-type': 'application/json',
        accept: 'text/event-stream, application/json',
      },
      body: JSON.stringify({ query, variables, ...others }).replace('"lossy"', '1.0') + ' '.repeat(blanks),
    });
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    while (!/FeedReady|"errors"/.test(text)) {
      const part = await reader?.read();
      if (!part || part.done) break;
      text += part.value;
    }
    return { text, close: () => leaving.abort() };
  }

  const tooMany = expect.objectContaining({ extensions: expect.objectContaining({ code: 'conflict' }) });

  it('a user’s subscriptions have so many different documents, on sockets and as streams together', async () => {
    const [one, two] = [await openGraphqlSocket(), await openGraphqlSocket()];
    expect(await one.subscribe('a', documentOf('A', 30_000))).toBe('FeedReady');
    const stream = await openStream(documentOf('B', 30_000));
    expect(stream.text).toContain('FeedReady');
    // The same again costs nothing, another one is refused, and the socket goes on.
    expect(await two.subscribe('a', documentOf('A', 30_000))).toBe('FeedReady');
    expect(await two.subscribe('c', documentOf('C', 30_000))).toEqual([tooMany]);
    expect(await two.subscribe('d', documentOf('D', 0))).toBe('FeedReady');
    expect((await openStream(documentOf('E', 30_000))).text).toContain('"code":"conflict"');
    stream.close();
    await expect.poll(() => one.subscribe(crypto.randomUUID(), documentOf('F', 30_000))).toBe('FeedReady');
    one.socket.terminate();
    two.socket.terminate();
    await expect.poll(async () => (await openStream(documentOf('G', 60_000))).text).toContain('FeedReady');
  });

  it('a user has so many subscriptions open, on sockets and as streams together', async () => {
    const query = documentOf('S', 0);
    const [one, two, other] = [await openGraphqlSocket('viewer'), await openGraphqlSocket('viewer'), await openGraphqlSocket()];
    for (let number = 1; number < SUBSCRIPTIONS; number += 1)
      expect(await (number <= 50 ? one : two).subscribe(`${number}`, query)).toBe('FeedReady');
    const stream = await openStream(query, project, { as: 'viewer' });
    expect(stream.text).toContain('FeedReady');
    const beyond = expect.objectContaining({
      message: `A user may have ${SUBSCRIPTIONS} subscriptions open at once.`,
      extensions: { code: 'conflict', context: { quota: 'subscriptions_per_user', limit: SUBSCRIPTIONS } },
    });
    expect(await two.subscribe('beyond', query)).toEqual([beyond]);
    expect((await openStream(query, project, { as: 'viewer' })).text).toContain('"quota":"subscriptions_per_user"');
    // Another user has subscriptions of their own, and one that ends makes room.
    expect(await other.subscribe('a', query)).toBe('FeedReady');
    stream.close();
    await expect.poll(() => two.subscribe(crypto.randomUUID(), query)).toBe('FeedReady');
    for (const { socket } of [one, two, other]) socket.terminate();
  });

  it.each([
    ['white space', (query: string) => `"payload":{"variables":{"e":1.0${' '.repeat(60_000)}},"query":${query}}`],
    ['members of its payload', (query: string) => `"payload":{"a":[1.0,"${'x'.repeat(60_000)}"],"variables":{"e":1},"query":${query}}`],
    ['members of its own', (query: string) => `"payload":{"query":${query}},"a":"${'x'.repeat(60_000)}"`],
  ])('a subscription does not keep its message: %s', async (_label, membersOf) => {
    const { o, p } = project;
    const query = `subscription { notificationFeed(organizationId: "${o}", projectId: "${p}") { __typename } }`;
    const members = membersOf(JSON.stringify(query));
    // Of such large messages a socket may send a dozen at once.
    const sockets = await Promise.all(Array.from({ length: 5 }, () => openGraphqlSocket()));
    const subscribe = async (number: number) => {
      const socket = sockets[number % sockets.length];
      socket?.socket.send(`{"id":"${number}","type":"subscribe",${members}}`);
      return (await socket?.until((frame) => frame.id === `${number}`))?.type;
    };
    expect(await subscribe(0)).toBe('next');
    // What is measured is not mixed with what sockets of other tests leave behind.
    await expect.poll(() => app.app.count().sockets).toBe(sockets.length);
    const growth = await measureGrowth(async () => {
      for (let number = 1; number < 50; number += 1) expect(await subscribe(number)).toBe('next');
    });
    for (const { socket } of sockets) socket.terminate();
    expect(growth).toBeLessThan(1_500_000);
  });

  it('a stream does not keep a body that has no meaning', async () => {
    const { o, p } = project;
    const query = encodeURIComponent(`subscription { notificationFeed(organizationId: "${o}", projectId: "${p}") { __typename } }`);
    const { hostname, port } = new URL(app.baseUrl);
    const head = [
      `GET /graphql?query=${query} HTTP/1.1`,
      'Host: x',
      `Authorization: Bearer ${app.demo.users.owner.token}`,
      'Accept: text/event-stream',
      'Transfer-Encoding: chunked',
    ];
    const open = async () => {
      const socket = connect(Number(port), hostname);
      let text = '';
      socket.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      socket.write(`${head.join('\r\n')}\r\n\r\n${'1\r\nx\r\n'.repeat(5_000)}0\r\n\r\n`);
      await expect.poll(() => text).toContain('FeedReady');
      return socket;
    };
    const sockets = [await open()];
    const growth = await measureGrowth(async () => {
      for (let number = 0; number < 10; number += 1) sockets.push(await open());
    });
    for (const socket of sockets) socket.destroy();
    expect(growth).toBeLessThan(3_000_000);
  });

  it.each([
    ['', {}],
    [' with numbers that JavaScript spells differently', { n: 'lossy' }],
  ])('a stream does not keep the extensions of its request%s', async (_label, more) => {
    const extensions = { x: Array.from({ length: 5_000 }, () => ({})), ...more };
    const open = () => openStream(documentOf('X', 0), project, { others: { extensions } });
    const streams = [await open()];
    const growth = await measureGrowth(async () => {
      for (let number = 0; number < 20; number += 1) streams.push(await open());
    });
    for (const stream of streams) stream.close();
    expect(growth).toBeLessThan(5_000_000);
  });

  it('what is sent to a client that does not read counts with what each message takes', async () => {
    const socket = await openGraphqlSocket();
    const readUnread = async () => (await app.app.metrics.registry.getSingleMetric('portico_unread_bytes')?.get())?.values[0]?.value ?? 0;
    const query = getIntrospectionQuery();
    socket.socket.pause();
    // A little more than the kernel takes. No operation is under way when the memory is measured.
    for (let number = 0; (await readUnread()) === 0; number += 1) {
      socket.socket.send(JSON.stringify({ id: `${number}`, type: 'subscribe', payload: { query } }));
      await sleep(50);
      await vi.waitUntil(async () => app.app.count().executing === 0 || (await readUnread()) > 0, { timeout: 60_000 });
    }
    const before = await readUnread();
    await collectGarbage();
    const { arrayBuffers } = process.memoryUsage();
    const stream: Socket = Reflect.get(socket.socket, '_socket');
    const rounds = 7;
    for (let number = 0; number < rounds; number += 1) {
      // A pong does not keep what came with its ping.
      stream.cork();
      socket.socket.ping('x');
      socket.socket.send(
        JSON.stringify({ id: `large ${number}`, type: 'subscribe', payload: { query: '{' }, padding: 'x'.repeat(60_000) }),
      );
      stream.uncork();
      socket.socket.send('{"type":"ping"}');
    }
    await expect.poll(readUnread).toBeGreaterThan(before + 3 * rounds * 2_000);
    await collectGarbage();
    expect(process.memoryUsage().arrayBuffers - arrayBuffers).toBeLessThan(200_000);
    socket.socket.resume();
    await expect.poll(readUnread).toBe(0);
    socket.socket.terminate();
  });

  it('a subscription’s variables, and a request for a stream, are bounded', async () => {
    const variables = { ...project, undeclared: 'x'.repeat(1_000) };
    const socket = await openGraphqlSocket();
    const refused = [{ message: expect.stringMatching(/at most 1000 characters/), extensions: { code: 'invalid_request' } }];
    expect(await socket.subscribe('a', documentOf('H', 0), variables)).toEqual([expect.objectContaining(refused[0])]);
    expect(await socket.subscribe('b', documentOf('H', 0))).toBe('FeedReady');
    expect((await openStream(documentOf('H', 0), variables)).text).toContain('at most 1000 characters');
    for (const padding of [{ others: { extensions: { x: 'x'.repeat(70_000) } } }, { blanks: 70_000 }])
      expect((await openStream(documentOf('H', 0), project, padding)).text).toContain('takes at most 65536 bytes');
    socket.socket.terminate();
  });
});
