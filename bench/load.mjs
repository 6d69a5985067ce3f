// One stretch of load on one server.
import autocannon from 'autocannon';
import { cpuOf, memoryOf } from './servers.mjs';

export const CONNECTIONS = 32;

/**
 * @typedef {{method: string, path: string, headers: Record<string, string>, body?: string}} Request
 * @typedef {{requestsPerSecond: number, cpuMicros: number, p50: number, p99: number, memory: number}} Figures
 */

/**
 * Each connection takes its own share of the requests, so that no two ask for the same at once.
 * @param {import('./servers.mjs').Server} server @param {Request[]} requests @param {{seconds: number, connections?: number}} options
 * @returns {Promise<Figures>}
 */
export async function drive(server, requests, { seconds, connections = CONNECTIONS }) {
  let next = 0;
  /** @type {number[]} */
  const latencies = [];
  const cpuBefore = cpuOf(server.pid);
  const result = await autocannon({
    url: server.baseUrl,
    connections,
    duration: seconds,
    // At this rate a sample every 10 ms costs nothing, and the window ends when it should.
    sampleInt: 100,
    setupClient(client) {
      const own = requests.filter((_request, index) => index % connections === next % connections);
      next += 1;
      client.setRequests(own);
      // autocannon's own figures are whole milliseconds.
      client.on('response', (/** @type {number} */ _status, /** @type {number} */ _bytes, /** @type {number} */ ms) => latencies.push(ms));
    },
  });
  const cpu = cpuOf(server.pid) - cpuBefore;
  const failed = result.non2xx + result.errors + result.timeouts;
  if (failed > 0)
    throw new Error(`${server.name}: ${failed} of ${result.requests.total} failed: ${JSON.stringify(result.statusCodeStats)}`);
  latencies.sort((a, b) => a - b);
  const at = (/** @type {number} */ share) => Number(latencies[Math.floor(latencies.length * share)]);
  return {
    requestsPerSecond: result.requests.total / result.duration,
    cpuMicros: cpu / result.requests.total,
    p50: at(0.5),
    p99: at(0.99),
    memory: memoryOf(server.pid),
  };
}

/** @param {number[]} values */
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? Number(sorted[middle]) : (Number(sorted[middle - 1]) + Number(sorted[middle])) / 2;
}

/** The median of each figure. @param {Figures[]} rounds @returns {Figures} */
export function medians(rounds) {
  const of = (/** @type {keyof Figures} */ name) => median(rounds.map((round) => round[name]));
  return { requestsPerSecond: of('requestsPerSecond'), cpuMicros: of('cpuMicros'), p50: of('p50'), p99: of('p99'), memory: of('memory') };
}
