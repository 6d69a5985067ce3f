// The same load on several servers: first their answers must be equal, then they are measured in turn.
import assert from 'node:assert/strict';
import { query } from './database.mjs';
import { drive, medians } from './load.mjs';

/** What earlier requests have left behind would make the next ones easier. @param {string} databaseUrl */
async function reset(databaseUrl) {
  for (const name of ['notification_reads', 'notification_states', 'websocket_tickets']) await query(databaseUrl, `DELETE FROM ${name}`);
}

/** @param {import('./servers.mjs').Server} server @param {import('./load.mjs').Request} request */
async function ask(server, { path, ...request }) {
  const response = await fetch(server.baseUrl + path, request);
  const text = await response.text();
  assert.ok(response.ok, `${server.name} answers ${request.method} ${path} with ${response.status}: ${text.slice(0, 500)}`);
  assert.match(response.headers.get('ratelimit') ?? '', /;r=\d+;t=\d+/, `${server.name} does not say what is left of the budget`);
  return { status: response.status, body: JSON.parse(text) };
}

/** V8 compiles what is hot within the first few thousand requests of an operation. */
const WARM_SECONDS = 2;
const SAMPLES = 12;
const COMPARED = 5_555;

/**
 * What they refuse: no credential, a bad one, and somebody else's project. By status, or, of GraphQL, with data that
 * is null.
 * @param {import('./servers.mjs').Server} server @param {import('./load.mjs').Request} request @param {string} stranger
 */
async function refusalsOf(server, { path, headers, ...request }, stranger) {
  const { authorization, ...others } = headers;
  const refusals = [];
  for (const credential of [{}, { authorization: `${authorization}x` }, { authorization: `Bearer ${stranger}` }]) {
    const response = await fetch(server.baseUrl + path, { ...request, headers: { ...others, ...credential } });
    const { data } = /** @type {any} */ (await response.json());
    const isRefused = !response.ok || Object.values(data ?? {}).every((value) => value === null);
    refusals.push(path === '/graphql' ? isRefused : response.status);
  }
  return refusals;
}

/**
 * @typedef {{name: string, requestsOf: (server: string) => Promise<import('./load.mjs').Request[]>, comparable: (body: any, server: string) => unknown}} Measured
 * @typedef {{operation: string, server: string, figures: import('./load.mjs').Figures}} Row
 */

/**
 * @param {Measured[]} operations @param {import('./servers.mjs').Server[]} servers
 * @param {{databaseUrl: string, key: import('./servers.mjs').Key, rounds: number, seconds: number, say: (line: string) => void}} options
 * @returns {Promise<Row[]>}
 */
export async function compare(operations, servers, { databaseUrl, key, rounds, seconds, say }) {
  const stranger = await key.tokenOf(1);
  const measured = [];
  for (const operation of operations) {
    for (const server of servers)
      measured.push({
        operation,
        server,
        requests: await operation.requestsOf(server.name),
        figures: /** @type {import('./load.mjs').Figures[]} */ ([]),
      });
    await compareAnswers(measured.slice(-servers.length), databaseUrl, stranger);
  }
  // All are warm before the first is measured, and what else the machine does meets all of them.
  for (const { server, requests } of measured) await drive(server, requests, { seconds: Math.min(WARM_SECONDS, 2 * seconds) });
  for (let round = 0; round < rounds; round += 1) {
    for (const { server, requests, figures } of measured) {
      await reset(databaseUrl);
      figures.push(await drive(server, requests, { seconds }));
    }
  }
  const rows = measured.map(({ operation, server, figures }) => ({
    operation: operation.name,
    server: server.name,
    figures: medians(figures),
  }));
  for (const { name } of operations) {
    const own = rows.filter(({ operation }) => operation === name);
    say(`  ${name}: ${own.map(({ server, figures }) => `${server} ${Math.round(figures.cpuMicros)} µs`).join(', ')}`);
  }
  return rows;
}

/**
 * Throws where they answer or refuse otherwise than the first of them.
 * @param {Array<{operation: Measured, server: import('./servers.mjs').Server, requests: import('./load.mjs').Request[]}>} peers
 * @param {string} databaseUrl @param {string} stranger
 */
async function compareAnswers(peers, databaseUrl, stranger) {
  const heard = [];
  for (const { operation, server, requests } of peers) {
    await reset(databaseUrl);
    const answers = [];
    for (let index = 0; index < SAMPLES; index += 1) {
      const { status, body } = await ask(server, /** @type {any} */ (requests[Math.floor((index * requests.length) / SAMPLES)]));
      answers.push({ status, body: operation.comparable(body, server.name) });
    }
    // The stranger reaches the first organization alone, and this request is of another.
    const refusals = await refusalsOf(server, /** @type {any} */ (requests[COMPARED]), stranger);
    heard.push({ answers, refusals });
    assert.deepEqual(heard.at(-1), heard[0], `${operation.name}: ${server.name} answers otherwise than ${peers[0]?.server.name}`);
  }
}
