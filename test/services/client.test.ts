import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type pg from 'pg';
import { connect } from 'portico-client';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { copyTemplate } from '../support/app.ts';
import { type Balancer, openBalancer } from '../support/balancer.ts';
import { countCases } from '../support/cases.ts';
import { seededRandom } from '../support/random.ts';
import { openRedis, type RedisServer } from '../support/redis.ts';
import { type Fleet, openFleet } from '../support/replicas.ts';
import { connectTo } from '../support/sql.ts';

const EVENTS = countCases(100_000, 'CLIENT_EVENTS');
const BATCH = 500;
const CUTS = EVENTS / 200;
const KILLS = 5;
const seed = Number(process.env.CLIENT_SEED ?? Date.now() % 1_000_000);

let redis: RedisServer;
let fleet: Fleet;
let balancer: Balancer;
let database: pg.Client;
const folder = mkdtempSync(join(tmpdir(), 'portico-test-'));
beforeAll(async () => {
  const databaseUrl = await copyTemplate();
  redis = await openRedis();
  fleet = await openFleet({ count: 2, databaseUrl, redisUrl: redis.url, env: { LOG_LEVEL: 'warn' } });
  balancer = await openBalancer(fleet.replicas);
  database = await connectTo(databaseUrl);
});
afterAll(async () => {
  await database?.end();
  await balancer?.close();
  await fleet?.close();
  await redis?.close();
  rmSync(folder, { recursive: true, force: true });
});

const insert = `INSERT INTO notifications (project_id, kind, severity, title, body, data)
  SELECT $1::uuid, 'test.client', 'info', 'Something', '', '{}' FROM generate_series(1, $2::int)`;

it(`gives each of ${EVENTS} events once and in order: ${CUTS} cuts, two replicas that restart, a program that is killed (CLIENT_SEED=${seed})`, async () => {
  const random = seededRandom(seed);
  const project = fleet.demo.empty_project_id;
  const credential = fleet.demo.users.owner.token ?? '';
  const url = balancer.baseUrl;
  const leaving = new AbortController();
  let isOver = false;

  const seen: number[] = [];
  let connections = 0;
  const reading = (async () => {
    const feed = connect({ url, credential }).feed({
      project,
      after: 0,
      signal: leaving.signal,
      onState({ name }) {
        if (name === 'live') connections += 1;
      },
    });
    for await (const event of feed) {
      if (event.type === 'gap') throw new Error(`a gap from ${event.from} to ${event.to}`);
      if (event.type === 'notification') seen.push(event.sequence);
    }
  })();

  const file = join(folder, 'seen');
  const errors: string[] = [];
  const spawnFollower = (): ChildProcess => {
    const program = fileURLToPath(new URL('../support/follower.mjs', import.meta.url));
    const child = spawn(process.execPath, [program, url, credential, project, file], { stdio: ['ignore', 'ignore', 'pipe'] });
    child.stderr?.on('data', (text) => errors.push(String(text)));
    child.once('exit', (code) => code !== null && errors.push(`it ended by itself with ${code}`));
    return child;
  };
  let follower = spawnFollower();

  const publishing = (async () => {
    for (let done = 0; done < EVENTS; done += BATCH) {
      await database.query(insert, [project, BATCH]);
      await sleep(100);
    }
    isOver = true;
  })();
  let cuts = 0;
  const cutting = (async () => {
    while (cuts < CUTS) {
      await sleep(20 + random.below(60));
      if (balancer.count() === 0) continue;
      balancer.cutOne(random.below(1_000) / 1_000);
      cuts += 1;
    }
  })();
  let restarts = 0;
  const restarting = (async () => {
    while (!isOver) {
      await sleep(3_000);
      const replica = fleet.replicas[restarts % 2];
      await replica?.stop();
      await replica?.start();
      restarts += 1;
    }
  })();
  const killing = (async () => {
    for (let kills = 0; kills < KILLS; kills += 1) {
      await sleep(2_000 + random.below(2_000));
      follower.kill('SIGKILL');
      follower = spawnFollower();
    }
  })();

  await Promise.all([publishing, cutting, restarting, killing]);
  const kept = () => (existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n').map(Number) : []);
  const isComplete = () => seen.at(-1) === EVENTS && kept().at(-1) === EVENTS;
  await expect
    .poll(isComplete, { timeout: 120_000, interval: 500 })
    .toBe(true)
    .catch((failure) => {
      const states = readFileSync(`${file}.states`, 'utf8').split('\n').slice(-20).join('\n');
      throw new Error(`${seen.at(-1)} and ${kept().at(-1)} of ${EVENTS}; ${errors.join('')}\n${states}`, { cause: failure });
    });
  leaving.abort();
  follower.kill();
  await reading;
  const all = Array.from({ length: EVENTS }, (_, index) => index + 1);
  expect(seen).toEqual(all);
  expect(kept()).toEqual(all);
  expect(errors).toEqual([]);
  console.log(`${cuts} cuts, ${restarts} restarts, ${KILLS} kills, ${connections} connections of one feed`);
}, 600_000);
