import { ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { Source } from '../../src/graph/source.ts';
import { startApp, type TestApp } from '../support/app.ts';
import { documentOf, openStream, projectOf } from '../support/subscriptions.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_USER: '1000000', MAX_UNREAD_MIB_PER_ADDRESS: '64', MAX_UNREAD_MIB: '64' });
});
afterAll(() => app.close());

const ALIASES = 40;
const BODY = 'x'.repeat(20_000);

it('a stream that is not read keeps no event in memory beyond those that are counted as unread', async () => {
  const { organization_id: organizationId, project_id: projectId } = app.demo;
  const bodies = Array.from({ length: ALIASES }, (_, index) => `a${index}: body`).join(' ');
  const query = `subscription { notificationFeed(organizationId: "${organizationId}", projectId: "${projectId}") {
    ... on NotificationAdded { notification { ${bodies} } }
  } }`;
  const next = vi.spyOn(Source.prototype, 'next');
  const write = vi.spyOn(ServerResponse.prototype, 'write');
  const { hostname, port } = new URL(app.baseUrl);
  const client = connect(Number(port), hostname);
  client.pause();
  const body = JSON.stringify({ query });
  client.write(
    [
      'POST /graphql HTTP/1.1',
      'Host: x',
      `Authorization: Bearer ${app.demo.users.owner.token}`,
      'Content-Type: application/json',
      'Accept: text/event-stream',
      `Content-Length: ${body.length}`,
      '',
      body,
    ].join('\r\n'),
  );
  const count = () => {
    const events = next.mock.settledResults.filter(({ type, value }) => type === 'fulfilled' && !value.done).length;
    const text = write.mock.calls.map(([chunk]) => Buffer.from(chunk).toString()).join('');
    return [events, text.match(/^event: next$/gm)?.length ?? 0];
  };
  await expect.poll(() => count()[1]).toBe(1);
  for (let sent = 0; sent < 30; sent += 1) {
    await app.app.database.prisma.notification.create({
      data: { projectId, kind: 'large', severity: 'info', title: 'x', body: BODY, data: {} },
    });
  }
  let known = -1;
  await expect
    .poll(async () => {
      const before = known;
      [known = 0] = count();
      await sleep(500);
      return known === before;
    })
    .toBe(true);
  const [read, sent] = count();
  // The kernels have taken some, and not all.
  expect(read).toBeGreaterThan(2);
  expect(read).toBeLessThan(30);
  expect(sent).toBe(read);
  let received = '';
  client.on('data', (chunk) => (received += chunk));
  client.resume();
  await expect.poll(() => received.match(/^event: next$/gm)?.length).toBe(31);
  next.mockRestore();
  write.mockRestore();
  client.destroy();
});

it('a user may have a quarter of all streams, and a query that accepts a stream counts as none', async () => {
  const small = await startApp({ MAX_CONNECTIONS: '80' });
  const query = documentOf('feed', 0);
  const streams = [];
  for (let turn = 0; turn < 4; turn += 1) streams.push(await openStream(small, query));
  expect(streams.map(({ text }) => text.includes('FeedReady'))).toEqual([true, true, true, false]);
  expect(JSON.parse(streams[3]?.text ?? '').errors).toMatchObject([
    { extensions: { code: 'conflict', context: { quota: 'event_streams_per_user', limit: 3 } } },
  ]);
  for (let turn = 0; turn < 3; turn += 1) {
    const stream = await openStream(small, query, projectOf(small), { as: 'viewer' });
    expect(stream.text).toContain('FeedReady');
    streams.push(stream);
  }
  const get = `/graphql?query=${encodeURIComponent('{ viewer { email } }')}`;
  for (const as of ['owner', 'viewer'] as const) {
    for (const accept of [undefined, '*/*', 'text/event-stream'])
      expect((await small.ask('GET', get, { as, headers: { ...(accept && { accept }) } })).status).toBe(200);
  }
  for (const { close } of streams) close();
  await expect.poll(() => openStream(small, query).then(({ text, close }) => [text.includes('FeedReady'), close()][0])).toBe(true);
  await small.close();
});

it('a subscription is not opened for a client whose `Accept` excludes streams, in any notation', async () => {
  const small = await startApp({ SUBSCRIPTIONS_PER_USER: '1' });
  const { o, p } = projectOf(small);
  const query = `subscription { notificationFeed(organizationId: "${o}", projectId: "${p}") { __typename } }`;
  const send = {
    POST: (accept: string, text: string) => small.ask('POST', '/graphql', { headers: { accept }, body: { query: text } }),
    GET: (accept: string, text: string) => small.ask('GET', `/graphql?query=${encodeURIComponent(text)}`, { headers: { accept } }),
  };
  const noStream = 'A subscription needs a client that takes text/event-stream, or a WebSocket.';
  for (const accept of [
    `application/json, ${'x'.repeat(1_000)}/y`,
    `text/event-stream, ${'x'.repeat(1_000)}/y`,
    // Yoga finds no stream in these.
    '*/*;charset=*',
    'text/event-stream;charset=*',
    'TEXT/*;charset=*',
    // Yoga finds one in these.
    'text/event-stream;q=0',
    '*/*, Text/Event-Stream ; q=0.0',
    'text/event- stream',
    'text/event-stream;version=1',
  ]) {
    for (const [method, ask] of Object.entries(send)) {
      const { status, headers, json } = await ask(accept, query);
      const media = headers['content-type'];
      expect({ status, media, json }, `${method} ${accept.slice(0, 50)}`).toEqual({
        status: 200,
        media: 'application/json; charset=utf-8',
        json: { errors: [{ message: noStream, extensions: { code: 'invalid_request' } }] },
      });
      expect((await ask(accept, '{ __typename }')).json, method).toEqual({ data: { __typename: 'Query' } });
    }
  }
  await expect.poll(() => small.app.count().leases).toBe(0);
  const stream = await openStream(small, query);
  expect(stream.text).toContain('FeedReady');
  stream.close();
  await small.close();
});
