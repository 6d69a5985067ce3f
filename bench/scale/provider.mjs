// A model of a provider: projects with heavy-tailed sizes, their sockets, and the distribution of these over replicas.
import { product } from './calibration.mjs';

/** The assumptions about the provider. */
export const usual = {
  projects: 1_000_000,
  sockets: 10_000_000,
  /** The nth largest project has 1 / n^exponent of the sockets of the largest. */
  exponent: 1,
  /** The request rate of a socket's user, and the shares of the kinds. */
  requestsPerSocketSecond: 1 / 60,
  mix: { overview: 0.36, notifications: 0.36, instances: 0.26, mark: 0.02 },
  /** For the average project; a project with n sockets has publications in proportion to the square root of n. */
  publicationsPerProjectDay: 100,
  /** How long a socket lives. */
  socketSeconds: 8 * 3600,
};

/** @typedef {typeof usual} Assumptions */

/** The capacities of the machines. */
export const machines = {
  /** The utilization at which a part counts as full. */
  busy: 0.6,
  /** The zones over which the replicas are spread; one of them may fail. */
  zones: 3,
  bytesOfReplica: 512 * 2 ** 20,
  /** The usable share of the memory, and of `MAX_CONNECTIONS`, which includes the load balancer's connections. */
  full: 0.8,
  coresOfPostgres: 64,
  connectionsOfPostgres: 5_000,
  bytesPerSecondOfPostgres: 25e9 / 8,
};

/** mulberry32: a seeded generator of numbers from 0 to 1, excluding 1. @param {number} seed */
export function openRandom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The number of sockets of each project, largest first; fractions are rounded up or down at random. @param {Assumptions} assumed @param {() => number} random */
export function drawSizes({ projects, sockets, exponent }, random) {
  let all = 0;
  for (let rank = 1; rank <= projects; rank += 1) all += rank ** -exponent;
  const sizes = new Uint32Array(projects);
  for (let rank = 1; rank <= projects; rank += 1) sizes[rank - 1] = Math.floor((sockets * rank ** -exponent) / all + random());
  return sizes;
}

/** The expected number of processes with at least one of a project's sockets, if the load balancer ignores projects. @param {number} size @param {number} replicas */
export const processesOf = (size, replicas) => replicas * (1 - (1 - 1 / replicas) ** size);

/** A cache of the number of projects of each size: of a million projects, most share their size with others. @type {WeakMap<Uint32Array, Map<number, number>>} */
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
 * The provider's demand on each part, per second.
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
 * The fewest replicas, equally many in each zone, that serve the provider even if one zone fails.
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
    // Every replica receives every wake-up: beyond some load no number of replicas is enough.
    if (many > MOST_REPLICAS) return Number.POSITIVE_INFINITY;
  }
  while (many - few > 1) {
    const middle = (few + many) >> 1;
    if (isEnough(middle * zones)) many = middle;
    else few = middle;
  }
  return many * zones;
}

/** The utilization of each part of which there is only one. @param {Demand} demand */
export function sharesOf(demand) {
  const { coresOfPostgres, busy, connectionsOfPostgres, bytesPerSecondOfPostgres } = machines;
  return {
    'CPU of PostgreSQL': sum(demand.postgres) / (coresOfPostgres * busy),
    'connections of PostgreSQL': demand.connections / connectionsOfPostgres,
    'network of PostgreSQL': demand.bytesToPostgres / (bytesPerSecondOfPostgres * busy),
    'CPU of Redis, which is one core': sum(demand.redis) / busy,
  };
}
