import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { totalmem } from 'node:os';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { Lifecycle } from '../../src/kernel/lifecycle.ts';
import { createLogger } from '../../src/platform/logger.ts';
import { openMetrics } from '../../src/platform/metrics.ts';
import { createClientAddresses } from '../../src/transport/http/addresses.ts';
import { logRequests } from '../../src/transport/http/requestlog.ts';
import { isPostgres, startApp, startRestingApp, type TestApp } from '../support/app.ts';
import { openPlainFeed, openSocket } from '../support/feed.ts';
import { makeProject } from '../support/fixtures.ts';

let app: TestApp;
/** The metrics of the app when nobody had asked it for anything. */
let untouched: string;
beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_ANONYMOUS: '3' });
  untouched = await metricsOf(app);
});
afterAll(() => app.close());

const metricsOf = async (tested: TestApp) => (await tested.ask('GET', '/metrics', { as: null })).text;

describe('health', () => {
  it('is live', async () => {
    const response = await app.ask('GET', '/health/live', { as: null });
    expect([response.status, response.text]).toEqual([200, '{"status":"live"}']);
    expect(response.headers['cache-control']).toBe('no-store');
  });

  it('is ready, with its dependencies', async () => {
    const response = await app.ask('GET', '/health/ready', { as: null });
    expect([response.status, response.json.status, response.json.checks.database]).toEqual([200, 'ready', 'up']);
  });

  it('logs the cause of a beginning failure, in one line each time', async () => {
    app.logLines.length = 0;
    const message = 'timeout exceeded when trying to connect';
    for (let outage = 0; outage < 2; outage += 1) {
      const query = vi.spyOn(app.app.database, 'query').mockRejectedValue(new Error(message));
      const statuses = [];
      for (const isLast of [false, false, true]) {
        if (isLast) query.mockRestore();
        statuses.push((await app.ask('GET', '/health/ready', { as: null })).json.status);
      }
      expect(statuses).toEqual(['unavailable', 'unavailable', 'ready']);
    }
    const lines = app.logLines.map((line) => JSON.parse(line)).map(({ msg, check, err }) => ({ msg, check, cause: err.message }));
    expect(lines).toEqual(Array(2).fill({ msg: 'unavailable', check: 'ready', cause: message }));
  });

  it('HEAD has the same headers and no body', async () => {
    for (const path of ['/health/live', '/health/ready', '/metrics']) {
      const response = await app.ask('HEAD', path, { as: null });
      expect([path, response.status, response.text]).toEqual([path, 200, '']);
    }
  });

  it('is neither counted nor logged, and takes no credential', async () => {
    app.logLines.length = 0;
    for (let asked = 0; asked < 10; asked += 1) {
      expect((await app.ask('GET', '/health/ready', { as: { bearer: 'wrong' } })).status).toBe(200);
    }
    expect(app.logLines).toEqual([]);
  });

  it('has no other paths', async () => {
    for (const path of ['/health', '/health/', '/health/live/', '/Health/live', '/metrics/x']) {
      const response = await app.ask('GET', path);
      expect([path, response.status, response.json.code]).toEqual([path, 404, 'not_found']);
    }
    expect((await app.ask('POST', '/health/live')).status).toBe(404);
  });

  it('while it warms up, it is not ready, but serves; it reads what each route reads, and writes nothing', async () => {
    const warming = await startRestingApp();
    // A project that is new has nothing in it.
    await makeProject(warming, { member: 'member' });
    const sent = new Set<string>();
    warming.listen((sql) => sent.add(sql));
    // The time limit of the warm-up is not reached before all of this has happened, however busy the machine is.
    const clock = vi.spyOn(performance, 'now').mockReturnValue(performance.now());
    const warm = warming.app.warmUp();
    const ready = await warming.ask('GET', '/health/ready', { as: null });
    expect([ready.status, ready.json.status, ready.headers['retry-after']]).toEqual([503, 'starting', '1']);
    expect(await metricsOf(warming)).toContain('\nportico_ready 0\n');
    expect((await warming.ask('GET', '/v1/organizations')).status).toBe(200);
    const tables = ['instances', 'tasks', 'dashboards', 'notifications', 'task_counters', 'backup_trials'];
    await expect.poll(() => tables.filter((table) => ![...sent].some((sql) => sql.includes(table)))).toEqual([]);
    clock.mockRestore();
    await warm;
    expect((await warming.ask('GET', '/health/ready', { as: null })).json.status).toBe('ready');
    expect(await metricsOf(warming)).toContain('\nportico_ready 1\n');
    expect([...sent].filter((sql) => !/^\s*(SELECT|WITH)\b/.test(sql))).toEqual([]);
    // On a busy machine, or by the clock that stood still, what is read may have taken long.
    const lines = warming.logLines.filter((line) => !/"msg":"(a slow statement|a long wait for |a dependency is )/.test(line));
    expect(lines.filter((line) => /warm up|"level":"(warn|error|fatal)"/.test(line))).toEqual([]);
    await warming.close();
  });

  it('is ready after a warm-up without any project', async () => {
    const empty = await startRestingApp();
    await empty.app.database.prisma.$executeRaw`DELETE FROM project_members`;
    await empty.app.warmUp();
    expect((await empty.ask('GET', '/health/ready', { as: null })).json.status).toBe('ready');
    expect(empty.logLines.filter((line) => line.includes('warm up'))).toEqual([]);
    await empty.close();
  });

  // On the embedded database there is no other replica, and it stops at once.
  it.runIf(isPostgres)('while it stops, it is not ready, but live, and every response ends its connection', async () => {
    const stopping = await startApp({ DRAIN_SECONDS: '2' });
    const feed = openPlainFeed(stopping);
    await feed.until(({ type }) => type === 'ready');
    const closing = stopping.close();
    const ready = await stopping.ask('GET', '/health/ready', { as: null });
    expect([ready.status, ready.json.status, ready.headers['retry-after']]).toEqual([503, 'draining', '1']);
    expect(await metricsOf(stopping)).toContain('\nportico_ready 0\n');
    expect((await stopping.ask('GET', '/health/live', { as: null })).status).toBe(200);
    const overview = await stopping.ask('GET', `${stopping.projectPath}/compute/overview`);
    expect([overview.status, overview.headers.connection]).toEqual([200, 'close']);
    expect((await feed.closed).code).toBe(1012);
    await closing;
    await expect(stopping.ask('GET', '/health/live', { as: null })).rejects.toThrow();
  });
});

it('docs/operations.md names every metric of ours, and no other', () => {
  const rows = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8')
    .split('\n')
    .filter((line) => /^\| `portico_/.test(line));
  const documented = rows.flatMap((row) => [...(row.split('|')[1] ?? '').matchAll(/portico_\w+/g)].map(([name]) => name));
  const known = app.app.metrics.registry.getMetricsAsArray().map(({ name }) => name);
  // The embedded database has no connections.
  if (!isPostgres) known.push('portico_database_connections');
  expect(documented.sort()).toEqual(known.filter((name) => name.startsWith('portico_')).sort());
});

describe('metrics', () => {
  it('are rendered in a tenth of the time at most, and each request gets values from after its arrival', async () => {
    const { registry } = app.app.metrics;
    const render = registry.metrics.bind(registry);
    const renderingMs = 20;
    let renderings = 0;
    const rendering = vi.spyOn(registry, 'metrics').mockImplementation(() => {
      renderings += 1;
      const until = performance.now() + renderingMs;
      while (performance.now() < until);
      return render();
    });
    const began = performance.now();
    let asked = 0;
    const readers = Array.from({ length: 10 }, async () => {
      for (; performance.now() - began < 750; asked += 1) {
        const before = renderings;
        expect(await metricsOf(app)).toContain('\nportico_ready 1\n');
        expect(renderings).toBeGreaterThan(before);
      }
    });
    await Promise.all(readers);
    rendering.mockRestore();
    expect(asked).toBeGreaterThanOrEqual(readers.length);
    // The first, and the last, which was waited for.
    expect((renderings - 2) * renderingMs).toBeLessThan((performance.now() - began) / 10);
  });

  it('count by operation and status, and by nothing that a client chooses', async () => {
    await app.ask('GET', `${app.projectPath}/compute/overview`);
    await app.ask('GET', '/v1/chosen-by-the-client');
    await app.graphql('query ChosenByTheClient { viewer { name } again: viewer { id } }');
    await app.graphql('query ChosenByTheClient { viewer { name } __typename }');
    await app.graphql('{ chosenByTheClient }');
    const text = await metricsOf(app);
    expect(text).toContain('portico_requests_total{operation="compute_overview",status="200"} 1\n');
    expect(text).toContain('portico_requests_total{operation="query viewer",status="200"} 1\n');
    expect(text).toContain('portico_requests_total{operation="query several",status="200"} 1\n');
    expect(text).toMatch(/portico_requests_total\{operation="graphql",status="[24]00"\} 1\n/);
    expect(text).toMatch(/portico_requests_total\{operation="none",status="404"\} \d/);
    expect(text).toContain('portico_request_duration_seconds_bucket{le="+Inf",operation="compute_overview"} 1\n');
    expect(text.toLowerCase()).not.toContain('chosen');
  });

  it('that alarms watch begin at 0, as Prometheus sees no increase in a number that appears', () => {
    for (const policy of ['anonymous', 'user', 'pages']) expect(untouched).toContain(`portico_rate_limited_total{policy="${policy}"} 0\n`);
    expect(untouched).toContain('portico_socket_closes_total{code="4403",reason="access_lost"} 0\n');
    expect(untouched).toContain('portico_socket_closes_total{code="4502",reason="console_unreachable"} 0\n');
    expect(untouched).toContain('portico_upgrade_refusals_total{code="console_unreachable"} 0\n');
  });

  it('include the limits that two alarms compare with', async () => {
    const text = await metricsOf(app);
    expect(text).toContain(`portico_unread_limit_bytes ${app.config.buffers.inAll}\n`);
    const memory = Number(/^portico_memory_limit_bytes (\S+)$/m.exec(text)?.[1]);
    expect(memory).toBeGreaterThan(process.memoryUsage.rss());
    expect(memory).toBeLessThanOrEqual(totalmem());
  });

  it('include sockets, feeds, limits and dependencies', async () => {
    const feed = openPlainFeed(app);
    await feed.until(({ type }) => type === 'ready');
    for (let asked = 0; asked < 4; asked += 1) await app.ask('GET', '/v1/x', { as: null });
    const text = await metricsOf(app);
    expect(text).toContain('portico_sockets 1\n');
    expect(text).toContain('portico_feed_hubs 1\n');
    expect(text).toContain('portico_feed_followers 1\n');
    expect(text).toContain('portico_rate_limited_total{policy="anonymous"} 1\n');
    expect(text).toContain('portico_dependency_up{dependency="database"} 1\n');
    if (isPostgres) expect(text).toMatch(/portico_database_connections\{state="idle"\} \d+\n/);
    feed.socket.close();
    await feed.closed;
    await expect.poll(() => metricsOf(app)).toContain('portico_socket_closes_total{code="1005",reason="none"} 1\n');
  });

  it('count a close by its reason, and not by a code that the client chose', async () => {
    const options = { protocol: 'graphql-transport-ws', headers: { authorization: `Bearer ${app.demo.users.owner.token}` } };
    const chosen = openSocket(app, '/graphql', options);
    await once(chosen.socket, 'open');
    chosen.socket.close(4502, 'console_unreachable');
    const malformed = openSocket(app, '/graphql', options);
    await once(malformed.socket, 'open');
    malformed.socket.send('{');
    const count = (labels: string) => expect.poll(() => metricsOf(app)).toContain(`portico_socket_closes_total{${labels}} 1\n`);
    await count('code="other",reason="none"');
    await count('code="4400",reason="invalid_message"');
    expect(await metricsOf(app)).toContain('portico_socket_closes_total{code="4502",reason="console_unreachable"} 0\n');
  });

  it('measure an operation on a socket up to its result, and a subscription up to its beginning', async () => {
    const headers = { authorization: `Bearer ${app.demo.users.owner.token}` };
    const socket = openSocket(app, '/graphql', { protocol: 'graphql-transport-ws', headers });
    await once(socket.socket, 'open');
    const { organization_id, project_id } = app.demo;
    const feed = `subscription { notificationFeed(organizationId: "${organization_id}", projectId: "${project_id}") { __typename } }`;
    const queries = ['{ organizations: viewer { id } }', feed, '{ unknown }'];
    socket.socket.send(JSON.stringify({ type: 'connection_init' }));
    await socket.until(({ type }) => type === 'connection_ack');
    queries.forEach((query, index) => void socket.socket.send(JSON.stringify({ type: 'subscribe', id: `${index}`, payload: { query } })));
    await Promise.all(queries.map((_, index) => socket.until(({ id }) => id === `${index}`)));
    const text = await metricsOf(app);
    for (const operation of ['query viewer', 'subscription notificationFeed', 'none'])
      expect(text).toContain(`portico_socket_operation_duration_seconds_count{operation="${operation}"} 1\n`);
    socket.socket.close();
    await socket.closed;
  });

  it('count a defect, also where GraphQL answers with 200', async () => {
    const read = async () => Number(/^portico_internal_errors_total (\d+)$/m.exec(await metricsOf(app))?.[1]);
    const before = await read();
    await app.app.database.prisma.$executeRaw`ALTER TABLE organizations RENAME COLUMN currency TO money`;
    const { status, json } = await app.graphql('{ viewer { organizations(first: 1) { nodes { currency } } } }');
    await app.app.database.prisma.$executeRaw`ALTER TABLE organizations RENAME COLUMN money TO currency`;
    expect([status, json.errors[0].extensions.code]).toEqual([200, 'internal_error']);
    expect(await read()).toBe(before + 1);
  });

  it('count the requests that are refused to an address behind a proxy', async () => {
    const proxied = await startApp({ TRUST_PROXY: 'loopback', MAX_CONNECTIONS_PER_ADDRESS: '1' });
    const ask = () => proxied.ask('GET', `${proxied.projectPath}/compute/overview`, { headers: { 'x-forwarded-for': '203.0.113.7' } });
    const statuses = (await Promise.all(Array.from({ length: 10 }, ask))).map(({ status }) => status);
    const refused = statuses.filter((status) => status === 503).length;
    expect(refused).toBeGreaterThan(0);
    expect(await metricsOf(proxied)).toContain(`portico_connection_refusals_total ${refused}\n`);
    await proxied.close();
  });

  it('leave out the wait for a client that breaks off, which is logged', async () => {
    const lines: string[] = [];
    const metrics = openMetrics();
    const middleware = logRequests({
      log: createLogger('info', { write: (line) => void lines.push(line) }),
      metrics,
      lifecycle: new Lifecycle(),
      addresses: createClientAddresses([]),
      config: { publicUrl: null, compresses: false },
    });
    const server = createServer((request, response) => {
      middleware(request, response, () => {});
      if (request.url === '/large') {
        response.end(Buffer.alloc(32 * 2 ** 20));
        setTimeout(() => request.socket.destroy(), 100);
        return;
      }
      response.writeHead(200, { 'Content-Length': '2' }).write('x');
      if (request.url === '/whole') response.end('x');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    await (await fetch(`http://127.0.0.1:${port}/whole`)).text();
    await (await fetch(`http://127.0.0.1:${port}/whole`, { headers: { Connection: 'close' } })).text();
    const broken = connect(port, '127.0.0.1', () => broken.write('GET /broken HTTP/1.1\r\nHost: x\r\n\r\n'));
    broken.once('data', () => broken.destroy());
    await expect.poll(() => lines.map((line) => JSON.parse(line).aborted)).toEqual([undefined, undefined, true]);
    // This one is complete on the side of the server, and is not read.
    const unread = connect(port, '127.0.0.1', () => unread.write('GET /large HTTP/1.1\r\nHost: x\r\n\r\n'));
    unread.pause();
    unread.on('error', () => {});
    await expect.poll(() => lines.map((line) => JSON.parse(line).aborted)).toEqual([undefined, undefined, true, true]);
    unread.destroy();
    const text = await metrics.registry.metrics();
    expect(text).toContain('portico_requests_total{operation="none",status="200"} 4\n');
    expect(text).toContain('portico_request_duration_seconds_count{operation="none"} 2\n');
    server.close();
    server.closeAllConnections();
  });

  it('are in the format of Prometheus', async () => {
    const response = await app.ask('GET', '/metrics', { as: null });
    expect(response.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
    for (const line of response.text.trimEnd().split('\n')) {
      expect(line).toMatch(/^(# (HELP|TYPE) \w+ .+|\w+(\{(\w+="[^"\n]*",?)+\})? \S+|)$/);
    }
  });
});

describe('a trace', () => {
  const traceOf = async (traceparent: string) => {
    app.logLines.length = 0;
    await app.ask('GET', `${app.projectPath}/compute/overview`, {
      headers: { traceparent },
    });
    await expect.poll(() => app.logLines.length).toBeGreaterThan(0);
    const { trace_id, parent_id } = JSON.parse(app.logLines.at(-1) ?? '');
    return { trace_id, parent_id };
  };
  const trace_id = '0af7651916cd43dd8448eb211c80319c';
  const parent_id = 'b7ad6b7169203331';

  it.each([`00-${trace_id}-${parent_id}-01`, `cc-${trace_id}-${parent_id}-00-what-will-come`])('is passed through: %s', async (header) => {
    expect(await traceOf(header)).toEqual({ trace_id, parent_id });
  });

  it.each([
    'x',
    `00-${trace_id}-${parent_id}`,
    `00-${trace_id}-${parent_id}-01-more`,
    `ff-${trace_id}-${parent_id}-01`,
    `00-${'0'.repeat(32)}-${parent_id}-01`,
    `00-${trace_id}-${'0'.repeat(16)}-01`,
    `00-${trace_id.toUpperCase()}-${parent_id}-01`,
  ])('is none: %s', async (header) => {
    expect(await traceOf(header)).toEqual({});
  });
});
