// The cost of an open socket, and the latency of an event to many subscribers.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { query } from './database.mjs';
import { idOf } from './fill.mjs';
import { drive, median } from './load.mjs';
import { collectGarbage, cpuOf, memoryOf, start } from './servers.mjs';
import { short, table } from './table.mjs';

/** The number of sockets: a tenth at a scale below 1, which is a quick run. @param {number} scale */
function countsOf(scale) {
  const share = scale < 1 ? 0.1 : 1;
  return { sockets: 5_000 * share, moreSockets: 10_000 * share, publishingSockets: 1_000 * share };
}

/** Events that are published one by one, each after the previous one has reached all sockets. */
const SINGLE_EVENTS = 10;
/** Events that are published as fast as the server accepts them. */
const STREAM_EVENTS = 20;
/** Sockets opened before the measurement, one for each user, to exclude what a server needs once or once per user. */
const FIRST_SOCKETS = 1_000;
const SETTLE_MS = 3_000;
const MEMORY_LOOKS = 5;
/** Publishing has this many times the rounds, as the figure of a single round is off by up to a tenth. */
const PUBLISHING_ROUNDS = 3;
/** The time until freed pages have been returned to the system. */
const COLLECTED_MS = 300;
const PATIENCE_MS = 90_000;

/** The first organization, to which every user belongs; its third project has many subscribers, its fourth none. */
const organization = idOf('organization', 1);
const [told, untold] = [3, 4];
const content = {
  kind: 'instance.started',
  severity: 'info',
  title: 'Something happened to an instance',
  body: 'A sentence or two that say what it was.',
};

const publishDocument = `mutation Publish($input: PublishNotificationInput!) { publishNotification(input: $input) { notification { id } } }`;
const feedDocument = `subscription Feed($organizationId: ID!, $projectId: ID!) {
  notificationFeed(organizationId: $organizationId, projectId: $projectId) {
    ... on FeedReady { sequence }
    ... on NotificationAdded { sequence notification { id sequence kind severity title body created read } }
  }
}`;
const init = JSON.stringify({ type: 'connection_init' });
const subscribe = (/** @type {string} */ document, /** @type {Record<string, string>} */ variables) =>
  JSON.stringify({ id: '$id', type: 'subscribe', payload: { query: document, variables } });

/** How to subscribe to and publish on each server. */
const doors = {
  portico: {
    entry: 'portico',
    opening: {
      path: '/graphql',
      protocol: 'graphql-transport-ws',
      first: init,
      second: subscribe(feedDocument, { organizationId: organization, projectId: idOf('project', told) }),
      ready: 'second',
    },
    publish: (/** @type {number} */ project) => ({
      path: '/graphql',
      body: {
        query: publishDocument,
        variables: { input: { organizationId: organization, projectId: idOf('project', project), ...content } },
      },
    }),
  },
  'portico, plain JSON': {
    entry: 'portico',
    opening: {
      path: `/v1/organizations/${organization}/projects/${idOf('project', told)}/notifications/ws`,
      protocol: null,
      first: null,
      second: null,
      // The first event says that the subscription is ready.
      ready: 'first',
    },
    publish: (/** @type {number} */ project) => doors.portico.publish(project),
  },
  ws: {
    entry: 'ws',
    opening: { path: '/', protocol: null, first: null, second: null, ready: 'open' },
    publish: () => ({
      path: '/',
      body: {
        type: 'next',
        sequence: 1,
        notification: { id: idOf('notification', 1), sequence: 1, ...content, created: new Date(0), read: false },
      },
    }),
  },
  'graphql-ws': {
    entry: 'graphql-ws',
    opening: {
      path: '/graphql',
      protocol: 'graphql-transport-ws',
      first: init,
      second: subscribe(
        'subscription Feed($projectId: ID!) { notificationFeed(projectId: $projectId) { sequence notification { id sequence kind severity title body created read } } }',
        { projectId: idOf('project', told) },
      ),
      // The server does not confirm a subscription.
      ready: 'first',
    },
    publish: (/** @type {number} */ project) => ({
      path: '/graphql',
      body: {
        query: 'mutation Publish($input: NewNotification!) { publishNotification(input: $input) { id } }',
        variables: { input: { projectId: idOf('project', project), ...content } },
      },
    }),
  },
};

/** Starts a process of subscribers. */
function openCrowd() {
  const child = fork(new URL('subscribers.mjs', import.meta.url), { stdio: 'inherit' });
  /** @type {{resolve: (reply: any) => void, reject: (failure: Error) => void} | null} */
  let asked = null;
  child.on('message', (reply) => asked?.resolve(reply));
  child.on('exit', () => asked?.reject(new Error('the subscribers ended')));
  /** @param {any} message @returns {Promise<any>} */
  const ask = (message) =>
    new Promise((resolve, reject) => {
      asked = { resolve, reject };
      child.send(message);
    });
  return {
    open: (/** @type {any} */ opening) => ask({ open: opening }),
    reset: (/** @type {'timed' | 'counted'} */ mode) => ask({ reset: mode }),
    /** Waits for this many frames; returns their arrival times. */
    expect: async (/** @type {number} */ count) => {
      const { received, arrivals } = await ask({ expect: count, patienceMs: PATIENCE_MS });
      if (received < count) throw new Error(`of ${count} deliveries ${received} came`);
      return arrivals;
    },
    stop: async () => {
      asked = null;
      child.kill();
      await once(child, 'exit');
    },
  };
}

const now = () => Number(process.hrtime.bigint()) / 1e6;

/** @param {import('./servers.mjs').Server} server @param {{path: string, body: unknown}} request @param {string} token */
async function publish(server, { path, body }, token) {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const response = await fetch(server.baseUrl + path, { method: 'POST', headers, body: JSON.stringify(body) });
  const text = await response.text();
  if (!response.ok || text.includes('"errors"')) throw new Error(`${server.name} published nothing: ${response.status} ${text}`);
}

/** The least of several memory readings, each after a garbage collection, to exclude other allocations of the server. @param {import('./servers.mjs').Server} server */
async function leastMemoryOf(server) {
  let least = Number.POSITIVE_INFINITY;
  for (let look = 0; look < MEMORY_LOOKS; look += 1) {
    await collectGarbage(server);
    await sleep(COLLECTED_MS);
    least = Math.min(least, memoryOf(server.pid));
  }
  return least;
}

/** One event at a time: the time until it has reached 50 % and 99 % of the sockets, for the median event. @param {any} parts */
async function tellOneByOne({ server, crowd, request, token, count }) {
  const figures = { p50: /** @type {number[]} */ ([]), p99: /** @type {number[]} */ ([]) };
  for (let index = 0; index < SINGLE_EVENTS; index += 1) {
    await crowd.reset('timed');
    const began = now();
    await publish(server, request, token);
    const delays = (await crowd.expect(count))
      .map((/** @type {number} */ arrival) => arrival - began)
      .sort((/** @type {number} */ a, /** @type {number} */ b) => a - b);
    figures.p50.push(delays[count >> 1]);
    figures.p99.push(delays[Math.floor(count * 0.99)]);
  }
  return { p50: median(figures.p50), p99: median(figures.p99) };
}

/** Many events, as fast as the server accepts them: deliveries per second, and the server's cost of one. @param {any} parts */
async function tellStream({ server, crowd, request, token, count }) {
  await crowd.reset('timed');
  const [began, cpu] = [now(), cpuOf(server.pid)];
  for (let index = 0; index < STREAM_EVENTS; index += 1) await publish(server, request, token);
  const arrivals = await crowd.expect(count * STREAM_EVENTS);
  const deliveries = count * STREAM_EVENTS;
  return { perSecond: deliveries / ((arrivals.at(-1) - began) / 1000), cpuMicros: (cpuOf(server.pid) - cpu) / deliveries };
}

/** @param {string} name @param {import('./main.mjs').Bench} bench */
async function measureDoor(name, { databaseUrl, scale, key, rounds, say }) {
  const { sockets, moreSockets } = countsOf(scale);
  const { entry, opening, publish: describe } = doors[/** @type {keyof typeof doors} */ (name)];
  const server = await start(entry, { databaseUrl, key, inspect: true });
  const crowd = openCrowd();
  try {
    const tokens = await Promise.all(Array.from({ length: 1_000 }, (_, index) => key.tokenOf(index + 1)));
    const token = String(tokens[0]);
    const request = describe(told);
    const { hostname: host, port } = new URL(server.baseUrl);
    const at = { ...opening, host, port: Number(port), tokens };
    const first = Math.min(FIRST_SOCKETS, sockets / 5);
    await crowd.open({ ...at, count: first });
    await publish(server, request, token);
    await sleep(SETTLE_MS);
    const empty = await leastMemoryOf(server);
    const grow = async (/** @type {number} */ by) => {
      await crowd.open({ ...at, count: by });
      await sleep(SETTLE_MS);
      return memoryOf(server.pid);
    };
    const began = now();
    await grow(sockets - first);
    say(`  ${name}: ${sockets} sockets in ${((now() - began - SETTLE_MS) / 1000).toFixed(1)} s`);
    const memory = await leastMemoryOf(server);
    const parts = { server, crowd, request, token };
    const single = await tellOneByOne({ ...parts, count: sockets });
    const streams = [];
    for (let round = 0; round < rounds; round += 1) streams.push(await tellStream({ ...parts, count: sockets }));
    const perSecond = median(streams.map((stream) => stream.perSecond));
    const cpuMicros = median(streams.map((stream) => stream.cpuMicros));
    const perSocket = ((memory - empty) * 1024) / (sockets - first);
    say(`  ${name}: ${Math.round(perSecond)} deliveries/s, ${cpuMicros.toFixed(1)} µs each; ${perSocket.toFixed(1)} KiB a socket`);
    const measured = { name, perSocket, single, perSecond, cpuMicros };
    // Opening this many takes long, so it is measured only for Portico and the barest peer.
    if (name !== 'portico' && name !== 'ws') return { ...measured, moreMemory: null, more: null };
    const moreMemory = await grow(moreSockets - sockets);
    const more = await tellOneByOne({ ...parts, count: moreSockets });
    say(`  ${name}: p99 of one event to ${moreSockets}: ${more.p99.toFixed(0)} ms`);
    return { ...measured, moreMemory, more };
  } finally {
    await crowd.stop();
    await server.stop();
  }
}

/** Publishing to a project with many subscribers, and to one without any. @param {import('./main.mjs').Bench} bench */
async function measurePublishing({ databaseUrl, scale, key, rounds, seconds }) {
  const server = await start('portico', { databaseUrl, key });
  const crowd = openCrowd();
  try {
    const tokens = await Promise.all(Array.from({ length: 320 }, (_, index) => key.tokenOf(index + 1)));
    const { hostname: host, port } = new URL(server.baseUrl);
    await crowd.open({ ...doors.portico.opening, host, port: Number(port), tokens, count: countsOf(scale).publishingSockets });
    await crowd.reset('counted');
    const requestsTo = (/** @type {number} */ project) =>
      tokens.map((token) => {
        const { path, body } = doors.portico.publish(project);
        return {
          method: 'POST',
          path,
          headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
          body: JSON.stringify(body),
        };
      });
    const [withMany, withNobody] = [requestsTo(told), requestsTo(untold)];
    await drive(server, withNobody, { seconds: Math.min(1, seconds) });
    const figures = { many: /** @type {number[]} */ ([]), nobody: /** @type {number[]} */ ([]) };
    for (let round = 0; round < rounds * PUBLISHING_ROUNDS; round += 1) {
      figures.nobody.push((await drive(server, withNobody, { seconds })).requestsPerSecond);
      figures.many.push((await drive(server, withMany, { seconds })).requestsPerSecond);
      // Waits for pending deliveries, so that they do not count in the next measurement.
      await sleep(SETTLE_MS);
    }
    // Compared round by round, as other load on the machine changes between rounds.
    const ratio = median(figures.many.map((perSecond, round) => perSecond / Number(figures.nobody[round])));
    return { many: median(figures.many), nobody: median(figures.nobody), ratio };
  } finally {
    await crowd.stop();
    await server.stop();
  }
}

/** Deletes what was published, so that the next run starts from the same data. @param {string} databaseUrl @param {number} kept */
async function forget(databaseUrl, kept) {
  const projects = `ARRAY['${idOf('project', told)}', '${idOf('project', untold)}']::uuid[]`;
  await query(
    databaseUrl,
    `SET session_replication_role = replica;
     DELETE FROM notifications WHERE project_id = ANY (${projects}) AND sequence > ${kept};
     UPDATE notification_logs SET last_sequence = ${kept} WHERE project_id = ANY (${projects})`,
  );
}

/** @param {import('./main.mjs').Bench} bench @returns {Promise<import('./main.mjs').Section>} */
export async function measureSockets(bench) {
  const { sockets, moreSockets, publishingSockets } = countsOf(bench.scale);
  const [{ last }] = await query(bench.databaseUrl, 'SELECT last_sequence::int AS last FROM notification_logs WHERE project_id = $1', [
    idOf('project', told),
  ]);
  try {
    /** @type {Array<Awaited<ReturnType<typeof measureDoor>>>} */
    const rows = [];
    for (const name of Object.keys(doors)) rows.push(await measureDoor(name, bench));
    const publishing = await measurePublishing(bench);
    const of = (/** @type {string} */ name) => /** @type {(typeof rows)[number]} */ (rows.find((row) => row.name === name));
    const [ours, plain, bare, yoga] = [of('portico'), of('portico, plain JSON'), of('ws'), of('graphql-ws')];
    const text = [
      table(
        [
          'server',
          `deliveries/s to ${sockets}`,
          'CPU µs a delivery',
          'one event: p50 ms',
          'p99 ms',
          'KiB a socket',
          `RSS MiB at ${moreSockets}`,
          'one event: p99 ms',
        ],
        rows.map(({ name, perSecond, cpuMicros, single, perSocket, moreMemory, more }) => [
          name,
          short(perSecond),
          short(cpuMicros),
          short(single.p50),
          short(single.p99),
          short(perSocket),
          moreMemory ? short(moreMemory) : '–',
          more ? short(more.p99) : '–',
        ]),
      ),
      `Publishing: ${short(publishing.nobody)}/s to a project that nobody listens to, ${short(publishing.many)}/s to one with ${publishingSockets} subscribers.`,
    ].join('\n\n');
    return {
      title: 'Sockets',
      text,
      claims: [
        {
          what: `publishing with ${publishingSockets} subscribers against none`,
          figure: publishing.ratio,
          bound: 0.9,
          atLeast: true,
        },
        { what: `fan-out to ${sockets}, plain JSON against bare ws`, figure: plain.perSecond / bare.perSecond, bound: 3, atLeast: true },
        { what: `fan-out to ${sockets}, GraphQL against bare ws`, figure: ours.perSecond / bare.perSecond, bound: 3, atLeast: true },
        { what: `fan-out to ${sockets} against graphql-ws and Yoga`, figure: ours.perSecond / yoga.perSecond, bound: 15, atLeast: true },
        { what: 'memory of an idle socket, plain JSON against bare ws', figure: plain.perSocket / bare.perSocket, bound: 1.5 },
        { what: 'memory of an idle socket, GraphQL against bare ws', figure: ours.perSocket / bare.perSocket, bound: 3 },
        { what: `${moreSockets} subscribed sockets`, figure: ours.moreMemory ?? Number.NaN, bound: 300, unit: ' MiB' },
        { what: `one event to ${moreSockets}: p99`, figure: ours.more?.p99 ?? Number.NaN, bound: 180, unit: ' ms' },
        {
          what: `one event to ${moreSockets} against bare ws: p99`,
          figure: (ours.more?.p99 ?? Number.NaN) / (bare.more?.p99 ?? Number.NaN),
          bound: 1.5,
        },
      ],
    };
  } finally {
    await forget(bench.databaseUrl, last);
  }
}
