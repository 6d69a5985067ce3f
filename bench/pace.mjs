// Open-loop load at a fixed rate: each request is sent when it is due, whether or not earlier ones have been answered.
// autocannon sends all requests of a second at its beginning, as fast as they are answered.
import { Agent, request as httpRequest } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

/** The warm-up, which is not counted: the first requests open the connections, and meet a server that was idle. */
const LEAD_SECONDS = 0.2;
const PATIENCE_MS = 10_000;

/**
 * Latencies of requests at a fixed rate. A latency is measured from when its request was due, so it includes the wait for a
 * connection if the server falls behind.
 * @param {import('./servers.mjs').Server} server @param {import('./load.mjs').Request[]} requests
 * @param {{rate: number, seconds: number, connections: number, leadSeconds?: number}} options
 * @returns {Promise<number[]>} in milliseconds
 */
export async function pace(server, requests, { rate, seconds, connections, leadSeconds = LEAD_SECONDS }) {
  const { hostname, port } = new URL(server.baseUrl);
  // `fifo` rotates the connections, so that all are in use.
  const agent = new Agent({ keepAlive: true, maxSockets: connections, scheduling: 'fifo' });
  const lead = Math.ceil(leadSeconds * rate);
  const count = lead + Math.round(seconds * rate);
  /** @type {Array<Promise<number | Error>>} */
  const sent = [];
  const began = performance.now();
  try {
    while (sent.length < count) {
      const due = began + (sent.length * 1000) / rate;
      const early = due - performance.now();
      if (early > 0) await sleep(early);
      else sent.push(send(/** @type {any} */ (requests[sent.length % requests.length]), { hostname, port, agent, due }));
    }
    const outcomes = await Promise.all(sent);
    const failures = outcomes.filter((outcome) => outcome instanceof Error);
    if (failures.length > 0) throw new Error(`${server.name}: ${failures.length} of ${count} failed: ${failures[0]?.message}`);
    return outcomes.slice(lead).map(Number);
  } finally {
    agent.destroy();
  }
}

/**
 * @param {import('./load.mjs').Request} request @param {{hostname: string, port: string, agent: Agent, due: number}} options
 * @returns {Promise<number | Error>}
 */
function send({ body, ...request }, { due, ...to }) {
  return new Promise((resolve) => {
    const sent = httpRequest({ ...request, ...to }, (response) => {
      const isGood = Number(response.statusCode) < 300;
      response.resume().on('end', () => resolve(isGood ? performance.now() - due : new Error(`answered with ${response.statusCode}`)));
      response.on('error', resolve);
    });
    sent.setTimeout(PATIENCE_MS, () => sent.destroy(new Error('not answered')));
    sent.on('error', resolve);
    sent.end(body);
  });
}
