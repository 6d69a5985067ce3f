// The same load on several servers: first their responses must be equal, then they are measured in turn.
import assert from 'node:assert/strict';
import { query } from './database.mjs';
import { CONNECTIONS, drive, medians, percentilesOf } from './load.mjs';
import { pace } from './pace.mjs';
import { postmasterOf } from './servers.mjs';

/** Removes what earlier requests have left behind, which would make the next ones cheaper. @param {string} databaseUrl */
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

/** The warm-up: V8 compiles hot code within the first few thousand requests of an operation. */
const WARM_SECONDS = 2;
const SAMPLES = 12;
const COMPARED = 5_555;
/** The share of the slowest server's throughput: at this rate no server builds up a queue. */
const PACED_SHARE = 0.5;

/**
 * How a server rejects no credential, a bad one, and a project without access: by status or, for GraphQL, with data that is
 * null.
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
 * @typedef {{operation: Measured, server: import('./servers.mjs').Server, requests: import('./load.mjs').Request[]}} Subject
 * @typedef {{rate: number, p50: number, p99: number}} Paced at a fixed rate, a latency counted from when its request was due
 * @typedef {{operation: string, server: string, figures: import('./load.mjs').Figures & {bothMicros: number}, paced: Paced | null}} Row
 */

/**
 * Servers in `atFixedRate` also get requests at a fixed rate, which is the same for all of them.
 * @param {Measured[]} operations @param {import('./servers.mjs').Server[]} servers
 * @param {{databaseUrl: string, key: import('./servers.mjs').Key, rounds: number, seconds: number, say: (line: string) => void, atFixedRate: readonly string[]}} options
 * @returns {Promise<Row[]>}
 */
export async function compare(operations, servers, { databaseUrl, key, rounds, seconds, say, atFixedRate }) {
  const postmaster = await postmasterOf(databaseUrl);
  const stranger = await key.tokenOf(1);
  /** @type {Subject[]} */
  const subjects = [];
  for (const operation of operations) {
    for (const server of servers) subjects.push({ operation, server, requests: await operation.requestsOf(server.name) });
    await compareResponses(subjects.slice(-servers.length), databaseUrl, stranger);
  }
  // All are warmed up before the first is measured, so that other load on the machine affects all alike.
  for (const { server, requests } of subjects) await drive(server, requests, { seconds: Math.min(WARM_SECONDS, 2 * seconds) });
  const driven = await byTurns(subjects, { databaseUrl, rounds }, ({ server, requests }) =>
    drive(server, requests, { seconds, postmaster }),
  );
  const pacedSubjects = subjects.filter(({ server }) => atFixedRate.includes(server.name));
  const rateOf = (/** @type {Measured} */ operation) =>
    PACED_SHARE *
    Math.min(...pacedSubjects.filter((one) => one.operation === operation).map((one) => Number(driven.get(one)?.requestsPerSecond)));
  const paced = await byTurns(pacedSubjects, { databaseUrl, rounds }, async ({ operation, server, requests }) => {
    const rate = rateOf(operation);
    return { rate, ...percentilesOf(await pace(server, requests, { rate, seconds, connections: CONNECTIONS })) };
  });
  const rows = [...driven].map(([subject, figures]) => ({
    operation: subject.operation.name,
    server: subject.server.name,
    figures: { ...figures, bothMicros: figures.cpuMicros + figures.postgresMicros },
    paced: paced.get(subject) ?? null,
  }));
  for (const { name } of operations) {
    const own = rows.filter(({ operation }) => operation === name);
    const costs = own.map(({ server, figures }) => `${server} ${Math.round(figures.cpuMicros)} + ${Math.round(figures.postgresMicros)} µs`);
    say(`  ${name}: ${costs.join(', ')}`);
  }
  return rows;
}

/**
 * Measures each subject once per round; returns the medians.
 * @template {string} Name
 * @param {Subject[]} subjects @param {{databaseUrl: string, rounds: number}} options
 * @param {(subject: Subject) => Promise<Record<Name, number>>} measure
 */
async function byTurns(subjects, { databaseUrl, rounds }, measure) {
  const measured = subjects.map((subject) => ({ subject, figures: /** @type {Array<Record<Name, number>>} */ ([]) }));
  for (let round = 0; round < rounds; round += 1) {
    for (const { subject, figures } of measured) {
      await reset(databaseUrl);
      figures.push(await measure(subject));
    }
  }
  return new Map(measured.map(({ subject, figures }) => [subject, medians(figures)]));
}

/**
 * The ratio of Portico's figure to another server's, for one operation.
 * @param {Row[]} rows @param {string} operation @param {string} server @param {(row: Row) => number} figureOf
 * @param {string} [portico] the label of the Portico to compare
 */
export function ratio(rows, operation, server, figureOf, portico = 'portico') {
  const [ours = Number.NaN, theirs = Number.NaN] = [portico, server].map((name) => {
    const row = rows.find((one) => one.operation === operation && one.server === name);
    return row ? figureOf(row) : Number.NaN;
  });
  // If the other server has answered nothing in time, its CPU per request is infinite.
  return Number.isFinite(theirs) ? ours / theirs : Number.NaN;
}

export const nodeCpu = (/** @type {Row} */ { figures }) => figures.cpuMicros;
export const bothCpu = (/** @type {Row} */ { figures }) => figures.bothMicros;
export const throughput = (/** @type {Row} */ { figures }) => figures.requestsPerSecond;
export const pacedP99 = (/** @type {Row} */ { paced }) => paced?.p99 ?? Number.NaN;

/**
 * Throws if a peer answers or rejects differently from the first one.
 * @param {Subject[]} peers
 * @param {string} databaseUrl @param {string} stranger
 */
async function compareResponses(peers, databaseUrl, stranger) {
  const heard = [];
  for (const { operation, server, requests } of peers) {
    await reset(databaseUrl);
    const responses = [];
    for (let index = 0; index < SAMPLES; index += 1) {
      const { status, body } = await ask(server, /** @type {any} */ (requests[Math.floor((index * requests.length) / SAMPLES)]));
      responses.push({ status, body: operation.comparable(body, server.name) });
    }
    // The stranger has access only to the first organization, and this request is for another.
    const refusals = await refusalsOf(server, /** @type {any} */ (requests[COMPARED]), stranger);
    heard.push({ responses, refusals });
    assert.deepEqual(heard.at(-1), heard[0], `${operation.name}: ${server.name} answers otherwise than ${peers[0]?.server.name}`);
  }
}
