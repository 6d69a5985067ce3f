// The provider over time: a simulation of queues in discrete steps.
import { product } from './calibration.mjs';
import { processesOf, reckon, sum } from './provider.mjs';

/**
 * A first-in, first-out queue. Entries that arrive together form a group; the last group that a step reaches is served in part.
 * @typedef {{count: number, cost: number, begun: number, entered: number, tries: number, isLost: boolean}} Group
 */
export class Queue {
  /** @type {Group[]} */
  groups = [];
  #first = 0;
  /** The index of the first group that was not yet checked by `loseBefore`. */
  #patient = 0;
  /** Queued work, in seconds. */
  work = 0;

  /** @param {Group} group */
  push(group) {
    this.groups.push(group);
    this.work += group.count * group.cost;
  }

  /** Serves up to `capacity` seconds of work. @param {number} capacity @param {(group: Group, count: number) => void} onServed */
  serve(capacity, onServed) {
    let left = capacity;
    for (let group = this.#head(); group && left > 0; group = this.#head()) {
      const count = group.cost > 0 ? Math.min(group.count, left / group.cost) : group.count;
      left -= count * group.cost;
      this.#take(group, count);
      onServed(group, count);
    }
    return capacity - left;
  }

  /** Removes the groups that entered before a time. @param {number} moment @param {(group: Group, count: number) => void} onLate */
  dropBefore(moment, onLate) {
    for (let group = this.#head(); group && group.entered < moment; group = this.#head()) {
      const { count } = group;
      this.#take(group, count);
      onLate(group, count);
    }
  }

  /** Marks groups that began before a time and are still queued as lost; they stay in the queue. @param {number} moment @param {(group: Group) => void} onLost */
  loseBefore(moment, onLost) {
    this.#patient = Math.max(this.#patient, this.#first);
    for (let group = this.groups[this.#patient]; group && group.begun < moment; group = this.groups[this.#patient]) {
      this.#patient += 1;
      if (group.isLost) continue;
      group.isLost = true;
      onLost(group);
    }
  }

  #head() {
    return this.groups[this.#first];
  }

  /** @param {Group} group @param {number} count */
  #take(group, count) {
    group.count -= count;
    this.work = Math.max(0, this.work - count * group.cost);
    if (group.count > 1e-9) return;
    this.#first += 1;
    if (this.#first < 1_000) return;
    this.groups.splice(0, this.#first);
    this.#patient = Math.max(0, this.#patient - this.#first);
    this.#first = 0;
  }
}

/** A weighted histogram of delays, for percentiles. */
class Delays {
  /** The weight of each millisecond. */
  #weights = new Float64Array(60_000);
  #all = 0;

  /** @param {number} seconds @param {number} weight */
  note(seconds, weight) {
    const slot = Math.min(this.#weights.length - 1, Math.round(seconds * 1000));
    this.#weights[slot] = Number(this.#weights[slot]) + weight;
    this.#all += weight;
  }

  /** The percentile in milliseconds. @param {number} share */
  at(share) {
    let weight = 0;
    return this.#weights.findIndex((one) => (weight += one) >= share * this.#all);
  }
}

/**
 * @typedef {{sizes: Uint32Array, assumed: import('./provider.mjs').Assumptions, costs: import('./calibration.mjs').Costs,
 *   replicas: number, cores: number, random: () => number}} World
 */

/** A random number of arrivals in a step, given the expected number. @param {number} expected @param {() => number} random */
function drawCount(expected, random) {
  const spread = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  return Math.max(0, Math.round(expected + spread * Math.sqrt(expected)));
}

const STEP_SECONDS = 0.05;

/**
 * The delay of events to sockets during an hour without Redis, with ten minutes before and after it. Each replica always
 * polls at its own times; with Redis, a wake-up arrives earlier.
 * @param {World} world @param {{before: number, away: number, after: number}} seconds
 */
export function loseRedis({ sizes, assumed, costs, replicas, cores, random }, { before, away, after }) {
  const demand = reckon(sizes, assumed, costs, replicas);
  /** The cumulative weights of the projects, by which publications are drawn. */
  const shares = new Float64Array(sizes.length);
  let all = 0;
  for (const [index, size] of sizes.entries()) {
    all += Math.sqrt(size);
    shares[index] = all;
  }
  const drawProject = () => {
    const wanted = random() * all;
    let [low, high] = [0, shares.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (Number(shares[middle]) < wanted) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  const { positionPollSeconds: interval } = product;
  const ownRows = (demand.hubs + demand.sockets) / replicas;
  const phases = Float64Array.from({ length: replicas }, () => random() * interval);
  const pollsOfStep = (/** @type {number} */ now) => {
    let count = 0;
    for (const phase of phases) if ((now - phase + 10 * interval) % interval < STEP_SECONDS) count += 1;
    return count;
  };
  // PostgreSQL's constant load, without the polls of positions and the cost of events.
  const steady = sum(demand.postgres) - demand.postgres['polls of positions'] - demand.postgres['reading the log, once a process'];
  const nodeBusy = sum(demand.node) / replicas;
  const phasesOfRun = [
    { name: 'before', until: before, hasRedis: true },
    { name: 'without Redis', until: before + away, hasRedis: false },
    { name: 'after', until: before + away + after, hasRedis: true },
  ].map((phase) => ({ ...phase, delays: new Delays(), busy: 0, reads: 0, steps: 0 }));
  let backlog = 0;
  let now = 0;
  for (const phase of phasesOfRun) {
    for (; now < phase.until; now += STEP_SECONDS) {
      const polls = pollsOfStep(now);
      const published = drawCount(demand.publications * STEP_SECONDS, random);
      let work = steady * STEP_SECONDS + polls * ownRows * costs.polledPosition;
      const wait = backlog / cores;
      for (let event = 0; event < published; event += 1) {
        const size = Number(sizes[drawProject()]);
        if (size === 0) continue;
        const processes = Math.max(1, Math.round(processesOf(size, replicas)));
        work += processes * costs.arrival.postgres;
        phase.reads += processes;
        // The time in the process: the read and the delivery to half of its sockets, beside its other load.
        const told = (costs.arrival.node + (size / processes / 2) * costs.delivery) / (1 - nodeBusy);
        // The replica that handles the publication knows it at once.
        const isOwn = random() < 1 / replicas;
        const poll = phase.hasRedis || isOwn ? 0 : random() * interval + ownRows * costs.polledPosition + wait;
        phase.delays.note(poll + wait + costs.arrival.postgres + told, size);
      }
      backlog = Math.max(0, backlog + work - cores * STEP_SECONDS);
      phase.busy += work;
      phase.steps += 1;
    }
  }
  return phasesOfRun.map(({ name, delays, busy, reads, steps }) => ({
    name,
    p50: delays.at(0.5),
    p99: delays.at(0.99),
    postgres: busy / (steps * STEP_SECONDS * cores),
    reads: reads / (steps * STEP_SECONDS),
  }));
}

const STORM_STEP = 0.01;
/** How long a client waits for its socket to open. */
const OPENING_SECONDS = 10;
/** The share of the spare capacity that a gate admits. */
const GATE_SHARE = 0.9;
/** The simulated time of a reconnection storm. */
const PATIENCE_SECONDS = 900;
const MAX_TRIES = 7;
/** Seconds before the nth retry, from 0. @param {number} tries */
const backoff = (tries) => Math.min(0.1 * 2 ** tries, 10);

/** The interval in which a client retries: after a failure, and after a rejection with `Retry-After`. */
export const habits = {
  'after just what a refusal says': {
    afterFailure: (/** @type {number} */ tries) => [backoff(tries) / 2, backoff(tries)],
    afterRefusal: () => [product.retryAfterSeconds, product.retryAfterSeconds],
  },
  'as the client package does': {
    afterFailure: (/** @type {number} */ tries) => [backoff(tries) / 2, backoff(tries)],
    afterRefusal: (/** @type {number} */ tries) => [
      Math.max(product.retryAfterSeconds, backoff(tries) / 2),
      Math.max(product.retryAfterSeconds, backoff(tries)),
    ],
  },
  'once a second, without chance': { afterFailure: () => [1, 1], afterRefusal: () => [1, 1] },
};

/** @typedef {{afterFailure: (tries: number) => number[], afterRefusal: (tries: number) => number[]}} Habit */

/**
 * A zone fails, temporarily or for good, with the sockets on its replicas. Their clients reconnect with their cursors, each
 * with a ticket, an upgrade and a read of the log, to the replicas that are left or have recovered.
 * @param {World} world @param {{share: number, awaySeconds: number, habit: Habit, isGated: boolean}} outage `awaySeconds`: how long nobody serves
 * these clients. A gate admits only as many attempts per second as can be served, and rejects the others before any work is done.
 */
export function loseSockets({ sizes, assumed, costs, replicas, cores }, { share, awaySeconds, habit, isGated }) {
  const demand = reckon(sizes, assumed, costs, replicas);
  const isTotal = share === 1;
  const left = isTotal ? replicas : replicas * (1 - share);
  const lost = demand.sockets * share;
  const fleet = new Queue();
  const postgres = new Queue();
  /** The clients that wait for their next attempt, by its step and their number of attempts. @type {Map<number, Float64Array>} */
  const calendar = new Map();
  const comeBack = (
    /** @type {number} */ count,
    /** @type {number} */ tries,
    /** @type {number} */ now,
    /** @type {number[]} */ [from = 0, to = 0],
  ) => {
    const [first, last] = [Math.ceil((now + from) / STORM_STEP), Math.ceil((now + to) / STORM_STEP)];
    const each = count / (last - first + 1);
    for (let step = first; step <= last; step += 1) {
      const tried = calendar.get(step) ?? new Float64Array(MAX_TRIES + 1);
      const slot = Math.min(tries, MAX_TRIES);
      tried[slot] = Number(tried[slot]) + each;
      calendar.set(step, tried);
    }
  };
  // The other load: all requests and events, and the polls of the connected sockets.
  const nodeOfSockets = demand.node['sockets that say nothing'];
  const postgresOfSockets = demand.postgres['polls of leases'] + demand.postgres['polls of positions'];
  const others = { node: sum(demand.node) - nodeOfSockets, postgres: sum(demand.postgres) - postgresOfSockets };
  const report = {
    attempts: 0,
    refused: 0,
    given: 0,
    peak: 0,
    refusedOthers: 0,
    longest: 0,
    half: Number.POSITIVE_INFINITY,
    most: Number.POSITIVE_INFINITY,
    online: demand.sockets - lost,
  };
  const free = { node: left - sum(demand.node), postgres: cores - sum(demand.postgres) };
  const perSecond = Math.min(free.node / costs.reconnect.node, free.postgres / costs.reconnect.postgres) * GATE_SHARE;
  const OTHERS = -1;
  comeBack(lost, 0, 0, habit.afterFailure(0));
  const fail = (/** @type {Group} */ { tries }, /** @type {number} */ count, /** @type {number} */ now) =>
    comeBack(count, tries + 1, now, habit.afterFailure(tries + 1));
  let inSecond = 0;
  let room = 0;
  const limit = awaySeconds + PATIENCE_SECONDS;
  let step = 0;
  for (; step * STORM_STEP < limit && report.online < demand.sockets * 0.9999; step += 1) {
    const now = step * STORM_STEP;
    const isAway = isTotal && now < awaySeconds;
    const tried = calendar.get(step);
    calendar.delete(step);
    const all = tried?.reduce((sum, count) => sum + count, 0) ?? 0;
    // A token bucket: unused admissions accumulate for up to a second.
    room = Math.min(perSecond, room + perSecond * STORM_STEP);
    const letIn = isGated && !isAway ? Math.min(1, room / all) : 1;
    if (isGated && !isAway) room -= all * letIn;
    for (const [tries, many] of tried?.entries() ?? []) {
      if (many === 0) continue;
      const count = many * letIn;
      const group = { count, cost: costs.reconnect.node, begun: now, entered: now, tries, isLost: false };
      if (isAway) fail(group, count, now);
      else {
        report.attempts += many;
        inSecond += many;
        fleet.push(group);
        if (count === many) continue;
        report.refused += many - count;
        comeBack(many - count, tries + 1, now, habit.afterRefusal(tries + 1));
      }
    }
    if (step % Math.round(1 / STORM_STEP) === 0) {
      report.peak = Math.max(report.peak, inSecond);
      inSecond = 0;
    }
    if (isAway) continue;
    const present = report.online / demand.sockets;
    const node = (others.node + nodeOfSockets * present) * STORM_STEP;
    const base = { begun: now, entered: now, tries: OTHERS, isLost: false };
    fleet.push({ ...base, count: demand.requests * STORM_STEP, cost: node / (demand.requests * STORM_STEP) });
    fleet.serve(left * STORM_STEP, (group, count) => {
      report.longest = Math.max(report.longest, now - group.begun);
      const cost = group.tries === OTHERS ? (others.postgres + postgresOfSockets * present) / demand.requests : costs.reconnect.postgres;
      postgres.push({ ...group, count, cost, entered: now });
    });
    postgres.dropBefore(now - product.patienceSeconds, (group, count) => {
      if (group.tries === OTHERS) report.refusedOthers += count;
      else if (!group.isLost) {
        report.refused += count;
        comeBack(count, group.tries + 1, now, habit.afterRefusal(group.tries + 1));
      }
    });
    postgres.serve(cores * STORM_STEP, (group, count) => {
      report.longest = Math.max(report.longest, now - group.begun);
      if (group.tries === OTHERS || group.isLost) return;
      report.online += count;
    });
    // Clients that have waited for too long start again; their queued work is done all the same.
    for (const queue of [fleet, postgres])
      queue.loseBefore(now - OPENING_SECONDS, (group) => {
        if (group.tries === OTHERS) return;
        report.given += group.count;
        fail(group, group.count, now);
      });
    const back = (report.online - (demand.sockets - lost)) / lost;
    if (back >= 0.5) report.half = Math.min(report.half, now - awaySeconds);
    if (back >= 0.99) report.most = Math.min(report.most, now - awaySeconds);
  }
  const isOver = report.online >= demand.sockets * 0.9999;
  return {
    ...report,
    all: isOver ? step * STORM_STEP - awaySeconds : Number.POSITIVE_INFINITY,
    attemptsOfClient: report.attempts / lost,
  };
}
