// A provider: its projects, whose sizes have a heavy tail, their sockets, and on which replicas these are.
import { product } from './calibration.mjs';

/** What is assumed of the provider. */
export const usual = {
  projects: 1_000_000,
  sockets: 10_000_000,
  /** The nth largest project has 1 / n^exponent of the sockets of the largest. */
  exponent: 1,
  /** By the user of a socket, and of what kind. */
  requestsPerSocketSecond: 1 / 60,
  mix: { overview: 0.36, notifications: 0.36, instances: 0.26, mark: 0.02 },
  /** Of the average project; one of n sockets is told in proportion to the root of n. */
  publicationsPerProjectDay: 100,
  /** How long a socket lives. */
  socketSeconds: 8 * 3600,
};

/** @typedef {typeof usual} Assumptions */

/** What the machines are. */
export const machines = {
  /** A part is full where it is busy for so much of the time. */
  busy: 0.6,
  /** Zones among which the replicas are spread, one of which may be away. */
  zones: 3,
  bytesOfReplica: 512 * 2 ** 20,
  /** Of the memory, and of `MAX_CONNECTIONS`, which the balancer's connections need too. */
  full: 0.8,
  coresOfPostgres: 64,
  connectionsOfPostgres: 5_000,
  bytesPerSecondOfPostgres: 25e9 / 8,
};

/** mulberry32: the same numbers for the same seed, from 0 up to 1. @param {number} seed */
export function openRandom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The sockets of each project, the largest first; fractions become one more socket, or none, by chance. @param {Assumptions} assumed @param {() => number} random */
export function drawSizes({ projects, sockets, exponent }, random) {
  let all = 0;
  for (let rank = 1; rank <= projects; rank += 1) all += rank ** -exponent;
  const sizes = new Uint32Array(projects);
  for (let rank = 1; rank <= projects; rank += 1) sizes[rank - 1] = Math.floor((sockets * rank ** -exponent) / all + random());
  return sizes;
}

/** How many of a project's sockets a balancer that knows nothing of projects brings to a process, at least one: the processes. @param {number} size @param {number} replicas */
export const processesOf = (size, replicas) => replicas * (1 - (1 - 1 / replicas) ** size);

/** How many projects there are of each size: of a million projects most have the sizes of others. @type {WeakMap<Uint32Array, Map<number, number>>} */
const counted = new WeakMap();

/** @param {Uint32Array} sizes */
function countSizes(sizes) {
  const known = counted.get(sizes);
  if (known) return known;
  /** @type {Map<number, number>} */
  const counts = new Map();
  for (const size of sizes) counts.set(size, (counts.get(size) ?? 0) + 1);
  counted.set(sizes, counts);
  return counts;
}

/**
 * What the provider asks of each part in a second.
 * @param {Uint32Array} sizes @param {Assumptions} assumed @param {import('./calibration.mjs').Costs} costs @param {number} replicas
 */
export function reckon(sizes, assumed, costs, replicas) {
  let [sockets, hubs, weight, arrivals, deliveries] = [0, 0, 0, 0, 0];
  for (const [size, count] of countSizes(sizes)) {
    const [processes, share] = [processesOf(size, replicas), Math.sqrt(size)];
    sockets += count * size;
    hubs += count * processes;
    weight += count * share;
    arrivals += count * share * processes;
    deliveries += count * share * size;
  }
  const publications = (assumed.projects * assumed.publicationsPerProjectDay) / 86_400;
  const perShare = publications / weight;
  const requests = sockets * assumed.requestsPerSocketSecond;
  const ofMix = (/** @type {'node' | 'postgres'} */ part) =>
    Object.entries(assumed.mix).reduce(
      (sum, [name, share]) => sum + share * costs.requests[/** @type {keyof typeof costs.requests} */ (name)][part],
      0,
    );
  const connects = sockets / assumed.socketSeconds;
  const leases = sockets * (product.leasesOfSocket / product.leasePollSeconds);
  const positions = (hubs + sockets) / product.positionPollSeconds;
  const wakeups = publications + requests * assumed.mix.mark;
  return {
    sockets,
    hubs,
    publications,
    requests,
    connects,
    arrivals: arrivals * perShare,
    deliveries: deliveries * perShare,
    polledRows: leases + positions,
    wakeups,
    messages: wakeups * replicas,
    publishedByLargest: Math.sqrt(sizes[0] ?? 0) * perShare,
    node: {
      'sockets that say nothing': sockets * costs.idleSocket,
      requests: requests * ofMix('node'),
      'new sockets': connects * costs.connect.node,
      'publications, and reading them': publications * costs.publication.node + arrivals * perShare * costs.arrival.node,
      deliveries: deliveries * perShare * costs.delivery,
      'wake-ups of others': wakeups * replicas * costs.wakeup,
    },
    postgres: {
      'polls of leases': leases * costs.polledLease,
      'polls of positions': positions * costs.polledPosition,
      requests: requests * ofMix('postgres'),
      'new sockets': connects * costs.connect.postgres,
      publications: publications * costs.publication.postgres,
      'reading the log, once a process': arrivals * perShare * costs.arrival.postgres,
    },
    redis: { 'wake-ups': wakeups * replicas * costs.redisMessage, budgets: requests * costs.redisOfRequest },
    bytesToPostgres: (leases + positions) * costs.polledBytes,
    connections: replicas * product.connectionsOfReplica,
    rowsOfDay: publications * 86_400,
  };
}

/** @typedef {ReturnType<typeof reckon>} Demand */

export const sum = (/** @type {Record<string, number>} */ parts) => Object.values(parts).reduce((all, part) => all + part, 0);

const MOST_REPLICAS = 1_000_000;

/**
 * The fewest replicas, in all zones alike, that serve the provider also when one zone is away.
 * @param {Uint32Array} sizes @param {Assumptions} assumed @param {import('./calibration.mjs').Costs} costs
 */
export function countReplicas(sizes, assumed, costs) {
  const { zones, busy, full, bytesOfReplica } = machines;
  const isEnough = (/** @type {number} */ replicas) => {
    const { sockets, node } = reckon(sizes, assumed, costs, replicas);
    const left = (replicas / zones) * (zones - 1);
    const bytes = costs.bytesOfProcess + (sockets / left) * costs.bytesOfSocket;
    return (
      sum(node) / replicas <= busy &&
      sum(node) / left <= 1 &&
      bytes <= bytesOfReplica * full &&
      sockets / left <= product.maxConnections * full
    );
  };
  let [few, many] = [0, 1];
  while (!isEnough(many * zones)) {
    many *= 2;
    // Every replica hears every wake-up: beyond some number no replicas are enough.
    if (many > MOST_REPLICAS) return Number.POSITIVE_INFINITY;
  }
  while (many - few > 1) {
    const middle = (few + many) >> 1;
    if (isEnough(middle * zones)) many = middle;
    else few = middle;
  }
  return many * zones;
}

/** What holds for one of each: of how much it can have, the share that the provider asks. @param {Demand} demand */
export function sharesOf(demand) {
  const { coresOfPostgres, busy, connectionsOfPostgres, bytesPerSecondOfPostgres } = machines;
  return {
    'CPU of PostgreSQL': sum(demand.postgres) / (coresOfPostgres * busy),
    'connections of PostgreSQL': demand.connections / connectionsOfPostgres,
    'network of PostgreSQL': demand.bytesToPostgres / (bytesPerSecondOfPostgres * busy),
    'CPU of Redis, which is one core': sum(demand.redis) / busy,
  };
}
