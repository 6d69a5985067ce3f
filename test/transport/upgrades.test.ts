import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { SocketConnection } from '../../src/transport/sockets/connection.ts';
import { startApp, type TestApp } from '../support/app.ts';
import { expectSecurityHeaders } from '../support/doors.ts';
import { openSocket, takeTicket } from '../support/feed.ts';
import { offer, openWire, type WireResponse } from '../support/wire.ts';

let app: TestApp;
let bearer: string;
beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_ANONYMOUS: '10000' });
  bearer = `Authorization: Bearer ${app.demo.users.owner.token}`;
});
afterAll(() => app.close());

const lines = (...all: string[]) => `${all.join('\r\n')}\r\n\r\n`;
const get = (path: string, ...headers: string[]) => lines(`GET ${path} HTTP/1.1`, 'Host: x', bearer, ...headers);
const post = (body: string, ...headers: string[]) =>
  lines('POST /graphql HTTP/1.1', 'Host: x', bearer, 'Content-Type: application/json', ...headers) + body;

async function exchange(text: string, count = 1): Promise<WireResponse[]> {
  const wire = await openWire(app.baseUrl);
  wire.write(text);
  const responses = await wire.receive(count);
  wire.socket.destroy();
  return responses;
}

const query = JSON.stringify({ query: '{ viewer { email } }' });
const lasting = ({ status, headers: { date, ratelimit, 'x-request-id': id, ...headers }, body }: WireResponse) => ({
  status,
  headers,
  body,
});

it.each(['h2c', 'TLS/1.3', 'h2c, foo/2', 'websocket2'])('an offer of %s makes no difference to a request', async (protocol) => {
  const headers = offer.map((line) => line.replace(/: h2c$/, `: ${protocol}`));
  for (const path of [
    '/',
    '/v1/openapi.json',
    '/v1/nothing',
    `${app.projectPath}/compute/overview`,
    `${app.projectPath}/notifications/ws`,
  ]) {
    const [plain] = await exchange(get(path));
    const [offered] = await exchange(get(path, ...headers));
    expect(lasting(offered as WireResponse), path).toEqual(lasting(plain as WireResponse));
  }
});

it('an offer makes no difference to a request with a body, whole or in chunks, in one piece or in several', async () => {
  const [plain] = await exchange(post(query, `Content-Length: ${query.length}`));
  expect(plain).toMatchObject({ status: 200, body: JSON.stringify({ data: { viewer: { email: app.demo.users.owner.email } } }) });
  const whole = post(query, `Content-Length: ${query.length}`, ...offer);
  const chunked = post(
    `5\r\n${query.slice(0, 5)}\r\n${(query.length - 5).toString(16)}\r\n${query.slice(5)}\r\n0\r\n\r\n`,
    'Transfer-Encoding: chunked',
    ...offer,
  );
  for (const text of [whole, chunked]) {
    expect((await exchange(text))[0]).toMatchObject({ status: 200, body: plain?.body });
    const wire = await openWire(app.baseUrl);
    for (const part of [text.slice(0, -20), text.slice(-20, -5), text.slice(-5)]) {
      wire.write(part);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    expect((await wire.receive(1))[0]).toMatchObject({ status: 200, body: plain?.body });
    wire.socket.destroy();
  }
});

/** Sends requests at once; where the server closes the connection after a response, sends what is unanswered again, as RFC 9112 (§9.3.2) requires. */
async function exchangeAll(requests: readonly string[]): Promise<WireResponse[]> {
  const responses: WireResponse[] = [];
  while (responses.length < requests.length) {
    const wire = await openWire(app.baseUrl);
    const sent = requests.slice(responses.length);
    wire.write(sent.join(''));
    let isOpen = true;
    for (let count = 1; count <= sent.length && isOpen; count += 1) {
      const response = (await wire.receive(count))[count - 1] as WireResponse;
      responses.push(response);
      isOpen = response.headers.connection !== 'close';
    }
    if (!isOpen) await wire.closed();
    wire.socket.destroy();
  }
  return responses;
}

it('requests behind an offer are answered in their order', async () => {
  const body = `Content-Length: ${query.length}`;
  const all = [
    get('/'),
    get('/v1/nothing', ...offer),
    post(query, body, ...offer),
    get('/', ...offer),
    get('/v1/nothing'),
    post(query, body),
  ];
  const statuses = [200, 404, 200, 200, 404, 200];
  const responses = await exchangeAll([...all, ...all]);
  expect(responses.map(({ status }) => status)).toEqual([...statuses, ...statuses]);
});

it('bytes of Latin-1 are passed unchanged', async () => {
  const name = Buffer.from('ü', 'latin1').toString('latin1');
  const [response] = await exchange(get('/', ...offer, 'X-Request-Id: good-id', `X-Name: ${name}`));
  expect(response).toMatchObject({ status: 200, headers: { 'x-request-id': 'good-id' } });
});

it('a client that offers a WebSocket among others gets it', async () => {
  const handshake = [
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    'Sec-WebSocket-Protocol: graphql-transport-ws',
  ];
  const offers = ['Upgrade: websocket', 'Upgrade: h2c, websocket', 'Upgrade: WebSocket , h2c'];
  for (const upgrade of offers) {
    const [response] = await exchange(get('/graphql', 'Connection: Upgrade', upgrade, ...handshake));
    expect(response?.status, upgrade).toBe(101);
  }
});

it.each(['13', '8'])('the version %s of the protocol is supported', async (version) => {
  const [response] = await exchange(
    get('/graphql', ...socketOffer.filter((line) => !line.includes('13')), `Sec-WebSocket-Version: ${version}`),
  );
  expect(response?.status).toBe(101);
});

it('a failure after the socket is open closes it, and is no refusal of the upgrade', async () => {
  const fail = vi.spyOn(SocketConnection.prototype, 'setProtocol').mockImplementation(() => {
    throw new Error('a mistake');
  });
  const { closed } = openSocket(app, '/graphql', { protocol: 'graphql-transport-ws' });
  expect(await closed).toEqual({ code: 1013, reason: 'internal_error' });
  fail.mockRestore();
  expect((await app.ask('GET', '/metrics', { as: null })).text).not.toContain('portico_upgrade_refusals_total{code="internal_error"}');
});

it('curl --http2 is answered', async () => {
  const run = promisify(execFile);
  const { stdout: version } = await run('curl', ['--version']).catch(() => ({ stdout: '' }));
  if (!version.includes('HTTP2')) return;
  const curl = async (...args: string[]) => JSON.parse((await run('curl', ['--silent', '--http2', ...args])).stdout);
  expect(await curl(`${app.baseUrl}/`)).toMatchObject({ name: 'Portico' });
  const body = ['-H', 'content-type: application/json', '-d', '{"query":"{__typename}"}'];
  expect(await curl(...body, `${app.baseUrl}/graphql`)).toEqual({ data: { __typename: 'Query' } });
});

const socketOffer = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
];

const spellings: Record<string, (path: string) => string> = {
  'as it is': (path) => path,
  'a dot': (path) => path.replace('/projects/', '/./projects/'),
  'two dots': (path) => path.replace('/v1/', '/v1/x/../'),
  'two dots, escaped': (path) => path.replace('/v1/', '/v1/x/%2e%2e/'),
  'a backslash': (path) => path.replace('/projects/', '\\projects/'),
  'a tabulator': (path) => path.replace('/projects/', '/%09projects/'),
  'an escaped slash': (path) => path.replace('/projects/', '%2fprojects/'),
  'escaped digits': (path) => path.replace(/[0-9a-f](?=\/(?:notifications|compute))/, (digit) => `%${digit.charCodeAt(0).toString(16)}`),
  'another id, escaped': (path) => path.replace(/[0-9a-f](?=\/(?:notifications|compute))/, '%ff'),
  'an absolute URL': (path) => `http://x${path}`,
};

it.each(Object.entries(spellings))('a path with %s is that of a socket exactly where it is that of a resource', async (_label, spell) => {
  const [plain] = await exchange(get(spell(`${app.projectPath}/compute/overview`)));
  const [upgraded] = await exchange(get(spell(`${app.projectPath}/notifications/ws`), ...socketOffer));
  expect([plain?.status, upgraded?.status]).toEqual(plain?.status === 200 ? [200, 101] : [404, 404]);
});

it('an offer of a WebSocket on another path is answered and charged as a request', async () => {
  const overview = `${app.projectPath}/compute/overview`;
  const ask = async (path: string, ...headers: string[]) => {
    const [response] = await exchange(lines(`GET ${path} HTTP/1.1`, 'Host: x', ...headers, ...socketOffer));
    return response as WireResponse;
  };
  expect((await ask(overview)).status).toBe(401);
  expect((await ask('/v1')).status).toBe(401);
  expect((await ask('/nowhere')).status).toBe(404);
  expect((await ask(overview, 'Authorization: Bearer wrong')).status).toBe(401);
  const remaining = ({ headers }: WireResponse) => Number(/;r=(\d+);/.exec(headers.ratelimit ?? '')?.[1]);
  const first = await ask(overview, bearer, 'X-Request-Id: mine');
  expect(first).toMatchObject({ status: 404, headers: { 'x-request-id': 'mine' } });
  expectSecurityHeaders(first.headers);
  expect(first.headers['ratelimit-policy']).toMatch(/^"user";/);
  expect(remaining(first) - remaining(await ask(overview, bearer))).toBe(1);
  // An API key is not a session.
  const cookie = `Cookie: session=${app.demo.users.owner.api_key}`;
  expect((await ask(`${app.projectPath}/notifications/ws`, cookie, 'Origin: http://x')).status).toBe(401);
  // Nor is what cannot be a token: it is not as if there were no cookie.
  for (const text of ['a b', 'a%20b', '"a"'])
    expect((await ask('/graphql', `Cookie: other=1; session=${text}`, 'Origin: http://x')).status, text).toBe(401);
  expect((await ask('/graphql', 'Cookie: other=1; session=; x=y', 'Origin: http://x')).status).toBe(101);
});

it.each([
  ['two Host headers', '1.1', ['Host: x', 'Host: y']],
  ['no Host header', '1.1', []],
  ['another version', '2.0', ['Host: x']],
])('an offer of a WebSocket with %s is refused as any request with it', async (_label, version, hosts) => {
  const handshake = [...socketOffer, 'Sec-WebSocket-Protocol: graphql-transport-ws'];
  for (const headers of [[], handshake, offer]) {
    const [response] = await exchange(lines(`GET /graphql?query={__typename} HTTP/${version}`, ...hosts, bearer, ...headers));
    expect(response?.status, headers.join()).toBe(400);
  }
});

it('an offer of a WebSocket with a number sign in its target is refused as any request with it', async () => {
  for (const path of ['/graphql#', '/v1\\x#', `${app.projectPath}/notifications/ws#?ticket=x`])
    expect((await exchange(get(path, ...socketOffer)))[0]?.status, path).toBe(400);
});

it('an offer of a WebSocket by another method than GET is answered as the request would be', async () => {
  const send = async (method: string, path: string) => {
    const [response] = await exchange(lines(`${method} ${app.projectPath}${path} HTTP/1.1`, 'Host: x', bearer, ...socketOffer));
    return [response?.status, response?.body];
  };
  for (const path of ['/notifications/ws', '/compute/overview']) expect(await send('OPTIONS', path)).toEqual([204, '']);
  expect((await send('POST', '/notifications/ws'))[0]).toBe(404);
  const [status, body = ''] = await send('POST', '/notifications/read');
  expect([status, JSON.parse(String(body))]).toEqual([200, { marked: 50, unread_count: 0 }]);
});

it('an offer of a WebSocket by HTTP/1.0 is ignored', async () => {
  const send = async (path: string) => {
    const [response] = await exchange(lines(`GET ${path} HTTP/1.0`, 'Host: x', bearer, ...socketOffer));
    return [response?.status, response?.body];
  };
  expect(await send('/graphql?query={__typename}')).toEqual([200, '{"data":{"__typename":"Query"}}']);
  expect((await send(`${app.projectPath}/notifications/ws`))[0]).toBe(404);
});

it.each([
  ['whole', 'Content-Length: 2', '{}'],
  ['in chunks', 'Transfer-Encoding: chunked', '2\r\n{}\r\n0\r\n\r\n'],
])('an offer of a WebSocket with a body, %s, is answered as the request would be', async (_label, header, body) => {
  const wire = await openWire(app.baseUrl);
  wire.write(get('/graphql?query={__typename}', ...socketOffer, header) + body.slice(0, -1));
  await new Promise((resolve) => setTimeout(resolve, 50));
  wire.write(body.slice(-1));
  expect((await wire.receive(1))[0]).toMatchObject({ status: 200, body: '{"data":{"__typename":"Query"}}' });
  wire.socket.destroy();
});

it('a page of another origin does not spend the budget of its reader', async () => {
  const cookie = `Cookie: session=${app.demo.users.owner.token}`;
  const ask = async (origin: string, path = '/v1/nowhere') => {
    const [response] = await exchange(lines(`GET ${path} HTTP/1.1`, 'Host: x', cookie, `Origin: ${origin}`, ...socketOffer));
    return [response?.status, /^"(\w+)"/.exec(response?.headers['ratelimit-policy'] ?? '')?.[1]];
  };
  expect(await ask('http://evil.example')).toEqual([401, 'anonymous']);
  expect(await ask('http://x')).toEqual([404, 'user']);
  for (const path of [`${app.projectPath}/notifications/ws`, '/graphql', `${app.projectPath}/notifications/ws?ticket=unknown`])
    expect(await ask('http://evil.example', path)).toEqual([403, 'anonymous']);
});

it('each attempt of another origin counts for the client’s address', async () => {
  const limited = await startApp({ RATE_LIMIT_ANONYMOUS: '2', REDIS_URL: '' });
  const ask = async () => {
    const wire = await openWire(limited.baseUrl);
    wire.write(lines(`GET ${limited.projectPath}/notifications/ws HTTP/1.1`, 'Host: x', 'Origin: http://evil.example', ...socketOffer));
    const [response] = await wire.receive(1);
    wire.socket.destroy();
    return [response?.status, response?.headers.ratelimit?.split(';')[1], Number(response?.headers['retry-after'] ?? 0) > 0];
  };
  expect([await ask(), await ask(), await ask()]).toEqual([
    [403, 'r=1', false],
    [403, 'r=0', false],
    [429, 'r=0', true],
  ]);
  await limited.close();
});

it.each<[label: string, name: string, value?: string]>([
  ['no key', 'Sec-WebSocket-Key'],
  ['no version', 'Sec-WebSocket-Version'],
  ['a malformed key', 'Sec-WebSocket-Key', 'x'],
  ['another version', 'Sec-WebSocket-Version', '12'],
  ['a malformed subprotocol', 'Sec-WebSocket-Protocol', 'a,,b'],
])('a handshake with %s is refused, logged and counted as any other upgrade', async (_label, name, value) => {
  const count = async () => {
    const { values = [] } = (await app.app.metrics.registry.getSingleMetric('portico_upgrade_refusals_total')?.get()) ?? {};
    return values.find(({ labels }) => labels.code === 'invalid_request')?.value ?? 0;
  };
  const headers = socketOffer.filter((line) => !line.startsWith(name)).concat(value === undefined ? [] : `${name}: ${value}`);
  const { ticket } = await takeTicket(app);
  const feed = `${app.projectPath}/notifications/ws`;
  const attempts: Array<[path: string, policy: string, ...headers: string[]]> = [
    [feed, 'user', bearer],
    ['/graphql', 'user', bearer],
    ['/graphql', 'anonymous'],
    [`/v1/organizations/${randomUUID()}/projects/${randomUUID()}/notifications/ws`, 'user', bearer],
    [`${feed}?ticket=${ticket}`, 'anonymous'],
    [`${feed}?ticket=unknown`, 'anonymous'],
  ];
  for (const [index, [path, policy, ...credentials]] of attempts.entries()) {
    const id = `malformed-${name}-${value?.length}-${index}`;
    const before = await count();
    const [response] = await exchange(lines(`GET ${path} HTTP/1.1`, 'Host: x', `X-Request-Id: ${id}`, ...credentials, ...headers));
    expect(response, path).toMatchObject({ status: 400, headers: { 'x-request-id': id, connection: 'close' } });
    expect(JSON.parse(response?.body ?? '').code).toBe('invalid_request');
    // The client learns the versions where its own is what is wrong (RFC 6455, §4.2.2).
    expect(response?.headers['sec-websocket-version'], path).toBe(name === 'Sec-WebSocket-Version' ? '13, 8' : undefined);
    expect(response?.headers['ratelimit-policy'], path).toMatch(new RegExp(`^"${policy}";`));
    expect(response?.headers.ratelimit, path).toMatch(/;r=\d+;/);
    expectSecurityHeaders(response?.headers ?? {});
    expect((await count()) - before, path).toBe(1);
    const logged = app.logLines.map((line) => JSON.parse(line)).filter(({ request_id }) => request_id === id);
    expect(logged, path).toContainEqual(expect.objectContaining({ msg: 'upgrade refused', code: 'invalid_request' }));
  }
  // The ticket has not been used up.
  const opened = openSocket(app, `${feed}?ticket=${ticket}`);
  await opened.until(({ type }) => type === 'ready');
  opened.socket.terminate();
});

it('a subprotocol is not repeated at any length', async () => {
  const ask = async (protocol: string) => {
    const path = `${app.projectPath}/notifications/ws`;
    const [response] = await exchange(
      lines(`GET ${path} HTTP/1.1`, 'Host: x', bearer, ...socketOffer, `Sec-WebSocket-Protocol: ${protocol}`),
    );
    return [response?.status, response?.headers['sec-websocket-protocol']];
  };
  expect(await ask('tcp')).toEqual([101, 'tcp']);
  expect(await ask('x'.repeat(9_000))).toEqual([101, undefined]);
  expect(await ask(`${'x'.repeat(9_000)}, graphql-transport-ws`)).toEqual([101, 'graphql-transport-ws']);
});

it('bytes that are not HTTP are answered with the headers of every response', async () => {
  const [response] = await exchange('nonsense\r\n\r\n');
  expect(response?.status).toBe(400);
  expectSecurityHeaders(response?.headers ?? {});
  expect(response?.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
  expect(Math.abs(Date.parse(response?.headers.date ?? '') - Date.now())).toBeLessThan(60_000);
});

it('an accepted upgrade has the headers of every response, and the remaining budget', async () => {
  for (const credential of [bearer, 'Accept: */*']) {
    const [response] = await exchange(lines('GET /graphql HTTP/1.1', 'Host: x', credential, 'X-Request-Id: opened', ...socketOffer));
    expect(response).toMatchObject({ status: 101, headers: { 'x-request-id': 'opened' } });
    expectSecurityHeaders(response?.headers ?? {});
    expect(response?.headers['ratelimit-policy']).toMatch(credential === bearer ? /^"user";q=\d+;w=3600$/ : /^"anonymous";/);
    expect(response?.headers.ratelimit).toMatch(/;r=\d+;t=\d+$/);
  }
});

it('a HEAD that offers a WebSocket is answered without a body', async () => {
  const wire = await openWire(app.baseUrl);
  let received = '';
  wire.socket.on('data', (bytes) => {
    received += bytes;
  });
  wire.write(lines('HEAD /v1/nowhere HTTP/1.1', 'Host: x', bearer, ...socketOffer));
  // The connection is open: the next request ends it.
  wire.write(lines('HEAD /v1/nowhere HTTP/1.1', 'Host: x', bearer, 'Connection: close'));
  await wire.closed();
  expect(received).toMatch(/^HTTP\/1.1 404 [\s\S]*\r\n\r\nHTTP\/1.1 404 [\s\S]*\r\n\r\n$/);
  expect(received).not.toContain('{');
  expect(received).toMatch(/\r\nContent-Length: \d+\r\n/);
});
