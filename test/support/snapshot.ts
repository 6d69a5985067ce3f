import { readFileSync } from 'node:fs';
import { PGlite } from '@electric-sql/pglite';

/** PGlite's defaults, with smaller buffers to zero at the start and a write-ahead log that stays small over many tests. */
const startParams = [...PGlite.defaultStartParams, '-c', 'shared_buffers=4MB', '-c', 'max_wal_size=64MB', '-c', 'min_wal_size=32MB'];

/** An in-memory database that apps use one after another: starting PGlite takes some ten times as long as restoring its rows. */
interface Pooled {
  readonly database: PGlite;
  /** The rows of each table of the snapshot, as `COPY` reads and writes them. */
  readonly rows: ReadonlyMap<string, Blob>;
  /** The fingerprint of tables, functions, triggers and privileges; a database whose structure a test has changed is not reused. */
  readonly structure: string;
  /** The state of each table with the rows of the snapshot. */
  states: ReadonlyMap<string, string>;
}

/** Databases of this worker that are restored and not in use. */
const idle: Pooled[] = [];

/** Opens an in-memory copy of the migrated and seeded database. */
export async function openSnapshot(path: string): Promise<PGlite> {
  return lend(idle.pop() ?? (await load(path)));
}

async function load(path: string): Promise<Pooled> {
  const database = await PGlite.create({ dataDir: 'memory://', loadDataDir: new Snapshot(path), startParams });
  const rows = new Map<string, Blob>();
  const { rows: tables } = await database.query<{ name: string }>(
    `SELECT format('%I', relname) AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' ORDER BY oid`,
  );
  for (const { name } of tables) {
    const { blob } = await database.query(`COPY ${name} TO '/dev/blob'`);
    rows.set(name, blob ?? new Blob([]));
  }
  return { database, rows, structure: await readStructure(database), states: await readStates(database) };
}

/** Lends the database to one app. After `close` it rejects every call, as a closed PGlite does, and is restored for the next app. */
function lend(pooled: Pooled): PGlite {
  let isClosed = false;
  const close = async () => {
    if (isClosed) return;
    isClosed = true;
    if (await restore(pooled)) idle.push(pooled);
    else await pooled.database.close();
  };
  return new Proxy(pooled.database, {
    get(database, name) {
      if (name === 'close') return close;
      if (isClosed) throw new Error('PGlite is closed');
      const value: unknown = Reflect.get(database, name, database);
      return typeof value === 'function' ? value.bind(database) : value;
    },
  });
}

/**
 * Restores the rows of the snapshot in the tables that were written to, and in those that depend on them; returns false, without
 * restoring, if the structure has changed.
 */
async function restore(pooled: Pooled): Promise<boolean> {
  const { database, rows, structure, states } = pooled;
  if ((await readStructure(database)) !== structure) return false;
  const written = differing(states, await readStates(database));
  // Triggers and foreign keys are off, so that the rows of counters and logs are restored unchanged. Statistics would lead the
  // planner astray: TRUNCATE leaves those that describe the values.
  await database.exec(
    'SET session_replication_role = replica; SET allow_system_table_mods = on; DELETE FROM pg_statistic WHERE starelid >= 16384',
  );
  if (written.length > 0) await database.exec(`TRUNCATE ${written.join(', ')} CASCADE`);
  for (const name of differing(states, await readStates(database))) {
    const blob = rows.get(name);
    if (blob?.size) await database.query(`COPY ${name} FROM '/dev/blob'`, [], { blob });
  }
  await database.exec('DISCARD ALL');
  pooled.states = await readStates(database);
  return true;
}

function differing(states: ReadonlyMap<string, string>, others: ReadonlyMap<string, string>): string[] {
  return [...others].filter(([name, state]) => states.get(name) !== state).map(([name]) => name);
}

/**
 * By the name of a table, what changes when it is written to or analyzed: how often, how many rows were written, also those
 * rolled back, and its file, which TRUNCATE replaces.
 */
async function readStates(database: PGlite): Promise<ReadonlyMap<string, string>> {
  // Without this, statistics may be a second old.
  await database.query('SELECT pg_stat_force_next_flush()');
  const { rows } = await database.query<{ name: string; state: string }>(`
    SELECT format('%I', relname) AS name, concat_ws(':', n_tup_ins, n_tup_upd, n_tup_del, analyze_count, vacuum_count, pg_relation_filenode(relid)) AS state
    FROM pg_stat_user_tables WHERE schemaname = 'public'`);
  return new Map(rows.map(({ name, state }) => [name, state]));
}

async function readStructure(database: PGlite): Promise<string> {
  const { rows } = await database.query<{ structure: string }>(`
    SELECT md5(string_agg(part, ' ' ORDER BY part)) AS structure FROM (
      SELECT concat_ws(':', oid, relname, relkind, relacl, reloptions) AS part FROM pg_class WHERE relnamespace = 'public'::regnamespace
      UNION ALL SELECT concat_ws(':', attrelid, attname, atttypid, attnotnull, atthasdef, attacl) FROM pg_attribute WHERE attrelid >= 16384 AND attnum > 0
      UNION ALL SELECT concat_ws(':', oid, proname, proacl, md5(prosrc)) FROM pg_proc WHERE oid >= 16384
      UNION ALL SELECT concat_ws(':', oid, tgname, tgenabled) FROM pg_trigger
      UNION ALL SELECT concat_ws(':', oid, conname, convalidated) FROM pg_constraint WHERE oid >= 16384
      UNION ALL SELECT concat_ws(':', oid, nspname, nspacl) FROM pg_namespace
      UNION ALL SELECT concat_ws(':', oid, rolname) FROM pg_roles
      UNION ALL SELECT concat_ws(':', setdatabase, setrole, setconfig) FROM pg_db_role_setting
    ) AS parts`);
  return rows[0]?.structure ?? '';
}

/** A Blob of a whole file in one buffer, which a plain Blob would split into chunks and join again. */
class Snapshot extends Blob {
  readonly #bytes: Buffer<ArrayBuffer>;

  constructor(path: string) {
    super();
    this.#bytes = readFileSync(path);
  }

  override async arrayBuffer(): Promise<ArrayBuffer> {
    return this.#bytes.buffer;
  }
}
