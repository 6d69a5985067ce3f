import type { ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { readJsonObject } from '../../src/transport/http/body.ts';
import { type ServerProcess, startServer } from '../support/process.ts';
import { openServer } from '../support/server.ts';
import { openWire } from '../support/wire.ts';

const MEBIBYTE = 2 ** 20;
const html = 'text/html,application/xhtml+xml,*/*;q=0.8';

/** Sends, and never reads. */
function callWithoutReading(baseUrl: string, text: string, localAddress = '127.0.0.1'): Socket {
  const { hostname, port } = new URL(baseUrl);
  const socket = connect({ port: Number(port), host: hostname, localAddress });
  socket.on('error', () => {});
  socket.pause();
  socket.write(text);
  return socket;
}

const closing: Array<() => unknown> = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

describe('a response that is not read', () => {
  const large = Buffer.alloc(48 * MEBIBYTE, 'x');
  const open = async (options: Partial<Parameters<typeof openServer>[0]> = {}) => {
    const opened = await openServer({
      unread: { perAddress: 2 ** 30, inAll: 2 ** 30 },
      handler: (_request, response) => void response.writeHead(200, { 'Content-Length': large.length }).end(large),
      ...options,
    });
    closing.push(opened.close);
    const call = (address?: string) => {
      const socket = callWithoutReading(opened.baseUrl, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n', address);
      closing.push(() => socket.destroy());
      return socket;
    };
    const countConnections = () => new Promise((resolve) => opened.server.getConnections((_failure, count) => resolve(count)));
    return { ...opened, call, countConnections };
  };

  it('ends its connection in time', async () => {
    const { call, counts, buffers, countConnections } = await open({ stallTimeoutMs: 1_500 });
    call();
    await expect.poll(() => buffers.bytes).toBeGreaterThan(0);
    await expect.poll(() => counts.ended).toBe(1);
    await expect.poll(countConnections).toBe(0);
    expect(buffers.bytes).toBe(0);
  });

  it('ends its connection in time when written in pieces', async () => {
    const { call, counts } = await open({
      stallTimeoutMs: 1_500,
      handler: (_request, response) => {
        response.writeHead(200, { 'Content-Type': 'text/event-stream' });
        const sending = setInterval(() => response.write(`data: ${'x'.repeat(500_000)}\n\n`), 20);
        response.once('close', () => clearInterval(sending));
      },
    });
    call();
    await expect.poll(() => counts.ended).toBe(1);
  });

  it.each([
    ['in parts', undefined],
    // As the result of a socket, and an event of a stream.
    ['at once', (_request: unknown, response: ServerResponse) => void response.writeHead(200).write(large, () => response.end())],
  ])('continues while its client reads, however slowly, when written %s', async (_label, handler) => {
    const { call, counts } = await open({ stallTimeoutMs: 3_000, ...(handler && { handler }) });
    const socket = call();
    let size = 0;
    const began = Date.now();
    socket.on('data', (bytes: Buffer) => {
      size += bytes.length;
      socket.pause();
    });
    const reading = setInterval(() => socket.resume(), 10);
    while (size < large.length && !socket.destroyed) await sleep(50);
    clearInterval(reading);
    expect(size).toBeGreaterThanOrEqual(large.length);
    expect(Date.now() - began).toBeGreaterThan(3_000);
    expect(counts.ended).toBe(0);
  });

  it('waits as long as proxies do for a client that pauses', async () => {
    const { call, counts, buffers } = await open();
    const socket = call();
    await expect.poll(() => buffers.bytes).toBeGreaterThan(0);
    await sleep(45_000);
    expect(counts.ended).toBe(0);
    let size = 0;
    socket.on('data', (bytes: Buffer) => (size += bytes.length)).resume();
    await expect.poll(() => size).toBeGreaterThanOrEqual(large.length);
  });

  it('is ended for others of its address, and of all addresses, the one that has stalled longest first', async () => {
    const { call, counts, buffers } = await open({ unread: { perAddress: 100 * MEBIBYTE, inAll: 110 * MEBIBYTE } });
    const sockets: Socket[] = [];
    const add = async (address: string) => {
      sockets.push(call(address));
      const before = [buffers.bytes, counts.ended];
      const read = () => [buffers.bytes, counts.ended];
      await expect.poll(read).not.toEqual(before);
      // Until the system takes no more of it.
      await expect.poll(async () => [read(), await sleep(300), read()]).toSatisfy(([one, , other]) => `${one}` === `${other}`);
    };
    for (const address of ['127.0.0.1', '127.0.0.1', '127.0.0.1']) await add(address);
    // A socket hears of its end as it is read.
    const isEnded = (index: number) => {
      const { destroyed = false, readableEnded = false } = sockets[index]?.resume() ?? {};
      return destroyed || readableEnded;
    };
    expect(counts.ended).toBe(1);
    await add('127.0.0.2');
    expect(counts.ended).toBe(2);
    for (const index of [0, 1]) await expect.poll(() => isEnded(index)).toBe(true);
    expect(buffers.bytes).toBeLessThan(110 * MEBIBYTE);
  });
});

it('a large response to a client that reads is not ended for many small unread ones', async () => {
  const sizes: Readonly<Record<string, number>> = { '/small': 6 * MEBIBYTE, '/large': 12 * MEBIBYTE };
  const opened = await openServer({
    unread: { perAddress: 16 * MEBIBYTE, inAll: 32 * MEBIBYTE },
    handler: ({ url = '' }, response) => void response.end(Buffer.alloc(sizes[url] ?? 0, 'x')),
  });
  closing.push(opened.close);
  const request = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`;
  for (let number = 1; number <= 20; number += 1) {
    const socket = callWithoutReading(opened.baseUrl, request('/small'), `127.0.1.${number}`);
    closing.push(() => socket.destroy());
  }
  await expect.poll(() => opened.counts.ended).toBeGreaterThan(0);
  await sleep(1_500);
  expect(opened.buffers.bytes).toBeGreaterThan(24 * MEBIBYTE);
  const reader = callWithoutReading(opened.baseUrl, request('/large'), '127.0.2.1');
  let size = 0;
  reader.on('data', (bytes: Buffer) => (size += bytes.length)).resume();
  await new Promise((resolve) => reader.once('close', resolve));
  expect(size).toBeGreaterThan(12 * MEBIBYTE);
});

it('slow bodies are counted like slow responses', async () => {
  const opened = await openServer({
    unread: { perAddress: 2 * MEBIBYTE, inAll: 64 * MEBIBYTE },
    handler: (request, response) =>
      void readJsonObject(request, response, { turnKey: '', bodyBytes: 0 }).then(
        ({ text }) => response.end(String(String(text).length)),
        () => response.destroy(),
      ),
  });
  closing.push(opened.close);
  const head = (length: number) => `POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`;
  for (let call = 0; call < 12; call += 1) {
    const socket = callWithoutReading(opened.baseUrl, `${head(1_000_000)}{"text":"${'x'.repeat(500_000)}`);
    closing.push(() => socket.destroy());
  }
  await expect.poll(() => opened.counts.ended).toBeGreaterThanOrEqual(7);
  expect(opened.buffers.bytes).toBeLessThanOrEqual(2 * MEBIBYTE);
  const body = JSON.stringify({ text: 'x'.repeat(900_000) });
  const { hostname, port } = new URL(opened.baseUrl);
  const socket = connect({ port: Number(port), host: hostname, localAddress: '127.0.0.2' });
  closing.push(() => socket.destroy());
  let text = '';
  socket.setEncoding('utf8').on('data', (part: string) => {
    text += part;
  });
  socket.write(head(body.length) + body);
  await expect.poll(() => text).toMatch(/^HTTP\/1.1 200 [\s\S]*900000$/);
});

describe('connections of one address', () => {
  const request = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
  const handler = (_request: unknown, response: ServerResponse) => void response.end('x');

  it('are bounded, with a 503 for it alone', async () => {
    const opened = await openServer({ handler, maxConnectionsPerAddress: 5 });
    closing.push(opened.close);
    const { hostname, port } = new URL(opened.baseUrl);
    const callFrom = (localAddress: string) => {
      const socket = connect({ port: Number(port), host: hostname, localAddress });
      let text = '';
      socket.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      socket.on('error', () => {});
      closing.push(() => socket.destroy());
      socket.write(request);
      return { socket, read: () => text };
    };
    const first = Array.from({ length: 5 }, () => callFrom('127.0.0.1'));
    for (const { read } of first) await expect.poll(read).toMatch(/^HTTP\/1.1 200/);
    const sixth = callFrom('127.0.0.1');
    await expect.poll(sixth.read).toMatch(/^HTTP\/1.1 503 [\s\S]*Retry-After: 1\r\n[\s\S]*"code":"service_unavailable"/);
    await expect.poll(() => sixth.socket.destroyed).toBe(true);
    expect(sixth.read().match(/HTTP/g)).toHaveLength(1);
    expect(opened.counts.refused).toBe(1);
    const other = callFrom('127.0.0.2');
    await expect.poll(other.read).toMatch(/^HTTP\/1.1 200/);
    for (const { socket } of first) socket.destroy();
    await expect.poll(async () => (await fetch(opened.baseUrl, { headers: { connection: 'close' } }).catch(() => null))?.status).toBe(200);
  });

  it('of a trusted proxy are not bounded, but the requests of each of its clients', async () => {
    const waiting: Array<() => void> = [];
    const opened = await openServer({
      handler: (_request, response) => void waiting.push(() => response.end('x')),
      maxConnectionsPerAddress: 3,
      trustedProxies: ['loopback'],
    });
    closing.push(opened.close);
    const ask = (client: string) => fetch(opened.baseUrl, { headers: { 'x-forwarded-for': client } }).then(({ status }) => status);
    const held = Array.from({ length: 3 }, () => ask('192.0.2.1'));
    await expect.poll(() => waiting.length).toBe(3);
    expect(await ask('192.0.2.1')).toBe(503);
    const other = ask('192.0.2.2');
    await expect.poll(() => waiting.length).toBe(4);
    for (const answer of waiting) answer();
    expect(await Promise.all([...held, other])).toEqual([200, 200, 200, 200]);
  });
});

describe('the memory of a replica', () => {
  let server: ServerProcess;
  const get = (path: string, accept = 'application/json') => `GET ${path} HTTP/1.1\r\nHost: x\r\nAccept: ${accept}\r\n\r\n`;
  const page = get('/graphql', html);
  const isServing = async () => {
    const { status } = await fetch(`${server.baseUrl}/`, { headers: { connection: 'close' } });
    return status === 200;
  };
  beforeAll(async () => {
    server = await startServer({ RATE_LIMIT_PAGES: '1000000' });
    // What is loaded once is there before.
    for (const path of ['/graphql', '/v1/openapi.json']) await (await fetch(server.baseUrl + path, { headers: { accept: html } })).text();
    await sleep(500);
  }, 180_000);
  afterAll(() => server?.stop());

  /**
   * In MiB, where hundreds and thousands are asked for: what may wait for one address, and what V8 leaves lying outside of its
   * heap, which it frees by some 64 MiB.
   */
  const MOST_GROWTH = 150;

  /** The most that it grows by, while honest requests are answered. */
  async function measureGrowth(calls: number, text: string): Promise<number> {
    const before = server.memory();
    const sockets = Array.from({ length: calls }, () => callWithoutReading(server.baseUrl, text));
    let most = before;
    for (let turn = 0; turn < 8; turn += 1) {
      expect(await isServing()).toBe(true);
      most = Math.max(most, server.memory());
      await sleep(200);
    }
    for (const socket of sockets) socket.destroy();
    console.log(`${calls} connections: ${before.toFixed(0)} MiB before, ${most.toFixed(0)} MiB at most`);
    return most - before;
  }

  it.each<[string, number, string]>([
    ['one connection asks for 300 pages', 1, page.repeat(300)],
    ['150 connections ask for a page each', 150, page],
    ['100 connections ask for 600 documents each', 100, get('/v1/openapi.json').repeat(600)],
    ['200 connections ask for 200 refusals each', 200, get('/v1/nothing').repeat(200)],
  ])('does not grow with unread responses: %s', { timeout: 300_000 }, async (_label, calls, text) => {
    expect(await measureGrowth(calls, text)).toBeLessThan(MOST_GROWTH);
  });

  it('a page is complete for a client that reads', async () => {
    const wire = await openWire(server.baseUrl);
    wire.write(get('/graphql', html));
    const [response] = await wire.receive(1);
    expect(response?.body.trimEnd()).toMatch(/<\/html>$/);
    wire.socket.destroy();
  });
});
