import { type IncomingHttpHeaders, request } from 'node:http';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { makeProject } from '../support/fixtures.ts';

let app: TestApp;
let dashboards: string;
let projectId: string;
/** The ids of dashboards of 2, 20 and 200 KB. */
const made: Record<'small' | 'middle' | 'large', string> = { small: '', middle: '', large: '' };

beforeAll(async () => {
  app = await startApp();
  projectId = await makeProject(app);
  dashboards = `/v1/organizations/${app.demo.organization_id}/projects/${projectId}/monitoring/dashboards`;
  for (const [name, length] of Object.entries({ small: 2_000, middle: 20_000, large: 200_000 })) {
    const widgets = Array.from({ length: length / 50 }, (_, index) => ({ type: 'stat', title: `é ${index}`, at: [index, index + 1] }));
    const { status, json } = await app.ask('POST', dashboards, { body: { name, widgets } });
    expect(status).toBe(201);
    made[name as keyof typeof made] = json.id;
  }
});
afterAll(() => app.close());

interface Raw {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
}

function ask(method: string, path: string, given: { headers?: Record<string, string>; body?: unknown; to?: TestApp } = {}): Promise<Raw> {
  const { headers = {}, body, to = app } = given;
  return new Promise((resolve, reject) => {
    const authorization = `Bearer ${to.demo.users.owner.token}`;
    const sent = request(`${to.baseUrl}${path}`, { method, headers: { authorization, 'content-type': 'application/json', ...headers } });
    sent.on('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, bytes: Buffer.concat(chunks) }));
    });
    sent.on('error', reject);
    sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

const gzip = { 'accept-encoding': 'gzip' };
const queryOf = (first: number) => ({
  query: 'query ($p: ID!, $n: Int!) { project(id: $p) { dashboards(first: $n) { nodes { id name widgets } } } }',
  variables: { p: projectId, n: first },
});

/** The parts of a response that do not depend on its encoding. */
function decoded({ status, headers, bytes }: Raw) {
  return {
    status,
    type: headers['content-type'],
    text: (headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes).toString('utf8'),
  };
}

describe('a response that is large', () => {
  const responses: Record<string, (headers: Record<string, string>) => Promise<Raw>> = {
    'of v1': (headers) => ask('GET', `${dashboards}/${made.middle}`, { headers }),
    'of v1, and larger': (headers) => ask('GET', `${dashboards}/${made.large}`, { headers }),
    'of GraphQL': (headers) => ask('POST', '/graphql', { headers, body: queryOf(2) }),
    'of GraphQL, and larger': (headers) => ask('POST', '/graphql', { headers, body: queryOf(3) }),
    'of GraphQL, in its own media type': (headers) =>
      ask('POST', '/graphql', { headers: { ...headers, accept: 'application/graphql-response+json' }, body: queryOf(3) }),
  };

  it.each(Object.entries(responses))('%s is the same compressed and plain, and smaller', async (_name, response) => {
    const [plain, compressed] = [await response({}), await response(gzip)];
    expect(plain.headers).not.toHaveProperty('content-encoding');
    expect(compressed.headers['content-encoding']).toBe('gzip');
    expect(decoded(compressed)).toEqual(decoded(plain));
    expect(compressed.bytes.length).toBeLessThan(plain.bytes.length / 3);
    for (const { headers, bytes } of [plain, compressed]) {
      expect(headers['content-length']).toBe(String(bytes.length));
      expect(headers.vary).toBe('Origin, Accept-Encoding');
    }
  });

  it.each([
    ['gzip', true],
    ['x, gzip;q=0.5', true],
    ['deflate, gzip, br', true],
    ['*', true],
    ['identity', false],
    ['identity, gzip;q=0.5', false],
    ['gzip;q=0', false],
    ['br', false],
    ['', false],
    ['gzip;q=x,,;', false],
  ])('with Accept-Encoding: %s', async (accepted, isCompressed) => {
    const { headers } = await ask('GET', `${dashboards}/${made.middle}`, { headers: { 'accept-encoding': accepted } });
    expect(headers['content-encoding']).toBe(isCompressed ? 'gzip' : undefined);
  });

  it('with a longer Accept-Encoding than browsers send, which would take long to parse: not at all', async () => {
    const accepted = `${'x, '.repeat(400)}gzip`;
    const { headers } = await ask('GET', `${dashboards}/${made.middle}`, { headers: { 'accept-encoding': accepted } });
    expect(headers['content-encoding']).toBeUndefined();
  });

  it('has the same headers by HEAD, without the body', async () => {
    for (const headers of [{}, gzip]) {
      const [get, head] = [
        await ask('GET', `${dashboards}/${made.large}`, { headers }),
        await ask('HEAD', `${dashboards}/${made.large}`, { headers }),
      ];
      expect(head.bytes.length).toBe(0);
      for (const name of ['content-length', 'content-encoding', 'etag', 'vary']) expect(head.headers[name]).toBe(get.headers[name]);
    }
  });

  it('has a weak tag when it is compressed, which is as good in If-Match', async () => {
    const path = `${dashboards}/${made.middle}`;
    const [plain, compressed] = [await ask('GET', path), await ask('GET', path, { headers: gzip })];
    expect([plain.headers.etag, compressed.headers.etag]).toEqual(['"1"', 'W/"1"']);
    const change = (tag: string) => ask('PUT', path, { headers: { ...gzip, 'if-match': tag }, body: JSON.parse(decoded(plain).text) });
    const changed = await change(compressed.headers.etag ?? '');
    expect([changed.status, changed.headers.etag]).toEqual([200, 'W/"2"']);
    expect((await change('W/"1"')).status).toBe(409);
    expect((await change('"2"')).status).toBe(200);
  });
});

it('a small response is sent as it is, and so is a refusal', async () => {
  for (const [path, status] of [
    [`${dashboards}/${made.small}`, 200],
    [`${dashboards}/x`, 404],
    ['/nothing', 404],
  ] as const) {
    const response = await ask('GET', path, { headers: gzip });
    expect([response.status, response.headers['content-encoding'], response.headers.vary]).toEqual([status, undefined, 'Origin']);
  }
});

it('each of many concurrent requests is answered, compressed or not', async () => {
  const responses = await Promise.all(Array.from({ length: 24 }, () => ask('GET', `${dashboards}/${made.large}`, { headers: gzip })));
  expect(new Set(responses.map((response) => decoded(response).text)).size).toBe(1);
  expect(responses.some(({ headers }) => headers['content-encoding'] === 'gzip')).toBe(true);
  // Clients that disconnect before the response is compressed must do no harm.
  for (let time = 0; time < 20; time += 1) {
    const sent = request(`${app.baseUrl}${dashboards}/${made.large}`, {
      headers: { ...gzip, authorization: `Bearer ${app.demo.users.owner.token}` },
    });
    sent.on('error', () => {});
    sent.end();
    await new Promise((resolve) => setTimeout(resolve, time * 2));
    sent.destroy();
  }
  // The compressions that they started are finished first.
  const encoding = async () => (await ask('GET', `${dashboards}/${made.large}`, { headers: gzip })).headers['content-encoding'];
  await expect.poll(encoding).toBe('gzip');
  expect(app.logLines.filter((line) => /"level":"(error|fatal)"/.test(line))).toEqual([]);
});

it('an event stream is never compressed, nor collected by nginx', async () => {
  const response = await fetch(`${app.baseUrl}/graphql`, {
    method: 'POST',
    headers: {
      ...gzip,
      authorization: `Bearer ${app.demo.users.owner.token}`,
      'content-type': 'application/json',
      accept: 'text/event-stream',
    },
    body: JSON.stringify({
      query: 'subscription ($o: ID!, $p: ID!) { notificationFeed(organizationId: $o, projectId: $p, after: 0) { __typename } }',
      variables: { o: app.demo.organization_id, p: app.demo.project_id },
    }),
  });
  expect(response.headers.get('content-encoding')).toBe('none');
  expect(response.headers.get('x-accel-buffering')).toBe('no');
  expect(response.headers.get('cache-control')).toBe('no-store');
  let text = '';
  for await (const part of response.body ?? []) {
    text += Buffer.from(part).toString();
    if (text.includes('event: ')) break;
  }
  expect(text).toContain('event: next');
});

it('COMPRESS=false leaves it to a proxy', async () => {
  const other = await startApp({ COMPRESS: 'false' });
  try {
    const path = `${other.projectPath}/notifications?page_size=100`;
    const response = await ask('GET', path, { headers: gzip, to: other });
    expect(response.bytes.length).toBeGreaterThan(8 * 1024);
    expect([response.status, response.headers['content-encoding'], response.headers.vary]).toEqual([200, undefined, 'Origin']);
  } finally {
    await other.close();
  }
});
