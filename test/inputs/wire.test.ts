import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { expectUnharmed, graphqlInvalid, invalid, notFound, notProvided } from '../support/inputs.ts';
import { openWire, type WireResponse } from '../support/wire.ts';

let app: TestApp;
let overview: string;
let dashboards: string;
let credential: string;
beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_ANONYMOUS: '10000' });
  overview = `${app.projectPath}/compute/overview`;
  dashboards = `${app.projectPath}/monitoring/dashboards`;
  credential = `Authorization: Bearer ${app.demo.users.owner.token}`;
});
afterAll(() => app.close());

const lines = (...all: string[]) => `${all.join('\r\n')}\r\n\r\n`;
const get = (path: string, ...headers: string[]) => lines(`GET ${path} HTTP/1.1`, 'Host: x', credential, ...headers);
const noHttp = invalid('The request is not valid HTTP.');
const tooLong = invalid('The request line and headers are too large.');

async function exchange(data: string | Buffer, count = 1): Promise<WireResponse[]> {
  const wire = await openWire(app.baseUrl);
  wire.write(data);
  const responses = await wire.receive(count);
  wire.socket.destroy();
  return responses;
}

function expectResponses(responses: readonly WireResponse[], ...expected: Array<readonly [number, unknown]>): void {
  expect(responses.map(({ status, body }) => ({ status, body }))).toEqual(
    expected.map(([status, body]) => ({ status, body: JSON.stringify(body) })),
  );
  for (const { headers } of responses)
    expect(headers).toMatchObject({ 'content-type': 'application/json', 'x-content-type-options': 'nosniff' });
}

describe('bytes that are not an HTTP request', () => {
  it.each<[string, () => string | Buffer, unknown]>([
    ['a method in lower case', () => get(overview).replace('GET', 'get'), noHttp],
    ['an unknown method', () => get(overview).replace('GET', 'FETCH'), noHttp],
    ['no method', () => lines(`${overview} HTTP/1.1`, 'Host: x'), noHttp],
    ['another version', () => get(overview).replace('HTTP/1.1', 'HTTP/3.0'), noHttp],
    ['another protocol', () => get(overview).replace('HTTP/1.1', 'ICY/1.1'), noHttp],
    ['a greeting of HTTP/2', () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', noHttp],
    ['a greeting of TLS', () => Buffer.from('16030100c8010000c40303', 'hex'), noHttp],
    ['NUL bytes', () => Buffer.alloc(16), noHttp],
    ['a blank in the path', () => get('/a b'), noHttp],
    ['a raw byte in the path', () => Buffer.from(get('/\u0001'), 'latin1'), noHttp],
    ['a header without a colon', () => get(overview, 'Nothing'), noHttp],
    ['a header without a name', () => get(overview, ': x'), noHttp],
    ['a blank in a header’s name', () => get(overview, 'A b: x'), noHttp],
    ['a blank behind a header’s name', () => get(overview, 'Content-Length : 5'), noHttp],
    ['NUL in a header', () => get(overview, 'A: a\0b'), noHttp],
    ['a lone carriage return in a header', () => get(overview, 'A: a\rB: b'), noHttp],
    ['a length that is not a number', () => get(overview, 'Content-Length: five'), noHttp],
    ['a negative length', () => get(overview, 'Content-Length: -1'), noHttp],
    ['two lengths', () => get(overview, 'Content-Length: 5', 'Content-Length: 6'), noHttp],
    ['a length and chunks', () => get(overview, 'Content-Length: 5', 'Transfer-Encoding: chunked'), noHttp],
    ['chunks that are not the last coding', () => get(overview, 'Transfer-Encoding: chunked, gzip'), noHttp],
    ['an unknown coding', () => get(overview, 'Transfer-Encoding: x'), noHttp],
    ['headers of 20,000 characters', () => get(overview, `A: ${'a'.repeat(20_000)}`), tooLong],
    ['a path of 20,000 characters', () => get(`/${'a'.repeat(20_000)}`), tooLong],
    ['a path without an end', () => `GET /${'a'.repeat(100_000)}`, tooLong],
  ])('%s', async (_label, write, body) => {
    const wire = await openWire(app.baseUrl);
    wire.write(write());
    expectResponses(await wire.receive(1), [400, body]);
    // What follows cannot be told from what came before.
    await wire.closed();
  });

  it('a malformed chunk in the middle of a body', async () => {
    const head = lines(
      `POST ${dashboards} HTTP/1.1`,
      'Host: x',
      credential,
      'Content-Type: application/json',
      'Transfer-Encoding: chunked',
    );
    const [response] = await exchange(`${head}5\r\n{"nam\r\nzz\r\n`);
    expect(response?.status).toBe(400);
    expect(JSON.parse(response?.body ?? '')).toMatchObject({ code: 'invalid_request' });
  });

  it('end the connection, even if the client keeps its side open', async () => {
    const wire = await openWire(app.baseUrl, { allowHalfOpen: true });
    wire.write('rubbish\r\n\r\n');
    expectResponses(await wire.receive(1), [400, noHttp]);
    const writing = setInterval(() => wire.write('x'), 100);
    await wire.closed();
    clearInterval(writing);
  });

  it('CONNECT is refused', async () => {
    expectResponses(await exchange(lines('CONNECT x:443 HTTP/1.1', 'Host: x')), [404, notFound]);
    expectResponses(await exchange(lines('CONNECT x:443 HTTP/1.1', 'Host: x', 'Content-Length: 5')), [404, notFound]);
  });
});

describe('an unusual HTTP request', () => {
  const handshake = [
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  ];

  it('without Host', async () => {
    const missing = invalid('The header Host is missing.');
    expectResponses(await exchange(lines(`GET ${overview} HTTP/1.1`, credential)), [400, missing]);
    expectResponses(await exchange(lines('GET /graphql?query={__typename} HTTP/1.1', credential)), [400, graphqlInvalid(missing.detail)]);
  });

  it.each(['GET /\r\n\r\n', 'GET / HTTP/0.9\r\n\r\n', 'GET / HTTP/2.0\r\nHost: x\r\n\r\n'])(
    'of a version that is not spoken: %j',
    async (text) => {
      const wire = await openWire(app.baseUrl);
      wire.write(text);
      expectResponses(await wire.receive(1), [400, invalid('The request is not of HTTP/1.1 or HTTP/1.0.')]);
      wire.socket.destroy();
    },
  );

  it('with more headers than Node passes on: the last of them would be dropped', async () => {
    const padded = (count: number, ...last: string[]) => [...Array<string>(count - last.length).fill('a:'), ...last];
    const tooMany = invalid('The request has too many headers.');
    // Host and the credential are two of them.
    const [most] = await exchange(get(overview, ...padded(198, 'X-Request-Id: the-last')));
    expect({ status: most?.status, id: most?.headers['x-request-id'] }).toEqual({ status: 200, id: 'the-last' });
    for (const count of [199, 230, 1_030, 5_000]) expectResponses(await exchange(get(overview, ...padded(count))), [400, tooMany]);
    expectResponses(await exchange(get(overview, ...padded(199, 'Host: y'))), [400, tooMany]);
    expectResponses(await exchange(get('/graphql', ...handshake, ...padded(195))), [400, tooMany]);
    const dashboard = `${dashboards}/${app.demo.dashboards.private}`;
    const change = lines(`DELETE ${dashboard} HTTP/1.1`, 'Host: x', credential, ...padded(199, 'If-Match: "99"'));
    expectResponses(await exchange(change), [400, tooMany]);
  });

  it('with two hosts', async () => {
    const twice = invalid('The header Host is given more than once.');
    expectResponses(await exchange(get(overview, 'Host: y')), [400, twice]);
    expectResponses(await exchange(get('/', 'Host: x')), [400, twice]);
    expectResponses(await exchange(get('/graphql', 'Host: x', ...handshake)), [400, twice]);
  });

  it('of HTTP/1.0', async () => {
    const [response] = await exchange(lines(`GET ${overview} HTTP/1.0`, credential));
    expect({ status: response?.status, connection: response?.headers.connection }).toEqual({ status: 200, connection: 'close' });
  });

  it('with a whole URL, as to a proxy', async () => {
    const [page] = await exchange(get(`HTTP://X:80${app.projectPath}/notifications?page_size=50&page=2`));
    const links = `http://x${app.projectPath}/notifications?page_size=50&page=`;
    expect(JSON.parse(page?.body ?? '')).toMatchObject({ page: 2, next: `${links}3`, previous: `${links}1` });
    const [graphql] = await exchange(get('https://x:443/graphql?query={__typename}'));
    expect(graphql).toMatchObject({ status: 200, body: '{"data":{"__typename":"Query"}}' });
    expectResponses(await exchange(get('http://x/graphql?query=%ff')), [400, graphqlInvalid('The query string is not valid.')]);
    expectResponses(await exchange(get('http://x/v1/nothing')), [404, notFound]);
    expectResponses(await exchange(get('http://x/v1/nothing').replace(credential, 'A: b')), [401, notProvided]);
    expectResponses(await exchange(get('http://x/v1/nothing').replace('1.1', '1.0').replace('Host: x\r\n', '')), [404, notFound]);
  });

  it.each([
    'http://other.example',
    'http://x:81',
    'http://x.',
    'http://user@x',
    'http://x@other.example',
    'http://',
    'http://[',
    'file://x:81',
    'a:///',
    'a://%ff',
  ])('with a whole URL of another host than the header: %s', async (origin) => {
    const other = invalid('The header Host is not the host of the target.');
    expectResponses(await exchange(get(`${origin}${overview}`)), [400, other]);
    expectResponses(await exchange(get(`${origin}/graphql?query={__typename}`)), [400, other]);
    expectResponses(await exchange(get(`${origin}/graphql`, ...handshake)), [400, other]);
    expectResponses(await exchange(get(`${origin}/graphql`, 'Connection: upgrade', 'Upgrade: h2c')), [400, other]);
    expectResponses(await exchange(get(`${origin}/desk/settings`)), [400, other]);
    expectResponses(await exchange(get(`${origin}/`).replace('GET', 'OPTIONS')), [400, other]);
  });

  it('with an asterisk', async () => {
    const [options] = await exchange(lines('OPTIONS * HTTP/1.1', 'Host: x'));
    expect({ status: options?.status, body: options?.body }).toEqual({ status: 204, body: '' });
    expectResponses(await exchange(get('*')), [404, notFound]);
  });

  it('with an unknown expectation', async () => {
    const [response] = await exchange(get(overview, 'Expect: a-miracle'));
    expect(response?.status).toBe(200);
  });

  it('with a body that waits for 100 Continue', async () => {
    const wire = await openWire(app.baseUrl);
    const headers = ['Content-Type: application/json', 'Content-Length: 2', 'Expect: 100-continue'];
    wire.write(lines(`POST ${dashboards} HTTP/1.1`, 'Host: x', credential, ...headers));
    expect((await wire.receive(1))[0]?.status).toBe(100);
    wire.write('{}');
    expect((await wire.receive(2))[1]).toMatchObject({ status: 400, body: '{"name":["This field is required."]}' });
    wire.socket.destroy();
  });

  it('with a body for GET, which is ignored', async () => {
    const [first, second] = await exchange(`${get(overview, 'Content-Length: 5')}{"a":${get(overview)}`, 2);
    expect([first?.status, second?.status]).toEqual([200, 200]);
  });

  it.each(['/v1/nothing', '/', '//', '///', 'http://x', '//x:99999/graphql', '*', '/%ff', '/v1/%ff'])(
    'that asks for a socket where there is none: %s',
    async (target) => {
      const [response] = await exchange(get(target, ...handshake));
      expect({ status: response?.status, body: response?.body }).toEqual({ status: 404, body: JSON.stringify(notFound) });
    },
  );

  it.each(['Sec-WebSocket-Key: x', 'Sec-WebSocket-Version: 12'])('with an invalid handshake of a WebSocket: %s', async (header) => {
    const [name = ''] = header.split(':');
    const others = handshake.filter((line) => !line.startsWith(name));
    const wire = await openWire(app.baseUrl);
    wire.write(get(`${app.projectPath}/notifications/ws`, ...others, header));
    const [response] = await wire.receive(1);
    expect(response).toMatchObject({ status: 400, headers: { 'content-type': 'application/json' } });
    const { detail, code, error } = JSON.parse(response?.body ?? '');
    expect({ code, error }).toEqual({ code: 'invalid_request', error: detail });
    await wire.closed();
  });
});

describe('several requests on one connection', () => {
  it('all at once are answered in their order', async () => {
    const body = '{"name":""}';
    const post =
      lines(`POST ${dashboards} HTTP/1.1`, 'Host: x', credential, 'Content-Type: application/json', `Content-Length: ${body.length}`) +
      body;
    const head = get(overview).replace('GET', 'HEAD').replace(overview, '/v1/x').replace('HEAD', 'DELETE');
    const requests = [get(overview), post, get('/v1/nothing'), head, get('/%ff'), get(overview)];
    const responses = await exchange(Array(5).fill(requests.join('')).join(''), 30);
    expect(responses.map(({ status }) => status)).toEqual(Array(5).fill([200, 400, 404, 404, 404, 200]).flat());
    expect(responses[0]?.body).toBe(responses[29]?.body);
  });

  it('a byte at a time', async () => {
    const wire = await openWire(app.baseUrl);
    wire.socket.setNoDelay(true);
    for (const byte of Buffer.from(get('/v1/nothing'))) {
      wire.write(Buffer.of(byte));
      await new Promise((resolve) => setImmediate(resolve));
    }
    expectResponses(await wire.receive(1), [404, notFound]);
    wire.socket.destroy();
  });

  it.each([
    [
      'a body that cannot be read',
      () =>
        `${lines(`POST ${dashboards} HTTP/1.1`, 'Host: x', credential, 'Content-Type: application/json', 'Transfer-Encoding: chunked')}zz\r\n`,
      400,
    ],
    ['CONNECT', () => lines('CONNECT x:443 HTTP/1.1', 'Host: x'), 404],
  ] as const)('one that is being answered, then %s: in their order', async (_what, next, status) => {
    const body = '{"name":"first of two"}';
    const head = lines(
      `POST ${dashboards} HTTP/1.1`,
      'Host: x',
      credential,
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
    );
    const wire = await openWire(app.baseUrl);
    wire.write(head + body + next());
    expect((await wire.receive(2)).map((response) => response.status)).toEqual([201, status]);
    await wire.closed();
    expect(await app.app.database.prisma.dashboard.deleteMany({ where: { name: 'first of two' } })).toEqual({ count: 1 });
  });

  it('one good, then rubbish', async () => {
    const wire = await openWire(app.baseUrl);
    wire.write(get('/v1/nothing'));
    expectResponses(await wire.receive(1), [404, notFound]);
    wire.write('rubbish\r\n\r\n');
    expectResponses(await wire.receive(2), [404, notFound], [400, noHttp]);
    await wire.closed();
  });
});

describe('clients that go', () => {
  const head = (length: number) =>
    lines(`POST ${dashboards} HTTP/1.1`, 'Host: x', credential, 'Content-Type: application/json', `Content-Length: ${length}`);
  const halves: Record<string, () => string> = {
    'before a word': () => '',
    'in the middle of a line': () => `GET ${overview.slice(0, 20)}`,
    'in the middle of the headers': () => get(overview).slice(0, -10),
    'in the middle of a body': () => `${head(1_000)}{"name":"gone"`,
    'in the middle of a large body': () => head(1_000_000) + ' '.repeat(500_000),
    'in the middle of a body that is too large': () => head(50_000_000) + ' '.repeat(2_000_000),
    'before the response': () => get(overview),
    'before the response to a mutation': () => `${head(15)}{"name":"left!"}`,
    'before 20 responses': () => get(overview).repeat(20),
    'before 500 refusals': () => get(overview).replace(credential, 'A: b').repeat(500),
  };

  it.each(Object.entries(halves))('%s', async (_label, write) => {
    for (const leave of ['end', 'destroy', 'resetAndDestroy'] as const) {
      const wire = await openWire(app.baseUrl);
      await new Promise<void>((resolve) => wire.socket.write(write(), () => resolve()));
      wire.socket[leave]();
      await wire.closed();
    }
    await expectUnharmed(app);
    expect(await app.app.database.prisma.dashboard.count({ where: { name: 'gone' } })).toBe(0);
  });

  it('leave no connection behind', async () => {
    await expect.poll(() => app.logLines.filter((line) => JSON.parse(line).status === null).length).toBeGreaterThan(0);
    await expectUnharmed(app);
  });
});
