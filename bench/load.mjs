// One period of closed-loop load on one server.
import { setTimeout as sleep } from 'node:timers/promises';
import autocannon from 'autocannon';
import { cpuOf, cpuOfPostgres, memoryOf } from './servers.mjs';

export const CONNECTIONS = 32;
const EDGE_MS = 100;

/**
 * @typedef {{method: string, path: string, headers: Record<string, string>, body?: string}} Request
 * @typedef {{requestsPerSecond: number, cpuMicros: number, postgresMicros: number, p50: number, p99: number, memory: number}} Figures
 * CPU is per request, of the server's process and of all PostgreSQL processes; the latter only if `postmaster` is given.
 */

/**
 * Each connection gets its own share of the requests, so that no two send the same one at once.
 * @param {import('./servers.mjs').Server} server @param {Request[]} requests
 * @param {{seconds: number, connections?: number, postmaster?: number}} options
 * @returns {Promise<Figures>}
 */
export async function drive(server, requests, { seconds, connections = CONNECTIONS, postmaster }) {
  let next = 0;
  /** @type {number[]} */
  const latencies = [];
  const look = () => ({
    cpu: cpuOf(server.pid),
    postgres: postmaster === undefined ? Number.NaN : cpuOfPostgres(postmaster),
    count: latencies.length,
    at: performance.now(),
  });
  const running = autocannon({
    url: server.baseUrl,
    connections,
    duration: seconds,
    setupClient(client) {
      const own = requests.filter((_request, index) => index % connections === next % connections);
      next += 1;
      client.setRequests(own);
      // autocannon's own figures are whole milliseconds.
      client.on('response', (/** @type {number} */ _status, /** @type {number} */ _bytes, /** @type {number} */ ms) => latencies.push(ms));
    },
  });
  // Figures are taken between the edges, so that equally many requests are in flight at the start and at the end.
  await sleep(EDGE_MS);
  const begun = look();
  await sleep(seconds * 1000 - 2 * EDGE_MS);
  const ended = look();
  const result = await running;
  const failed = result.non2xx + result.errors + result.timeouts;
  if (failed > 0)
    throw new Error(`${server.name}: ${failed} of ${result.requests.total} failed: ${JSON.stringify(result.statusCodeStats)}`);
  // Waits for the server to finish the requests that were in flight when the load ended.
  await sleep(EDGE_MS);
  const count = ended.count - begun.count;
  return {
    requestsPerSecond: count / ((ended.at - begun.at) / 1000),
    cpuMicros: (ended.cpu - begun.cpu) / count,
    postgresMicros: (ended.postgres - begun.postgres) / count,
    ...percentilesOf(latencies),
    memory: memoryOf(server.pid),
  };
}

/** @param {number[]} latencies */
export function percentilesOf(latencies) {
  const sorted = [...latencies].sort((a, b) => a - b);
  const at = (/** @type {number} */ share) => Number(sorted[Math.floor(sorted.length * share)]);
  return { p50: at(0.5), p99: at(0.99) };
}

/** @param {number[]} values */
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? Number(sorted[middle]) : (Number(sorted[middle - 1]) + Number(sorted[middle])) / 2;
}

/** The median of each figure. @template {string} Name @param {Array<Record<Name, number>>} rounds @returns {Record<Name, number>} */
export function medians(rounds) {
  const names = /** @type {Name[]} */ (Object.keys(rounds[0] ?? {}));
  return /** @type {Record<Name, number>} */ (Object.fromEntries(names.map((name) => [name, median(rounds.map((round) => round[name]))])));
}

/** Interleaves the requests of all lists. @param {Request[][]} lists @param {number} count @returns {Request[]} */
export function mix(lists, count) {
  return Array.from({ length: count }, (_, index) => {
    const list = lists[index % lists.length] ?? [];
    return /** @type {Request} */ (list[index % list.length]);
  });
}
