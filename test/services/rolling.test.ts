import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import WebSocket from 'ws';
import { copyTemplate } from '../support/app.ts';
import { type Balancer, openBalancer } from '../support/balancer.ts';
import { countCases } from '../support/cases.ts';
import { type Crowd, openCrowd, type Sending } from '../support/crowd.ts';
import { checkHistory, type Entry } from '../support/history.ts';
import { openRedis, type RedisServer } from '../support/redis.ts';
import { type Fleet, openFleet, type Replica } from '../support/replicas.ts';
import { execute } from '../support/sql.ts';
import { openSubscriber, type Subscriber } from '../support/subscribers.ts';
import { ask, describeOutcome, drive, isGood } from '../support/traffic.ts';

const ROUNDS = countCases(32, 'ROLLING_ROUNDS');
const DRAIN_SECONDS = 2;
const REPLICAS = 2;
const SUBSCRIBERS = 40;
/** The number of sockets that record when they are closed. */
const WATCHERS = 40;
const READS_PER_SECOND = 60;
const WRITES_PER_SECOND = 10;

let databaseUrl: string;
let redis: RedisServer;
let fleet: Fleet;
let balancer: Balancer;
let crowd: Crowd;
beforeAll(async () => {
  databaseUrl = await copyTemplate();
  redis = await openRedis();
  const env = { LOG_LEVEL: 'info', DRAIN_SECONDS: String(DRAIN_SECONDS) };
  fleet = await openFleet({ count: REPLICAS, databaseUrl, redisUrl: redis.url, env });
  balancer = await openBalancer(fleet.replicas);
  crowd = openCrowd(balancer.baseUrl, '127.0.0.1', 20);
});
afterAll(async () => {
  crowd?.close();
  await balancer?.close();
  await fleet?.close();
  await redis?.close();
});

interface Close {
  readonly code: number;
  readonly reason: string;
  readonly afterMs: number;
}

/** Opens sockets on one replica and records how and when each is closed, relative to the call of `begin`. */
async function watchCloses(replica: Replica): Promise<{ closes: Close[]; begin: () => void }> {
  const { demo, projectPath } = fleet;
  const closes: Close[] = [];
  let began = Number.NaN;
  const url = `${replica.baseUrl.replace('http', 'ws')}${projectPath}/notifications/ws`;
  await Promise.all(
    Array.from({ length: WATCHERS }, async () => {
      const socket = new WebSocket(url, { headers: { authorization: `Bearer ${demo.users.viewer.token}` } });
      socket.on('error', () => {});
      socket.on('close', (code, reason) => closes.push({ code, reason: String(reason), afterMs: performance.now() - began }));
      await new Promise((resolve) => socket.once('message', resolve));
    }),
  );
  return {
    closes,
    begin: () => {
      began = performance.now();
    },
  };
}

const describeClose = (round: number, { code, reason, afterMs }: Close) =>
  `round ${round}: a socket was closed with ${code} ${reason} after ${Math.round(afterMs)} ms`;

function findCloseProblems(round: number, closes: readonly Close[]): string[] {
  const problems = closes.filter(({ code, reason }) => code !== 1012 || reason !== 'restart').map((close) => describeClose(round, close));
  if (closes.length !== WATCHERS) problems.push(`round ${round}: ${closes.length} sockets of ${WATCHERS} were closed`);
  return problems;
}

function findLateCloses(round: number, closes: readonly Close[]): string[] {
  return closes.filter(({ afterMs }) => afterMs > DRAIN_SECONDS * 1000 + 1_500).map((close) => describeClose(round, close));
}

/**
 * Checks in the replica's log that the sockets are closed one after another, so that they do not all reconnect at once. In the
 * first part of the window none is closed, so that the balancer can notice that the replica is leaving.
 */
function findSpreadProblems(round: number, lines: readonly string[], signalled: number): string[] {
  const moments = lines
    .filter((line) => line.includes('"socket closed"') && line.includes('"code":1012'))
    .map((line) => Date.parse(JSON.parse(line).time) - signalled)
    .sort((a, b) => a - b);
  const at = (share: number) => moments[Math.floor(share * (moments.length - 1))] ?? 0;
  const windowMs = DRAIN_SECONDS * 1000;
  // If spread evenly, four fifths of the sockets are closed within 0.64 of the window.
  const isSpread = moments.length >= WATCHERS && at(0.9) - at(0.1) >= 0.4 * windowMs && at(0) >= 0.15 * windowMs;
  const places = [0, 0.1, 0.5, 0.9, 1].map((share) => at(share)).join(', ');
  return isSpread ? [] : [`round ${round}: ${moments.length} closes were not spread over the window: ${places} ms`];
}

it(`${ROUNDS} rolling restarts under load: no request fails, sockets go one after the other, and all come back`, {
  timeout: ROUNDS * 60_000,
}, async () => {
  const { demo, projectPath, replicas } = fleet;
  const session = { authorization: `Bearer ${demo.users.owner.token}`, 'content-type': 'application/json' };
  const from = demo.notification_ids.length;
  const subscribers = Array.from({ length: SUBSCRIBERS }, (_, index) =>
    openSubscriber({
      name: `subscriber ${index}`,
      client: index % 2 === 0 ? 'plain' : 'graphql',
      baseUrl: balancer.baseUrl,
      demo,
      projectId: demo.project_id,
      as: 'owner',
      from,
    }),
  );
  const untilReady = (times: (subscriber: Subscriber) => boolean) => waitFor(() => subscribers.every(times), 30_000);
  await untilReady(({ timesReady }) => timesReady > 0);

  const reads: Sending[] = [
    { path: `${projectPath}/compute/overview`, headers: session },
    { path: `${projectPath}/notifications?page_size=5`, headers: session },
    { method: 'POST', path: '/graphql', headers: session, body: '{"query":"{ viewer { name } }"}' },
  ];
  const query = 'mutation ($input: PublishNotificationInput!) { publishNotification(input: $input) { notification { sequence } } }';
  const publication = (index: number): Sending => {
    const input = {
      organizationId: demo.organization_id,
      projectId: demo.project_id,
      kind: 'test.roll',
      severity: 'info',
      title: `${index}`,
    };
    return { method: 'POST', path: '/graphql', headers: session, body: JSON.stringify({ query, variables: { input } }) };
  };
  const traffic = [
    drive(crowd, READS_PER_SECOND, (index) => reads[index % reads.length] as Sending),
    drive(crowd, WRITES_PER_SECOND, publication),
  ];

  const problems: string[] = [];
  /** What was late, by round, because a machine with other work is occasionally late. */
  const untimely: string[][] = [];
  for (let round = 1; round <= ROUNDS; round += 1) {
    const replica = replicas[round % REPLICAS] as Replica;
    const watch = await watchCloses(replica);
    const firstLine = replica.lines.length;
    const signalled = Date.now();
    watch.begin();
    const stopping = replica.stop();
    const drain = await watchDrain(round, replica).catch((failure) => `round ${round}: the drain was not seen: ${failure}`);
    if (typeof drain !== 'string') problems.push(...drain);
    const code = await stopping;
    if (code !== 0) problems.push(`round ${round}: ${replica.name} ended with ${code}`);
    problems.push(...findCloseProblems(round, watch.closes));
    const late = [...findLateCloses(round, watch.closes), ...findSpreadProblems(round, replica.lines.slice(firstLine), signalled)];
    untimely.push(typeof drain === 'string' ? [drain, ...late] : late);
    await replica.start();
    // The balancer must see this replica as ready before the other one is stopped.
    await sleep(600);
  }
  await Promise.all(traffic.map(({ stop }) => stop()));
  const log = (await execute(
    databaseUrl,
    `SELECT sequence::int AS sequence, id::text AS id FROM notifications WHERE project_id = '${demo.project_id}' ORDER BY sequence`,
  )) as unknown as Entry[];
  await waitFor(() => subscribers.every(({ received }) => received.length >= log.length - from), 30_000);
  for (const subscriber of subscribers) subscriber.end();

  const outcomes = traffic.flatMap((one) => one.outcomes);
  const failed = outcomes.filter((outcome) => !isGood(outcome)).map(describeOutcome);
  const connections = subscribers.reduce((sum, { timesReady }) => sum + timesReady, 0);
  console.log(
    `${ROUNDS} restarts: ${outcomes.length} requests, ${failed.length} failed; ${connections} connections of ${SUBSCRIBERS} clients`,
  );
  expect(failed.slice(0, 20)).toEqual([]);
  expect(problems).toEqual([]);
  const late = untimely.filter((found) => found.length > 0);
  expect(late.length, late.flat().join('\n')).toBeLessThanOrEqual(ROUNDS / 3);
  expect(subscribers.flatMap((subscriber) => subscriber.problems)).toEqual([]);
  for (const { received, name } of subscribers) expect([name, checkHistory({ committed: log, from, received })]).toEqual([name, []]);
  expect(connections).toBeGreaterThan(SUBSCRIBERS * 2);
  expect(log.length - from).toBe(outcomes.filter(({ sending }) => sending.body?.includes('publishNotification')).length);
});

/**
 * Checks that the replica is not ready after the signal, and that each further response closes its connection. Rejects if the replica
 * has ended before it was asked.
 */
async function watchDrain(round: number, { baseUrl }: Replica): Promise<string[]> {
  await sleep(200);
  const own = openCrowd(baseUrl, '127.0.0.1', 4);
  const ready = await ask(own, { path: '/health/ready' });
  const live = await ask(own, { path: '/health/live' });
  const { headers } = await own.send({ path: '/' });
  own.close();
  const problems: string[] = [];
  if (ready.status !== 503) problems.push(`round ${round}: /health/ready says ${ready.status} while the server drains`);
  if (live.status !== 200) problems.push(`round ${round}: /health/live says ${live.status} while the server drains`);
  if (headers.connection !== 'close') problems.push(`round ${round}: a response came with Connection: ${headers.connection}`);
  return problems;
}

async function waitFor(isIt: () => boolean, withinMs: number): Promise<void> {
  for (const deadline = Date.now() + withinMs; !isIt() && Date.now() < deadline; ) await sleep(50);
}
