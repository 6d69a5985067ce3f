// The cost of each operation for Portico, PostgreSQL and Redis, with a separate user and project for every socket: the inputs
// of scale.mjs that results.md does not have.
import { execFileSync, spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { Agent, request as httpRequest } from 'node:http';
import { connect, createServer } from 'node:net';
import { cpus } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import pg from 'pg';
import { WebSocket } from 'ws';
import { databaseUrl, query, root } from '../database.mjs';
import { fill, idOf } from '../fill.mjs';
import { collectGarbage, cpuOf, makeKey, memoryOf, start } from '../servers.mjs';

const SCALE = 0.1;
/** Additional users and projects, one of each for every socket. */
const FIRST = 100_000;
const PAIRS = 9_000;
const PLAIN = 3_000;
const REPLAYING = 3_000;
const REPLAYED = 10;
const PUBLISHED = 3_000;
const WAKEUPS = 100_000;
const SUBSCRIBERS = 50;
const WORKERS = 16;
/** Warm-up requests, until V8 has compiled the hot code. */
const WARMING = 6_000;
const REQUESTS = 6_000;
const IDLE_MS = 10_000;
const SETTLE_MS = 3_000;
const SAMPLE_MS = 10;
const PREFIX = 'portico-costs';

const people = `
  SET session_replication_role = replica;
  INSERT INTO organizations (id, name) SELECT id('a0', n), 'Organization ' || n FROM generate_series(${FIRST}, ${FIRST + PAIRS - 1}) AS n;
  INSERT INTO users (id, email, name) SELECT id('a1', n), 'user-' || n || '@bench.example', 'User ' || n FROM generate_series(${FIRST}, ${FIRST + PAIRS - 1}) AS n;
  INSERT INTO projects (id, organization_id, name) SELECT id('a2', n), id('a0', n), 'Project ' || n FROM generate_series(${FIRST}, ${FIRST + PAIRS - 1}) AS n;
  INSERT INTO organization_members (organization_id, user_id, role) SELECT id('a0', n), id('a1', n), 'member' FROM generate_series(${FIRST}, ${FIRST + PAIRS - 1}) AS n;
  INSERT INTO project_members (project_id, user_id, role) SELECT id('a2', n), id('a1', n), 'admin' FROM generate_series(${FIRST}, ${FIRST + PAIRS - 1}) AS n;
  INSERT INTO notification_logs (project_id, last_sequence) SELECT id('a2', n), ${REPLAYED} FROM generate_series(${FIRST}, ${FIRST + PAIRS - 1}) AS n;
  INSERT INTO notification_states (project_id, user_id) SELECT id('a2', n), id('a1', n) FROM generate_series(${FIRST}, ${FIRST + PAIRS - 1}) AS n;
  INSERT INTO notifications (project_id, sequence, kind, severity, title, body)
    SELECT id('a2', n), sequence, 'instance.started', 'info', 'Something happened to instance ' || n, 'A sentence or two that say what it was, and what can be done.'
    FROM generate_series(${FIRST}, ${FIRST + PAIRS - 1}) AS n, generate_series(1, ${REPLAYED}) AS sequence`;

/** Creates a separate database, which is dropped at the end. */
async function openDatabase() {
  const url = new URL(databaseUrl(1));
  url.pathname = '/portico_costs';
  const maintenance = new URL(url);
  maintenance.pathname = '/postgres';
  await query(maintenance.href, 'DROP DATABASE IF EXISTS portico_costs WITH (FORCE)');
  await query(maintenance.href, 'CREATE DATABASE portico_costs');
  execFileSync(process.execPath, ['dist/current/cli.js', 'migrate'], { cwd: root, env: { ...process.env, DATABASE_URL: url.href } });
  const client = new pg.Client(url.href);
  await client.connect();
  await fill(client, { scale: SCALE });
  await client.query(`CREATE FUNCTION pg_temp.id(letter text, n integer) RETURNS uuid LANGUAGE sql
    RETURN ('0190' || letter || '00-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid`);
  await client.query(people.replaceAll(' id(', ' pg_temp.id('));
  await client.query('VACUUM (ANALYZE)');
  await client.end();
  return { url, drop: () => query(maintenance.href, 'DROP DATABASE portico_costs WITH (FORCE)') };
}

/** A proxy that counts the bytes between a server and its database. @param {URL} target */
async function openCounter(target) {
  let bytes = 0;
  const counter = createServer((client) => {
    const upstream = connect(Number(target.port || 5432), target.hostname);
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ]) {
      from.setNoDelay(true);
      from.on('data', (chunk) => {
        bytes += chunk.length;
        to.write(chunk);
      });
      from.on('error', () => {});
      from.on('close', () => to.destroy());
    }
  });
  await new Promise((resolve) => counter.listen(0, '127.0.0.1', () => resolve(null)));
  const url = new URL(target);
  url.hostname = '127.0.0.1';
  url.port = String(/** @type {import('node:net').AddressInfo} */ (counter.address()).port);
  return { url: url.href, read: () => bytes, close: () => counter.close() };
}

async function openRedis() {
  const port = 17_379;
  const options = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
  const child = spawn('redis-server', options, { stdio: 'ignore' });
  const client = new Redis(port, '127.0.0.1');
  // The client retries until the server listens.
  client.on('error', () => {});
  await client.ping();
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    pid: Number(child.pid),
    client,
    close: () => {
      client.disconnect();
      child.kill();
    },
  };
}

/** The CPU of all backends of a database, including those that end: it is sampled twice a second. @param {string} url */
async function openBackends(url) {
  const client = new pg.Client(url);
  await client.connect();
  /** @type {Map<number, number>} */
  const used = new Map();
  const look = async () => {
    const { rows } = await client.query('SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()');
    for (const { pid } of rows) {
      try {
        // `schedstat` is exact; `stat` counts in ticks, which loses a part for each backend.
        used.set(pid, Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1000);
      } catch {
        // The backend has ended meanwhile.
      }
    }
  };
  const timer = setInterval(() => void look().catch(() => {}), 500);
  return {
    /** The share of lease polls among the running statements that poll leases or positions. */
    shareOfLeases: async (/** @type {number} */ ms) => {
      const seen = { leases: 0, positions: 0 };
      for (const until = performance.now() + ms; performance.now() < until; await sleep(SAMPLE_MS)) {
        const { rows } = await client.query(
          `SELECT count(*) FILTER (WHERE query LIKE '%wanted.access%')::int AS leases, count(*) FILTER (WHERE query LIKE '%wanted.project_id%')::int AS positions
           FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND state = 'active'`,
        );
        seen.leases += rows[0].leases;
        seen.positions += rows[0].positions;
      }
      return seen.leases / (seen.leases + seen.positions);
    },
    read: async () => {
      await look();
      return [...used.values()].reduce((sum, micros) => sum + micros, 0);
    },
    close: async () => {
      clearInterval(timer);
      await client.end();
    },
  };
}

/** @typedef {'node' | 'postgres' | 'redis' | 'bytes'} Part @typedef {Record<Part, number>} Cost */

/** @param {(part: Part) => number} of @returns {Cost} */
const combine = (of) => ({ node: of('node'), postgres: of('postgres'), redis: of('redis'), bytes: of('bytes') });

const agent = new Agent({ keepAlive: true, maxSockets: WORKERS });

/** @param {string} baseUrl @param {{method?: string, path: string, token: string, body?: unknown}} request @returns {Promise<any>} */
function ask(baseUrl, { method = 'POST', path, token, body }) {
  return new Promise((resolve, reject) => {
    const sent = httpRequest(
      baseUrl + path,
      { method, agent, headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' } },
      (response) => {
        /** @type {Buffer[]} */
        const chunks = [];
        response.on('data', (chunk) => chunks.push(chunk));
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString();
          if (Number(response.statusCode) >= 300 || text.includes('"errors"')) reject(new Error(`${path}: ${response.statusCode} ${text}`));
          else resolve(JSON.parse(text));
        });
      },
    );
    sent.on('error', reject);
    sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

/** Runs the work for each number, several at a time. @param {number} from @param {number} count @param {(n: number) => Promise<unknown>} work */
async function forEach(from, count, work) {
  let next = from;
  const run = async () => {
    while (next < from + count) {
      next += 1;
      await work(next - 1);
    }
  };
  await Promise.all(Array.from({ length: WORKERS }, run));
}

const pathOf = (/** @type {number} */ n) => `/v1/organizations/${idOf('organization', n)}/projects/${idOf('project', n)}`;
const organizationOf = (/** @type {number} */ n) => idOf('organization', 1 + Math.floor((n - 1) / 10));
const ofBench = (/** @type {number} */ n) => `/v1/organizations/${organizationOf(n)}/projects/${idOf('project', n)}`;
const read = (/** @type {number} */ n, /** @type {string} */ selection) => ({
  path: '/graphql',
  body: {
    query: `query ($organization: ID!, $id: ID!) { project(organizationId: $organization, id: $id) { ${selection} } }`,
    variables: { organization: organizationOf(n), id: idOf('project', n) },
  },
});

/** The measured requests, by the bench's users on its projects. @type {Record<string, (n: number) => {method?: string, path: string, body?: unknown}>} */
const requests = {
  overview: (n) => ({ method: 'GET', path: `${ofBench(n)}/compute/overview` }),
  notifications: (n) =>
    read(n, 'notifications(first: 20) { nodes { id sequence kind severity title body resourceType resourceId data created read } }'),
  instances: (n) =>
    read(n, 'instances(first: 20) { nodes { id name status plan region vcpu ramMb storageGb created backupTrial { eligible reason } } }'),
  mark: (n) => ({ path: `${ofBench(n)}/notifications/read`, body: {} }),
};

const publication = `mutation ($organization: ID!, $project: ID!) { publishNotification(input: { organizationId: $organization, projectId: $project,
  kind: "instance.started", severity: info, title: "Something happened to an instance", body: "A sentence or two that say what it was." }) { notification { id } } }`;

export async function measureCosts() {
  execFileSync(process.execPath, ['scripts/build.mjs'], { cwd: root });
  const say = (/** @type {string} */ line) => console.error(line);
  const database = await openDatabase();
  const counter = await openCounter(database.url);
  const redis = await openRedis();
  const key = await makeKey();
  const server = await start('portico', {
    databaseUrl: counter.url,
    key,
    inspect: true,
    env: { REDIS_URL: redis.url, REDIS_PREFIX: PREFIX },
  });
  const backends = await openBackends(database.url.href);
  /** @type {WebSocket[]} */
  const sockets = [];
  const { baseUrl } = server;
  const look = async () => ({
    node: cpuOf(server.pid),
    postgres: await backends.read(),
    redis: cpuOf(redis.pid),
    bytes: counter.read(),
    at: performance.now(),
  });
  /** The cost of the work for each part, including everything else that runs, and its duration. @param {() => Promise<unknown>} work */
  const observe = async (work) => {
    const before = await look();
    await work();
    await sleep(SETTLE_MS / 3);
    const after = await look();
    const seconds = (after.at - before.at) / 1000;
    return { seconds, cost: combine((part) => after[part] - before[part]) };
  };
  const open = async (/** @type {number} */ n, /** @type {string} */ more) => {
    const { path, ticket } = await ask(baseUrl, {
      path: `${pathOf(n)}/websocket-tickets`,
      token: await key.tokenOf(n),
      body: { target: 'notifications' },
    });
    const socket = new WebSocket(`${baseUrl.replace('http', 'ws')}${path}?ticket=${ticket}${more}`, { perMessageDeflate: false });
    sockets.push(socket);
    await new Promise((resolve, reject) => {
      socket.on('error', reject);
      socket.on('close', (code, reason) => reject(new Error(`closed with ${code} ${reason}`)));
      socket.on('message', (data) => String(data).includes('"ready"') && resolve(null));
    });
  };
  const publishTo = (/** @type {number} */ from) => () =>
    forEach(from, PUBLISHED, async (n) =>
      ask(baseUrl, {
        path: '/graphql',
        token: await key.tokenOf(n),
        body: { query: publication, variables: { organization: idOf('organization', n), project: idOf('project', n) } },
      }),
    );
  const idle = async () => {
    const { cost, seconds } = await observe(() => sleep(IDLE_MS));
    return combine((part) => cost[part] / seconds);
  };
  const memory = async () => {
    await collectGarbage(server);
    await sleep(SETTLE_MS / 3);
    return memoryOf(server.pid) * 1024;
  };
  try {
    await forEach(FIRST, PAIRS, (n) => key.tokenOf(n));
    await forEach(3, 900, (n) => key.tokenOf(n));
    /** The measured work: how often, and with how many open sockets. @type {Array<{name: string, count: number, open: number, seconds: number, cost: Cost}>} */
    const done = [];
    const measure = async (/** @type {string} */ name, /** @type {number} */ count, /** @type {() => Promise<unknown>} */ work) => {
      const before = sockets.length;
      const { seconds, cost } = await observe(work);
      done.push({ name, count, open: (before + sockets.length) / 2, seconds, cost });
      say(`${name}: ${count} in ${seconds.toFixed(1)} s`);
    };
    for (const [name, describe] of Object.entries(requests)) {
      const run = (/** @type {number} */ times) =>
        forEach(0, times, async (n) => ask(baseUrl, { ...describe(3 + (n % 900)), token: await key.tokenOf(3 + (n % 900)) }));
      await run(WARMING);
      await measure(name, REQUESTS, () => run(REQUESTS));
    }
    await measure('publication', PUBLISHED, publishTo(FIRST + PAIRS - PUBLISHED));
    const still = await idle();
    const empty = await memory();
    await measure('connect', PLAIN, () => forEach(FIRST, PLAIN, (n) => open(n, '')));
    await measure('reconnect', REPLAYING, () => forEach(FIRST + PLAIN, REPLAYING, (n) => open(n, '&after=0')));
    await sleep(SETTLE_MS);
    const kept = ((await memory()) - empty) / sockets.length;
    const held = await idle();
    const shareOfLeases = await backends.shareOfLeases(IDLE_MS);
    await measure('publicationToOne', PUBLISHED, publishTo(FIRST));
    const socketSecond = combine((part) => (held[part] - still[part]) / sockets.length);
    const costs = Object.fromEntries([
      ['socketSecond', socketSecond],
      // The cost of the open sockets during the work is subtracted.
      ...done.map(({ name, count, open, seconds, cost }) => [
        name,
        combine((part) => (cost[part] - seconds * (still[part] + open * socketSecond[part])) / count),
      ]),
    ]);
    const lag = await (await fetch(`${baseUrl}/metrics`)).text();
    say(`${sockets.length} sockets: ${kept.toFixed(2)} KiB each; ${/nodejs_eventloop_lag_max_seconds [\d.e-]+/.exec(lag)}`);
    const wake = async () => {
      for (let sent = 0; sent < WAKEUPS; sent += 1_000) {
        const batch = redis.client.pipeline();
        for (let n = sent; n < sent + 1_000; n += 1)
          batch.publish(`${PREFIX}:wakeups`, `00000000-0000-0000-0000-000000000000 ${idOf('project', n)}`);
        await batch.exec();
      }
    };
    /** The cost of a wake-up: first with one replica, then with the additional subscribers. */
    const wakeup = async () => {
      const { seconds, cost } = await observe(wake);
      return combine((part) => (cost[part] - seconds * held[part]) / WAKEUPS);
    };
    const alone = await wakeup();
    const subscribers = Array.from({ length: SUBSCRIBERS }, () => {
      const socket = connect(redis.port, '127.0.0.1');
      socket.write(`SUBSCRIBE ${PREFIX}:wakeups\r\n`);
      return socket.resume();
    });
    await sleep(500);
    const many = await wakeup();
    for (const socket of subscribers) socket.destroy();
    const redisMessage = (many.redis - alone.redis) / SUBSCRIBERS;
    const [row] = await query(
      database.url.href,
      `SELECT (pg_total_relation_size('notifications') / count(*))::int AS bytes, current_setting('server_version') AS version FROM notifications`,
    );
    const report = {
      measured: `${new Date().toISOString().slice(0, 16)}Z, Node.js ${process.version}, PostgreSQL ${row.version}, ${cpus().length} × ${cpus()[0]?.model.trim()}`,
      sockets: sockets.length,
      replayed: REPLAYED,
      costs: { ...costs, wakeup: alone },
      shareOfLeases,
      kibOfSocket: kept,
      redisMessage,
      bytesOfNotification: row.bytes,
    };
    writeFileSync(
      new URL('costs.json', import.meta.url),
      `${JSON.stringify(report, (_, value) => (typeof value === 'number' ? Number(value.toPrecision(3)) : value), 2)}\n`,
    );
    return report;
  } finally {
    for (const socket of sockets) socket.terminate();
    agent.destroy();
    await backends.close();
    await server.stop();
    redis.close();
    counter.close();
    key.remove();
    await database.drop();
  }
}
