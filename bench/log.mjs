// The notification log: inserts by other programs, and removal by retention.
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { query } from './database.mjs';
import { idOf, PROJECTS } from './fill.mjs';
import { CONNECTIONS, median, mix, percentilesOf } from './load.mjs';
import { pace } from './pace.mjs';
import { restOperations } from './rest.mjs';
import { start } from './servers.mjs';
import { short, table } from './table.mjs';

/** Two extra projects: inserts go to the first, and retention removes from the second. */
const projects = [idOf('project', PROJECTS + 1), idOf('project', PROJECTS + 2)];
const [written, pruned] = projects;
const SECONDS = 2;
const ROUNDS = 3;
const BATCH = 100;
const RATE = 200;

/** The same table without sequence numbers, as the baseline of PostgreSQL alone. */
const unnumbered = `CREATE UNLOGGED TABLE bench_plain (LIKE notifications INCLUDING ALL);
  ALTER TABLE bench_plain SET LOGGED; ALTER TABLE bench_plain ALTER sequence SET DEFAULT (random() * 9e15)::bigint`;

/** @param {string} name @param {number} count */
const insertOf = (name, count) => `INSERT INTO ${name} (project_id, kind, severity, title, body)
  SELECT $1::uuid, 'bench.published', 'info', 'Something happened', 'A sentence that says what it was.' FROM generate_series(1, ${count})`;

/**
 * The insert rate in rows per second. Each writer has its own connection, and each statement is a transaction.
 * @param {string} databaseUrl @param {string} name @param {{writers: number, batch: number}} way
 */
async function measureWriters(databaseUrl, name, { writers, batch }) {
  const clients = Array.from({ length: writers }, () => new pg.Client(databaseUrl));
  await Promise.all(clients.map((client) => client.connect()));
  const text = insertOf(name, batch);
  const until = performance.now() + SECONDS * 1000;
  let rows = 0;
  await Promise.all(
    clients.map(async (client) => {
      for (; performance.now() < until; rows += batch) await client.query({ name: 'insert', text, values: [written] });
    }),
  );
  await Promise.all(clients.map((client) => client.end()));
  return rows / SECONDS;
}

/** @param {import('./main.mjs').Bench} bench @returns {Promise<import('./main.mjs').Section>} */
export async function measureLog({ databaseUrl, scale, key, say }) {
  await query(databaseUrl, 'INSERT INTO projects (id, organization_id, name) SELECT unnest($1::uuid[]), $2, $3', [
    projects,
    idOf('organization', 1),
    'Measured alone',
  ]);
  await query(databaseUrl, unnumbered);
  const ways = [1, 32].flatMap((writers) => [1, BATCH].map((batch) => ({ writers, batch })));
  const rates = [];
  for (const way of ways) {
    const log = await measureWriters(databaseUrl, 'notifications', way);
    const plain = await measureWriters(databaseUrl, 'bench_plain', way);
    rates.push({ ...way, log, plain });
    say(`  ${way.writers} writers, ${way.batch} at once: ${Math.round(log)} rows/s, ${Math.round(plain)} without numbers`);
  }
  await query(databaseUrl, 'DROP TABLE bench_plain');
  const { resting, busy, removed } = await measureRetention({ databaseUrl, scale, key, say });
  const rate = (/** @type {number} */ rows) => Math.round(rows).toLocaleString('en');
  return {
    title: 'The log',
    text: [
      table(
        ['writers', 'rows a statement', 'rows/s into one log', 'rows/s into a table without numbers', 'ratio'],
        rates.map(({ writers, batch, log, plain }) => [String(writers), String(batch), rate(log), rate(plain), short(log / plain)]),
      ),
      `v1 at ${RATE} requests a second: p99 ${short(resting)} ms, and ${short(busy)} ms while retention removes ${rate(removed)} rows a second.`,
    ].join('\n\n'),
    claims: [{ what: 'v1 while retention has millions to remove against without, p99', figure: busy / resting, bound: 1.5 }],
  };
}

/** @param {Pick<import('./main.mjs').Bench, 'databaseUrl' | 'scale' | 'key' | 'say'>} bench */
async function measureRetention({ databaseUrl, scale, key, say }) {
  await bypassing(databaseUrl, oldOnes, [pruned]);
  // Otherwise PostgreSQL does this by itself during the rounds, with retention and without.
  await query(databaseUrl, 'VACUUM ANALYZE notifications');
  await query(databaseUrl, 'CHECKPOINT');
  const lists = await Promise.all(restOperations(scale).map(({ requests }) => requests(key.tokenOf)));
  const mixed = mix(lists, 9_000);
  const server = await start('portico', { databaseUrl, key });
  const look = async () => percentilesOf(await pace(server, mixed, { rate: RATE, seconds: 2 * SECONDS, connections: CONNECTIONS })).p99;
  await look();
  const figures = { resting: /** @type {number[]} */ ([]), busy: /** @type {number[]} */ ([]) };
  let [removed, seconds] = [0, 0];
  for (let round = 0; round < ROUNDS; round += 1) {
    figures.resting.push(await look());
    const retention = prune(databaseUrl);
    const began = performance.now();
    figures.busy.push(await look());
    seconds += (performance.now() - began) / 1000;
    removed += await retention.stop();
  }
  await server.stop();
  await bypassing(databaseUrl, 'DELETE FROM notifications WHERE project_id = ANY ($1::uuid[])', [projects]);
  await query(databaseUrl, 'DELETE FROM projects WHERE id = ANY ($1::uuid[])', [projects]);
  say(`  retention: ${Math.round(removed)} rows removed in ${seconds.toFixed(1)} s`);
  return { resting: median(figures.resting), busy: median(figures.busy), removed: removed / seconds };
}

const oldOnes = `INSERT INTO notifications (project_id, sequence, kind, severity, title, body, created)
  SELECT $1::uuid, n, 'bench.old', 'info', 'Something happened to instance ' || n,
    'A sentence or two that say what it was, and what can be done.', now() - interval '90 days'
  FROM generate_series(1, 1000000) AS n`;

/** Runs a statement with triggers off, as when the bench's data are filled in. @param {string} databaseUrl @param {string} sql @param {unknown[]} values */
async function bypassing(databaseUrl, sql, values) {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  try {
    await client.query('SET session_replication_role = replica; SET synchronous_commit = off');
    await client.query(sql, values);
  } finally {
    await client.end();
  }
}

/** Removes old rows from one log as a process of Portico does (src/notifications/retention.ts). @param {string} databaseUrl */
function prune(databaseUrl) {
  let isOver = false;
  const working = (async () => {
    const client = new pg.Client(databaseUrl);
    await client.connect();
    let removed = 0;
    while (!isOver) {
      const began = performance.now();
      const { rows } = await client.query("SELECT prune_notification_log($1, now() - interval '30 days', 500)::int AS pruned", [pruned]);
      removed += rows[0].pruned;
      await sleep(3 * (performance.now() - began));
    }
    await client.end();
    return removed;
  })();
  return {
    stop() {
      isOver = true;
      return working;
    },
  };
}
