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
  /** @type {Row[]} */
  const rows = [];
  for (const operation of operations) {
    const requests = new Map(
      await Promise.all(servers.map(async ({ name }) => /** @type {const} */ ([name, await operation.requestsOf(name)]))),
    );
    const of = (/** @type {string} */ name) => /** @type {import('./load.mjs').Request[]} */ (requests.get(name));
    const [first, ...others] = /** @type {[import('./servers.mjs').Server, ...import('./servers.mjs').Server[]]} */ (servers);
    const answersOf = async (/** @type {import('./servers.mjs').Server} */ server) => {
      await reset(databaseUrl);
      const answers = [];
      for (let index = 0; index < SAMPLES; index += 1) {
        const own = of(server.name);
        const { status, body } = await ask(server, own[Math.floor((index * own.length) / SAMPLES)]);
        answers.push({ status, body: operation.comparable(body, server.name) });
      }
      return answers;
    };
    const expected = await answersOf(first);
    // The first user reaches the first organization alone, and this request is of another.
    const stranger = await key.tokenOf(1);
    const refused = (/** @type {import('./servers.mjs').Server} */ server) => refusalsOf(server, of(server.name)[COMPARED], stranger);
    const refusals = await refused(first);
    for (const other of others)
      assert.deepEqual(await refused(other), refusals, `${operation.name}: ${other.name} refuses otherwise than ${first.name}`);
    for (const other of others)
      assert.deepEqual(await answersOf(other), expected, `${operation.name}: ${other.name} answers otherwise than ${first.name}`);

    /** @type {Map<string, import('./load.mjs').Figures[]>} */
    const measured = new Map(servers.map(({ name }) => [name, []]));
    for (const server of servers) await drive(server, of(server.name), { seconds: Math.min(1, seconds) });
    for (let round = 0; round < rounds; round += 1) {
      for (const server of servers) {
        await reset(databaseUrl);
        measured.get(server.name)?.push(await drive(server, of(server.name), { seconds }));
      }
    }
    for (const [server, figures] of measured) rows.push({ operation: operation.name, server, figures: medians(figures) });
    say(
      `  ${operation.name}: ${servers.map(({ name }) => `${name} ${Math.round(medians(measured.get(name) ?? []).cpuMicros)} µs`).join(', ')}`,
    );
  }
  return rows;
}
