// The database for all measurements: filled once, and reused until the fill statements or migrations change.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { fill, fillSteps } from './fill.mjs';

export const root = fileURLToPath(new URL('..', import.meta.url));

const DEFAULT_URL = 'postgresql://postgres@127.0.0.1:5432/portico_bench';
/** Shorter than 24 hours, so that the rows of the last 24 hours stay within them. */
const MAX_AGE_MS = 20 * 3_600_000;

/** @param {number} scale */
export function databaseUrl(scale) {
  const url = new URL(process.env.BENCH_DATABASE_URL || DEFAULT_URL);
  // Each scale has its own database, so that a quick run does not replace the full one.
  if (scale !== 1) url.pathname += `_${String(scale).replace('.', '_')}`;
  return url.href;
}

/** @param {number} scale */
function fingerprintOf(scale) {
  const hash = createHash('sha256').update(JSON.stringify(fillSteps(scale)));
  const migrations = new URL('../prisma/migrations/', import.meta.url);
  for (const path of readdirSync(migrations, { recursive: true, encoding: 'utf8' }).sort())
    if (path.endsWith('.sql')) hash.update(readFileSync(new URL(path, migrations)));
  return hash.digest('hex').slice(0, 16);
}

/** @param {string} url @param {string} sql @param {unknown[]} [values] */
export async function query(url, sql, values) {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return (await client.query(sql, values)).rows;
  } finally {
    await client.end();
  }
}

/** Whether the database exists, was filled by the current statements and migrations, and is fresh. @param {number} scale */
export async function isFilled(scale) {
  const url = databaseUrl(scale);
  const name = decodeURIComponent(new URL(url).pathname.slice(1));
  const [row] = await query(
    maintenanceUrl(url),
    "SELECT shobj_description(oid, 'pg_database') AS comment FROM pg_database WHERE datname = $1",
    [name],
  );
  const [fingerprint, filled] = String(row?.comment ?? '').split(' ');
  return fingerprint === fingerprintOf(scale) && Date.now() - Date.parse(filled ?? '') < MAX_AGE_MS;
}

/** Fills the database if necessary; returns its URL. @param {number} scale @param {(line: string) => void} say */
export async function provideDatabase(scale, say) {
  const url = databaseUrl(scale);
  if (await isFilled(scale)) {
    // Dead rows of the previous run would slow this one down if autovacuum has not run yet or is off.
    await query(url, 'VACUUM notifications, notification_logs, notification_states, notification_reads');
    return url;
  }
  const name = decodeURIComponent(new URL(url).pathname.slice(1));
  const began = performance.now();
  say(`filling ${name} at scale ${scale}`);
  await query(maintenanceUrl(url), `DROP DATABASE IF EXISTS ${pg.escapeIdentifier(name)} WITH (FORCE)`);
  await query(maintenanceUrl(url), `CREATE DATABASE ${pg.escapeIdentifier(name)}`);
  execFileSync(process.execPath, ['dist/current/cli.js', 'migrate'], { cwd: root, env: { ...process.env, DATABASE_URL: url } });
  const client = new pg.Client(url);
  await client.connect();
  try {
    await fill(client, { scale, say });
    const comment = `${fingerprintOf(scale)} ${new Date().toISOString()}`;
    await client.query(`COMMENT ON DATABASE ${pg.escapeIdentifier(name)} IS ${pg.escapeLiteral(comment)}`);
    await client.query('CHECKPOINT');
  } finally {
    await client.end();
  }
  say(`filled in ${((performance.now() - began) / 1000).toFixed(0)} s`);
  return url;
}

/** @param {string} text */
function maintenanceUrl(text) {
  const url = new URL(text);
  url.pathname = '/postgres';
  return url.href;
}
