import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { toFault } from '../../src/platform/errors.ts';
import { createLogger } from '../../src/platform/logger.ts';
import { Pool } from '../../src/platform/pool.ts';
import { createQuery } from '../../src/platform/query.ts';
import { copyTemplate, startApp, type TestApp } from '../support/app.ts';
import { openCrowd, type Sending } from '../support/crowd.ts';
import { openProxy, type TcpProxy } from '../support/proxy.ts';
import { ask, describeOutcome, isGood, type Outcome, percentile } from '../support/traffic.ts';

/** The driver's deadline of every statement: a request answered well before it did not wait for it. */
const DRIVER_DEADLINE_MS = 6_000;

let proxy: TcpProxy;
let url: string;
let template: string;
beforeAll(async () => {
  template = await copyTemplate();
});
beforeEach(async () => {
  const through = new URL(template);
  proxy = await openProxy({ host: through.hostname, port: Number(through.port || 5432) });
  through.hostname = '127.0.0.1';
  through.port = String(proxy.port);
  url = through.href;
});
afterEach(() => proxy.close());

describe('a silent connection among live ones', () => {
  const logLines: string[] = [];
  const openPool = (size: number) => {
    const pool = new Pool({ url, size, log: createLogger('debug', { write: (line) => void logLines.push(line) }) });
    return { pool, query: createQuery((statement, values) => pool.run(statement, values)) };
  };
  const took = async <Value>(work: Promise<Value>) => {
    const began = performance.now();
    const [outcome] = await Promise.allSettled([work]);
    return { outcome, ms: performance.now() - began };
  };

  it('is replaced, and its reads are repeated on another one', async () => {
    const { pool, query } = openPool(1);
    const [before] = await query<{ pid: number }>`SELECT pg_backend_pid() AS pid`;
    proxy.links()[0]?.freeze();
    const { outcome, ms } = await took(query<{ pid: number }>`SELECT pg_backend_pid() AS pid`);
    expect(outcome).toMatchObject({ status: 'fulfilled', value: [{ pid: expect.any(Number) }] });
    expect(outcome).not.toMatchObject({ value: [before] });
    expect(ms).toBeLessThan(DRIVER_DEADLINE_MS - 1_000);
    expect(logLines.join('')).toContain('fell silent');
    expect([pool.breaker.isOpen, pool.totalCount, pool.idleCount]).toEqual([false, 1, 1]);
    await pool.end();
  });

  it('fails its writes, which are not repeated', async () => {
    const { pool, query } = openPool(2);
    await query`CREATE TABLE written (id integer)`;
    await query`INSERT INTO written VALUES (1)`;
    const [link] = proxy.links();
    link?.freeze();
    const { outcome, ms } = await took(query`INSERT INTO written VALUES (2)`);
    expect(outcome?.status).toBe('rejected');
    expect(toFault((outcome as PromiseRejectedResult).reason).code).toBe('service_unavailable');
    expect(ms).toBeLessThan(DRIVER_DEADLINE_MS - 1_000);
    expect(pool.breaker.isOpen).toBe(false);
    link?.cut();
    expect(await query`SELECT id FROM written`).toEqual([{ id: 1 }]);
    await query`INSERT INTO written VALUES (3)`;
    expect(await query`SELECT id FROM written ORDER BY id`).toEqual([{ id: 1 }, { id: 3 }]);
    await query`DROP TABLE written`;
    await pool.end();
  });

  it('is distinguished from one with a slow statement, or idle in its transaction', async () => {
    const { pool, query } = openPool(3);
    const { pid, client } = await pool.connect().then(async (client) => {
      await client.query('BEGIN');
      return { client, pid: (await client.query('SELECT pg_backend_pid() AS pid')).rows[0].pid as number };
    });
    expect(await query`SELECT 'slept' AS what FROM pg_sleep(2)`).toEqual([{ what: 'slept' }]);
    expect((await client.query('SELECT pg_backend_pid() AS pid')).rows).toEqual([{ pid }]);
    await client.query('COMMIT');
    client.release();
    await pool.end();
  });

  it('may be the one of the probe of the server', async () => {
    const { pool, query } = openPool(2);
    await query`SELECT 1 AS one`;
    // A suspicion opens the connection that probes the database.
    pool.breaker.startProbing();
    while (proxy.links().length < 2) await sleep(20);
    await sleep(200);
    proxy.links().at(-1)?.freeze();
    pool.breaker.startProbing();
    const until = performance.now() + 1_500;
    while (performance.now() < until) {
      expect(await query`SELECT 1 AS one`).toEqual([{ one: 1 }]);
      expect(pool.breaker.isOpen).toBe(false);
      await sleep(10);
    }
    await pool.end();
  });
});

describe('a replica with a pool of ten', () => {
  const REQUESTS = 1_000;
  const AT_ONCE = 20;

  it('fails no request for one silent connection, with a p99 below a second, and refills the pool', async () => {
    const app = await startApp({ DATABASE_URL: url, DATABASE_POOL: '10', RATE_LIMIT_USER: '100000000' });
    const crowd = openCrowd(app.baseUrl, '127.0.0.1', AT_ONCE);
    try {
      const kinds = readings(app);
      const pids = await fillPool(app);
      expect(pids.size).toBe(10);
      const before = await sendAll(REQUESTS, (index) => ask(crowd, kinds[index % kinds.length] as Sending));
      proxy.links()[3]?.freeze();
      const outcomes = await sendAll(REQUESTS, (index) => ask(crowd, kinds[index % kinds.length] as Sending));
      const noiseMs = p99(before);
      console.log(
        `one of ten silent: p99 ${Math.round(p99(outcomes))} ms, before ${Math.round(noiseMs)} ms; longest ${Math.round(longest(outcomes))} ms`,
      );
      expect(outcomes.filter((outcome) => !isGood(outcome)).map(describeOutcome)).toEqual([]);
      expect(p99(outcomes)).toBeLessThan(1_000 + noiseMs);
      expect(longest(outcomes)).toBeLessThan(DRIVER_DEADLINE_MS - 1_000);
      expect(app.logLines.filter((line) => line.includes('fell silent')).length).toBe(1);
      expect(app.logLines.filter((line) => line.includes('a dependency is away'))).toEqual([]);
      const whole = await fillPool(app);
      expect(whole.size).toBe(10);
      expect([...whole].filter((pid) => pids.has(pid)).length).toBe(9);
    } finally {
      crowd.close();
      await app.close();
    }
  });
});

/** Sends `count` requests, several at once. */
async function sendAll(count: number, send: (index: number) => Promise<Outcome>): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  let next = 0;
  const work = async () => {
    while (next < count) {
      next += 1;
      outcomes.push(await send(next));
    }
  };
  await Promise.all(Array.from({ length: 20 }, work));
  return outcomes;
}

const p99 = (outcomes: readonly Outcome[]) =>
  percentile(
    outcomes.map(({ took }) => took),
    0.99,
  );
const longest = (outcomes: readonly Outcome[]) => Math.max(...outcomes.map(({ took }) => took));

/** Runs as many statements at once as the pool has connections; returns the pids of their backends. */
async function fillPool({ app }: TestApp): Promise<Set<number>> {
  const rows = await Promise.all(
    Array.from({ length: 10 }, () => app.database.query<{ pid: number }>`SELECT pg_backend_pid() AS pid FROM pg_sleep(0.5)`),
  );
  return new Set(rows.flatMap((row) => row.map(({ pid }) => pid)));
}

/** Reads through both APIs, with a session and with an API key, with handwritten SQL and through Prisma. */
function readings({ demo, projectPath }: TestApp): Sending[] {
  const session = { authorization: `Bearer ${demo.users.owner.token}` };
  const key = { authorization: `Bearer ${demo.users.member.api_key}` };
  const body = JSON.stringify({ query: '{ viewer { organizations { nodes { name } } apiKeys(first: 2) { nodes { name } } } }' });
  return [
    { path: `${projectPath}/compute/overview`, headers: session },
    { path: `${projectPath}/notifications?page_size=5`, headers: key },
    { method: 'POST', path: '/graphql', headers: { ...session, 'content-type': 'application/json' }, body },
  ];
}
