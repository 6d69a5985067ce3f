// The cost of each operation, in seconds and bytes: as measured by the bench (results.md), or by costs.mjs where the bench
// does not measure it (costs.json).
import { readFileSync } from 'node:fs';

const MICRO = 1e-6;
/** Constants of src/notifications/hubs.ts, src/access/revocation.ts, src/platform/pool.ts and src/config.ts. */
export const product = {
  positionPollSeconds: 0.75,
  leasePollSeconds: 1,
  /** A lease of the socket, and one of its subscription. */
  leasesOfSocket: 2,
  /** Connections of a process to PostgreSQL: its pool, and two for probes. */
  connectionsOfReplica: 10 + 2,
  maxConnections: 20_000,
  /** How long a request waits for the database before it is rejected, and the `Retry-After` of the rejection. */
  patienceSeconds: 3,
  retryAfterSeconds: 1,
  redisReconnectSeconds: 0.25,
  redisConnections: 2,
  budgetOfUser: 5_000,
};

/**
 * A figure from the first row of a section that begins with these cells, in the first of the columns that exists; null if none does.
 * @param {string} text @param {string} section @param {string[]} row @param {string[]} columns
 */
function findFigure(text, section, row, columns) {
  const [, body = ''] = text.split(`\n## ${section}\n`);
  const rows = (body.split('\n## ')[0] ?? '')
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
  const [head = []] = rows;
  const found = rows.find((cells) => row.every((cell, column) => cells[column] === cell));
  const column = columns.find((name) => head.includes(name));
  if (!found || column === undefined) return null;
  return Number.parseFloat((found[head.indexOf(column)] ?? '').replaceAll(',', ''));
}

/** @param {string} text @param {string} section @param {string[]} row @param {string[]} columns */
function readFigure(text, section, row, columns) {
  const figure = findFigure(text, section, row, columns);
  if (figure === null || !Number.isFinite(figure)) throw new Error(`results.md has no ${columns} of ${row} under ${section}`);
  return figure;
}

/** The requests that both the bench and costs.mjs measure. */
const benched = {
  overview: { section: 'v1 REST', operation: 'compute overview' },
  notifications: { section: 'GraphQL over HTTP', operation: '20 notifications' },
  instances: { section: 'GraphQL over HTTP', operation: '20 instances with backup trial' },
  mark: { section: 'v1 REST', operation: 'mark notifications as read' },
};
const nodeColumns = ['CPU µs/request: Node', 'CPU µs/request'];

/** @param {string} results @param {any} measured */
function calibrate(results, measured) {
  const { costs } = measured;
  // The machine had different other load in the two runs: the requests that both measured give the ratio between them.
  const both = Object.entries(benched).map(([what, { section, operation }]) => {
    const row = [operation, 'portico'];
    const node = readFigure(results, section, row, nodeColumns) / costs[what].node;
    const ofPostgres = findFigure(results, section, row, ['PostgreSQL']);
    return { node, postgres: ofPostgres === null ? node : ofPostgres / costs[what].postgres };
  });
  const mean = (/** @type {'node' | 'postgres'} */ part) =>
    both.reduce((product, ratios) => product * ratios[part], 1) ** (1 / both.length);
  const pace = { node: mean('node'), postgres: mean('postgres') };
  const node = (/** @type {string} */ what) => costs[what].node * pace.node * MICRO;
  const postgres = (/** @type {string} */ what) => costs[what].postgres * pace.postgres * MICRO;
  /** The cost of a request by the bench; PostgreSQL's part is from the bench, or else from costs.json. @param {keyof typeof benched} what */
  const request = (what) => {
    const { section, operation } = benched[what];
    const row = [operation, 'portico'];
    const ofPostgres = findFigure(results, section, row, ['PostgreSQL']);
    return {
      node: readFigure(results, section, row, nodeColumns) * MICRO,
      postgres: ofPostgres === null ? postgres(what) : ofPostgres * MICRO,
    };
  };
  const delivery = readFigure(results, 'Sockets', ['portico, plain JSON'], ['CPU µs a delivery']) * MICRO;
  const [, publishedPerSecond] = /Publishing: ([\d,]+)\/s to a project that nobody listens to/.exec(results) ?? [];
  // The rows per second that the polls of one socket read, if no two sockets share a user or a project.
  const leasesOfSocket = product.leasesOfSocket / product.leasePollSeconds;
  const positionsOfSocket = 2 / product.positionPollSeconds;
  return {
    /** By request: seconds of a replica's core and of PostgreSQL's. */
    requests: {
      overview: request('overview'),
      notifications: request('notifications'),
      instances: request('instances'),
      mark: request('mark'),
    },
    redisOfRequest: costs.overview.redis * pace.node * MICRO,
    connect: { node: node('connect'), postgres: postgres('connect') },
    /** Includes reading the missed entries from the log. */
    reconnect: { node: node('reconnect'), postgres: postgres('reconnect') },
    publication: { node: node('publication'), postgres: postgres('publication') },
    /** An event that arrives at a process: the log is read once, however many sockets get the event. */
    arrival: {
      node: Math.max(0, node('publicationToOne') - node('publication') - delivery),
      postgres: postgres('publicationToOne') - postgres('publication'),
    },
    delivery,
    /** The cost of an idle socket, per second. */
    idleSocket: node('socketSecond'),
    polledLease: (postgres('socketSecond') * measured.shareOfLeases) / leasesOfSocket,
    polledPosition: (postgres('socketSecond') * (1 - measured.shareOfLeases)) / positionsOfSocket,
    polledBytes: costs.socketSecond.bytes / (leasesOfSocket + positionsOfSocket),
    socketSecond: postgres('socketSecond'),
    wakeup: node('wakeup'),
    redisMessage: measured.redisMessage * pace.node * MICRO,
    bytesOfSocket: measured.kibOfSocket * 1024,
    bytesOfProcess: readFigure(results, 'Start', ['RSS idle on PostgreSQL'], ['figure']) * 2 ** 20,
    bytesOfNotification: measured.bytesOfNotification,
    publishedPerSecond: Number(publishedPerSecond?.replaceAll(',', '')),
    pace,
    sources: {
      results: /^\S+Z, commit \w+/m.exec(results)?.[0] ?? '',
      costs: String(measured.measured),
    },
  };
}

/** @typedef {ReturnType<typeof calibrate>} Costs */

export function readCosts() {
  const read = (/** @type {string} */ path) => readFileSync(new URL(path, import.meta.url), 'utf8');
  return calibrate(read('../results.md'), JSON.parse(read('costs.json')));
}
