import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { offer } from '../support/wire.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ MAX_CONNECTIONS: '8' });
});
afterAll(() => app.close());

interface Caller {
  readonly socket: Socket;
  /** All that came until the end, and after how many ms it ended. */
  readonly ended: Promise<{ text: string; after: number }>;
}

function call(text: string): Caller {
  const { hostname, port } = new URL(app.baseUrl);
  const began = Date.now();
  const socket = connect(Number(port), hostname, () => socket.write(text));
  let heard = '';
  socket.setEncoding('utf8').on('data', (part: string) => {
    heard += part;
  });
  socket.on('error', () => {});
  return { socket, ended: new Promise((resolve) => socket.once('close', () => resolve({ text: heard, after: Date.now() - began }))) };
}

describe('a slow client', () => {
  it('that does not complete its headers is disconnected after 10 s', async () => {
    const callers = ['', 'GET / HTTP/1.1\r\n', 'GET / HTTP/1.1\r\nHost: x\r\nX-Slow: '].map(call);
    const dripping = call('GET / HTTP/1.1\r\nHost: x\r\n');
    const drip = setInterval(() => dripping.socket.writable && dripping.socket.write('X-Drip: 1\r\n'), 1_000);
    for (const { ended } of [...callers, dripping]) {
      const { text, after } = await ended;
      expect(after).toBeGreaterThan(9_000);
      expect(after).toBeLessThan(30_000);
      if (text) expect(text).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n[\s\S]*"code":"invalid_request"/);
    }
    clearInterval(drip);
  });

  it('that sends its body slowly is answered, with an offer of another protocol or without', async () => {
    const bearer = `Authorization: Bearer ${app.demo.users.owner.token}`;
    const lines = ['POST /graphql HTTP/1.1', 'Host: x', bearer, 'Content-Type: application/json', 'Content-Length: 10'];
    const callers = [[], offer].map((more) => call([...lines, ...more, '\r\n'].join('\r\n')));
    for (const { ended } of callers) {
      const { text, after } = await ended;
      expect(after).toBeGreaterThan(20_000);
      expect(text).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    }
  });
});

describe('connections', () => {
  it('beyond the limit are closed, and open ones continue', async () => {
    const request = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
    const open = Array.from({ length: 8 }, () => call(request));
    await Promise.all(open.map(({ socket }) => new Promise((resolve) => socket.once('data', resolve))));
    expect((await call(request).ended).text).toBe('');
    const again = open.map(({ socket }) => new Promise((resolve) => socket.once('data', resolve)));
    for (const { socket } of open) socket.write(request);
    for (const text of await Promise.all(again)) expect(text).toContain('200 OK');
    for (const { socket } of open) socket.destroy();
    await expect.poll(async () => (await app.ask('GET', '/', { as: null }).catch(() => null))?.status).toBe(200);
  });
});

it('event streams take an eighth of the connections, and others are refused with Retry-After', async () => {
  const { o, p } = { o: app.demo.organization_id, p: app.demo.project_id };
  const query = `subscription { notificationFeed(organizationId: "${o}", projectId: "${p}") { __typename } }`;
  const follow = async (as: 'owner' | 'viewer') => {
    const leaving = new AbortController();
    const headers = {
      authorization: `Bearer ${app.demo.users[as].token}`,
      'content-type': 'application/json',
      accept: 'text/event-stream',
      connection: 'close',
    };
    const options = { method: 'POST', signal: leaving.signal, headers, body: JSON.stringify({ query }) };
    const response = await fetch(`${app.baseUrl}/graphql`, options);
    return { response, retryAfter: response.headers.get('retry-after'), close: () => leaving.abort() };
  };
  const first = await follow('owner');
  expect(first.response.headers.get('content-type')).toBe('text/event-stream');
  const second = await follow('viewer');
  expect({ status: second.response.status, retryAfter: second.retryAfter }).toEqual({ status: 503, retryAfter: '1' });
  expect(await second.response.text()).toContain('"code":"service_unavailable"');
  expect(app.logLines.filter((line) => line.includes('there are too many event streams'))).toHaveLength(1);
  first.close();
  await expect
    .poll(async () => {
      const { response, close } = await follow('viewer');
      close();
      return response.status;
    })
    .toBe(200);
});
