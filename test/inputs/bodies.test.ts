import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { brotliCompressSync, constants, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { collectGarbage } from '../../src/platform/garbage.ts';
import { readJsonObject } from '../../src/transport/http/body.ts';
import { startApp, type TestApp, type TestResponse } from '../support/app.ts';
import { expectDashboard, expectGraphql, expectRest, expectUnharmed, graphqlInvalid, invalid } from '../support/inputs.ts';

const MIB = 1024 * 1024;
const tooLarge = 'The body must not be larger than 1048576 bytes.';
const unreadable = 'The body could not be read.';
const noJson = 'The body is not valid JSON.';
const noObject = 'The body must be a JSON object.';
/** GraphQL says what a list would be there. */
const batch = 'Batches are not supported: send each operation, a JSON object, in a request of its own.';
const wrongType = 'The media type must be application/json.';
const wrongCoding = 'The content encoding is not supported.';

let app: TestApp;
let count: number;
beforeAll(async () => {
  app = await startApp();
  count = await app.app.database.prisma.dashboard.count();
});
afterAll(() => app.close());

const json = { 'content-type': 'application/json' };
const nest = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);

/** Both doors read a body in one way, and refuse it in their own forms. */
async function expectRefused(
  body: string | Buffer,
  headers: Record<string, string>,
  detail: string,
  graphqlDetail = detail,
): Promise<void> {
  const length = { ...json, 'content-length': Buffer.byteLength(body), ...headers };
  expectRest(await app.ask('POST', `${app.projectPath}/monitoring/dashboards`, { body, headers: length }), 400, invalid(detail));
  const put = `${app.projectPath}/monitoring/dashboards/${app.demo.dashboards.public}`;
  expectRest(await app.ask('PUT', put, { body, headers: length }), 400, invalid(detail));
  expectRest(await app.ask('DELETE', put, { body, headers: length }), 400, invalid(detail));
  expectGraphql(await app.ask('POST', '/graphql', { body, headers: length }), 400, graphqlInvalid(graphqlDetail));
}

describe('a body that is not a JSON object', () => {
  it.each<[string, string, string, string?]>([
    ['a number', '5', noObject],
    ['null', 'null', noObject],
    ['a list', '[]', noObject, batch],
    ['a list of bodies', '[{"name":"a"},{"query":"{ __typename }"}]', noObject, batch],
    ['a text', '"x"', noObject],
    ['true', 'true', noObject],
    ['20,000 lists in one another', nest(20_000), noObject, batch],
    ['a brace', '{', noJson],
    ['20,000 brackets', '['.repeat(20_000), noJson],
    ['9,000 objects begun', '{"a":'.repeat(9_000), noJson],
    ['a blank', ' ', noJson],
    ['something behind it', '{"name":"a"}x', noJson],
    ['two of them', '{"name":"a"}{"name":"b"}', noJson],
    ['a comma too many', '{"name":"a",}', noJson],
    ['other quotes', "{'name':'a'}", noJson],
    ['a comment', '{"name":"a"/* */}', noJson],
    ['NaN', '{"name":NaN}', noJson],
    ['a raw line break in a text', '{"name":"a\nb"}', noJson],
    ['a raw NUL', '{"name":"\0"}', noJson],
    ['a form', 'name=a', noJson],
    ['two byte order marks', '\ufeff\ufeff{"name":"a"}', noJson],
  ])('%s', (_label, body, detail, graphqlDetail = detail) => expectRefused(body, {}, detail, graphqlDetail));

  it.each([
    ['a byte that is never UTF-8', [0xff]],
    ['half a character', [0xc3]],
    ['a surrogate', [0xed, 0xa0, 0x80]],
    ['NUL in two bytes', [0xc0, 0x80]],
    ['a character beyond the last', [0xf4, 0x90, 0x80, 0x80]],
  ])('not UTF-8: %s', (_label, bytes) =>
    expectRefused(Buffer.concat([Buffer.from('{"name":"'), Buffer.from(bytes), Buffer.from('"}')]), {}, noJson),
  );

  it.each(['utf16le', 'latin1'] as const)('in %s', (encoding) => expectRefused(Buffer.from('{"name":"é"}', encoding), {}, noJson));
});

describe('a media type that is not application/json in UTF-8', () => {
  it.each([
    'text/plain',
    'text/json',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/xml',
    'application/ld+json',
    'application/graphql',
    'application/graphql-response+json',
    'application/json, text/plain',
    'application/jsonx',
    'json',
    '*/*',
    ';',
  ])('%s', (type) => expectRefused('{"name":"a","query":"mutation{x}"}', { 'content-type': type }, wrongType));

  it.each(['application/json; charset=utf-16', 'application/json; charset=latin1', 'application/json;charset="iso-8859-1"'])('%s', (type) =>
    expectRefused('{"name":"a"}', { 'content-type': type }, 'The charset of the media type must be UTF-8 or US-ASCII, or left out.'),
  );

  it.each(['application/json; charset=us-ascii', 'application/json; charset="utf8"'])('not %s', async (type) => {
    const headers = { 'content-type': type };
    const response = await app.ask('POST', `${app.projectPath}/monitoring/dashboards`, { headers, body: '{"name":""}' });
    expect(response.json).toHaveProperty('name');
  });

  it('none at all', async () => {
    const headers = ['Host', 'x', 'Authorization', `Bearer ${app.demo.users.owner.token}`, 'Content-Length', '12'];
    const body = '{"name":"a"}';
    expectRest(await app.ask('POST', `${app.projectPath}/monitoring/dashboards`, { headers, body }), 400, invalid(wrongType));
    expectGraphql(await app.ask('POST', '/graphql', { headers, body }), 400, graphqlInvalid(wrongType));
  });
});

describe('a body that is too large', () => {
  const large = '{"name":"a"}'.padEnd(MIB + 1, ' ');

  it('by a byte, announced', () => expectRefused(large, {}, tooLarge));
  it('by a byte, in chunks', async () => {
    const headers = { ...json, 'transfer-encoding': 'chunked' };
    const path = `${app.projectPath}/monitoring/dashboards`;
    expectRest(await app.ask('POST', path, { body: large, headers }), 400, invalid(tooLarge));
    expectGraphql(await app.ask('POST', '/graphql', { body: large, headers }), 400, graphqlInvalid(tooLarge));
  });
  it.each([
    ['announced', {}],
    ['in chunks', { 'transfer-encoding': 'chunked' }],
  ])('by far, %s, during a slow one of another user at the same address', async (_label, headers) => {
    const { hostname, port } = new URL(app.baseUrl);
    const slow = connect(Number(port), hostname);
    const body = `{"target":"notifications"}${' '.repeat(100_000)}`;
    const head = `POST ${app.projectPath}/websocket-tickets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${app.demo.users.viewer.token}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
    slow.write(head + body.slice(0, 50_000));
    const far = Buffer.alloc(40 * MIB, ' ');
    const response = await app.ask('POST', `${app.projectPath}/monitoring/dashboards`, { body: far, headers: { ...json, ...headers } });
    expectRest(response, 400, invalid(tooLarge));
    slow.write(body.slice(50_000));
    const [first] = await once(slow, 'data');
    expect(String(first)).toMatch(/^HTTP\/1\.1 201 /);
    slow.destroy();
  });
  it('is refused before it is sent, where the client waits for 100 Continue', async () => {
    const { hostname, port } = new URL(app.baseUrl);
    const client = connect(Number(port), hostname);
    const head = `POST ${app.projectPath}/websocket-tickets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${app.demo.users.viewer.token}\r\nContent-Type: application/json\r\nContent-Length: 2000000\r\nExpect: 100-continue\r\n\r\n`;
    client.write(head);
    let text = '';
    client.on('data', (bytes) => {
      text += bytes;
    });
    await expect.poll(() => text).toContain(tooLarge);
    client.destroy();
  });
  it('once it is unpacked', () => expectRefused(gzipSync(large), { 'content-encoding': 'gzip' }, tooLarge));
  it('a thousand times, once it is unpacked', async () => {
    const bomb = Buffer.concat(Array(200).fill(gzipSync(Buffer.alloc(MIB))));
    expect(bomb.length).toBeLessThan(MIB);
    const before = process.memoryUsage().rss;
    await expectRefused(bomb, { 'content-encoding': 'gzip' }, tooLarge);
    await expectRefused(
      brotliCompressSync(Buffer.alloc(20 * MIB), { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }),
      { 'content-encoding': 'br' },
      tooLarge,
    );
    expect(process.memoryUsage().rss - before).toBeLessThan(150 * MIB);
  });
});

it.each([
  ['whole', 'Content-Length: 30', '{"notification_ids":["aaaaaa"]}'.slice(0, 30)],
  ['in part', 'Content-Length: 40', '{"notifica'],
  ['in chunks', 'Transfer-Encoding: chunked', '5\r\n{"not\r\n'],
])('a body that came %s is not taken for an empty one where its client has gone', async (_label, header, body) => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  client.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${header}\r\n\r\n${body}`);
  const [request, response] = await once(server, 'request');
  request.on('error', () => {});
  const closed = new Promise((resolve) => request.socket.on('error', () => {}).once('close', resolve));
  client.destroy();
  await closed;
  await expect(readJsonObject(request, response, { turnKey: '', bodyBytes: 0 })).rejects.toMatchObject({
    code: 'invalid_request',
  });
  server.close();
});

it('a body in too many pieces is refused, however few bytes they have', async () => {
  const { hostname, port } = new URL(app.baseUrl);
  const send = async (pieces: number) => {
    const client = connect(Number(port), hostname);
    client.write('POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n');
    for (let sent = 0; sent < pieces; sent += 1_000) client.write('1\r\n \r\n'.repeat(1_000));
    const response = once(client, 'data');
    client.write('d\r\n{"query":"{}"\r\n1\r\n}\r\n0\r\n\r\n');
    const text = String((await response)[0]);
    client.destroy();
    return text;
  };
  expect(await send(9_000)).toMatch(/^HTTP\/1.1 200 /);
  expect(await send(20_000)).toMatch(/^HTTP\/1.1 400 [\s\S]*"detail":"The body has too many chunks."/);
});

it('has at most 25,000 lists, objects and fields, however it is packed', async () => {
  const detail = 'The body must not have more than 25000 lists, objects and fields.';
  const dense = (count: number) => `{"query":"{ __typename }","variables":{"a":[${'[],'.repeat(count)}[]]}}`;
  expectGraphql(await app.ask('POST', '/graphql', { body: dense(24_000) }), 200, { data: { __typename: 'Query' } });
  const headers = { ...json, 'content-encoding': 'gzip' };
  await expectRefused(dense(25_000), {}, detail);
  await expectRefused(gzipSync(dense(340_000)), headers, detail);
  const spelled = (key: string, items: number) => `{"query":"{ __typename }","variables":{"${key}":[${'1,'.repeat(items)}1]}}`;
  expectGraphql(await app.ask('POST', '/graphql', { body: spelled('a', 100_000) }), 200, { data: { __typename: 'Query' } });
  expectGraphql(await app.ask('POST', '/graphql', { body: spelled('\\u0061', 24_000) }), 200, { data: { __typename: 'Query' } });
  await expectRefused(spelled('\\u0061', 25_000), {}, detail);
  // Brackets and colons in texts are none.
  const text = '[{:'.repeat(100_000);
  expectGraphql(await app.ask('POST', '/graphql', { body: JSON.stringify({ query: '{ __typename }', variables: { text } }) }), 200, {
    data: { __typename: 'Query' },
  });
});

it('keeps at most eight large bodies in memory, four of an owner, until they are answered', async () => {
  const waiting: ServerResponse[] = [];
  const server = createServer(
    (request, response) =>
      void readJsonObject(request, response, { turnKey: String(request.headers['x-from']), bodyBytes: 0 }).then(
        () => waiting.push(response),
        () => response.end('refused'),
      ),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const post = (body: string | Buffer, headers = {}) =>
    fetch(url, { method: 'POST', headers: { ...json, ...headers }, body: new Uint8Array(Buffer.from(body)) });
  const large = JSON.stringify({ text: 'x'.repeat(20_000) });
  const responses = Array.from({ length: 12 }, (_, index) =>
    index % 2 ? post(large, { 'x-from': 'one' }) : post(gzipSync(large), { 'content-encoding': 'gzip', 'x-from': 'two' }),
  );
  await expect.poll(() => waiting.length).toBe(8);
  await sleep(200);
  expect(waiting.length).toBe(8);
  // A small one waits for none of them.
  const small = post('{"text":"x"}');
  await expect.poll(() => waiting.length).toBe(9);
  for (let at = 0; at < 13; at += 1) {
    await expect.poll(() => waiting.length).toBeGreaterThan(at);
    waiting[at]?.end('done');
  }
  for (const response of [...responses, small]) expect(await (await response).text()).toBe('done');
  server.close();
});

it('a long-lived request, such as a stream, does not keep the bytes of its body', async () => {
  const held: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    held.push(request);
    void readJsonObject(request, response, { turnKey: '', bodyBytes: 0 }).then(() => response.end('done'));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await collectGarbage();
  const before = process.memoryUsage().arrayBuffers;
  for (let sent = 0; sent < 20; sent += 1) {
    const response = await fetch(url, { method: 'POST', headers: json, body: `{}${' '.repeat(MIB - 2)}` });
    expect(await response.text()).toBe('done');
  }
  await collectGarbage();
  expect(held.length).toBe(20);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(10 * MIB);
  server.close();
});

it('an owner of many large bodies waits for themselves, and others for none of them', async () => {
  const begun: Array<{ from: string; response: ServerResponse }> = [];
  const server = createServer((request, response) => {
    const from = String(request.headers['x-from']);
    void readJsonObject(request, response, { turnKey: from, bodyBytes: 0 }).then(() => begun.push({ from, response }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const body = JSON.stringify({ text: 'x'.repeat(20_000) });
  const post = (from: string) => fetch(url, { method: 'POST', headers: { ...json, 'x-from': from }, body });
  const many = Array.from({ length: 30 }, () => post('many'));
  await expect.poll(() => begun.length).toBe(4);
  await sleep(200);
  const one = post('one');
  await expect.poll(() => begun.map(({ from }) => from)).toEqual(['many', 'many', 'many', 'many', 'one']);
  for (let at = 0; at < 31; at += 1) {
    await expect.poll(() => begun.length).toBeGreaterThan(at);
    begun[at]?.response.end();
  }
  for (const response of [...many, one]) await (await response).text();
  server.close();
});

describe('a transfer coding that is unknown', () => {
  it.each([
    ['with nothing in it', ''],
    ['with a body', '{"name":"a"}'],
  ])('%s', async (_label, body) => {
    const headers = { ...json, 'transfer-encoding': 'gzip, chunked' };
    const detail = 'The transfer coding is not supported.';
    // Nothing in it would mean all that is unread.
    for (const path of ['monitoring/dashboards', 'notifications/read'])
      expectRest(await app.ask('POST', `${app.projectPath}/${path}`, { body, headers }), 400, invalid(detail));
    expectGraphql(await app.ask('POST', '/graphql', { body, headers }), 400, graphqlInvalid(detail));
  });
});

describe('a content encoding', () => {
  const body = '{"name":"a"}';
  it.each(['zstd', 'compress', 'gzip, gzip', 'x', 'chunked'])('unknown: %s', (coding) =>
    expectRefused(body, { 'content-encoding': coding }, wrongCoding),
  );
  it('that is not what it says', () => expectRefused(body, { 'content-encoding': 'gzip' }, unreadable));
  it('that ends too soon', () => expectRefused(gzipSync(body).subarray(0, 15), { 'content-encoding': 'gzip' }, unreadable));
  it.each([
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
  ])('with something behind it: %s', async (coding, compress) => {
    // What is before it would mean all that is unread.
    for (const [before, behind] of [
      ['', '{"notification_ids":["x"]}'],
      [body, ',"name":"b"}'],
    ] as const) {
      const packed = Buffer.concat([compress(before), Buffer.from(behind)]);
      const headers = { ...json, 'content-encoding': coding };
      expectRest(await app.ask('POST', `${app.projectPath}/notifications/read`, { body: packed, headers }), 400, invalid(unreadable));
      await expectRefused(packed, { 'content-encoding': coding }, unreadable);
    }
  });
  it('with other bytes in it', () => expectRefused(deflateRawSync(body), { 'content-encoding': 'deflate' }, unreadable));
});

it('a compressed body stays compressed until it is complete', async () => {
  const packed = gzipSync(Buffer.alloc(MIB - 1, ' '));
  const { hostname, port } = new URL(app.baseUrl);
  const before = process.memoryUsage().arrayBuffers;
  const sockets = await Promise.all(
    Array.from({ length: 100 }, async () => {
      const socket = connect(Number(port), hostname);
      await once(socket, 'connect');
      socket.write(
        `POST ${app.projectPath}/notifications/read HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${app.demo.users.owner.token}\r\n` +
          `Content-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: ${packed.length + 1}\r\n\r\n`,
      );
      socket.write(packed);
      return socket;
    }),
  );
  await sleep(1_000);
  const growth = process.memoryUsage().arrayBuffers - before;
  for (const socket of sockets) socket.destroy();
  expect(growth).toBeLessThan(20 * MIB);
});

it('has changed nothing so far', async () => {
  expect(await app.app.database.prisma.dashboard.count()).toBe(count);
});

describe('a body that is taken', () => {
  const post = (body: string | Buffer, headers = {}): Promise<TestResponse> =>
    app.ask('POST', `${app.projectPath}/monitoring/dashboards`, { body, headers: { ...json, ...headers } });
  const whole = '{"name":"a"}'.padEnd(MIB, ' ');

  it.each([
    ['of exactly 1 MiB', whole, {}],
    ['of exactly 1 MiB, in chunks', whole, { 'transfer-encoding': 'chunked' }],
    ['of exactly 1 MiB, once it is unpacked', gzipSync(whole), { 'content-encoding': 'gzip' }],
    ['deflated', deflateSync('{"name":"a"}'), { 'content-encoding': 'deflate' }],
    ['by brotli', brotliCompressSync('{"name":"a"}'), { 'content-encoding': 'br' }],
    ['as it is', '{"name":"a"}', { 'content-encoding': 'identity' }],
    ['with a charset', '{"name":"a"}', { 'content-type': 'application/json; charset=utf-8' }],
    ['with a charset in quotes', '{"name":"a"}', { 'content-type': 'application/json; charset="UTF-8"' }],
    ['with its type in capitals', '{"name":"a"}', { 'content-type': 'APPLICATION/JSON' }],
    ['behind a byte order mark', '\ufeff{"name":"a"}', {}],
    ['with a name given twice: the last counts', '{"name":"b","name":"a"}', {}],
    ['with white space all over', ' \r\n\t{ "name" : "a" } \n', {}],
  ])('%s', async (_label, body, headers) => {
    expectDashboard(app, await post(body, headers), 201, { name: 'a' });
    const query = JSON.stringify({ query: '{ __typename }' });
    if (typeof body !== 'string' || 'transfer-encoding' in headers) return;
    const text = body.replace(/\{.*\}/, query).slice(0, MIB);
    expectGraphql(await app.ask('POST', '/graphql', { body: text, headers: { ...json, ...headers } }), 200, {
      data: { __typename: 'Query' },
    });
  });

  it('empty, as an object without fields', async () => {
    const required = { name: ['This field is required.'] };
    expectRest(await app.ask('POST', `${app.projectPath}/monitoring/dashboards`), 400, required);
    expectRest(await post(''), 400, required);
    expectRest(await post('', { 'content-type': 'text/plain' }), 400, required);
    expectRest(await post('{}'), 400, required);
    for (const body of ['', '{}'])
      expectGraphql(await app.ask('POST', '/graphql', { body }), 400, graphqlInvalid('The body must name a `query`.'));
    const marked = await app.ask('POST', `${app.projectPath}/notifications/read`, { as: 'viewer' });
    expect(marked.json).toStrictEqual({ marked: expect.any(Number), unread_count: 0 });
  });
});

it('leaves the server unharmed', () => expectUnharmed(app));
