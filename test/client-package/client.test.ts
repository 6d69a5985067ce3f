import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { type Duplex, Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ConnectionState, connect, describeState, type FeedEvent, type Portico, PorticoError, toPorticoError } from 'portico-client';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { startApp, type TestApp } from '../support/app.ts';
import { createCertificate } from '../support/certificate.ts';
import { openGuest, setEndpoint } from '../support/console.ts';
import { openProxy } from '../support/proxy.ts';

let app: TestApp;
let url: string;
let project: string;
beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_USER: '100000000', RATE_LIMIT_ANONYMOUS: '100000000' });
  url = app.baseUrl;
  project = app.demo.project_id;
});
afterAll(() => app.close());

const token = (as: 'owner' | 'admin' | 'member' | 'viewer' | 'outsider') => app.demo.users[as].token ?? '';
const as = (name: Parameters<typeof token>[0], where = url): Portico => connect({ url: where, credential: token(name) });
const path = () => ({ organization_id: app.demo.organization_id, project_id: project });

type Seen = FeedEvent & { type: 'notification' };

/** Reads events until `isEnough` is satisfied; returns them and the connection states along the way. */
async function follow(
  client: Portico,
  isEnough: (events: readonly FeedEvent[]) => boolean,
  after: number | null = null,
  of = project,
  signal = AbortSignal.timeout(30_000),
) {
  const events: FeedEvent[] = [];
  const states: ConnectionState[] = [];
  const feed = client.feed({ project: of, after, onState: (state) => states.push(state), signal });
  let error: unknown = null;
  try {
    for await (const event of feed) {
      events.push(event);
      if (isEnough(events)) break;
    }
  } catch (failure) {
    error = failure;
  }
  return { events, states, error, final: feed.state };
}

async function publish(title: string, of = project): Promise<number> {
  const { json } = await app.graphql(
    `mutation ($input: PublishNotificationInput!) { publishNotification(input: $input) { notification { sequence } } }`,
    { input: { organizationId: app.demo.organization_id, projectId: of, kind: 'test.client', severity: 'info', title } },
  );
  return json.data.publishNotification.notification.sequence;
}

/** A proxy in front of the server; it forwards the requests for which `answer` returns null. */
async function openFront(answer: (request: IncomingMessage) => Response | null): Promise<{ url: string; close(): Promise<void> }> {
  const server = createServer(passOn(answer));
  // A server without an upgrade listener closes the connection, like a proxy without WebSocket support.
  return listen(server, 'http');
}

function passOn(answer: (request: IncomingMessage) => Response | null): RequestListener {
  return async (request, response) => {
    const own = answer(request);
    const isEmpty = ['GET', 'HEAD'].includes(request.method ?? '');
    const { connection: _, host: __, 'content-length': ___, 'transfer-encoding': ____, ...headers } = request.headers;
    const leaving = new AbortController();
    response.once('close', () => leaving.abort());
    const got =
      own ??
      (await fetch(new URL(request.url ?? '/', url), {
        method: request.method ?? 'GET',
        headers: headers as Record<string, string>,
        ...(!isEmpty && { body: Readable.toWeb(request) as ReadableStream, duplex: 'half' }),
        signal: leaving.signal,
      }).catch(() => null));
    if (!got) return void response.destroy();
    const kept = [...got.headers].filter(
      ([name]) => !['content-encoding', 'content-length', 'transfer-encoding', 'connection'].includes(name),
    );
    response.writeHead(got.status, Object.fromEntries(kept));
    if (got.body)
      Readable.fromWeb(got.body as never)
        .on('error', () => response.destroy())
        .pipe(response);
    else response.end();
  };
}

async function listen(server: Server, scheme: string): Promise<{ url: string; close(): Promise<void> }> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Gives a response of a stubbed `fetch` its URL. */
const withUrl = (response: Response) => Object.defineProperty(response, 'url', { value: `${url}/v1/organizations` });

/** Answers with the headers and the beginning of a body, and then breaks the connection. */
function breakOff(): Response {
  const body = new ReadableStream({
    start: (output) => output.enqueue(Buffer.from('{"data": {')),
    // The beginning has been sent by then.
    pull: async (output) => {
      await sleep(20);
      output.error(new Error('the connection broke'));
    },
  });
  return new Response(body, { headers: { 'content-type': 'application/json' } });
}

const refuse = (status: number, code: string, headers: Record<string, string> = {}) =>
  Response.json({ detail: code, code, error: code }, { status, headers });

describe('v1', () => {
  it('calls the operations of the document, and returns values, errors included', async () => {
    const { data, response } = await as('member').v1.GET('/v1/organizations');
    expect([response.status, data?.results[0]?.name]).toEqual([200, 'Acme Cloud']);
    const lost = await as('outsider').v1.GET('/v1/organizations/{organization_id}/projects/{project_id}/compute/overview', {
      params: { path: path() },
    });
    expect([lost.response.status, lost.error?.code, lost.data]).toEqual([404, 'not_found', undefined]);
  });

  it('makes a throwable error of each rejection, with the names of the invalid fields', async () => {
    const boards = '/v1/organizations/{organization_id}/projects/{project_id}/monitoring/dashboards';
    const refused = await as('member').v1.POST(boards, { params: { path: path() }, body: { name: '' } });
    const blank = 'This field may not be blank.';
    expect(refused.error).toEqual({ name: [blank] });
    expect(toPorticoError(refused)).toMatchObject({
      name: 'PorticoError',
      code: 'validation_failed',
      message: `name: ${blank}`,
      status: 400,
      fields: { name: [blank] },
    });
    const lost = toPorticoError(await as('outsider').v1.GET(boards, { params: { path: path() } }));
    expect([lost.code, lost.status, lost.message, lost.fields]).toEqual(['not_found', 404, 'Not found.', {}]);
    const front = await openFront(() => refuse(429, 'rate_limited', { 'retry-after': '30' }));
    const limited = await connect({ url: front.url, credential: token('viewer'), maxWaitMs: 1_000 }).v1.GET('/v1/organizations');
    expect(toPorticoError(limited)).toMatchObject({ code: 'rate_limited', retryAfterMs: 30_000, fields: {} });
    await front.close();
    const { error, response } = await as('member').v1.GET('/v1/organizations', { params: { query: { page: 99 } } });
    expect(toPorticoError({ error: 'something else', response })).toMatchObject({ code: 'invalid_request', status: 404 });
    expect(toPorticoError({ error, response }).code).toBe('not_found');
  });

  it('reads a Retry-After that is a date, by the clock of the server, for an hour at most', async () => {
    const read = async (retryAfter: string, date = '') => {
      const response = refuse(503, 'service_unavailable', { 'retry-after': retryAfter, ...(date && { date }) });
      const client = connect({ url, credential: token('viewer'), maxWaitMs: 0, fetch: async () => withUrl(response) });
      return (await client.query('{ viewer { id } }', {})).error?.retryAfterMs;
    };
    const [sent, later] = ['Fri, 31 Dec 1999 23:59:30 GMT', 'Sat, 01 Jan 2000 00:00:00 GMT'];
    expect(await read(later, sent)).toBe(30_000);
    expect(await read(sent, later)).toBe(0);
    expect(await read('Sat, 01 Jan 2028 00:00:00 GMT', sent)).toBe(3_600_000);
    const soon = await read(new Date(Date.now() + 60_000).toUTCString());
    expect(soon).toBeGreaterThan(50_000);
    expect(soon).toBeLessThanOrEqual(60_000);
    expect(await read('soon', sent)).toBeNull();
    expect(await read('7', sent)).toBe(7_000);
  });

  it.each(['/api', '/api/'])('sends everything below the path of its address: %s', async (base) => {
    const beside: string[] = [];
    const pass = passOn(() => null);
    const server = createServer((request, response) => {
      if (!request.url?.startsWith('/api/')) beside.push(request.url ?? '');
      request.url = request.url?.replace(/^\/api/, '');
      pass(request, response);
    });
    const front = await listen(server, 'http');
    const client = as('viewer', front.url + base);
    expect((await client.v1.GET('/v1/organizations')).response.status).toBe(200);
    expect((await client.query('{ viewer { email } }', {})).error).toBeUndefined();
    for await (const event of client.feed({ project })) if (event.type === 'ready') break;
    expect(beside).toEqual([]);
    await front.close();
  });

  it('returns the refusal where it would have to wait too long', async () => {
    const front = await openFront(() => refuse(429, 'rate_limited', { 'retry-after': '30' }));
    const client = connect({ url: front.url, credential: token('viewer'), maxWaitMs: 5_000 });
    const { response, error } = await client.v1.GET('/v1/organizations');
    expect([response.status, error?.code]).toEqual([429, 'rate_limited']);
    await front.close();
  });

  it('sends a write again with its key alone, which is done once', async () => {
    // The responses are lost after the server has carried out the requests.
    let lost = 0;
    const count = async () => (await app.ask('GET', `${app.projectPath}/monitoring/dashboards`)).json.count;
    const proxy = await openProxy({ host: '127.0.0.1', port: Number(new URL(url).port) });
    const client = connect({
      url: `http://127.0.0.1:${proxy.port}`,
      credential: token('member'),
      async fetch(request, init) {
        const response = await fetch(request, init);
        if (response.status !== 201 || lost++ > 0) return response;
        throw new TypeError('fetch failed', { cause: { code: 'ECONNRESET' } });
      },
    });
    const create = (header: Record<string, string>) =>
      client.v1.POST('/v1/organizations/{organization_id}/projects/{project_id}/monitoring/dashboards', {
        params: { path: path(), header },
        body: { name: `Sent ${lost}` },
      });
    const before = await count();
    const { data } = await create({ 'Idempotency-Key': randomUUID() });
    expect([data?.name, lost, (await count()) - before]).toEqual(['Sent 0', 2, 1]);
    lost = 0;
    await expect(create({})).rejects.toMatchObject({ code: 'unreachable' });
    expect([lost, (await count()) - before]).toEqual([1, 2]);
    await proxy.close();
  });

  it('reports a write as uncertain if its retry is rejected before it is executed, and a read as rejected', async () => {
    const lost = () => {
      throw new TypeError('fetch failed', { cause: { code: 'ECONNRESET' } });
    };
    const busy = () => refuse(503, 'service_unavailable');
    const limit = () => refuse(429, 'rate_limited', { 'retry-after': '30' });
    for (const [first, code] of [
      [lost, 'unreachable'],
      [busy, 'service_unavailable'],
    ] as const) {
      const open = () => {
        const responses = [first, limit];
        return connect({ url, credential: token('member'), maxWaitMs: 1_000, fetch: async () => withUrl((responses.shift() ?? lost)()) });
      };
      const uncertain = { name: 'PorticoError', code, retryAfterMs: 30_000, message: expect.stringContaining('rejected with 429') };
      const params = { path: path(), header: { 'Idempotency-Key': randomUUID() } };
      const boards = '/v1/organizations/{organization_id}/projects/{project_id}/monitoring/dashboards';
      await expect(open().v1.POST(boards, { params, body: { name: 'Sent' } })).rejects.toMatchObject(uncertain);
      const mutation = 'mutation ($input: MarkNotificationsReadInput!) { markNotificationsRead(input: $input) { marked } }';
      const { error } = await open().query(mutation, { input: { idempotencyKey: randomUUID() } });
      expect(error).toMatchObject(uncertain);
      expect((await open().v1.GET('/v1/organizations')).error?.code).toBe('rate_limited');
      expect((await open().query('{ viewer { id } }', {})).error?.code).toBe('rate_limited');
    }
  });

  it('reports a write as uncertain if there is no credential for its retry, and a read as not sent', async () => {
    const lost = () => {
      throw new TypeError('fetch failed', { cause: { code: 'ECONNRESET' } });
    };
    const busy = () => refuse(503, 'service_unavailable');
    const mutation = 'mutation ($input: MarkNotificationsReadInput!) { markNotificationsRead(input: $input) { marked } }';
    for (const [first, code, status] of [
      [lost, 'unreachable', null],
      [busy, 'service_unavailable', 503],
    ] as const) {
      const open = () => {
        const responses = [first, () => refuse(401, 'not_authenticated')];
        const credentials = [token('member')];
        const credential = () => {
          const next = credentials.shift();
          if (!next) throw new Error('signed out');
          return next;
        };
        return connect({ url, credential, maxWaitMs: 1_000, fetch: async () => withUrl((responses.shift() ?? lost)()) });
      };
      const { error } = await open().query(mutation, { input: { idempotencyKey: randomUUID() } });
      const cause = { code: 'credential_unavailable', message: 'There is no credential now: signed out.' };
      expect(error).toMatchObject({ code, status, message: expect.stringContaining('signed out'), cause });
      expect((await open().query('{ viewer { id } }', {})).error).toMatchObject(cause);
    }
  });

  it('aborts a write that waits for another credential', async () => {
    const responses = [() => refuse(503, 'service_unavailable'), () => refuse(401, 'not_authenticated')];
    let calls = 0;
    const leaving = new AbortController();
    const credential = () => {
      calls += 1;
      if (calls === 1) return token('member');
      leaving.abort(new Error('left'));
      return new Promise<string>(() => {});
    };
    const client = connect({ url, credential, fetch: async () => withUrl((responses.shift() as () => Response)()) });
    const mutation = 'mutation ($input: MarkNotificationsReadInput!) { markNotificationsRead(input: $input) { marked } }';
    const sent = client.query(mutation, { input: { idempotencyKey: randomUUID() } }, { signal: leaving.signal });
    await expect(sent).rejects.toThrow('left');
  });

  it('treats a response that breaks off, or never arrives, as no response', async () => {
    let asked = 0;
    const front = await openFront(() => (asked++ === 0 ? breakOff() : null));
    const { response } = await as('viewer', front.url).v1.GET('/v1/organizations');
    expect([response.status, asked]).toEqual([200, 2]);
    await front.close();

    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const client = connect({ url, credential: token('viewer'), maxWaitMs: 0, fetch: () => new Promise(() => {}) });
      const asking = expect(client.v1.GET('/v1/organizations')).rejects.toMatchObject({
        code: 'unreachable',
        message: expect.stringContaining('in time'),
      });
      await vi.advanceTimersByTimeAsync(30_000);
      await asking;
    } finally {
      vi.useRealTimers();
    }
  });

  it('reports a response that is not in the form of v1', async () => {
    const get = async (received: Response) => {
      const { v1 } = connect({ url, credential: token('viewer'), maxWaitMs: 0, fetch: async () => withUrl(received) });
      const { error, response } = await v1.GET('/v1/organizations');
      return [response.status, error?.code, error?.detail];
    };
    const { host } = new URL(url);
    for (const empty of [null, '', '<p>Bad gateway</p>']) {
      expect(await get(new Response(empty, { status: 502 }))).toEqual([502, 'service_unavailable', `${host} answered 502.`]);
      expect(await get(new Response(empty, { status: 403 }))).toEqual([403, 'invalid_request', `${host} answered 403.`]);
      const { query } = connect({ url, credential: 'x', fetch: async () => withUrl(Response.json({ code: 'E1' }, { status: 403 })) });
      expect((await query<unknown, object>('{ viewer { id } }', {})).error?.message).toBe(`${host} answered 403.`);
      await expect(get(new Response(empty))).rejects.toMatchObject({ name: 'PorticoError', code: 'unreachable', status: 200 });
    }
  });

  it('rejects a credential that a header cannot hold, without repeating it', async () => {
    for (const credential of ['sk-portico-se\ncret', 'schlüssel', ' ', () => 'sk-portico-se\ncret']) {
      const client = connect({ url, credential });
      const { error } = await client.query('{ viewer { id } }', {} as never);
      expect([error?.code, error?.message]).toEqual(['not_authenticated', 'The credential is neither a key nor a token.']);
      await expect(client.v1.GET('/v1/organizations')).rejects.toMatchObject({ name: 'PorticoError', code: 'not_authenticated' });
    }
    // A credential read from a file often ends with a line break.
    const { response } = await connect({ url, credential: `${token('viewer')}\n` }).v1.GET('/v1/organizations');
    expect(response.status).toBe(200);
  });

  it('reports that there is no credential where the function returns none', async () => {
    for (const none of [undefined, null]) {
      const client = connect({ url, credential: (() => none) as never });
      const expected = { code: 'credential_unavailable', message: 'There is no credential now: the function returned none.' };
      expect((await client.query<unknown, object>('{ viewer { id } }', {})).error).toMatchObject(expected);
      await expect(client.v1.GET('/v1/organizations')).rejects.toMatchObject({ name: 'PorticoError', ...expected });
      const { states, error } = await follow(client, () => false, null, project, AbortSignal.timeout(200));
      expect([describeState(states[1] as ConnectionState), error]).toEqual(['waiting 1 s: credential_unavailable', null]);
    }
  });

  it('throws at once for a malformed address', () => {
    for (const wrong of ['localhost:4000', 'example.com', '', 'ftp://example.com'])
      expect(() => connect({ url: wrong, credential: 'x' })).toThrow(`${wrong} is not the address of a server`);
  });

  it('throws at once for a missing credential', () => {
    const sentence = 'The credential is missing: give an API key, a session token, or a function that returns a token.';
    for (const missing of [undefined, null, '', 17])
      expect(() => connect({ url, credential: missing as never })).toThrow(new TypeError(sentence));
  });

  it('sends a credential to another machine without TLS only with plainHttp', () => {
    const exposed = 'http://api.example.com:4000';
    const refused = `${exposed} has no TLS: the credential could be read on the way. Use https://, or the option plainHttp.`;
    expect(() => connect({ url: exposed, credential: 'x' })).toThrow(new TypeError(refused));
    expect(() => connect({ url: exposed, credential: 'x', plainHttp: true })).not.toThrow();
    for (const own of ['http://localhost:4000', 'http://127.0.0.2', 'http://[::1]:4000', 'https://api.example.com'])
      expect(() => connect({ url: own, credential: 'x' })).not.toThrow();
  });

  it('rejects a secret in an address, without repeating it', () => {
    const say = () => connect({ url: 'https://me:sesame@api.example.com', credential: 'x' });
    expect(say).toThrow(new TypeError('The address of a server holds no user name and no password.'));
  });

  it('rejects a query and a fragment in an address', () => {
    for (const wrong of ['http://localhost/?x=1', 'http://localhost?', 'http://localhost/#top'])
      expect(() => connect({ url: wrong, credential: 'x' })).toThrow(
        new TypeError('The address of a server holds no query and no fragment.'),
      );
  });

  it('accepts an address with white space around it, as a file may have it', async () => {
    const { response } = await as('viewer', ` ${url}/\n`).v1.GET('/v1/organizations');
    expect(response.status).toBe(200);
    const { events } = await follow(as('viewer', ` ${url}\n`), (seen) => seen.length === 1);
    expect(events).toMatchObject([{ type: 'ready' }]);
  });

  it('requests a new credential after a refusal, once for many requests', async () => {
    let asked = 0;
    const client = connect({
      url,
      credential: async () => {
        asked += 1;
        return asked === 1 ? 'sk-portico-old' : token('viewer');
      },
    });
    const calls = await Promise.all(Array.from({ length: 5 }, () => client.v1.GET('/v1/organizations')));
    expect([calls.map(({ response }) => response.status), asked]).toEqual([[200, 200, 200, 200, 200], 2]);
    const { response, error } = await connect({ url, credential: () => 'sk-portico-old' }).v1.GET('/v1/organizations');
    expect([response.status, error?.code]).toEqual([401, 'not_authenticated']);
  });

  it('is aborted by its signal, also while it waits', async () => {
    const front = await openFront(() => refuse(503, 'service_unavailable', { 'retry-after': '20' }));
    const asking = as('viewer', front.url).v1.GET('/v1/organizations', { signal: AbortSignal.timeout(200) });
    await expect(asking).rejects.toMatchObject({ name: 'TimeoutError' });
    await front.close();
  });
});

describe('query', () => {
  const overview = 'query ($id: ID!) { project(id: $id) { name } missing: project(id: "019b76da-a800-7c0e-8b1c-5c2b6f2f0a11") { name } }';

  it('returns the data together with the error', async () => {
    const { data, error } = await as('viewer').query<{ project: { name: string } }, { id: string }>(overview, { id: project });
    expect([data?.project.name, error?.code, error?.errors[0]?.path]).toEqual([expect.any(String), 'not_found', ['missing']]);
  });

  it('returns the code of a refused document, and of a refused credential', async () => {
    const { error } = await as('viewer').query<unknown, object>('{ nothing }', {});
    expect([error?.code, error instanceof PorticoError]).toEqual(['invalid_request', true]);
    const unknown = await connect({ url, credential: 'sk-portico-no' }).query<unknown, object>('{ viewer { id } }', {});
    expect([unknown.data, unknown.error?.code, unknown.error?.status]).toEqual([null, 'not_authenticated', 401]);
  });

  it('names the invalid fields, as v1 does', async () => {
    const document =
      'query ($id: ID!, $first: Int, $tasks: Int) { project(id: $id) { instances(first: $first) { totalCount } tasks(first: $tasks) { totalCount } } }';
    const { error } = await as('viewer').query<unknown, object>(document, { id: project, first: -1, tasks: -2 });
    const negative = ['Ensure this value is greater than or equal to 0.'];
    const fields = { first: negative, tasks: negative };
    expect(error).toMatchObject({ code: 'validation_failed', fields, message: expect.stringMatching(/^first: .+ tasks: .+$/) });
    expect(error?.errors[0]?.message).toBe('Some fields are not valid.');
    const unknown = await as('viewer').query<unknown, object>(overview, { id: randomUUID() });
    expect([unknown.error?.code, unknown.error?.fields]).toEqual(['not_found', {}]);
  });

  it('reports a response that is not in the form of GraphQL', async () => {
    const page = () => new Response('<p>Sign in to this network</p>', { headers: { 'content-type': 'text/html' } });
    const front = await openFront(page);
    const { data, error } = await as('viewer', front.url).query<unknown, object>('{ viewer { id } }', {});
    expect([data, error?.code, error?.message]).toEqual([null, 'unreachable', expect.stringContaining(new URL(front.url).host)]);
    await front.close();
    for (const foreign of [null, 'ok', { status: 'ok' }, []]) {
      const { query } = connect({ url, credential: token('viewer'), fetch: async () => withUrl(Response.json(foreign)) });
      expect((await query<unknown, object>('{ viewer { id } }', {})).error?.code).toBe('unreachable');
    }
  });

  it('retries a mutation only if it has idempotency keys', async () => {
    let asked = 0;
    const front = await openFront(() => (asked++ % 2 === 0 ? refuse(503, 'service_unavailable', { 'retry-after': '0' }) : null));
    const document = 'mutation ($input: PublishNotificationInput!) { publishNotification(input: $input) { notification { title } } }';
    const input = { organizationId: app.demo.organization_id, projectId: project, kind: 'test.client', severity: 'info', title: 'Once' };
    const client = as('admin', front.url);
    const { error } = await client.query<unknown, object>(document, { input });
    expect([error?.code, asked]).toEqual(['service_unavailable', 1]);
    asked = 0;
    const { data } = await client.query<unknown, object>(document, { input: { ...input, idempotencyKey: randomUUID() } });
    expect([data, asked]).toEqual([{ publishNotification: { notification: { title: 'Once' } } }, 2]);
    asked = 0;
    const other = `publishNotification(input: {organizationId: "${input.organizationId}", projectId: "${project}", kind: "k", severity: info, title: "t"})`;
    const both = document.replace(/\}$/, ` other: ${other} { notification { title } } }`);
    const refused = await client.query<unknown, object>(both, { input: { ...input, idempotencyKey: randomUUID() } });
    expect([refused.error?.code, asked]).toEqual(['service_unavailable', 1]);
    await front.close();
  });
});

describe('feed', () => {
  it('delivers the log, the boundary and live events, each once and in order', async () => {
    let last = 0;
    const { events, states } = await follow(
      as('viewer'),
      (seen) => {
        const event = seen.at(-1);
        if (event?.type === 'ready') void publish('live').then((sequence) => (last = sequence));
        return event?.type === 'notification' && event.notification.title === 'live';
      },
      0,
    );
    const numbers = events.filter((event): event is Seen => event.type === 'notification').map(({ sequence }) => sequence);
    expect(numbers).toEqual(Array.from({ length: last }, (_, index) => index + 1));
    expect(events.filter(({ type }) => type === 'ready')).toHaveLength(1);
    expect(states.map(describeState)).toEqual(['connecting', 'live', 'ended']);
  });

  it('delivers a gap, and continues after it', async () => {
    const { events } = await follow(as('viewer'), (seen) => seen.length === 2, 1_000_000);
    expect(events.map(({ type }) => type)).toEqual(['gap', 'ready']);
  });

  it.each([
    ['breaks off', () => breakOff()],
    ['is another’s', () => Response.json({ status: 'ok' })],
  ])('retries where the response about its project %s', async (_what, answer) => {
    let asked = 0;
    const front = await openFront(() => (asked++ === 0 ? answer() : null));
    const { events, states, error } = await follow(as('viewer', front.url), (seen) => seen.length === 2, 3);
    expect([events.map((event) => event.type === 'notification' && event.sequence), error]).toEqual([[4, 5], null]);
    expect(states.map(({ name }) => name)).toEqual(['connecting', 'waiting', 'connecting', 'live', 'ended']);
    await front.close();
  });

  it('saves its cursor in a store when the next event is requested', async () => {
    const saved: number[] = [];
    const store = { load: () => saved.at(-1) ?? 3, save: (cursor: number) => void saved.push(cursor) };
    const seen: number[] = [];
    for (let times = 0; times < 2; times += 1) {
      for await (const event of as('viewer').feed({ project, store })) {
        if (event.type === 'notification') seen.push(event.sequence);
        if (seen.length === 5 * (times + 1)) break;
      }
    }
    // Event 8 was not saved, because reading ended while it was handled, so it is delivered again.
    expect([seen, saved.slice(0, 4)]).toEqual([
      [4, 5, 6, 7, 8, 8, 9, 10, 11, 12],
      [4, 5, 6, 7],
    ]);
  });

  it('begins at the cursor of its store, and at the given sequence if that is empty', async () => {
    for (const [kept, expected] of [
      [null, 6],
      [3, 4],
    ]) {
      for await (const event of as('viewer').feed({ project, after: 5, store: { load: () => kept ?? null, save: () => {} } })) {
        expect(event).toMatchObject({ type: 'notification', sequence: expected });
        break;
      }
    }
  });

  it('delivers a notification with the same values as v1', async () => {
    const { v1 } = as('viewer');
    const { data } = await v1.GET('/v1/organizations/{organization_id}/projects/{project_id}/notifications', {
      params: { path: path(), query: { page_size: 100 } },
    });
    const listed = new Map(data?.results.map((one) => [one.sequence, one]));
    const { events } = await follow(as('viewer'), (seen) => seen.length === 20, Math.max(...listed.keys()) - 20);
    expect(events.some((event) => event.type === 'notification' && event.notification.resourceId !== null)).toBe(true);
    for (const event of events) {
      if (event.type !== 'notification') continue;
      const { resourceType: resource_type, resourceId: resource_id, ...others } = event.notification;
      expect({ ...others, resource_type, resource_id }).toEqual(listed.get(event.sequence));
    }
  });

  it('ends at once when its reader leaves while it waits, and closes its socket', async () => {
    const of = app.demo.empty_project_id;
    const countFollowers = () => app.app.count().followers;
    await expect.poll(countFollowers).toBe(0);
    const feed = as('owner').feed({ project: of });
    const events = feed[Symbol.asyncIterator]();
    expect(await events.next()).toMatchObject({ value: { type: 'ready' } });
    const waiting = events.next();
    await sleep(100);
    expect(await events.return?.()).toEqual({ done: true, value: undefined });
    expect(await waiting).toEqual({ done: true, value: undefined });
    expect(feed.state.name).toBe('ended');
    await expect.poll(countFollowers).toBe(0);
  });

  it('buffers at most a thousand events for a busy reader, and reconnects for the others', async () => {
    const of = app.demo.empty_project_id;
    const countFollowers = () => app.app.count().followers;
    await expect.poll(countFollowers).toBe(0);
    const events = as('owner').feed({ project: of })[Symbol.asyncIterator]();
    await events.next();
    expect(countFollowers()).toBe(1);
    await app.app.database.prisma.$executeRawUnsafe(`INSERT INTO notifications (project_id, kind, severity, title)
      SELECT '${of}'::uuid, 'test.busy', 'info', 'busy' FROM generate_series(1, 1500)`);
    const from = ((await events.next()).value as Seen).sequence;
    await expect.poll(countFollowers).toBe(0);
    const told = [from];
    while (told.length < 1500) {
      const { value } = await events.next();
      if (value?.type === 'notification') told.push(value.sequence);
    }
    expect(told).toEqual(Array.from({ length: 1500 }, (_, index) => from + index));
    await events.return?.();
  });

  it('receives events while its reader is busy', async () => {
    const of = app.demo.empty_project_id;
    const titles: string[] = [];
    let [awaited, witness] = ['first', Promise.resolve()];
    // A second feed shows when the first one has been delivered to.
    const witnessed = async (title: string) => {
      for await (const event of as('owner').feed({ project: of, signal: AbortSignal.timeout(30_000) })) {
        if (event.type === 'ready') await publish(title, of);
        if (event.type === 'notification' && event.notification.title === title) break;
      }
    };
    for await (const event of as('owner').feed({ project: of, signal: AbortSignal.timeout(30_000) })) {
      if (event.type === 'ready') witness = witnessed(awaited);
      if (event.type === 'notification') {
        titles.push(event.notification.title);
        if (titles.length === 4) break;
        awaited = `${titles.length} more`;
        witness = witnessed(awaited);
      }
      await witness;
    }
    expect(titles).toEqual(['first', '1 more', '2 more', '3 more']);
  });

  it('reconnects after cut connections, and buffers at most a thousand events for a slow reader', async () => {
    const proxy = await openProxy({ host: '127.0.0.1', port: Number(new URL(url).port) });
    const of = app.demo.empty_project_id;
    const insert = `INSERT INTO notifications (project_id, kind, severity, title, body, data)
      SELECT '${of}'::uuid, 'test.many', 'info', 'many', '', '{}' FROM generate_series(1, 1500)`;
    const { json } = await app.graphql('query ($id: ID!) { project(id: $id) { notifications(first: 1) { nodes { sequence } } } }', {
      id: of,
    });
    const from = json.data.project.notifications.nodes[0]?.sequence ?? 0;
    await app.app.database.prisma.$executeRawUnsafe(insert);
    const seen: number[] = [];
    let readies = 0;
    for await (const event of as('owner', `http://127.0.0.1:${proxy.port}`).feed({ project: of, after: from })) {
      if (event.type === 'ready') readies += 1;
      if (event.type !== 'notification') continue;
      seen.push(event.sequence);
      if (seen.length % 500 === 250) for (const link of proxy.links()) link.cut();
      if (seen.length % 250 === 0) await new Promise((resolve) => setTimeout(resolve, 20));
      if (seen.length === 1500) break;
    }
    expect(seen).toEqual(Array.from({ length: 1500 }, (_, index) => from + index + 1));
    expect(readies).toBeLessThan(4);
    await proxy.close();
  });

  it('buffers a bounded size of large events for a slow reader, and loses none', async () => {
    const of = app.demo.empty_project_id;
    const { json } = await app.graphql('query ($id: ID!) { project(id: $id) { notifications(first: 1) { nodes { sequence } } } }', {
      id: of,
    });
    const from = json.data.project.notifications.nodes[0]?.sequence ?? 0;
    await app.app.database.prisma.$executeRawUnsafe(`INSERT INTO notifications (project_id, kind, severity, title, body, data)
      SELECT '${of}'::uuid, 'test.large', 'info', 'large', repeat('x', 20000), '{}' FROM generate_series(1, 260)`);
    const seen: number[] = [];
    const socketsBefore = app.app.count().sockets;
    let connections = 0;
    const onState = ({ name }: ConnectionState) => {
      if (name === 'connecting') connections += 1;
    };
    for await (const event of as('owner').feed({ project: of, after: from, onState })) {
      if (event.type !== 'notification') continue;
      seen.push(event.sequence);
      // The reader pauses until its first connection has been closed because of unread data.
      if (seen.length === 1) await expect.poll(() => app.app.count().sockets).toBe(socketsBefore);
      if (seen.length === 260) break;
    }
    expect(seen).toEqual(Array.from({ length: 260 }, (_, index) => from + index + 1));
    expect(connections).toBeGreaterThan(1);
  });

  it('ends with a message where a retry cannot help', async () => {
    const wrong = await follow(connect({ url, credential: 'sk-portico-wrong' }), () => false);
    expect(wrong.error).toMatchObject({
      code: 'not_authenticated',
      message: 'The credential was refused: it is wrong, revoked or expired.',
    });
    expect(describeState(wrong.final)).toBe('ended: not_authenticated');
    const foreign = await follow(as('outsider'), () => false);
    expect(foreign.error).toMatchObject({
      code: 'not_found',
      message: `There is no project ${project} that this credential may see.`,
    });
    const stale = await follow(connect({ url, credential: () => 'sk-portico-wrong' }), () => false);
    expect(stale.error).toMatchObject({ code: 'not_authenticated' });
  });

  it('reports that the clock of the machine is wrong', async () => {
    const client = connect({
      url,
      credential: 'sk-portico-wrong',
      async fetch(request, init) {
        const response = await fetch(request, init);
        const date = new Date(Date.now() + 600_000).toUTCString();
        return new Response(response.body, { status: response.status, headers: { ...Object.fromEntries(response.headers), date } });
      },
    });
    const { error } = await follow(client, () => false);
    expect((error as Error).message).toMatch(/expired\. The clock of this machine is (599|600|601) s behind the server’s\.$/);
  });

  it('ends when its key is revoked', async () => {
    const create = 'mutation { createApiKey(input: { name: "feed" }) { key apiKey { id } } }';
    const { key, apiKey } = (await app.graphql(create, {}, { as: 'viewer' })).json.data.createApiKey;
    const { error, events } = await follow(connect({ url, credential: key }), (seen) => {
      if (seen.at(-1)?.type === 'ready') {
        void app.graphql('mutation ($id: ID!) { revokeApiKey(input: { id: $id }) { apiKey { id } } }', { id: apiKey.id }, { as: 'viewer' });
      }
      return false;
    });
    expect([events.map(({ type }) => type), error]).toEqual([['ready'], expect.objectContaining({ code: 'not_authenticated' })]);
  });

  it('ends when the project is lost', async () => {
    const { database } = app.app;
    const where = { projectId: project, userId: app.demo.users.member.id };
    const membership = await database.prisma.projectMember.findFirstOrThrow({ where });
    const { error, events } = await follow(as('member'), (seen) => {
      if (seen.at(-1)?.type === 'ready') void database.prisma.projectMember.deleteMany({ where }).then();
      return false;
    });
    await database.prisma.projectMember.create({ data: membership });
    expect([events.map(({ type }) => type), error]).toEqual([['ready'], expect.objectContaining({ code: 'not_found' })]);
  });

  it('waits for a credential that is unavailable', async () => {
    let asked = 0;
    const credential = async () => {
      asked += 1;
      if (asked === 1) throw new TypeError('fetch failed');
      return token('viewer');
    };
    const { events, states } = await follow(connect({ url, credential }), (seen) => seen.length === 1);
    expect([events.map(({ type }) => type), states.map(describeState)]).toEqual([
      ['ready'],
      ['connecting', 'waiting 1 s: credential_unavailable', 'connecting', 'live', 'ended'],
    ]);
  });

  it('waits for a server that is off, and reports it in its state', async () => {
    const port = await new Promise<number>((resolve) => {
      const server = createServer().listen(0, '127.0.0.1', () => {
        const { port: free } = server.address() as AddressInfo;
        server.close(() => resolve(free));
      });
    });
    let proxy: Awaited<ReturnType<typeof openFront>> | null = null;
    const states: string[] = [];
    const signal = AbortSignal.timeout(20_000);
    const feed = as('viewer', `http://127.0.0.1:${port}`).feed({
      project,
      signal,
      onState: (state) => {
        states.push(describeState(state));
        if (state.name === 'waiting' && states.length === 4 && state.error.code === 'unreachable') {
          const server = createServer(passOn(() => null));
          server.listen(port, '127.0.0.1');
          proxy = { url: '', close: async () => void server.close().closeAllConnections() };
        }
      },
    });
    for await (const event of feed) if (event.type === 'ready') break;
    expect(states.slice(0, 4)).toEqual(['connecting', 'waiting 1 s: unreachable', 'connecting', 'waiting 1 s: unreachable']);
    expect(states.at(-2)).toBe('live');
    await (proxy as Awaited<ReturnType<typeof openFront>> | null)?.close();
  });

  it('uses server-sent events where a proxy knows no WebSocket', async () => {
    const front = await openFront(() => null);
    const { events, states } = await follow(as('viewer', front.url), (seen) => seen.at(-1)?.type === 'ready', 0);
    expect(states.find(({ name }) => name === 'live')).toEqual({ name: 'live', over: 'server-sent events' });
    const numbers = events.filter((event): event is Seen => event.type === 'notification').map(({ sequence }) => sequence);
    expect(numbers).toEqual(Array.from({ length: numbers.length }, (_, index) => index + 1));
    expect(numbers.length).toBeGreaterThan(100);
    await front.close();
  });

  it('waits once for a WebSocket where a proxy drops them, and reports a broken connection', { timeout: 20_000 }, async () => {
    const upgraded: Duplex[] = [];
    const server = createServer().on('upgrade', (_request, socket) => {
      upgraded.push(socket.on('error', () => {}));
    });
    const front = await listen(server, 'http');
    const states: string[] = [];
    const ready = { data: { notificationFeed: { type: 'ready', sequence: 0, readThrough: 0, unreadCount: 0 } } };
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const client = connect({
        url: front.url,
        credential: token('viewer'),
        async fetch(input) {
          if (input instanceof Request) return Response.json({ data: { project: { organizationId: project } } });
          let isSent = false;
          const body = new ReadableStream<Uint8Array>({
            pull(controller) {
              if (isSent) controller.error(new TypeError('terminated'));
              else controller.enqueue(Buffer.from(`event: next\ndata: ${JSON.stringify(ready)}\n\n`));
              isSent = true;
            },
          });
          return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
        },
      });
      const events = client.feed({ project, onState: (state) => states.push(describeState(state)) })[Symbol.asyncIterator]();
      const first = events.next();
      await vi.waitFor(() => expect(upgraded).toHaveLength(1));
      await vi.advanceTimersByTimeAsync(10_000);
      expect(await first).toMatchObject({ value: { type: 'ready' } });
      const second = events.next();
      await vi.waitFor(() => expect(states.at(-1)).toBe('waiting 1 s: connection_lost'));
      await vi.advanceTimersByTimeAsync(1_000);
      expect(await second).toMatchObject({ value: { type: 'ready' } });
      expect(upgraded).toHaveLength(1);
      await events.return?.();
    } finally {
      vi.useRealTimers();
      for (const socket of upgraded) socket.destroy();
      await front.close();
    }
  });

  it('skips an event of an unknown type, and keeps its cursor', async () => {
    const server = createServer(passOn(() => null));
    const sockets = new WebSocketServer({ server, handleProtocols: () => 'graphql-transport-ws' });
    const asked: unknown[] = [];
    sockets.on('connection', (socket) => {
      socket.on('message', (data) => {
        const { type, id, payload } = JSON.parse(String(data));
        if (type === 'connection_init') socket.send('{"type":"connection_ack"}');
        if (type !== 'subscribe') return;
        asked.push(payload.variables.after);
        const ready = { type: 'ready', sequence: 7, readThrough: 0, unreadCount: 0 };
        const read = { type: 'read', readThrough: 1, notificationIds: [], unreadCount: 0 };
        for (const notificationFeed of asked.length === 1 ? [ready, {}, read, {}] : [ready])
          socket.send(JSON.stringify({ id, type: 'next', payload: { data: { notificationFeed } } }));
        socket.send(JSON.stringify({ id, type: 'complete' }));
      });
    });
    const front = await listen(server, 'http');
    const saved: unknown[] = [];
    const types: unknown[] = [];
    const store = { load: () => null, save: (cursor: number) => void saved.push(cursor) };
    for await (const { type } of as('viewer', front.url).feed({ project, store })) if (types.push(type) === 3) break;
    expect([types, asked, saved]).toEqual([['ready', 'read', 'ready'], [null, 7], [7]]);
    sockets.close();
    await front.close();
  });

  it('resumes after its last event where something closes the socket, whatever the code', async () => {
    const server = createServer(passOn(() => null));
    const sockets = new WebSocketServer({ server, handleProtocols: () => 'graphql-transport-ws' });
    for (const code of [1000, 1001, 1005, 1011]) {
      const asked: unknown[] = [];
      sockets.removeAllListeners('connection').on('connection', (socket) => {
        socket.on('message', (data) => {
          const { type, id, payload } = JSON.parse(String(data));
          if (type === 'connection_init') socket.send('{"type":"connection_ack"}');
          if (type !== 'subscribe') return;
          asked.push(payload.variables.after);
          const ready = { type: 'ready', sequence: 7, readThrough: 0, unreadCount: 0 };
          socket.send(JSON.stringify({ id, type: 'next', payload: { data: { notificationFeed: ready } } }));
          if (asked.length === 1) socket.close(code === 1005 ? undefined : code);
        });
      });
      const front = await listen(server, 'http');
      const { events, states } = await follow(as('viewer', front.url), (seen) => seen.length === 2);
      expect([code, events.length, asked]).toEqual([code, 2, [null, 7]]);
      const pauses = states.filter((state) => state.name === 'waiting');
      expect(pauses.map(({ error }) => error.code)).toEqual(['connection_closed']);
      await front.close();
    }
    sockets.close();
  });

  it('pauses before it reconnects to a server that ends each feed after an event', async () => {
    let connections = 0;
    const ready = { data: { notificationFeed: { type: 'ready', sequence: 0, readThrough: 0, unreadCount: 0 } } };
    const front = await openFront(({ headers }) => {
      if (headers.upgrade) return new Response('{}', { status: 404 });
      if (!headers.accept?.includes('event-stream')) return null;
      connections += 1;
      return new Response(`event: next\ndata: ${JSON.stringify(ready)}\n\nevent: complete\ndata:\n\n`, {
        headers: { 'content-type': 'text/event-stream' },
      });
    });
    const { events, states } = await follow(as('viewer', front.url), (seen) => seen.length === 5);
    expect(events).toHaveLength(5);
    expect(connections).toBe(5);
    expect(states.filter(({ name }) => name === 'waiting')).toHaveLength(4);
    await front.close();
  });

  it('pauses before it reconnects to a server that ends each feed by WebSocket', async () => {
    const server = createServer(passOn(() => null));
    const sockets = new WebSocketServer({ server, handleProtocols: () => 'graphql-transport-ws' });
    sockets.on('connection', (socket) => {
      socket.on('message', (data) => {
        const { type, id } = JSON.parse(String(data));
        if (type === 'connection_init') socket.send('{"type":"connection_ack"}');
        if (type !== 'subscribe') return;
        const ready = { notificationFeed: { type: 'ready', sequence: 0, readThrough: 0, unreadCount: 0 } };
        socket.send(JSON.stringify({ id, type: 'next', payload: { data: ready } }));
        socket.send(JSON.stringify({ id, type: 'complete' }));
      });
    });
    const front = await listen(server, 'http');
    const { events, states } = await follow(as('viewer', front.url), (seen) => seen.length === 3);
    expect(events).toHaveLength(3);
    expect(states.find(({ name }) => name === 'live')).toEqual({ name: 'live', over: 'websocket' });
    const pauses = states.filter((state) => state.name === 'waiting');
    expect(pauses.map(({ error }) => error.code)).toEqual(['connection_closed', 'connection_closed']);
    sockets.close();
    await front.close();
  });

  it('gives nothing more of what server-sent events brought once its signal has fired', async () => {
    const next = (result: object) => `event: next\ndata: ${JSON.stringify({ data: { notificationFeed: result } })}\n\n`;
    const ready = next({ type: 'ready', sequence: 0, readThrough: 0, unreadCount: 0 });
    const read = next({ type: 'read', readThrough: 0, notificationIds: [], unreadCount: 0 });
    const front = await openFront(({ headers }) => {
      if (headers.upgrade) return new Response('{}', { status: 404 });
      if (!headers.accept?.includes('event-stream')) return null;
      return new Response(`${ready}${read}${read}`, { headers: { 'content-type': 'text/event-stream' } });
    });
    const leaving = new AbortController();
    const seen: string[] = [];
    for await (const { type } of as('viewer', front.url).feed({ project, signal: leaving.signal })) {
      seen.push(type);
      leaving.abort();
    }
    expect(seen).toEqual(['ready']);
    await front.close();
  });

  it('drops a stream as silent only while it reads it', async () => {
    const front = await openFront(() => new Response(null, { status: 404 }));
    let output: ReadableStreamDefaultController<Uint8Array> | undefined;
    const send = (sequence: number) => {
      const event = { type: 'ready', sequence, readThrough: 0, unreadCount: 0 };
      output?.enqueue(Buffer.from(`event: next\ndata: ${JSON.stringify({ data: { notificationFeed: event } })}\n\n`));
    };
    const states: string[] = [];
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const client = connect({
        url: front.url,
        credential: token('viewer'),
        async fetch(input, init) {
          if (input instanceof Request) return Response.json({ data: { project: { organizationId: project } } });
          const body = new ReadableStream<Uint8Array>({ start: (controller) => void (output = controller) });
          init?.signal?.addEventListener('abort', () => output?.error(init.signal?.reason));
          send(1);
          return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
        },
      });
      const events = client.feed({ project, onState: (state) => states.push(describeState(state)) })[Symbol.asyncIterator]();
      expect(await events.next()).toMatchObject({ value: { sequence: 1 } });
      await vi.advanceTimersByTimeAsync(120_000);
      send(2);
      expect(await events.next()).toMatchObject({ value: { sequence: 2 } });
      expect(states).toEqual(['connecting', 'live']);
      const waiting = events.next();
      await vi.advanceTimersByTimeAsync(39_000);
      expect(states).toEqual(['connecting', 'live']);
      await vi.advanceTimersByTimeAsync(1_000);
      expect(states.slice(2)).toEqual(['waiting 1 s: connection_lost']);
      await events.return?.();
      expect(await waiting).toMatchObject({ done: true });
    } finally {
      vi.useRealTimers();
      await front.close();
    }
  });

  it('ends where the certificate is not trusted', async () => {
    const server = createTlsServer(
      createCertificate(),
      passOn(() => null),
    );
    const front = await listen(server, 'https');
    const { error } = await follow(as('viewer', front.url), () => false);
    expect(error).toMatchObject({
      code: 'certificate_refused',
      message: expect.stringMatching(/^The certificate of 127.* is not trusted/),
    });
    await front.close();
  });

  it.each([
    [Number.NaN, 'A valid integer is required.'],
    [Number.POSITIVE_INFINITY, 'A valid integer is required.'],
    [1.5, 'A valid integer is required.'],
    ['5', 'A valid integer is required.'],
    [-1, 'Ensure this value is greater than or equal to 0.'],
  ])('rejects the cursor %s, and does not begin', async (cursor, problem) => {
    const refused = { code: 'validation_failed', message: `after: ${problem}`, fields: { after: [problem] } };
    for (const given of [{ after: cursor }, { store: { load: () => cursor, save: () => {} } }]) {
      const feed = as('viewer').feed({ project, ...given, signal: AbortSignal.timeout(5_000) } as never);
      await expect(feed[Symbol.asyncIterator]().next()).rejects.toMatchObject({ name: 'PorticoError', ...refused });
      expect(describeState(feed.state)).toBe('ended: validation_failed');
    }
  });

  it('ends where its store cannot be read', async () => {
    const broken = new Error('the disk is gone');
    const store = { load: () => Promise.reject(broken), save: () => {} };
    const feed = as('viewer').feed({ project, store });
    await expect(feed[Symbol.asyncIterator]().next()).rejects.toBe(broken);
    expect(feed.state.name).toBe('ended');
  });

  it('leaves nothing behind when the signal fires', async () => {
    const sockets = async () => /^portico_sockets (\d+)/m.exec((await app.ask('GET', '/metrics', { as: null })).text)?.[1];
    const leaving = new AbortController();
    const feed = as('viewer').feed({ project, signal: leaving.signal });
    for await (const event of feed) if (event.type === 'ready') leaving.abort();
    expect(describeState(feed.state)).toBe('ended');
    await expect.poll(sockets).toBe('0');
  });
});

/** A console whose connection has gone silent, and the input that waits for it: more than the systems of both sides take. */
async function openFrozen() {
  const guest = await openGuest();
  const instance = app.demo.instances.eligible;
  await setEndpoint(app, instance, { port: guest.port });
  const proxy = await openProxy({ host: '127.0.0.1', port: Number(new URL(url).port) });
  const stream = as('member', `http://127.0.0.1:${proxy.port}`).console({ instance });
  const writer = stream.writable.getWriter();
  const send = vi.spyOn(WebSocket.prototype, 'send');
  const parts = [randomBytes(64 * 1024)];
  await writer.write(parts[0]);
  const socket = (send.mock.contexts as WebSocket[]).find(({ url: address }) => address?.includes(String(proxy.port)));
  send.mockRestore();
  proxy.freeze();
  while (Number(socket?.bufferedAmount) < 512 * 1024) {
    const part = randomBytes(64 * 1024);
    parts.push(part);
    await writer.write(part);
  }
  return { stream, writer, sent: Buffer.concat(parts), proxy, guest };
}

describe('console', () => {
  it('passes bytes both ways, and resumes its session after a disconnect', async () => {
    const guest = await openGuest();
    const instance = app.demo.instances.eligible;
    await setEndpoint(app, instance, { port: guest.port });
    const proxy = await openProxy({ host: '127.0.0.1', port: Number(new URL(url).port) });
    const states: string[] = [];
    const stream = as('member', `http://127.0.0.1:${proxy.port}`).console({
      instance,
      onState: (state) => states.push(describeState(state)),
    });
    const writer = stream.writable.getWriter();
    const reader = stream.readable.getReader();
    const decoder = new TextDecoder();
    let text = '';
    const readUntil = async (end: string) => {
      while (!text.endsWith(end)) {
        const { value, done } = await reader.read();
        if (done) throw new Error(`the console ended after ${text}`);
        text += decoder.decode(value, { stream: true });
      }
    };
    await writer.write(new TextEncoder().encode('typed\r'));
    await expect.poll(() => String(guest.heard())).toBe('typed\r');
    guest.say('one ');
    await readUntil('one ');
    const list = 'query ($i: ID!) { node(id: $i) { ... on Instance { consoleSessions { nodes { state } } } } }';
    const sessions = async () => (await app.graphql(list, { i: instance }, { as: 'member' })).json.data.node.consoleSessions.nodes;
    for (const link of proxy.links()) link.cut();
    guest.say('two ');
    await readUntil('two ');
    await writer.write(new TextEncoder().encode('again\r'));
    await expect.poll(() => String(guest.heard())).toBe('typed\ragain\r');
    expect([text, guest.connections(), (await sessions()).length]).toEqual(['one two ', 1, 1]);
    for (const line of guest.lines) line.end();
    expect(await reader.read()).toEqual({ done: true, value: undefined });
    expect(states.at(-1)).toBe('ended');
    await proxy.close();
    await guest.close();
  });

  it('keeps its input until it has arrived, when the input is closed', async () => {
    const { stream, writer, sent, proxy, guest } = await openFrozen();
    const closing = writer.close();
    await sleep(1_500);
    expect(stream.state.name).toBe('live');
    proxy.thaw();
    await closing;
    await expect.poll(() => guest.heard().length).toBe(sent.length);
    expect(guest.heard().equals(sent)).toBe(true);
    expect(await stream.readable.getReader().read()).toEqual({ done: true, value: undefined });
    await proxy.close();
    await guest.close();
  });

  it('fails to close its input where the connection breaks before it has arrived, or no more arrives', async () => {
    const broken = await openFrozen();
    for (const link of broken.proxy.links()) link.cut();
    await broken.proxy.mend();
    await expect(broken.writer.close()).rejects.toMatchObject({ code: 'input_lost' });
    expect(await broken.stream.readable.getReader().read()).toEqual({ done: true, value: undefined });
    await broken.guest.close();
    await broken.proxy.close();

    const stuck = await openFrozen();
    const closing = stuck.writer.close();
    const now = performance.now.bind(performance);
    const later = vi.spyOn(performance, 'now').mockImplementation(() => now() + 61_000);
    await expect(closing)
      .rejects.toMatchObject({ code: 'input_lost' })
      .finally(() => later.mockRestore());
    expect(await stuck.stream.readable.getReader().read()).toEqual({ done: true, value: undefined });
    await stuck.proxy.close();
    await stuck.guest.close();
  });

  it('drops its waiting input when the input is aborted', async () => {
    const front = await openFront(() => refuse(503, 'service_unavailable'));
    const { writable, readable } = as('member', front.url).console({ instance: app.demo.instances.eligible });
    const writer = writable.getWriter();
    writer.write(new Uint8Array(1)).catch(() => {});
    await sleep(10);
    await writer.abort().catch(() => {});
    expect(await readable.getReader().read()).toEqual({ done: true, value: undefined });
    await front.close();
  });

  it('closes at once where the connection is silent', { timeout: 20_000 }, async () => {
    const guest = await openGuest();
    const instance = app.demo.instances.eligible;
    await setEndpoint(app, instance, { port: guest.port });
    const proxy = await openProxy({ host: '127.0.0.1', port: Number(new URL(url).port) });
    const stream = as('member', `http://127.0.0.1:${proxy.port}`).console({ instance });
    await expect.poll(() => stream.state.name).toBe('live');
    proxy.freeze();
    stream.close();
    expect(await stream.readable.getReader().read()).toEqual({ done: true, value: undefined });
    await proxy.close();
    await guest.close();
  });

  it('reconnects where the connection is silent', async () => {
    const guest = await openGuest();
    const instance = app.demo.instances.eligible;
    await setEndpoint(app, instance, { port: guest.port });
    const proxy = await openProxy({ host: '127.0.0.1', port: Number(new URL(url).port) });
    const intervals = vi.spyOn(globalThis, 'setInterval');
    const stream = as('member', `http://127.0.0.1:${proxy.port}`).console({ instance });
    await expect.poll(() => stream.state.name).toBe('live');
    const [passInterval] = intervals.mock.calls.find(([, ms]) => ms === 10_000) ?? [];
    intervals.mockRestore();
    proxy.freeze();
    for (let interval = 0; interval < 4; interval += 1) passInterval?.();
    await sleep(50);
    expect(stream.state.name).toBe('live');
    passInterval?.();
    await expect.poll(() => stream.state.name).not.toBe('live');
    await proxy.mend();
    await expect.poll(() => stream.state.name).toBe('live');
    stream.close();
    expect(await stream.readable.getReader().read()).toEqual({ done: true, value: undefined });
    await proxy.close();
    await guest.close();
  });

  it('closes at once while the upgrade is unanswered', { timeout: 20_000 }, async () => {
    const server = createServer(passOn(() => null));
    const upgraded = once(server, 'upgrade');
    const front = await listen(server, 'http');
    const stream = as('member', front.url).console({ instance: app.demo.instances.eligible });
    const [, silent] = await upgraded;
    stream.close();
    expect(await stream.readable.getReader().read()).toEqual({ done: true, value: undefined });
    expect(stream.state).toEqual({ name: 'ended', error: null });
    silent.destroy();
    await front.close();
  });

  it('goes on in the same session where a proxy closes its socket, and with another ticket where one was used', async () => {
    const guest = await openGuest();
    const instance = app.demo.instances.eligible;
    await setEndpoint(app, instance, { port: guest.port });
    const server = createServer(passOn(() => null));
    const sockets = new WebSocketServer({ server, handleProtocols: () => 'binary' });
    let isFirst = true;
    sockets.on('connection', (socket, { url: path = '' }) => {
      if (isFirst) socket.close(4401, 'ticket_used');
      if (isFirst) return void (isFirst = false);
      const behind = new WebSocket(new URL(path, url.replace('http', 'ws')), 'binary');
      behind.on('error', () => {});
      behind.on('message', (data) => socket.send(data));
      behind.on('close', (code, reason) => socket.close(code === 1005 || code === 1006 ? undefined : code, String(reason)));
      socket.on('close', () => behind.terminate());
    });
    const front = await listen(server, 'http');
    const names: string[] = [];
    const stream = as('member', front.url).console({ instance, onState: ({ name }) => void names.push(name) });
    const reader = stream.readable.getReader();
    const pauses = () => names.filter((name) => name === 'waiting').length;
    for (const [index, code] of [1000, 1011, 1014, undefined].entries()) {
      // The one before was for the ticket.
      await expect.poll(() => [pauses(), stream.state.name, guest.lines.size]).toEqual([index + 1, 'live', 1]);
      guest.say('a');
      expect(String(Buffer.from((await reader.read()).value ?? []))).toBe('a');
      for (const socket of sockets.clients) socket.close(code);
    }
    await expect.poll(() => [pauses(), stream.state.name]).toEqual([5, 'live']);
    expect(guest.connections()).toBe(1);
    stream.close();
    expect(await reader.read()).toEqual({ done: true, value: undefined });
    sockets.close();
    await front.close();
    await guest.close();
  });

  it('takes over the line where a server that stopped had closed its socket before it began a session', async () => {
    const guest = await openGuest();
    const instance = app.demo.instances.eligible;
    await setEndpoint(app, instance, { port: guest.port });
    const colleague = as('admin').console({ instance });
    await expect.poll(() => colleague.state.name).toBe('live');
    const server = createServer(passOn(() => null));
    const sockets = new WebSocketServer({ server, handleProtocols: () => 'binary' });
    let connections = 0;
    sockets.on('connection', (socket, { url: path = '' }) => {
      connections += 1;
      if (connections === 1) return socket.close(1012, 'restarting');
      const behind = new WebSocket(new URL(path, url.replace('http', 'ws')), 'binary');
      behind.on('error', () => {});
      behind.on('message', (data) => socket.send(data));
      socket.on('close', () => behind.terminate());
    });
    const front = await listen(server, 'http');
    const stream = as('member', front.url).console({ instance });
    const reader = stream.readable.getReader();
    const output = reader.read();
    await expect(colleague.readable.getReader().closed).rejects.toMatchObject({ code: 'taken_over' });
    await expect.poll(() => guest.lines.size).toBe(1);
    guest.say('a');
    expect(String(Buffer.from((await output).value ?? []))).toBe('a');
    stream.close();
    sockets.close();
    await front.close();
    await guest.close();
  });

  it('ends where its output is not read, rather than buffer it all', async () => {
    // Every connection is sent much output, because a console that has just moved is connected to twice.
    const guest = await openGuest((line) => void line.write(Buffer.alloc(24 * 1024 * 1024, 'a')));
    const instance = app.demo.instances.eligible;
    await setEndpoint(app, instance, { port: guest.port });
    const stream = as('member').console({ instance });
    await expect.poll(() => stream.state).toMatchObject({ name: 'ended', error: { code: 'reader_too_slow' } });
    await expect(stream.readable.getReader().read()).rejects.toMatchObject({ code: 'reader_too_slow' });
    await guest.close();
  });

  it('fails with the reason where there is no console', async () => {
    const fail = async (client: Portico, instance: string) => {
      const { readable } = client.console({ instance });
      return readable
        .getReader()
        .read()
        .catch((error) => error);
    };
    expect(await fail(as('viewer'), app.demo.instances.eligible)).toMatchObject({ code: 'permission_denied' });
    expect(await fail(as('member'), project)).toMatchObject({ code: 'not_found' });
  });
});

/** Tests that mostly wait, for seconds of a protocol, do so side by side. */
describe.concurrent('as time passes, a client', () => {
  it('keeps a silent console open through the ends of several tokens', async ({ expect }) => {
    const guest = await openGuest();
    const instance = app.demo.instances.eligible;
    await setEndpoint(app, instance, { port: guest.port });
    let calls = 0;
    const credential = async () => {
      calls += 1;
      return (await app.app.tokens.local?.sign(app.demo.users.member.id, 2)) ?? '';
    };
    const stream = connect({ url, credential }).console({ instance });
    await expect.poll(() => calls).toBe(3);
    await expect.poll(() => stream.state.name).toBe('live');
    stream.close();
    expect(await stream.readable.getReader().read()).toEqual({ done: true, value: undefined });
    await guest.close();
  });

  it('resumes with a fresh token when the old one has expired', async ({ expect }) => {
    const tokens = [(await app.app.tokens.local?.sign(app.demo.users.viewer.id, 2)) ?? '', token('viewer')];
    const asked: string[] = [];
    const client = connect({
      url,
      credential: () => {
        asked.push(tokens[Math.min(asked.length, 1)] ?? '');
        return asked.at(-1) ?? '';
      },
    });
    const { events, error } = await follow(client, (seen) => seen.length === 2);
    expect([error, events.map(({ type }) => type), asked]).toEqual([null, ['ready', 'ready'], tokens]);
  });

  it('waits for the time of Retry-After, where a request may be retried', async ({ expect }) => {
    const asked: number[] = [];
    const front = await openFront(() => {
      asked.push(performance.now());
      return asked.length < 3 ? refuse(asked.length === 1 ? 429 : 503, 'service_unavailable', { 'retry-after': '1' }) : null;
    });
    const { response } = await as('viewer', front.url).v1.GET('/v1/organizations');
    expect([response.status, asked.length]).toEqual([200, 3]);
    for (const [index, at] of asked.entries()) if (index > 0) expect(at - (asked[index - 1] ?? 0)).toBeGreaterThan(990);
    await front.close();
  });

  it('waits for the time of Retry-After before a feed reconnects', async ({ expect }) => {
    let isBusy = true;
    const front = await openFront(() => (isBusy ? refuse(503, 'service_unavailable', { 'retry-after': '1' }) : null));
    const states: string[] = [];
    const feed = as('viewer', front.url).feed({
      project,
      onState: (state) => {
        states.push(describeState(state));
        if (state.name === 'waiting') isBusy = false;
      },
    });
    for await (const event of feed) if (event.type === 'ready') break;
    expect(states).toEqual(['connecting', 'waiting 1 s: service_unavailable', 'connecting', 'live', 'ended']);
    await front.close();
  });

  it.for(['accepts none', 'has gone silent'])('leaves no socket behind where the server %s', async (what, { expect }) => {
    const server = createServer(passOn(() => null));
    const raw: Duplex[] = [];
    if (what === 'accepts none') server.on('upgrade', (_request, socket) => raw.push(socket));
    else {
      new WebSocketServer({ server, handleProtocols: () => 'graphql-transport-ws' }).on('connection', (socket, request) => {
        socket.on('message', (data) => {
          if (JSON.parse(String(data)).type === 'connection_init') socket.send('{"type":"connection_ack"}');
          else {
            // From now on the server reads, and understands nothing.
            request.socket.removeAllListeners('data').resume();
            raw.push(request.socket);
          }
        });
      });
    }
    const front = await listen(server, 'http');
    const leaving = new AbortController();
    const events = as('viewer', front.url).feed({ project, signal: leaving.signal })[Symbol.asyncIterator]();
    const waiting = events.next();
    await expect.poll(() => raw.length).toBe(1);
    const closed = new Promise((resolve) => raw[0]?.resume().on('error', resolve).on('end', resolve).on('close', resolve));
    leaving.abort();
    expect(await waiting).toEqual({ done: true, value: undefined });
    expect(await Promise.race([closed.then(() => 'closed'), sleep(20_000, 'still open')])).toBe('closed');
    for (const socket of raw) socket.destroy();
    await front.close();
  });

  it('waits also for as long as no timer can', async ({ expect }) => {
    let asked = 0;
    const front = await openFront(() => {
      asked += 1;
      return refuse(503, 'service_unavailable', { 'retry-after': '3000000' });
    });
    const { states } = await follow(as('viewer', front.url), () => false, null, project, AbortSignal.timeout(1_000));
    expect([states.map(({ name }) => name), asked]).toEqual([['connecting', 'waiting', 'ended'], 1]);
    await front.close();
  });

  it('is aborted by its signal while there is no credential yet', async ({ expect }) => {
    const client = connect({ url, credential: () => new Promise<string>(() => {}) });
    const signal = AbortSignal.timeout(200);
    await expect(client.v1.GET('/v1/organizations', { signal })).rejects.toMatchObject({ name: 'TimeoutError' });
    await expect(client.query('{ viewer { id } }', {}, { signal })).rejects.toMatchObject({ name: 'TimeoutError' });
    const soon = () => AbortSignal.timeout(200);
    expect(await client.feed({ project, signal: soon() })[Symbol.asyncIterator]().next()).toEqual({ done: true, value: undefined });
    const { readable } = client.console({ instance: app.demo.instances.eligible, signal: soon() });
    expect(await readable.getReader().read()).toEqual({ done: true, value: undefined });
  });
});
