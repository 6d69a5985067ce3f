import { once } from 'node:events';
import { IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, it, vi } from 'vitest';
import { runInNextIteration } from '../../src/kernel/iteration.ts';
import { numberOf, openServer } from '../support/server.ts';
import { openWire } from '../support/wire.ts';

const closing: Array<() => unknown> = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function open(options: Parameters<typeof openServer>[0]) {
  const opened = await openServer(options);
  closing.push(opened.close);
  const wire = await openWire(opened.baseUrl);
  closing.push(() => wire.socket.destroy());
  return { ...opened, wire };
}

const requests = (count: number, first = 0) =>
  Array.from({ length: count }, (_, index) => `GET /${first + index} HTTP/1.1\r\nHost: x\r\n\r\n`).join('');
const answer = (response: ServerResponse, text: string) => response.writeHead(200, { 'Content-Length': text.length }).end(text);
const upTo = (count: number) => Array.from({ length: count }, (_, index) => String(index));

it('pipelined requests are handled one after the other, and answered in their order', async () => {
  let atWork = 0;
  let most = 0;
  const { wire, buffers } = await open({
    async handler(request, response) {
      atWork += 1;
      most = Math.max(most, atWork);
      // Every seventh request is slow, so that later requests would finish first.
      await sleep(numberOf(request) % 7 === 0 ? 5 : 0);
      atWork -= 1;
      answer(response, String(numberOf(request)));
    },
  });
  wire.write(requests(400));
  expect((await wire.receive(400)).map(({ body }) => body)).toEqual(upTo(400));
  expect(most).toBe(1);
  await expect.poll(() => buffers.bytes).toBe(0);
  wire.write(requests(3));
  expect(await wire.receive(403)).toHaveLength(403);
});

it('a connection on which nothing was sent is closed without a response, and a request that has just arrived is served', async () => {
  const { server, wire, baseUrl } = await open({ handler: (request, response) => answer(response, String(numberOf(request))) });
  wire.write(requests(1));
  await wire.receive(1);
  const [unused, late] = [await openWire(baseUrl), await openWire(baseUrl)];
  closing.push(() => late.socket.destroy());
  await expect.poll(() => new Promise((resolve) => server.getConnections((_, count) => resolve(count)))).toBe(3);
  server.headersTimeout = 1;
  // The time is over when the server next looks, and the request is in the system's buffer.
  late.write(requests(1, 7));
  const until = performance.now() + 2_100;
  while (performance.now() < until);
  expect((await late.receive(1)).map(({ status, body }) => [status, body])).toEqual([[200, '7']]);
  expect(await unused.receive(1)).toEqual([]);
  // A request of which a part has arrived is answered.
  const partial = await openWire(baseUrl);
  closing.push(() => partial.socket.destroy());
  partial.write('GET / HTTP/1.1\r\n');
  expect((await partial.receive(1))[0]).toMatchObject({ status: 400, body: expect.stringContaining('did not arrive in time') });
  // A connection whose request was answered stays open between requests.
  wire.write(requests(1, 1));
  expect((await wire.receive(2)).map(({ body }) => body)).toEqual(['0', '1']);
});

it('nothing is read from a refused connection', async () => {
  const { server, wire, baseUrl } = await open({
    handler: (request, response) => answer(response, request.url ?? ''),
    maxConnectionsPerAddress: 1,
  });
  wire.write(requests(1));
  await wire.receive(1);
  let count = 0;
  server.prependListener('request', () => {
    count += 1;
  });
  const refused = await openWire(baseUrl);
  closing.push(() => refused.socket.destroy());
  refused.write(requests(100_000));
  const [response] = await refused.receive(1);
  expect(response?.status).toBe(503);
  await once(refused.socket, 'close');
  expect(count).toBe(0);
  // The one that is accepted is served as before.
  wire.write(requests(1, 1));
  expect(await wire.receive(2)).toHaveLength(2);
});

it.each([
  ['while its request waits', `${requests(1)}`],
  ['while nobody reads it', ''],
])('a body in many small chunks counts for its connection %s', async (_when, first) => {
  const going: Array<() => void> = [];
  const { wire, buffers } = await open({
    handler(request, response) {
      going.push(() => {
        request.resume();
        answer(response, 'read');
      });
    },
  });
  const chunks = 5_000;
  wire.write(`${first}POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${'1\r\nx\r\n'.repeat(chunks)}0\r\n\r\n`);
  await expect.poll(() => buffers.bytes).toBeGreaterThan(chunks * 350);
  for (let number = first ? 2 : 1; number > 0; number -= 1) {
    await expect.poll(() => going.length).toBe(1);
    going.pop()?.();
  }
  await expect.poll(() => buffers.bytes).toBe(0);
});

it('a body that is read as it arrives is not counted', async () => {
  const { wire, buffers } = await open({
    handler(request, response) {
      request.on('end', () => answer(response, 'read')).resume();
    },
  });
  wire.write('POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n');
  for (let part = 0; part < 5; part += 1) wire.write('1\r\nx\r\n'.repeat(1_000));
  wire.write('0\r\n\r\n');
  expect(await wire.receive(1)).toHaveLength(1);
  await expect.poll(() => buffers.bytes).toBe(0);
  expect(wire.socket.destroyed).toBe(false);
});

it.each<[string, RequestListener, string[]]>([
  ['that is being read', (request) => request.resume(), ['400']],
  ['that nobody reads', () => {}, ['400']],
  ['whose request has been answered', (_request, response) => answer(response, 'early'), ['200']],
])('too many chunks of a body %s end the connection', async (_label, handler, statuses) => {
  const push = vi.spyOn(IncomingMessage.prototype, 'push');
  closing.push(() => push.mockRestore());
  const { wire } = await open({ handler });
  wire.write(`POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n`);
  const closed = once(wire.socket, 'close');
  // As much as a client may send until the connection has ended.
  const chunks = '1\r\nx\r\n'.repeat(10_000);
  const sender = setInterval(() => wire.write(chunks), 5);
  await closed;
  clearInterval(sender);
  expect((await wire.receive(1)).map(({ status }) => String(status))).toEqual(statuses);
  expect(push.mock.calls.length).toBeLessThanOrEqual(10_001);
});

it('bodies are read in their turn', async () => {
  const { wire } = await open({
    async handler(request, response) {
      await sleep(2);
      let text = '';
      for await (const part of request) text += part;
      answer(response, text);
    },
  });
  const body = (index: number) => `${index}:${'x'.repeat((index % 5) * 20_000)}`;
  const post = (index: number) => `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${body(index).length}\r\n\r\n${body(index)}`;
  wire.write(Array.from({ length: 40 }, (_, index) => post(index)).join(''));
  expect((await wire.receive(40)).map((one) => one.body)).toEqual(Array.from({ length: 40 }, (_, index) => body(index)));
});

it('the next request begins when the response before it has been read', async () => {
  const begun: number[] = [];
  const large = Buffer.alloc(32 * 2 ** 20);
  const { counts, baseUrl } = await open({
    unread: { perAddress: 2 ** 30, inAll: 2 ** 30 },
    handler(request, response) {
      begun.push(numberOf(request));
      response.writeHead(200, { 'Content-Length': large.length }).end(large);
    },
  });
  const { hostname, port } = new URL(baseUrl);
  const socket = connect(Number(port), hostname);
  closing.push(() => socket.destroy());
  socket.write(requests(20));
  await sleep(1_000);
  expect(begun).toEqual([0]);
  socket.on('data', () => {});
  await expect.poll(() => begun.length).toBeGreaterThan(1);
  expect(counts.ended).toBe(0);
});

it.each([
  ['without bodies', (index: number) => `GET /${index} HTTP/1.1\r\nHost: x\r\n\r\n`],
  ['with bodies', (index: number) => `POST /${index} HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n{ }`],
  [
    'with bodies in chunks',
    (index: number) => `POST /${index} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{ }\r\n0\r\n\r\n`,
  ],
])('only a few of hundreds of pipelined requests %s are parsed before their turn', async (_which, make) => {
  const made: number[] = [];
  let answered = 0;
  let most = 0;
  const { wire, server, buffers, baseUrl } = await open({
    async handler(request, response) {
      most = Math.max(most, made.length - answered);
      let body = '';
      for await (const part of request) body += part;
      answered += 1;
      answer(response, `${numberOf(request)}${body}`);
    },
  });
  server.prependListener('request', (request) => void made.push(numberOf(request)));
  server.prependListener('upgrade', () => expect(buffers.bytes).toBeLessThan(200_000));
  wire.write(Array.from({ length: 600 }, (_, index) => make(index)).join(''));
  const body = make(0).startsWith('GET') ? '' : '{ }';
  expect((await wire.receive(600)).map((response) => response.body)).toEqual(upTo(600).map((number) => `${number}${body}`));
  expect(most).toBeLessThanOrEqual(18);
  expect(made).toEqual(Array.from({ length: 600 }, (_, index) => index));
  await expect.poll(() => buffers.bytes).toBe(0);
  const listeners = await new Promise<number>((resolve) => {
    server.once('connection', (socket) => {
      socket.once('close', () => resolve(socket.listenerCount('error') + socket.listenerCount('data') + socket.listenerCount('drain')));
    });
    openWire(baseUrl).then((other) => {
      other.write(Array.from({ length: 300 }, (_, index) => make(index)).join(''));
      return other.receive(300).then(() => other.socket.destroy());
    });
  });
  expect(listeners).toBeLessThan(8);
});

it.each([
  ['requests that have not been parsed', requests(40, 1)],
  ['an offer of another protocol', 'GET /1 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n'],
  ['a CONNECT', 'CONNECT y:1 HTTP/1.1\r\nHost: y\r\n\r\n'],
])('a response in front of %s drains when its connection accepts more', async (_which, behind) => {
  const part = Buffer.alloc(4 * 2 ** 20);
  const { wire } = await open({
    async handler(request, response) {
      if (numberOf(request) > 0) return void answer(response, 'x');
      response.writeHead(200, { 'Content-Length': 2 * part.length });
      await sleep(50);
      if (!response.write(part)) await once(response, 'drain');
      response.end(part);
    },
  });
  wire.write(requests(1) + behind);
  expect((await wire.receive(2)).map(({ body }) => body.length)).toContain(2 * part.length);
});

it('a request that is parsed later is answered as it would be in any other place, and so are those behind it', async () => {
  const upgrade = vi.fn();
  const { wire } = await open({ upgrade, handler: (request, response) => void answer(response, request.headers.host ?? 'none') });
  const strange = ['GET /x HTTP/1.1\r\n\r\n', 'GET /x HTTP/1.1\r\nHost: none\r\nUpgrade: websocket\r\n\r\n'];
  for (const place of [3, 17, 30])
    for (const one of strange) {
      const before = (await wire.receive(0)).length;
      wire.write(requests(place) + one + requests(10));
      const hosts = (await wire.receive(before + place + 11)).slice(before).map(({ body }) => body);
      expect(hosts).toEqual([...Array(place).fill('x'), 'none', ...Array(10).fill('x')]);
    }
  expect(upgrade).not.toHaveBeenCalled();
});

it('a response that its client has not read is sent to its end where the server stops meanwhile', async () => {
  const sent: ServerResponse[] = [];
  const part = Buffer.alloc(64 * 1024);
  const { wire, server, baseUrl } = await open({ handler: (_request, response) => void sent.push(response.end(part)) });
  const idle = await openWire(baseUrl);
  idle.write(requests(1));
  await idle.receive(1);
  wire.socket.pause();
  // Until the kernel takes no more.
  while (!sent.at(-1)?.socket?.writableLength) {
    const before = sent.length;
    wire.write(requests(1));
    await expect.poll(() => sent.length, { interval: 2 }).toBe(before + 1);
  }
  const closed = new Promise((resolve) => server.close(resolve));
  const sweep = setInterval(() => server.closeIdleConnections(), 10);
  closing.push(() => clearInterval(sweep));
  await sleep(50);
  wire.socket.resume();
  const responses = await wire.receive(sent.length - 1);
  expect(responses).toHaveLength(sent.length - 1);
  // Then all are closed, as none is in use.
  await closed;
});

it('closing all connections closes those that are not being read, too', async () => {
  const { wire, server } = await open({ handler: (request, response) => void (numberOf(request) < 0 && response.end()) });
  wire.write(requests(30));
  await once(server, 'upgrade');
  const closed = new Promise((resolve) => server.close(resolve));
  server.closeAllConnections();
  await closed;
  await wire.closed();
  expect(await wire.receive(1)).toEqual([]);
});

it.each([
  ['upgrade', 'an offer of another protocol', 'GET /1 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n'],
  ['connect', 'a CONNECT', 'CONNECT y:1 HTTP/1.1\r\nHost: y\r\n\r\n'],
])('%s: bytes that may be read behind a waiting %s are counted', async (event, _which, behind) => {
  const { wire, server, buffers } = await open({ handler: (request, response) => void (numberOf(request) < 0 && response.end()) });
  wire.write(requests(1) + behind);
  await once(server, event);
  wire.write(Buffer.alloc(300_000));
  await expect.poll(() => buffers.bytes).toBeGreaterThan(64 * 1024);
});

it('a large body is counted until it is read', async () => {
  let request: IncomingMessage | undefined;
  const { wire, buffers } = await open({ handler: (given) => void (request = given) });
  wire.write(`POST /0 HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n${'x'.repeat(40_000)}`);
  await expect.poll(() => buffers.bytes).toBeGreaterThanOrEqual(40_000);
  request?.resume();
  await expect.poll(() => buffers.bytes).toBe(0);
});

it('a large body whose client has disconnected is not counted', async () => {
  let request: IncomingMessage | undefined;
  const { wire, buffers } = await open({ handler: (given) => void (request = given) });
  wire.write(`POST /0 HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n${'x'.repeat(40_000)}`);
  await expect.poll(() => buffers.bytes).toBeGreaterThanOrEqual(40_000);
  wire.socket.destroy();
  request?.socket.resume();
  await expect.poll(() => buffers.bytes).toBe(0);
});

it('a connection whose client disconnects while most of its requests are unparsed leaves nothing behind', async () => {
  let going: (() => void) | undefined;
  const { wire, server, buffers } = await open({
    handler(request, response) {
      if (numberOf(request) > 0) answer(response, 'x');
      else going = () => answer(response, 'x'.repeat(100));
    },
  });
  wire.write(requests(1_000));
  await expect.poll(() => going).toBeDefined();
  await expect.poll(() => buffers.bytes).toBeGreaterThan(0);
  wire.socket.resetAndDestroy();
  going?.();
  await expect.poll(() => buffers.bytes).toBe(0);
  const count = () => new Promise((resolve) => server.getConnections((_failure, connections) => resolve(connections)));
  await expect.poll(count).toBe(0);
});

it('behind a response with 429, the next requests of its connection start one every two seconds; those of others do not wait', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  closing.push(() => vi.useRealTimers());
  const begun: number[] = [];
  const { wire, baseUrl } = await open({
    handler(request, response) {
      begun.push(numberOf(request));
      response.writeHead(numberOf(request) < 2 ? 429 : 200, { 'Content-Length': 0 }).end();
    },
  });
  wire.write(requests(6));
  expect(await wire.receive(1)).toHaveLength(1);
  const other = await openWire(baseUrl);
  closing.push(() => other.socket.destroy());
  const begunBy = async (milliseconds: number) => {
    vi.advanceTimersByTime(milliseconds);
    const before = (await other.receive(0)).length;
    other.write(requests(3, 10));
    expect(await other.receive(before + 3)).toHaveLength(before + 3);
    return begun.filter((number) => number < 10);
  };
  expect(await begunBy(0)).toEqual([0]);
  expect(await begunBy(1_999)).toEqual([0]);
  expect(await begunBy(1)).toEqual([0, 1]);
  expect(await begunBy(1_999)).toEqual([0, 1]);
  vi.advanceTimersByTime(1);
  expect((await wire.receive(6)).map(({ status }) => status)).toEqual([429, 429, 200, 200, 200, 200]);
  expect(begun.filter((number) => number < 10)).toEqual([0, 1, 2, 3, 4, 5]);
});

it('a request counts while it pauses, and a connection that closes leaves no timer behind, which would keep its requests', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  closing.push(() => vi.useRealTimers());
  let whenClosed: Promise<unknown> | undefined;
  const { wire, buffers } = await open({
    handler(request, response) {
      whenClosed = new Promise((resolve) => request.socket.once('close', resolve));
      response.writeHead(429, { 'Content-Length': 0 }).end();
    },
  });
  wire.write(requests(2));
  expect(await wire.receive(1)).toHaveLength(1);
  expect(vi.getTimerCount()).toBe(1);
  expect(buffers.bytes).toBeGreaterThan(4_096);
  wire.socket.destroy();
  await whenClosed;
  expect(vi.getTimerCount()).toBe(0);
});

it('a proxy’s connection does not pause: the next request is another client’s', async () => {
  const { wire } = await open({
    trustedProxies: ['127.0.0.1'],
    handler: (_request, response) => void response.writeHead(429, { 'Content-Length': 0 }).end(),
  });
  const began = performance.now();
  wire.write(requests(20));
  expect(await wire.receive(20)).toHaveLength(20);
  expect(performance.now() - began).toBeLessThan(10_000);
});

it('waiting requests are counted in bytes, for each address', async () => {
  const unread = { perAddress: 2 ** 16, inAll: 2 ** 30 };
  const { wire, counts, baseUrl } = await open({ unread, handler: (request, response) => void (numberOf(request) < 0 && response.end()) });
  wire.write(requests(500));
  await wire.closed();
  expect(counts.ended).toBe(1);
  const honest = await openWire(baseUrl);
  honest.write(requests(10));
  await sleep(200);
  expect([honest.socket.destroyed, counts.ended]).toEqual([false, 1]);
  honest.socket.destroy();
});

it('malformed bytes are refused after the responses that are due', async () => {
  const { wire } = await open({
    async handler(request, response) {
      await sleep(20);
      answer(response, String(numberOf(request)));
    },
  });
  wire.write(`${requests(5)}rubbish\r\n\r\n`);
  await wire.closed();
  const responses = await wire.receive(6);
  expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 400]);
});

it('an upgrade waits for its turn', async () => {
  const events: string[] = [];
  const { wire } = await open({
    async handler(request, response) {
      await sleep(20);
      events.push(String(numberOf(request)));
      answer(response, 'x');
    },
    upgrade(_request, socket, head) {
      events.push(`upgrade ${head}`);
      socket.end('HTTP/1.1 101 Switching Protocols\r\n\r\n', () => socket.destroySoon());
    },
  });
  wire.write(`${requests(3)}GET /4 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nfirst`);
  expect((await wire.receive(4)).map(({ status }) => status)).toEqual([200, 200, 200, 101]);
  expect(events).toEqual(['0', '1', '2', 'upgrade first']);
});

it('bytes after an upgrade wait with it', async () => {
  const { wire } = await open({
    async handler(request, response) {
      await sleep(100);
      // Others have pieces of work that come first.
      for (let piece = 0; piece < 5; piece += 1) runInNextIteration(() => {});
      answer(response, String(numberOf(request)));
    },
    upgrade(_request, socket, head) {
      let text = String(head);
      socket.on('data', (bytes) => {
        text += bytes;
        if (text.endsWith('.')) socket.end(`HTTP/1.1 200 OK\r\nContent-Length: ${text.length}\r\n\r\n${text}`);
      });
    },
  });
  wire.write(`${requests(1)}GET /1 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`);
  await sleep(20);
  wire.write('later');
  expect(await wire.receive(1)).toHaveLength(1);
  await sleep(20);
  wire.write('.');
  expect((await wire.receive(2)).map(({ body }) => body)).toEqual(['0', 'later.']);
});

it('clients that disconnect in the middle of a request leave nothing behind', async () => {
  const { baseUrl, buffers, server } = await open({
    async handler(request, response) {
      await sleep(5);
      answer(response, String(numberOf(request)));
    },
  });
  const goInTheMiddle = async (leave: 'end' | 'destroy' | 'resetAndDestroy') => {
    const wire = await openWire(baseUrl);
    wire.write(requests(60));
    await wire.receive(3);
    wire.socket[leave]();
    await wire.closed();
  };
  await Promise.all([goInTheMiddle('end'), goInTheMiddle('destroy'), goInTheMiddle('resetAndDestroy')]);
  await expect.poll(() => buffers.bytes).toBe(0);
  const count = () => new Promise((resolve) => server.getConnections((_failure, connections) => resolve(connections)));
  await expect.poll(count).toBe(1);
});

it('only the request that is being answered is aborted when its connection closes', async () => {
  let aborted = 0;
  const begun: number[] = [];
  const { wire, buffers } = await open({
    handler(request, response) {
      begun.push(numberOf(request));
      if (numberOf(request) === 0) answer(response, 'x');
      else request.on('aborted', () => (aborted += 1));
    },
  });
  wire.write(requests(10));
  await expect.poll(() => buffers.bytes).toBeGreaterThan(0);
  expect(await wire.receive(1)).toHaveLength(1);
  wire.socket.resetAndDestroy();
  await expect.poll(() => aborted).toBe(1);
  await expect.poll(() => buffers.bytes).toBe(0);
  await sleep(50);
  expect(begun).toEqual([0, 1]);
});

it('a request that is answered before all of it has arrived counts for its client behind a proxy until then', async () => {
  const { baseUrl, wire } = await open({
    handler: (_request, response) => void response.writeHead(204).end(),
    trustedProxies: ['loopback'],
    maxConnectionsPerAddress: 1,
  });
  const ask = async (address: string) => {
    const other = await openWire(baseUrl);
    other.write(`GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Forwarded-For: ${address}\r\n\r\n`);
    return (await other.receive(1))[0]?.status;
  };
  const begun = 'OPTIONS / HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 192.0.2.1\r\nContent-Length: 10\r\n\r\nx';
  wire.write(begun);
  await wire.receive(1);
  expect([await ask('192.0.2.1'), await ask('192.0.2.2')]).toEqual([503, 204]);
  wire.write('x'.repeat(9));
  await expect.poll(() => ask('192.0.2.1')).toBe(204);
  wire.write(begun);
  await wire.receive(2);
  expect(await ask('192.0.2.1')).toBe(503);
  wire.socket.destroy();
  await expect.poll(() => ask('192.0.2.1')).toBe(204);
});
