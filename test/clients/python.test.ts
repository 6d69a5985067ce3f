import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { type Frame, readLog } from '../support/feed.ts';
import { ABSENT_ID } from '../support/fixtures.ts';
import { checkHistory, type Entry } from '../support/history.ts';
import { openProxy, type TcpProxy } from '../support/proxy.ts';
import { checkout, run } from './tools.ts';

/** Debian's own: what apt-get installs is for no other. */
const python = '/usr/bin/python3';
const script = join(checkout, 'clients/python/feed.py');

let app: TestApp;
let proxy: TcpProxy;
beforeAll(async () => {
  const { code, err } = await run(python, ['-c', 'import websocket']);
  expect(code, `apt-get install python3-websocket: ${err}`).toBe(0);
  app = await startApp({ RATE_LIMIT_USER: '100000000', RATE_LIMIT_ANONYMOUS: '100000000' });
});
afterAll(() => app.close());

const started: Client[] = [];
const folder = mkdtempSync(join(tmpdir(), 'portico-python-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
beforeEach(async () => {
  proxy = await openProxy({ host: '127.0.0.1', port: Number(new URL(app.baseUrl).port) });
});
afterEach(async () => {
  for (const { process } of started.splice(0)) process.kill('SIGKILL');
  await proxy.close();
});

interface Client {
  readonly process: ChildProcessByStdio<null, Readable, Readable>;
  /** All that it has told, in order. */
  readonly events: Frame[];
  /** The lines on standard error. */
  readonly said: () => string[];
  readonly exit: Promise<number | null>;
}

/** The script as a process that comes through the proxy. */
function follow(
  args: readonly string[] = [],
  { key = app.demo.users.member.api_key, projectPath = app.projectPath, port = proxy.port } = {},
): Client {
  const child = spawn(python, [script, `http://127.0.0.1:${port}${projectPath}`, ...args], {
    env: { ...process.env, PORTICO_KEY: key },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const events: Frame[] = [];
  let [line, err] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    const lines = (line + text).split('\n');
    line = lines.pop() ?? '';
    for (const one of lines) events.push(JSON.parse(one));
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    err += text;
  });
  const exit = once(child, 'close').then(([code]) => code as number | null);
  const client = { process: child, events, said: () => err.split('\n').slice(0, -1), exit };
  started.push(client);
  return client;
}

function writeCursor(text: string): string {
  const path = join(folder, 'broken');
  writeFileSync(path, text);
  return path;
}

async function publish(count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    await app.app.database.prisma.$executeRaw`
      INSERT INTO notifications (project_id, kind, severity, title) VALUES (${app.demo.project_id}::uuid, 'test.sql', 'info', ${`№ ${index}`})`;
    await sleep(Math.random() * 10);
  }
}

const entriesOf = (events: readonly Frame[]): Entry[] =>
  events.flatMap(({ type, sequence, notification }) => (type === 'notification' ? [{ sequence, id: notification.id }] : []));
const lastOf = (events: readonly Frame[]) => entriesOf(events).at(-1)?.sequence;
const endOfLog = async () => (await readLog(app)).at(-1)?.sequence;

describe('the plain client in Python', () => {
  it('delivers each notification once and in order across 30 cuts', async () => {
    const from = 145;
    const client = follow(['--after', String(from)]);
    for (let cut = 0; cut < 30; cut += 1) {
      const before = client.events.length;
      const publishing = publish(20);
      await expect.poll(() => client.events.length, { interval: 5 }).toBeGreaterThan(before);
      if (cut % 3 === 0) await proxy.refuse();
      else proxy.cut();
      await publishing;
      await proxy.mend();
    }
    await publish(1);
    const end = await endOfLog();
    await expect.poll(() => lastOf(client.events)).toBe(end);
    expect(checkHistory({ committed: await readLog(app), from, received: entriesOf(client.events) })).toEqual([]);
    // Of the cuts themselves: how far a connection comes before the next one is the machine's.
    expect(client.said().length).toBeGreaterThan(15);
    expect(client.events.filter(({ type }) => type === 'gap')).toEqual([]);
    expect(client.said().filter((line) => !/^waiting \d+\.\d s: (no connection|closed with)/.test(line))).toEqual([]);
  });

  it('resumes at the cursor in its file after it was killed, repeating the last notification at most', async () => {
    const from = Number(await endOfLog());
    const file = join(folder, 'cursor');
    const received: Entry[] = [];
    for (let kill = 0; kill < 10; kill += 1) {
      const client = follow(['--after', String(from), '--cursor', file]);
      const publishing = publish(30);
      await expect.poll(() => entriesOf(client.events).length, { interval: 1 }).toBeGreaterThan(5);
      client.process.kill('SIGKILL');
      await client.exit;
      await publishing;
      const told = entriesOf(client.events);
      received.push(...(told[0]?.sequence === received.at(-1)?.sequence ? told.slice(1) : told));
    }
    const last = follow(['--cursor', file]);
    const end = await endOfLog();
    await expect.poll(() => lastOf(last.events)).toBe(end);
    await expect.poll(() => readFileSync(file, 'utf8')).toBe(`${end}\n`);
    const told = entriesOf(last.events);
    received.push(...(told[0]?.sequence === received.at(-1)?.sequence ? told.slice(1) : told));
    expect(checkHistory({ committed: await readLog(app), from, received })).toEqual([]);
  });

  it('waits for an unreachable server with a message, and begins when it is reachable', async () => {
    await proxy.refuse();
    const client = follow(['--after', '148']);
    await expect.poll(() => client.said().length).toBeGreaterThan(2);
    expect(client.said()[0]).toMatch(/^waiting 0\.\d s: no connection \(.*refused.*\)$/);
    await proxy.mend();
    await expect.poll(() => client.events.map(({ type }) => type)).toContain('ready');
    expect(client.events.slice(0, 2)).toMatchObject([{ sequence: 149 }, { sequence: 150 }]);
  });

  it.each([
    ['a wrong key', 'The server refused the feed with 401: ', () => follow([], { key: 'sk-portico-wrong' })],
    [
      'a project that is not there',
      'The server refused the feed with 404: ',
      () => follow([], { projectPath: app.projectPath.replace(app.demo.project_id, ABSENT_ID) }),
    ],
    ['a cursor that is none', 'The server closed the feed with 4400 invalid_after.', () => follow(['--after', '-1'])],
    ['no key', 'PORTICO_KEY is to hold an API key, or a session token.', () => follow([], { key: '' })],
    ['a key that no header can hold', 'PORTICO_KEY is to hold an API key, or a session token.', () => follow([], { key: 'sk-portico-é' })],
    ['a file that holds no cursor', 'holds no cursor: remove it', () => follow(['--cursor', writeCursor('nothing')])],
    [
      'a folder that is not there',
      'The cursor cannot be kept: ',
      () => follow(['--after', '148', '--cursor', join(folder, 'no', 'cursor')]),
      1,
    ],
  ])('ends with a message at %s', async (_what, sentence, begin, told = 0) => {
    const client = begin();
    expect(await client.exit).toBe(1);
    expect(client.said()).toEqual([expect.stringContaining(sentence)]);
    expect(client.said()[0]).toMatch(/\.$/);
    expect(client.events).toHaveLength(told);
  });

  it.each([
    ['a page where a socket should open', (response: ServerResponse) => response.end('<p>Sign in to this network</p>')],
    ['a date in Retry-After', (response: ServerResponse) => response.writeHead(503, { 'retry-after': new Date().toUTCString() }).end()],
    [
      'a response that breaks off',
      (response: ServerResponse) => response.writeHead(403, { 'content-length': 9 }).write('{', () => response.destroy()),
    ],
  ])('waits at %s from a proxy', async (_what, answer) => {
    const front = createServer((_request, response) => void answer(response)).listen(0, '127.0.0.1');
    await once(front, 'listening');
    const client = follow([], { port: (front.address() as AddressInfo).port });
    await expect.poll(() => client.said().length).toBeGreaterThan(1);
    for (const line of client.said()) expect(line).toMatch(/^waiting 0\.\d s: /);
    client.process.kill('SIGKILL');
    front.close();
  });

  it('ends with a message where a proxy refuses it with a page', async () => {
    const front = createServer((_request, response) => void response.writeHead(403).end('<p>Not from here</p>')).listen(0, '127.0.0.1');
    await once(front, 'listening');
    const client = follow([], { port: (front.address() as AddressInfo).port });
    expect(await client.exit).toBe(1);
    expect(client.said()).toEqual(['The server refused the feed with 403: something before it has answered.']);
    front.close();
  });

  it('follows no redirect, to which the key would be sent', async () => {
    let heard = 0;
    const other = createServer((_request, response) => response.end()).listen(0, '127.0.0.1');
    other.on('connection', () => {
      heard += 1;
    });
    await once(other, 'listening');
    const elsewhere = `127.0.0.1:${(other.address() as AddressInfo).port}`;
    const front = createServer(({ headers }, response) => {
      // The socket is refused, and the request for the reason is redirected.
      if (headers.upgrade) response.writeHead(403).end();
      else response.writeHead(302, { location: `http://${elsewhere}/` }).end();
    }).listen(0, '127.0.0.1');
    await once(front, 'listening');
    const { port } = front.address() as AddressInfo;
    const refused = follow([], { port });
    expect(await refused.exit).toBe(1);
    expect(refused.said()).toEqual(['The server refused the feed with 403: another request is answered otherwise.']);
    // The socket itself is redirected.
    front.removeAllListeners('request').on('request', (_request, response) => {
      response.writeHead(302, { location: `ws://${elsewhere}/` }).end();
    });
    const client = follow([], { port });
    await expect.poll(() => client.said().length).toBeGreaterThan(1);
    expect(client.said()[0]).toMatch(/^waiting 0\.1 s: refused with 302$/);
    expect(heard).toBe(0);
    client.process.kill('SIGKILL');
    for (const server of [front, other]) server.close();
  });

  it('ends with a message when its key is revoked meanwhile', async () => {
    const input = { name: 'revoked meanwhile' };
    const made = await app.graphql('mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { key apiKey { id } } }', {
      input,
    });
    const { key, apiKey } = made.json.data.createApiKey;
    const client = follow([], { key });
    await expect.poll(() => client.events.map(({ type }) => type)).toEqual(['ready']);
    await app.graphql('mutation ($input: RevokeApiKeyInput!) { revokeApiKey(input: $input) { apiKey { id } } }', {
      input: { id: apiKey.id },
    });
    expect(await client.exit).toBe(1);
    const [waiting, end, ...more] = client.said();
    expect(waiting).toMatch(/^waiting 0\.1 s: closed with 4403 \w+$/);
    expect(end).toMatch(/^The server refused the feed with 401: .*\.$/);
    expect(more).toEqual([]);
  });
});
