import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { copyTemplate } from '../support/app.ts';
import { type Crowd, openCrowd, type Sending } from '../support/crowd.ts';
import { checkHistory, type Entry } from '../support/history.ts';
import { openRedis, type RedisServer } from '../support/redis.ts';
import { type Fleet, findInternalErrors, openFleet } from '../support/replicas.ts';
import { execute } from '../support/sql.ts';
import { openSubscriber, type Subscriber } from '../support/subscribers.ts';
import { ask, describeOutcome, drive, isGood, type Outcome, percentile, warmUp } from '../support/traffic.ts';

// Few enough for a slow machine, of which two replicas, PostgreSQL and this process would otherwise take all.
const READS_PER_SECOND = 40;
const CONTROLS_PER_SECOND = 20;
const WRITES_PER_SECOND = 5;
const SUBSCRIBERS = 20;
const PHASE_MS = Number(process.env.REDIS_FAULT_SECONDS ?? 4) * 1000;
/** The time after a fault from which it must have no noticeable effect. */
const NOTICED_WITHIN_MS = 1_000;
const SLOWER_BY_MS = 20;
/** One in a hundred reads may be delayed by other work of the machine. */
const SLOWEST_SLOWER_BY_MS = 150;
const LATE_BY_MS = 2_000;
const WHOLE_WITHIN_MS = 15_000;

let databaseUrl: string;
let redis: RedisServer;
let fleet: Fleet;
let crowds: Crowd[];
let subscribers: Subscriber[];
let from = 0;
beforeAll(async () => {
  databaseUrl = await copyTemplate();
  redis = await openRedis();
  fleet = await openFleet({ count: 2, databaseUrl, redisUrl: redis.url, env: { LOG_LEVEL: 'warn', RATE_LIMIT_ANONYMOUS: '60' } });
  crowds = fleet.replicas.map(({ baseUrl }) => openCrowd(baseUrl, '127.0.8.1', 200));
  const { demo, replicas } = fleet;
  from = demo.notification_ids.length;
  subscribers = Array.from({ length: SUBSCRIBERS }, (_, index) =>
    openSubscriber({
      name: `subscriber ${index}`,
      client: index % 4 < 2 ? 'plain' : 'graphql',
      baseUrl: replicas[index % replicas.length]?.baseUrl ?? '',
      demo,
      projectId: demo.project_id,
      as: 'viewer',
      from,
    }),
  );
  await waitFor(async () => subscribers.every(({ timesReady }) => timesReady === 1), 20_000);
  await warmUp(crowds, [...listReads(), ...listWrites()]);
});
afterAll(async () => {
  for (const subscriber of subscribers ?? []) subscriber.end();
  for (const crowd of crowds ?? []) crowd.close();
  await fleet?.close();
  await redis?.close();
});

async function waitFor(isIt: () => Promise<boolean>, withinMs: number): Promise<boolean> {
  for (const deadline = Date.now() + withinMs; Date.now() < deadline; await sleep(50)) if (await isIt()) return true;
  return false;
}

/** The status of Redis as each replica reports it. */
async function readChecks(): Promise<Array<{ status: string; redis: string }>> {
  return Promise.all(
    crowds.map(async (crowd) => {
      const { status, checks } = JSON.parse((await crowd.send({ path: '/health/ready' })).text);
      return { status, redis: checks?.redis };
    }),
  );
}

const isWhole = async () => (await readChecks()).every(({ status, redis }) => status === 'ready' && redis === 'up');

function listReads(): Sending[] {
  const { demo, projectPath } = fleet;
  const session = { authorization: `Bearer ${demo.users.owner.token}` };
  const key = { authorization: `Bearer ${demo.users.member.api_key}` };
  return [
    { path: `${projectPath}/compute/overview`, headers: session },
    { path: `${projectPath}/notifications?page_size=5`, headers: key },
    { path: `${projectPath}/monitoring/dashboards/${demo.dashboards.public}`, headers: session },
  ];
}

function startReads() {
  const kinds = listReads();
  return crowds.map((crowd) => drive(crowd, READS_PER_SECOND / crowds.length, (index) => kinds[index % kinds.length] as Sending));
}

/** Sends requests that query the database but never Redis, which shows how busy the machine is. */
function startControls() {
  return crowds.map((crowd) => drive(crowd, CONTROLS_PER_SECOND / crowds.length, () => ({ path: '/health/ready' })));
}

function listWrites(): Sending[] {
  const { demo } = fleet;
  const headers = { authorization: `Bearer ${demo.users.owner.token}`, 'content-type': 'application/json' };
  const query = 'mutation ($input: PublishNotificationInput!) { publishNotification(input: $input) { notification { sequence } } }';
  const input = { organizationId: demo.organization_id, projectId: demo.project_id, kind: 'test.redis', severity: 'info', title: 'told' };
  return [{ method: 'POST', path: '/graphql', headers, body: JSON.stringify({ query, variables: { input } }) }];
}

/** Publishes at each replica, for subscribers at both. */
function startWrites() {
  const [sending] = listWrites();
  return crowds.map((crowd) => drive(crowd, WRITES_PER_SECOND / crowds.length, () => sending as Sending));
}

/** The delay of each notification at each subscriber after the publication was answered, in milliseconds. */
function measureDelays(written: readonly Outcome[]): number[] {
  return written.flatMap(({ text, at, took }) => {
    const { sequence } = JSON.parse(text).data.publishNotification.notification;
    return subscribers.map(({ received, arrivals }) => {
      const index = received.findIndex((entry) => entry.sequence === sequence);
      return (arrivals[index] ?? Number.POSITIVE_INFINITY) - (at + took);
    });
  });
}

interface Fault {
  readonly name: string;
  readonly begin: () => unknown;
  readonly end: () => unknown;
  /** Whether Redis is unusable during the fault, and the replicas detect it. */
  readonly isOutage: boolean;
}

const forEachProxy = (act: (proxy: NonNullable<Fleet['replicas'][number]['redis']>) => unknown) =>
  Promise.all(fleet.replicas.map(({ redis: proxy }) => proxy && act(proxy)));

const faults: Fault[] = [
  { name: 'stopped', begin: () => redis.stop(), end: () => redis.start(), isOutage: true },
  { name: 'frozen', begin: () => redis.freeze(), end: () => redis.thaw(), isOutage: true },
  { name: 'flushed', begin: () => redis.flush(), end: () => {}, isOutage: false },
  {
    name: 'slow by 2 s',
    begin: () => forEachProxy((proxy) => proxy.delay(1_000)),
    end: () => forEachProxy((proxy) => proxy.mend()),
    isOutage: true,
  },
  {
    name: 'out of reach',
    begin: () => forEachProxy((proxy) => proxy.refuse()),
    end: () => forEachProxy((proxy) => proxy.mend()),
    isOutage: true,
  },
];

it.each(faults)('a Redis that is $name hardly slows requests, loses no notification, and is used again afterwards', async (fault) => {
  expect(await waitFor(isWhole, WHOLE_WITHIN_MS)).toBe(true);
  const reads = startReads();
  const writes = startWrites();
  const controls = startControls();
  await sleep(1_000);
  const began = performance.now();
  await sleep(PHASE_MS);
  const broken = performance.now();
  await fault.begin();
  await sleep(NOTICED_WITHIN_MS);
  const noticed = performance.now();
  await sleep(PHASE_MS / 2);
  const during = await readChecks();
  const perProcess = fault.isOutage ? await countAdmitted() : null;
  await sleep(PHASE_MS / 2);
  const ending = performance.now();
  await fault.end();
  const isWholeAgain = await waitFor(isWhole, WHOLE_WITHIN_MS);
  const wholeAfterMs = performance.now() - ending;
  await sleep(500);
  await Promise.all([...reads, ...writes, ...controls].map(({ stop }) => stop()));
  const isComplete = await waitFor(async () => isCaughtUp(await readLog()), 10_000);

  const outcomes = reads.flatMap((traffic) => traffic.outcomes);
  const written = writes.flatMap((traffic) => traffic.outcomes);
  const timesOf = (some: readonly Outcome[], since: number, until: number) =>
    some.filter(({ at }) => at >= since && at < until).map(({ took }) => took);
  const controlled = controls.flatMap((traffic) => traffic.outcomes);
  /**
   * The growth of a percentile, less twice the growth of the controls: requests that do not use Redis become slower only because
   * of the machine, which holds up a read more often than a control.
   */
  const compare = (share: number) => {
    const [read, control] = [outcomes, controlled].map((some) => ({
      before: percentile(timesOf(some, began, broken - 100), share),
      after: percentile(timesOf(some, noticed, ending), share),
    }));
    if (!read || !control) throw new Error('there is no traffic');
    return { read, control, slowerByMs: read.after - 2 * read.before - 2 * Math.max(0, control.after - control.before) };
  };
  const usual = compare(0.5);
  const slowest = compare(0.99);
  const { read, control } = slowest;
  const longestControl = Math.max(...controlled.map(({ took }) => took));
  const atOnce = Math.max(...timesOf(outcomes, broken, noticed));
  const failed = [...outcomes, ...written].filter((outcome) => !isGood(outcome));
  expect(failed.slice(0, 10).map(describeOutcome), findInternalErrors(fleet).slice(0, 3).join('\n')).toEqual([]);
  const delays = measureDelays(written);
  console.log(
    `${fault.name}: p99 of reads ${read.before.toFixed(1)} ms before, ${read.after.toFixed(1)} ms after the first second (of what needs no Redis: ` +
      `${control.before.toFixed(1)} and ${control.after.toFixed(1)} ms), at most ${atOnce.toFixed(0)} ms within it; ` +
      `notifications ${percentile(delays, 0.5).toFixed(0)} ms after their response (p50), ${Math.max(...delays).toFixed(0)} ms at most; whole again after ${Math.round(wholeAfterMs)} ms`,
  );
  expect(usual.slowerByMs).toBeLessThanOrEqual(SLOWER_BY_MS);
  expect(slowest.slowerByMs).toBeLessThanOrEqual(SLOWEST_SLOWER_BY_MS);
  expect(Math.max(...delays)).toBeLessThanOrEqual(LATE_BY_MS + longestControl);
  expect(isComplete).toBe(true);
  const committed = await readLog();
  for (const { name, received } of subscribers) expect([name, checkHistory({ committed, from, received })]).toEqual([name, []]);
  expect(subscribers.flatMap(({ problems }) => problems)).toEqual([]);
  if (fault.isOutage) {
    expect(during.map(({ status, redis: check }) => [status, check === 'up'])).toEqual([
      ['degraded', false],
      ['degraded', false],
    ]);
    // Limits are per process during the outage: each replica counts by itself, and none is without a limit.
    expect(perProcess).toEqual([60, 60]);
  }
  expect(isWholeAgain).toBe(true);
  const shared = await countAdmitted();
  expect(shared.reduce((sum, count) => sum + count)).toBe(60);
});

let addresses = 0;

/** The number of anonymous requests, of a hundred from one address, that each replica admits. */
async function countAdmitted(): Promise<number[]> {
  addresses += 1;
  return Promise.all(
    fleet.replicas.map(async ({ baseUrl }) => {
      const own = openCrowd(baseUrl, `127.0.9.${addresses}`, 10);
      const outcomes = await Promise.all(Array.from({ length: 100 }, () => ask(own, { path: '/v1/nothing' })));
      own.close();
      return outcomes.filter(({ status }) => status === 401).length;
    }),
  );
}

async function readLog(): Promise<Entry[]> {
  const rows = await execute(
    databaseUrl,
    `SELECT sequence::int AS sequence, id::text AS id FROM notifications WHERE project_id = '${fleet.demo.project_id}' ORDER BY sequence`,
  );
  return rows as unknown as Entry[];
}

function isCaughtUp(committed: readonly Entry[]): boolean {
  return subscribers.every(({ received }) => received.length >= committed.length - from);
}
