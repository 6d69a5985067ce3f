import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Balancer, openBalancer } from '../support/balancer.ts';
import { countCases } from '../support/cases.ts';
import { type Cluster, openCluster } from '../support/cluster.ts';
import { type Crowd, openCrowd } from '../support/crowd.ts';
import { checkHistory, type Entry } from '../support/history.ts';
import { type Random, seededRandom } from '../support/random.ts';
import { openRedis, type RedisServer } from '../support/redis.ts';
import { type Fleet, openFleet, type Replica } from '../support/replicas.ts';
import { connectTo } from '../support/sql.ts';
import { openSubscriber, type Subscriber } from '../support/subscribers.ts';
import { ask } from '../support/traffic.ts';

const seconds = countCases(480, 'NEMESIS_SECONDS');
const seed = Number(process.env.NEMESIS_SEED ?? Date.now() % 1_000_000);
const WRITERS = 20;
const SUBSCRIBERS = 100;
/** The longest that a fault may delay a response; a killed replica answers nothing at all. */
const RESPONSE_WITHIN_MS = 10_000;
const CAUGHT_UP_WITHIN_MS = 60_000;

let cluster: Cluster;
let redis: RedisServer;
let fleet: Fleet;
let balancer: Balancer;
let crowd: Crowd;
beforeAll(async () => {
  cluster = await openCluster();
  redis = await openRedis();
  fleet = await openFleet({ count: 3, databaseUrl: cluster.url, redisUrl: redis.url, env: { LOG_LEVEL: 'warn' } });
  balancer = await openBalancer(fleet.replicas);
  crowd = openCrowd(balancer.baseUrl, '127.0.0.1', WRITERS);
});
afterAll(async () => {
  crowd?.close();
  await balancer?.close();
  await fleet?.close();
  await redis?.close();
  await cluster?.close();
});

interface Publication {
  readonly title: string;
  readonly projectId: string;
  /** The sequence and id in the response. */
  readonly entry: Entry;
}

/** The writers' record of their publications. */
interface Written {
  readonly acknowledged: Publication[];
  readonly counts: Record<string, number>;
  readonly problems: string[];
}

const mutation = `mutation ($input: PublishNotificationInput!) { publishNotification(input: $input) { notification { id sequence } } }`;

/** Publishes notifications one after another. Those without a good response may or may not have been written. */
async function write(name: string, projectId: string, random: Random, written: Written, isOver: () => boolean): Promise<void> {
  const headers = { authorization: `Bearer ${fleet.demo.users.owner.token}`, 'content-type': 'application/json' };
  let last = 0;
  for (let index = 0; !isOver(); index += 1) {
    const title = `${name}, no. ${index}`;
    const input = { organizationId: fleet.demo.organization_id, projectId, kind: 'test.nemesis', severity: 'info', title };
    const body = JSON.stringify({ query: mutation, variables: { input } });
    const { status, code, text, took, retryAfter } = await ask(crowd, { method: 'POST', path: '/graphql', headers, body });
    const what = code ? `${status} ${code}` : String(status || text);
    written.counts[what] = (written.counts[what] ?? 0) + 1;
    if (took > RESPONSE_WITHIN_MS) written.problems.push(`${title}: ${what} after ${Math.round(took)} ms`);
    if (status === 200 && !code) {
      const { id, sequence } = JSON.parse(text).data.publishNotification.notification;
      written.acknowledged.push({ title, projectId, entry: { id, sequence } });
      if (sequence <= last) written.problems.push(`${title}: ${sequence} after ${last}`);
      last = sequence;
    } else if (status !== 0 && code !== 'service_unavailable') {
      written.problems.push(`${title}: ${status} ${text}`);
    } else if (status === 503 && !retryAfter) {
      written.problems.push(`${title}: 503 without Retry-After`);
    }
    await sleep(50 + random.below(350));
  }
}

/** A fault that can be injected and repaired. */
interface Trouble {
  readonly name: string;
  /** The component that it breaks; two faults never affect one target at once. */
  readonly target: string;
  readonly weight: number;
  run(random: Random): Promise<void>;
}

/** Restarts a replica until it comes up, as a process supervisor does. */
async function startAgain(replica: Replica): Promise<void> {
  for (;;) {
    try {
      return await replica.start();
    } catch {
      await sleep(500);
    }
  }
}

function listTroubles(subscribers: readonly Subscriber[]): Trouble[] {
  const pause = (random: Random, from: number, to: number) => sleep(from + random.below(to - from));
  return [
    ...fleet.replicas.flatMap((replica): Trouble[] => [
      {
        name: 'kill -9 of a replica',
        target: 'replica',
        weight: 3,
        async run(random) {
          await replica.kill();
          await pause(random, 0, 2_000);
          await startAgain(replica);
        },
      },
      {
        name: 'a replica is restarted',
        target: 'replica',
        weight: 1,
        async run() {
          const code = await replica.stop();
          if (code !== 0) throw new Error(`${replica.name} ended with ${code}`);
          await startAgain(replica);
        },
      },
      {
        name: 'a replica loses its connections to PostgreSQL',
        target: 'links',
        weight: 1,
        async run(random) {
          replica.database.cut();
          await pause(random, 0, 2_000);
          await replica.database.mend();
        },
      },
      {
        name: 'a slow way to PostgreSQL',
        target: 'links',
        weight: 1,
        async run(random) {
          replica.database.delay(10 + random.below(60));
          await pause(random, 1_000, 4_000);
          replica.database.delay(0);
        },
      },
      {
        name: 'a dead way to Redis',
        target: 'links',
        weight: 1,
        async run(random) {
          replica.redis?.freeze();
          await pause(random, 500, 4_000);
          replica.redis?.thaw();
        },
      },
    ]),
    {
      name: 'PostgreSQL crashes',
      target: 'postgres',
      weight: 4,
      async run(random) {
        await cluster.stop('immediate');
        await pause(random, 0, 3_000);
        await cluster.start();
      },
    },
    {
      name: 'PostgreSQL is restarted',
      target: 'postgres',
      weight: 3,
      async run(random) {
        await cluster.stop('fast');
        await pause(random, 0, 3_000);
        await cluster.start();
      },
    },
    {
      name: 'PostgreSQL stands still',
      target: 'postgres',
      weight: 4,
      async run(random) {
        cluster.freeze();
        await pause(random, 500, 4_000);
        cluster.thaw();
      },
    },
    {
      name: 'Redis crashes',
      target: 'redis',
      weight: 5,
      async run(random) {
        await redis.stop();
        await pause(random, 0, 5_000);
        await redis.start();
      },
    },
    {
      name: 'Redis stands still',
      target: 'redis',
      weight: 3,
      async run(random) {
        redis.freeze();
        await pause(random, 500, 4_000);
        redis.thaw();
      },
    },
    {
      name: 'connections of clients break',
      target: 'clients',
      weight: 6,
      async run(random) {
        for (let count = 1 + random.below(20); count > 0; count -= 1) balancer.cutOne(random.below(1_000) / 1_000);
      },
    },
    {
      name: 'clients are loaded again',
      target: 'clients',
      weight: 6,
      async run(random) {
        for (let count = 1 + random.below(10); count > 0; count -= 1) random.pick(subscribers).reload();
      },
    },
  ];
}

/** Injects faults until `isOver`, and waits until all are repaired; returns a log of them, in order. */
async function makeTrouble(random: Random, troubles: readonly Trouble[], isOver: () => boolean): Promise<string[]> {
  const began = Date.now();
  const diary: string[] = [];
  const underWay = new Map<string, Promise<void>>();
  const lottery = troubles.flatMap((trouble) => Array.from({ length: trouble.weight }, () => trouble));
  while (!isOver()) {
    const trouble = random.pick(lottery);
    if (!underWay.has(trouble.target)) {
      diary.push(`${((Date.now() - began) / 1000).toFixed(1)} s: ${trouble.name}`);
      const running = trouble.run(random).finally(() => underWay.delete(trouble.target));
      running.catch((failure: Error) => diary.push(`failed: ${failure.message}`));
      underWay.set(trouble.target, running);
    }
    await sleep(1_000 + random.below(3_000));
  }
  await Promise.all(underWay.values());
  return diary;
}

async function readLogs(): Promise<Map<string, Array<Entry & { title: string }>>> {
  const client = await connectTo(cluster.url);
  const { rows } = await client.query(
    'SELECT project_id, sequence::int AS sequence, id::text AS id, title FROM notifications ORDER BY project_id, sequence',
  );
  await client.end();
  const logs = new Map<string, Array<Entry & { title: string }>>();
  for (const { project_id, ...entry } of rows) {
    const log = logs.get(project_id) ?? [];
    log.push(entry);
    logs.set(project_id, log);
  }
  return logs;
}

it(`loses, repeats and mixes up no notification in ${seconds} seconds of faults (NEMESIS_SEED=${seed})`, {
  timeout: seconds * 1000 + 180_000,
}, async () => {
  const random = seededRandom(seed);
  const { demo } = fleet;
  const made = await makeProject();
  const projects = [demo.project_id, demo.empty_project_id, made];
  const before = await readLogs();
  const endOf = (logs: typeof before, projectId: string) => logs.get(projectId)?.length ?? 0;

  const subscribers = Array.from({ length: SUBSCRIBERS }, (_, index) => {
    const projectId = projects[index % projects.length] as string;
    const as = index % 2 === 0 ? 'owner' : 'admin';
    const client = index % 4 < 2 ? 'plain' : 'graphql';
    const from = Math.max(0, endOf(before, projectId) - (index % 7));
    return openSubscriber({ name: `subscriber ${index}`, client, baseUrl: balancer.baseUrl, demo, projectId, as, from });
  });
  const written: Written = { acknowledged: [], counts: {}, problems: [] };
  const deadline = Date.now() + seconds * 1000;
  const isOver = () => Date.now() > deadline;
  const writing = Array.from({ length: WRITERS }, (_, index) =>
    write(`writer ${index}`, projects[index % projects.length] as string, seededRandom(seed + index + 1), written, isOver),
  );
  const diary = await makeTrouble(random, listTroubles(subscribers), isOver);
  await Promise.all(writing);

  const logs = await readLogs();
  const mended = Date.now();
  const isBehind = ({ received, from, projectId }: Subscriber) => (received.at(-1)?.sequence ?? from) < endOf(logs, projectId);
  while (subscribers.some(isBehind) && Date.now() - mended < CAUGHT_UP_WITHIN_MS) await sleep(100);
  const caughtUpMs = Date.now() - mended;
  for (const subscriber of subscribers) subscriber.end();

  const problems = [
    ...diary.filter((line) => line.startsWith('failed')),
    ...written.problems,
    ...subscribers.flatMap((subscriber) => subscriber.problems),
    ...subscribers.flatMap(({ name, projectId, from, received }) =>
      checkHistory({ committed: logs.get(projectId) ?? [], from, received }).map((problem) => `${name}: ${problem}`),
    ),
    ...checkWritten(written.acknowledged, logs),
  ];
  const deliveries = subscribers.reduce((sum, { received }) => sum + received.length, 0);
  const connections = subscribers.reduce((sum, { timesReady }) => sum + timesReady, 0);
  console.log(
    `seed ${seed}: ${written.acknowledged.length} acknowledged, ${deliveries} delivered over ${connections} connections, ` +
      `all caught up ${caughtUpMs} ms after the end\n${JSON.stringify(written.counts)}\n${diary.join('\n')}`,
  );
  expect(problems.slice(0, 50), `NEMESIS_SEED=${seed}\n${diary.join('\n')}`).toEqual([]);
  expect(written.acknowledged.length).toBeGreaterThan(seconds * 5);
  // How many connections a fault breaks depends on where the subscribers are: a replica that has just come back has none.
  expect(connections).toBeGreaterThan(SUBSCRIBERS);
});

/** Checks that every acknowledged notification is in the log as acknowledged, and that none was written twice. */
function checkWritten(acknowledged: readonly Publication[], logs: Awaited<ReturnType<typeof readLogs>>): string[] {
  const problems: string[] = [];
  for (const { title, projectId, entry } of acknowledged) {
    const found = logs.get(projectId)?.[entry.sequence - 1];
    if (found?.id !== entry.id || found.title !== title) problems.push(`acknowledged and not there: ${title}, ${entry.sequence}`);
  }
  for (const log of logs.values()) {
    const titles = new Set<string>();
    for (const { title } of log) {
      if (title.startsWith('writer') && titles.has(title)) problems.push(`written twice: ${title}`);
      titles.add(title);
    }
  }
  return problems;
}

async function makeProject(): Promise<string> {
  const client = await connectTo(cluster.url);
  const { rows } = await client.query(`INSERT INTO projects (organization_id, name) VALUES ($1, 'Made for a test') RETURNING id`, [
    fleet.demo.organization_id,
  ]);
  await client.end();
  return rows[0].id;
}
