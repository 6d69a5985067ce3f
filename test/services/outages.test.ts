import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Cluster, openCluster } from '../support/cluster.ts';
import { type Crowd, openCrowd, type Sending } from '../support/crowd.ts';
import { type FeedSocket, openSocket } from '../support/feed.ts';
import { openRedis, type RedisServer } from '../support/redis.ts';
import { type Fleet, findInternalErrors, openFleet } from '../support/replicas.ts';
import { connectTo } from '../support/sql.ts';
import { ask, describeOutcome, drive, isGood, type Outcome, percentile, warmUp } from '../support/traffic.ts';

const PER_SECOND = Number(process.env.OUTAGE_RATE ?? 200);
const SOCKETS = 500;
/** The duration of each outage. */
const OUTAGE_MS = Number(process.env.OUTAGE_SECONDS ?? 3) * 1000;
const REFUSED_WITHIN_MS = 1_500;
const BACK_WITHIN_MS = 2_000;

let cluster: Cluster;
let redis: RedisServer;
let fleet: Fleet;
let crowds: Crowd[];
let feeds: FeedSocket[];
beforeAll(async () => {
  cluster = await openCluster();
  redis = await openRedis();
  fleet = await openFleet({ count: 2, databaseUrl: cluster.url, redisUrl: redis.url, env: { LOG_LEVEL: 'error' } });
  crowds = fleet.replicas.map(({ baseUrl }) => openCrowd(baseUrl, '127.0.0.1', 1_000));
  feeds = await openFeeds();
  await warmUp(crowds, sendings());
});
afterAll(async () => {
  for (const { socket } of feeds ?? []) socket.terminate();
  for (const crowd of crowds ?? []) crowd.close();
  await fleet?.close();
  await redis?.close();
  await cluster?.close();
});

async function openFeeds(): Promise<FeedSocket[]> {
  const { demo, projectPath, replicas } = fleet;
  const headers = { authorization: `Bearer ${demo.users.owner.token}` };
  const opened: FeedSocket[] = [];
  while (opened.length < SOCKETS) {
    const more = Array.from({ length: 50 }, (_, index) =>
      openSocket({ baseUrl: replicas[index % replicas.length]?.baseUrl ?? '' }, `${projectPath}/notifications/ws`, { headers }),
    );
    await Promise.all(more.map((feed) => feed.until(({ type }) => type === 'ready')));
    opened.push(...more);
  }
  return opened;
}

/** Reads and writes through both APIs, with a session and with an API key. */
function sendings(): Sending[] {
  const { demo, projectPath } = fleet;
  const json = { 'content-type': 'application/json' };
  const session = { authorization: `Bearer ${demo.users.owner.token}` };
  const key = { authorization: `Bearer ${demo.users.member.api_key}` };
  const graphql = (query: string, variables?: object) => JSON.stringify({ query, variables });
  const project = `project(organizationId: "${demo.organization_id}", id: "${demo.project_id}")`;
  return [
    { path: `${projectPath}/compute/overview`, headers: session },
    { path: `${projectPath}/notifications?page_size=5`, headers: key },
    {
      method: 'POST',
      path: '/graphql',
      headers: { ...session, ...json },
      body: graphql(`{ ${project} { name unreadNotificationCount } }`),
    },
    { path: `${projectPath}/monitoring/dashboards/${demo.dashboards.public}`, headers: key },
    {
      method: 'PUT',
      path: `${projectPath}/monitoring/dashboards/${demo.dashboards.default}`,
      headers: { ...session, ...json },
      body: '{"name":"Written through an outage"}',
    },
    { method: 'POST', path: `${projectPath}/notifications/read`, headers: { ...key, ...json }, body: '{}' },
    { method: 'POST', path: '/graphql', headers: { ...key, ...json }, body: graphql('{ viewer { organizations { nodes { id } } } }') },
    { method: 'POST', path: `${projectPath}/websocket-tickets`, headers: { ...session, ...json }, body: '{"target":"notifications"}' },
  ];
}

/** Starts a constant rate of requests, alternating between the replicas. */
function startTraffic() {
  const kinds = sendings();
  const { length } = crowds;
  const each = crowds.map((crowd, which) =>
    drive(crowd, PER_SECOND / length, (index) => kinds[(index * length + which) % kinds.length] as Sending),
  );
  return {
    outcomes: () => each.flatMap(({ outcomes }) => outcomes),
    stop: () => Promise.all(each.map(({ stop }) => stop())),
  };
}

function p99(outcomes: readonly Outcome[]): number {
  return Math.round(
    percentile(
      outcomes.map(({ took }) => took),
      0.99,
    ),
  );
}

/** The problems with the responses during an outage. */
function findProblems(outcomes: readonly Outcome[], noiseMs: number): string[] {
  const problems = outcomes.flatMap((outcome) => {
    if (isGood(outcome)) return [];
    const { status, code, retryAfter, took } = outcome;
    const what = describeOutcome(outcome);
    if (status !== 503 || code !== 'service_unavailable') return [what];
    if (!retryAfter) return [`${what}, without Retry-After`];
    return took > REFUSED_WITHIN_MS + noiseMs ? [`${what}: too late`] : [];
  });
  return [...new Set(problems)];
}

async function publish(crowd: Crowd, title: string): Promise<number> {
  const { demo } = fleet;
  const query = 'mutation ($input: PublishNotificationInput!) { publishNotification(input: $input) { notification { sequence } } }';
  const input = { organizationId: demo.organization_id, projectId: demo.project_id, kind: 'test.outage', severity: 'info', title };
  const headers = { authorization: `Bearer ${demo.users.owner.token}`, 'content-type': 'application/json' };
  const { status, text } = await crowd.send({
    method: 'POST',
    path: '/graphql',
    headers,
    body: JSON.stringify({ query, variables: { input } }),
  });
  if (status !== 200) throw new Error(text);
  return JSON.parse(text).data.publishNotification.notification.sequence;
}

async function health(path: string): Promise<number[]> {
  return Promise.all(crowds.map(async (crowd) => (await ask(crowd, { path })).status));
}

/** Terminates every backend and its statement, as an administrator may. */
async function terminateBackends(): Promise<void> {
  const client = await connectTo(cluster.url);
  await client.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'`,
  );
  await client.end();
}

interface Outage {
  readonly name: string;
  readonly begin: () => unknown;
  readonly end: () => unknown;
  /** Whether nothing can be read during the outage. */
  readonly isTotal: boolean;
}

const outages: Outage[] = [
  { name: 'stopped', begin: () => cluster.stop('fast'), end: () => cluster.start(), isTotal: true },
  { name: 'crashed', begin: () => cluster.stop('immediate'), end: () => cluster.start(), isTotal: true },
  { name: 'frozen', begin: () => cluster.freeze(), end: () => cluster.thaw(), isTotal: true },
  {
    name: 'silent: the network takes what is sent and gives nothing back',
    begin: () => {
      for (const { database } of fleet.replicas) database.freeze();
    },
    end: () => Promise.all(fleet.replicas.map(({ database }) => database.mend())),
    isTotal: true,
  },
  {
    name: 'out of reach: connections break and are refused',
    begin: () => Promise.all(fleet.replicas.map(({ database }) => database.refuse())),
    end: () => Promise.all(fleet.replicas.map(({ database }) => database.mend())),
    isTotal: true,
  },
  { name: 'terminating its backends in mid-query, again and again', begin: terminateBackends, end: terminateBackends, isTotal: false },
];

it.each(outages)('a PostgreSQL that is $name: 503 in time, no socket lost, and automatic recovery', async (outage) => {
  const loop = monitorEventLoopDelay({ resolution: 5 });
  loop.enable();
  const traffic = startTraffic();
  // Requests that need no database show how busy the machine is.
  const controls = crowds.map((crowd) => drive(crowd, 20, () => ({ path: '/health/live' })));
  await sleep(500);
  while (traffic.outcomes().length < PER_SECOND) await sleep(50);
  // The load of the machine delays all responses as much as good ones, and it delays this process too.
  const noiseMs = p99(traffic.outcomes()) + Math.round(loop.max / 1e6);
  const began = performance.now();
  await outage.begin();
  // Requests in flight when the outage begins may still succeed.
  const gone = performance.now();
  await sleep(OUTAGE_MS / 2 + noiseMs);
  const during = { ready: await health('/health/ready'), live: await health('/health/live') };
  await sleep(OUTAGE_MS / 2 + noiseMs);
  const ending = performance.now();
  await outage.end();
  const ended = performance.now();
  await sleep(BACK_WITHIN_MS + noiseMs + 1_000);
  await Promise.all([traffic, ...controls].map(({ stop }) => stop()));
  loop.disable();

  const outcomes = traffic.outcomes();
  const before = outcomes.filter(({ at, took }) => at + took < began);
  const inOutage = outcomes.filter(({ at }) => at > gone + 100 + noiseMs && at < ending - REFUSED_WITHIN_MS);
  const lateMs = noiseMs + Math.max(...controls.flatMap((control) => control.outcomes.map(({ took }) => took)));
  const affected = outcomes.filter((outcome) => !isGood(outcome));
  const after = outcomes.filter(({ at }) => at > ended + BACK_WITHIN_MS + noiseMs);
  const lastRefusal = Math.max(ended, ...affected.map(({ at }) => at));
  console.log(
    `${outage.name}: begun in ${Math.round(gone - began)} ms, ended in ${Math.round(ended - ending)} ms; ${outcomes.length} requests, ` +
      `${affected.length} refused; p99 ${p99(before)} ms before, ${p99(affected)} ms of the refusals, ${p99(after)} ms after; ` +
      `the last refused was sent ${Math.round(lastRefusal - ended)} ms after the end; this process was late by ${Math.round(loop.max / 1e6)} ms at most`,
  );
  expect(findProblems(outcomes, lateMs).slice(0, 20), findInternalErrors(fleet).slice(0, 3).join('\n')).toEqual([]);
  expect(before.filter((outcome) => !isGood(outcome)).map(describeOutcome)).toEqual([]);
  if (outage.isTotal) {
    expect(inOutage.length).toBeGreaterThan(PER_SECOND / 2);
    expect(inOutage.filter(isGood).map(describeOutcome)).toEqual([]);
    expect(during).toEqual({ ready: [503, 503], live: [200, 200] });
  }
  expect(affected.length).toBeGreaterThan(0);
  expect(after.length).toBeGreaterThan(PER_SECOND / 2);
  expect(after.filter((outcome) => !isGood(outcome)).map(describeOutcome)).toEqual([]);
  expect(await health('/health/ready')).toEqual([200, 200]);

  expect(feeds.filter(({ socket }) => socket.readyState !== socket.OPEN).length).toBe(0);
  const sequence = await publish(crowds[0] as Crowd, `after: ${outage.name}`);
  await Promise.all(feeds.map((feed) => feed.until((frame) => frame.sequence === sequence)));
});
