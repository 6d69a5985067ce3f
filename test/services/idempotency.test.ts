import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { copyTemplate, needPostgres } from '../support/app.ts';
import { type Fleet, openFleet, type Replica } from '../support/replicas.ts';
import { connectTo, execute } from '../support/sql.ts';

/** The key of the advisory lock for which the tests' trigger waits before a write. */
const GATE = 7_015;

let databaseUrl: string;
let fleet: Fleet;
let first: Replica;
let second: Replica;
let database: pg.Client;
beforeAll(async () => {
  databaseUrl = await copyTemplate();
  fleet = await openFleet({ count: 2, databaseUrl, redisUrl: null });
  [first, second] = fleet.replicas as [Replica, Replica];
  database = await connectTo(databaseUrl);
  await database.query(
    `CREATE FUNCTION wait_at_gate() RETURNS trigger LANGUAGE plpgsql AS $$
     BEGIN PERFORM pg_advisory_xact_lock(${GATE}); RETURN NEW; END $$`,
  );
});
afterAll(async () => {
  await database?.end();
  await fleet?.close();
  const { server } = needPostgres();
  await execute(server, `DROP DATABASE IF EXISTS ${new URL(databaseUrl).pathname.slice(1)} WITH (FORCE)`);
});

interface Sent {
  readonly status: number;
  readonly text: string;
  readonly etag: string | null;
}

/** Creates a dashboard; null if the replica died meanwhile. */
async function create(replica: Replica, key: string, body: object): Promise<Sent | null> {
  const headers = {
    authorization: `Bearer ${fleet.demo.users.owner.token}`,
    'content-type': 'application/json',
    'idempotency-key': key,
  };
  const url = `${replica.baseUrl}${fleet.projectPath}/monitoring/dashboards`;
  try {
    const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
    return { status: response.status, text: await response.text(), etag: response.headers.get('etag') };
  } catch {
    return null;
  }
}

async function select(sql: string, ...values: unknown[]): Promise<number> {
  return Number((await database.query(sql, values)).rows[0]?.count);
}
const countBoards = (name: string) => select('SELECT count(*) FROM dashboards WHERE name = $1', name);
const countWaiting = (type: 'advisory' | 'transactionid') =>
  select(
    `SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid)
     WHERE NOT granted AND locktype = $1 AND datname = current_database()`,
    type,
  );

async function until(isSo: () => Promise<boolean>): Promise<void> {
  for (const deadline = Date.now() + 60_000; !(await isSo()); await sleep(10)) {
    if (Date.now() > deadline) throw new Error('it did not come to that');
  }
}

/** Blocks every write to `kept_answers` that satisfies the condition, until the gate is opened. */
async function closeGate(condition: string): Promise<void> {
  await database.query('SELECT pg_advisory_lock($1)', [GATE]);
  await database.query(
    `CREATE TRIGGER gate BEFORE UPDATE ON kept_answers FOR EACH ROW WHEN (${condition}) EXECUTE FUNCTION wait_at_gate()`,
  );
}

async function openGate(): Promise<void> {
  await database.query('SELECT pg_advisory_unlock($1)', [GATE]);
  await database.query('DROP TRIGGER gate ON kept_answers');
}

/** Kills a replica with SIGKILL, and terminates its backend, which waits at the gate. */
async function killAtGate(replica: Replica): Promise<void> {
  await replica.kill();
  const { rows } = await database.query(
    `SELECT pid, pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objid = $1`,
    [GATE],
  );
  const pids = rows.map(({ pid }) => pid);
  expect(pids).toHaveLength(1);
  await until(async () => (await select('SELECT count(*) FROM pg_stat_activity WHERE pid = ANY ($1)', pids)) === 0);
}

it('20 concurrent requests with a key on two replicas are executed once, with the same response, also after a restart', async () => {
  for (const body of [{ name: 'many' }, { name: 'many by default', is_default: true }]) {
    const key = randomUUID();
    const responses = await Promise.all(Array.from({ length: 20 }, (_, index) => create(index % 2 === 0 ? first : second, key, body)));
    const [response] = responses;
    expect(response?.status).toBe(201);
    for (const other of responses) expect(other).toEqual(response);
    expect(await countBoards(body.name)).toBe(1);
    await first.stop();
    await first.start();
    expect(await create(first, key, body)).toEqual(response);
    expect(await countBoards(body.name)).toBe(1);
  }
});

it('after a replica is killed between the commit and the response, the next one answers without repeating the work', async () => {
  const body = { name: 'committed', is_default: true, widgets: [{ a: 1 }] };
  const key = randomUUID();
  await closeGate('NEW.is_answered');
  const lost = create(first, key, body);
  await until(async () => (await countWaiting('advisory')) === 1);
  expect(await countBoards('committed')).toBe(1);
  await killAtGate(first);
  expect(await lost).toBeNull();
  await openGate();
  await database.query(`UPDATE dashboards SET version = 5, description = 'changed meanwhile' WHERE name = 'committed'`);
  const response = await create(second, key, body);
  expect([response?.status, response?.etag, JSON.parse(response?.text ?? '').description]).toEqual([201, '"1"', '']);
  await first.start();
  expect(await create(first, key, body)).toEqual(response);
  expect(await countBoards('committed')).toBe(1);
});

it('a request waits for one with its key that has taken the last place, and gets its response', async () => {
  const body = { name: 'the last place' };
  const key = randomUUID();
  await closeGate('NOT NEW.is_answered');
  const earlier = create(first, key, body);
  await until(async () => (await countWaiting('advisory')) === 1);
  const [room] = (await database.query(`SELECT pg_get_functiondef('has_answer_room'::regproc) AS definition`)).rows;
  await database.query(room.definition.replace(/AS \$function\$.*\$function\$/s, 'AS $function$ SELECT false $function$'));
  let hasAnswer = false;
  const later = create(second, key, body).finally(() => (hasAnswer = true));
  await until(async () => hasAnswer || (await countWaiting('transactionid')) === 1);
  await openGate();
  const response = await earlier;
  expect(response?.status).toBe(201);
  expect(await later).toEqual(response);
  // Another key has no place.
  expect((await create(second, randomUUID(), body))?.status).toBe(409);
  expect(await countBoards('the last place')).toBe(1);
  await database.query(room.definition);
});

it('after a replica is killed before the commit, a waiting request does the work', async () => {
  const body = { name: 'uncommitted' };
  const key = randomUUID();
  await closeGate('NOT NEW.is_answered');
  const lost = create(first, key, body);
  await until(async () => (await countWaiting('advisory')) === 1);
  const waiting = create(second, key, body);
  await until(async () => (await countWaiting('transactionid')) === 1);
  expect(await countBoards('uncommitted')).toBe(0);
  await killAtGate(first);
  // The request that waited for the claim reaches the gate next.
  await database.query('SELECT pg_advisory_unlock($1)', [GATE]);
  expect(await lost).toBeNull();
  const response = await waiting;
  expect(response?.status).toBe(201);
  await database.query('DROP TRIGGER gate ON kept_answers');
  await first.start();
  expect(await create(first, key, body)).toEqual(response);
  expect(await countBoards('uncommitted')).toBe(1);
});
