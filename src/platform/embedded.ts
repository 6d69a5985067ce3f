import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, realpathSync, renameSync, rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PGlite } from '@electric-sql/pglite';
import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import type { Lifecycle } from '../kernel/lifecycle.ts';
import type { Driver } from './driver.ts';
import { EmbeddedStream } from './embeddedstream.ts';
import { lockFolder } from './folderlock.ts';
import { migrate } from './migrate.ts';
import { describeFileFailure, isDiskFull, OperatorError } from './operatorerror.ts';
import { PreparedQuery, type Row } from './prepared.ts';
import { planSettings } from './sessionoptions.ts';
import { runTransaction } from './transaction.ts';

/**
 * Opens PGlite in `dataDir`, owned by this process alone, or the instance of a test (`openOther`). Throws an OperatorError
 * where it cannot be opened. With a PostgreSQL this module is not loaded: PGlite takes as long to load as the rest of a start.
 */
export async function openEmbedded(dataDir: string, lifecycle: Lifecycle, openOther?: () => Promise<PGlite>): Promise<Driver> {
  // Its own error says best what is wrong with the folder.
  if (!openOther) mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const embedded = openOther
    ? await openOther()
    : await openFolder(dataDir, lifecycle).catch((failure) => Promise.reject(explain(failure, dataDir)));
  lifecycle.onClose(() => embedded.close());
  if (!openOther) exitWhenEngineEnds(embedded, dataDir);
  try {
    await migrate({
      runScript: async (sql) => void (await embedded.exec(sql)),
      query: async (sql, values) => (await embedded.query<Record<string, unknown>>(sql, [...values])).rows,
    });
  } catch (failure) {
    throw isDiskFull(dataDir) && !openOther ? explain(failure, dataDir) : failure;
  }
  const pool = openPool(embedded);
  lifecycle.onClose(() => pool.end());
  return {
    adapter: new PrismaPg(pool),
    // The driver resolves with whatever the query passes to its callback: the rows.
    run: (statement, values) => pool.query(new PreparedQuery(statement, values)) as unknown as Promise<Row[]>,
    transact: (work) => runTransaction(pool, work),
    pool: null,
  };
}

/** A pool of one connection, as PGlite has one session: a transaction has it to itself, and everything else waits. */
function openPool(embedded: PGlite): pg.Pool {
  return new pg.Pool({
    max: 1,
    idleTimeoutMillis: 0,
    // PGlite has one user, and no TLS, whatever variables for other programs say.
    user: 'postgres',
    database: 'postgres',
    ssl: false,
    stream: () => new EmbeddedStream(embedded) as unknown as Socket,
    onConnect: prepareSession,
  });
}

/** A connection that is opened anew would find the session with the statements that were prepared in it. */
async function prepareSession(client: pg.ClientBase): Promise<void> {
  await client.query('DISCARD ALL');
  for (const [name, value] of Object.entries(planSettings)) await client.query(`SET ${name} = ${value}`);
}

async function openFolder(dataDir: string, lifecycle: Lifecycle): Promise<PGlite> {
  const folder = join(dataDir, 'database');
  lifecycle.onClose(await lockFolder(dataDir));
  if (!existsSync(folder)) await createEmbedded(folder);
  return PGlite.create({ dataDir: folder, startParams });
}

/** PGlite's default is sized for a dedicated server: 128 MiB, which each start fills with zeros. */
const startParams = [...PGlite.defaultStartParams, '-c', 'shared_buffers=32MB'];

function explain(failure: unknown, dataDir: string): OperatorError {
  if (failure instanceof OperatorError) return failure;
  const reason = isDiskFull(dataDir) ? describeFileFailure({ code: 'ENOSPC' }, dataDir) : describeFileFailure(failure);
  const message =
    reason ??
    `The embedded database in ${join(dataDir, 'database')} does not open (${(failure as Error).message}): restore the folder from a backup, or move it away for an empty one.`;
  return new OperatorError(message, { cause: failure });
}

/** An empty database of this PGlite version, made by the build. */
const template = fileURLToPath(new URL('./database', import.meta.url));

/** Creates an empty database for its owner alone, atomically: PGlite cannot open one whose creation was interrupted. */
async function createEmbedded(folder: string): Promise<void> {
  const draft = `${folder}.draft`;
  rmSync(draft, { recursive: true, force: true });
  try {
    if (existsSync(template)) cpSync(realpathSync(template), draft, { recursive: true });
    else await (await PGlite.create(draft)).close();
    chmodSync(draft, 0o700);
    for (const entry of readdirSync(draft, { recursive: true, withFileTypes: true }))
      chmodSync(join(entry.parentPath, entry.name), entry.isDirectory() ? 0o700 : 0o600);
    renameSync(draft, folder);
  } catch (failure) {
    rmSync(draft, { recursive: true, force: true });
    throw failure;
  }
}

/**
 * Ends the process when PostgreSQL ends, which it does where it cannot trust its log any more, for example on a full disk.
 * PGlite would keep calling the ended engine within one iteration of the event loop, which blocks the process for ever, signal
 * handlers included. An acknowledged write is in the log, which the next start reads.
 */
function exitWhenEngineEnds(embedded: PGlite, dataDir: string): void {
  const engine = embedded.Module;
  const run = engine._PostgresMainLoopOnce;
  engine._PostgresMainLoopOnce = () => {
    try {
      run();
    } catch (thrown) {
      if ((thrown as { status?: unknown }).status !== FAILED_STATEMENT) exit(thrown, dataDir);
      throw thrown;
    }
  };
}

/** The exit status with which PostgreSQL leaves a failed statement (a long jump) and continues. With any other throw it has ended. */
const FAILED_STATEMENT = 100;

function exit(thrown: unknown, dataDir: string): never {
  const remedy = 'Nothing that was acknowledged is lost.';
  console.error(
    isDiskFull(dataDir)
      ? `The embedded database has ended, as ${dataDir} has no space left: make some, and start again. ${remedy}`
      : `The embedded database in ${dataDir} has ended (${String(thrown)}): see that the disk is well, and start again. ${remedy}`,
  );
  process.exit(1);
}
