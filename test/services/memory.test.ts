import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import WebSocket from 'ws';
import { copyTemplate } from '../support/app.ts';
import { type Crowd, openCrowd, type Sending } from '../support/crowd.ts';
import { type Random, seededRandom } from '../support/random.ts';
import { openRedis, type RedisServer } from '../support/redis.ts';
import { type Fleet, openFleet, type Replica } from '../support/replicas.ts';
import { ask } from '../support/traffic.ts';

const WARM_UP_MS = Number(process.env.MEMORY_WARM_UP_SECONDS ?? 15) * 1000;
const CHURN_MS = Number(process.env.MEMORY_SECONDS ?? 40) * 1000;
const GROWTH = 0.05;
const seed = Number(process.env.MEMORY_SEED ?? Date.now() % 1_000_000);

let redis: RedisServer;
let fleet: Fleet;
let crowd: Crowd;
beforeAll(async () => {
  redis = await openRedis();
  const env = { LOG_LEVEL: 'error', NODE_OPTIONS: '--inspect=127.0.0.1:0' };
  fleet = await openFleet({ count: 1, databaseUrl: await copyTemplate(), redisUrl: redis.url, env });
  crowd = openCrowd(replica().baseUrl, '127.0.0.1', 16);
});
afterAll(async () => {
  crowd?.close();
  await fleet?.close();
  await redis?.close();
});

function replica(): Replica {
  return fleet.replicas[0] as Replica;
}

/** A connection to the inspector of a process. */
interface Inspector {
  /** The size of the heap after garbage collection, in bytes. */
  measureHeap(): Promise<number>;
  close(): void;
}

async function openInspector({ lines }: Replica): Promise<Inspector> {
  const url = lines.map((line) => /Debugger listening on (ws:\S+)/.exec(line)?.[1]).findLast(Boolean);
  if (!url) throw new Error('the process has no inspector');
  const socket = new WebSocket(url);
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
  let last = 0;
  const call = (method: string) =>
    new Promise<{ usedSize?: number }>((resolve) => {
      const id = ++last;
      const hear = (data: WebSocket.RawData) => {
        const message = JSON.parse(String(data));
        if (message.id !== id) return;
        socket.off('message', hear);
        resolve(message.result);
      };
      socket.on('message', hear);
      socket.send(JSON.stringify({ id, method }));
    });
  return {
    async measureHeap() {
      let least = Number.POSITIVE_INFINITY;
      // Objects released by a finalizer are collected only in the next round.
      for (let round = 0; round < 5; round += 1) {
        await call('HeapProfiler.collectGarbage');
        await sleep(200);
        least = Math.min(least, (await call('Runtime.getHeapUsage')).usedSize ?? Number.NaN);
      }
      return least;
    },
    close: () => socket.terminate(),
  };
}

const counts = { requests: 0, sockets: 0, publications: 0, cuts: 0 };

/** Draws a valid or invalid request, often unlike any before. */
function nextSending(random: Random): Sending {
  const { demo, projectPath } = fleet;
  const json = { 'content-type': 'application/json' };
  const session = { authorization: `Bearer ${demo.users.owner.token}` };
  const key = { authorization: `Bearer ${demo.users.member.api_key}` };
  const graphql = (query: string, variables?: object) => ({
    method: 'POST',
    path: '/graphql',
    headers: { ...json, ...session },
    body: JSON.stringify({ query, variables }),
  });
  const project = `project(organizationId: "${demo.organization_id}", id: "${demo.project_id}")`;
  return random.pick<Sending>([
    { path: `${projectPath}/compute/overview`, headers: session },
    { path: `${projectPath}/notifications?page_size=${1 + random.below(50)}`, headers: key },
    { path: `${projectPath}/monitoring/dashboards/${random.uuid()}`, headers: session },
    { path: `/nowhere/${random.uuid()}`, headers: key },
    { path: `${projectPath}/compute/overview`, headers: { authorization: `Bearer ${random.uuid()}` } },
    { path: `${projectPath}/compute/overview`, headers: { ...session, 'x-request-id': random.uuid() } },
    {
      method: 'POST',
      path: `${projectPath}/notifications/read`,
      headers: { ...json, ...key },
      body: `{"notification_ids": ["${random.uuid()}"]}`,
    },
    { method: 'POST', path: `${projectPath}/notifications/read`, headers: { ...json, ...key }, body: `{"${random.uuid()}` },
    { method: 'POST', path: `${projectPath}/websocket-tickets`, headers: { ...json, ...session }, body: '{"target":"notifications"}' },
    graphql(`{ ${project} { name unreadNotificationCount } }`),
    graphql(`query ($id: ID!) { organization(id: $id) { name } }`, { id: random.uuid() }),
    graphql(`{ a${random.below(1_000_000)}: __typename }`),
    graphql(`{ nothing${random.below(1_000_000)} }`),
    { method: 'PROPFIND', path: `/v1/${random.uuid()}`, headers: key },
  ]);
}

/** Opens a socket, follows the feed briefly, and disconnects in one of several ways. */
async function comeAndGo(random: Random): Promise<void> {
  const { demo, projectPath } = fleet;
  const isGraphql = random.chance(0.5);
  const path = isGraphql ? '/graphql' : `${projectPath}/notifications/ws?after=${100 + random.below(50)}`;
  const headers = { authorization: `Bearer ${random.chance(0.9) ? demo.users.viewer.token : random.uuid()}` };
  const socket = new WebSocket(replica().baseUrl.replace('http', 'ws') + path, isGraphql ? ['graphql-transport-ws'] : [], { headers });
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.on('error', () => {});
  socket.once('open', () => {
    if (!isGraphql) return;
    const query = `subscription { notificationFeed(organizationId: "${demo.organization_id}", projectId: "${demo.project_id}") { __typename } }`;
    socket.send('{"type":"connection_init"}');
    socket.on('message', (data) => {
      if (String(data).includes('connection_ack')) socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload: { query } }));
    });
  });
  await sleep(random.below(200));
  if (random.chance(0.3)) socket.terminate();
  else socket.close();
  await closed;
  counts.sockets += 1;
}

async function publish(index: number): Promise<void> {
  const { demo } = fleet;
  const query = 'mutation ($input: PublishNotificationInput!) { publishNotification(input: $input) { notification { id } } }';
  const input = {
    organizationId: demo.organization_id,
    projectId: demo.project_id,
    kind: `test.${index}`,
    severity: 'info',
    title: 'churn',
  };
  const headers = { authorization: `Bearer ${demo.users.owner.token}`, 'content-type': 'application/json' };
  await ask(crowd, { method: 'POST', path: '/graphql', headers, body: JSON.stringify({ query, variables: { input } }) });
  counts.publications += 1;
}

async function churn(milliseconds: number, random: Random): Promise<void> {
  const deadline = Date.now() + milliseconds;
  const lane = async (act: () => Promise<unknown>) => {
    while (Date.now() < deadline) await act();
  };
  const request = async () => {
    await ask(crowd, nextSending(random));
    counts.requests += 1;
  };
  const cut = async () => {
    await sleep(Math.min(5_000, milliseconds / 4));
    for (const proxy of [replica().database, replica().redis]) {
      proxy?.cut();
      await sleep(300);
      await proxy?.mend();
    }
    counts.cuts += 1;
  };
  await Promise.all([
    ...Array.from({ length: 8 }, () => lane(request)),
    ...Array.from({ length: 8 }, () => lane(() => comeAndGo(random))),
    lane(async () => {
      await publish(random.below(1_000_000));
      await sleep(50);
    }),
    lane(cut),
  ]);
  // The server notices the closed connections meanwhile, and budgets and timers expire.
  await sleep(2_000);
}

/** Fills the server's cache of the last thousand documents, which is not a leak, but must reach its full size first. */
async function fillCaches(): Promise<void> {
  const headers = { authorization: `Bearer ${fleet.demo.users.owner.token}`, 'content-type': 'application/json' };
  const bodies = Array.from({ length: 2_400 }, (_, index) =>
    JSON.stringify({ query: index % 2 === 0 ? `{ a${index}: __typename }` : `{ nothing${index} }` }),
  );
  await crowd.sendAll(bodies.map((body) => ({ method: 'POST', path: '/graphql', headers, body })));
}

it(`uses no more memory after a long churn than before it (MEMORY_SEED=${seed})`, {
  timeout: WARM_UP_MS + CHURN_MS + 120_000,
}, async () => {
  const random = seededRandom(seed);
  const inspector = await openInspector(replica());
  await fillCaches();
  await churn(WARM_UP_MS, random);
  const heaps = [await inspector.measureHeap()];
  const resident = replica().memory();
  Object.assign(counts, { requests: 0, sockets: 0, publications: 0, cuts: 0 });
  for (let half = 0; half < 2; half += 1) {
    await churn(CHURN_MS / 2, random);
    heaps.push(await inspector.measureHeap());
  }
  inspector.close();
  const mebibytes = (bytes: number) => (bytes / 2 ** 20).toFixed(2);
  console.log(
    `${counts.requests} requests, ${counts.sockets} sockets, ${counts.publications} publications, ${counts.cuts} broken connections: ` +
      `heap ${heaps.map(mebibytes).join(' → ')} MiB, resident ${resident.toFixed(0)} → ${replica().memory().toFixed(0)} MiB`,
  );
  expect(counts.requests).toBeGreaterThan(CHURN_MS / 50);
  expect(counts.sockets).toBeGreaterThan(CHURN_MS / 100);
  // A delayed release shows as growth once; a leak grows in both halves.
  const [before = 0, between = 0, after = 0] = heaps;
  expect(Math.min(between / before, after / between)).toBeLessThan(1 + GROWTH / 2);
});
