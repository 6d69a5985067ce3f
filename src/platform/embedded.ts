import { cpSync, existsSync, mkdirSync, realpathSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PGlite, types } from '@electric-sql/pglite';
import { PrismaPGlite } from 'pglite-prisma-adapter';
import { readJson } from '../kernel/jsontext.ts';
import type { Lifecycle } from '../kernel/lifecycle.ts';
import type { Driver } from './driver.ts';
import { describeFileFailure, isFull, OperatorError } from './failure.ts';
import { migrate } from './migrate.ts';
import { ownFolder } from './ownership.ts';

/**
 * PGlite in `dataDir`, owned by this process alone, or the one that a test opens. This file is not loaded with a PostgreSQL:
 * PGlite takes as long to load as the rest of a start. Throws an OperatorError where it does not open.
 */
export async function openEmbedded(dataDir: string, lifecycle: Lifecycle, openOther?: () => Promise<PGlite>): Promise<Driver> {
  const embedded = openOther
    ? await openOther()
    : await openFolder(dataDir, lifecycle).catch((failure) => Promise.reject(explain(failure, dataDir)));
  lifecycle.onClose(() => embedded.close());
  // Of statements by hand; Prisma's adapter has its own. Given with each statement they would double what it costs.
  embedded.parsers[types.JSON] = readJson;
  if (!openOther) endWith(embedded, dataDir);
  try {
    await migrate({
      runScript: async (sql) => void (await embedded.exec(sql)),
      query: async (sql, values) => (await embedded.query<Record<string, unknown>>(sql, [...values])).rows,
    });
  } catch (failure) {
    throw isFull(dataDir) && !openOther ? explain(failure, dataDir) : failure;
  }
  return {
    adapter: new PrismaPGlite(embedded),
    run: async ({ text }, values) => (await embedded.query(text, values)).rows,
    transact: (work) =>
      embedded.transaction((transaction) => work(async ({ text }, values) => (await transaction.query(text, values)).rows)),
    connections: null,
  };
}

async function openFolder(dataDir: string, lifecycle: Lifecycle): Promise<PGlite> {
  const folder = join(dataDir, 'database');
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  lifecycle.onClose(await ownFolder(dataDir));
  if (!existsSync(folder)) await createEmbedded(folder);
  return PGlite.create({ dataDir: folder, startParams });
}

/** PGlite's own buffers are those of a server of its own: 128 MiB, which it fills with zeros at each start. */
const startParams = [...PGlite.defaultStartParams, '-c', 'shared_buffers=32MB'];

function explain(failure: unknown, dataDir: string): OperatorError {
  if (failure instanceof OperatorError) return failure;
  const options = { cause: failure };
  if (isFull(dataDir)) return new OperatorError(describeFileFailure({ code: 'ENOSPC' }, dataDir) ?? dataDir, options);
  const reason = describeFileFailure(failure);
  if (reason !== null) return new OperatorError(reason, options);
  const { message } = failure as Error;
  return new OperatorError(
    `The embedded database in ${join(dataDir, 'database')} does not open (${message}): restore the folder from a backup, or move it away for an empty one.`,
    options,
  );
}

/** The empty database of this PGlite that the build has made. */
const template = fileURLToPath(new URL('./database', import.meta.url));

/** Creates an empty database atomically: PGlite cannot open a database whose creation was broken off. */
async function createEmbedded(folder: string): Promise<void> {
  const draft = `${folder}.draft`;
  rmSync(draft, { recursive: true, force: true });
  try {
    if (existsSync(template)) cpSync(realpathSync(template), draft, { recursive: true });
    else await (await PGlite.create(draft)).close();
    renameSync(draft, folder);
  } catch (failure) {
    rmSync(draft, { recursive: true, force: true });
    throw failure;
  }
}

/**
 * PostgreSQL ends itself where it cannot be sure of its log any more, for one on a full disk. PGlite would go on calling
 * what has ended, for ever and within one turn of the event loop, so that nothing else would run in this process, no
 * signal either: it ends at that moment. What was acknowledged is in the log, which the next start reads.
 */
function endWith(embedded: PGlite, dataDir: string): void {
  const engine = embedded.Module;
  const run = engine._PostgresMainLoopOnce;
  engine._PostgresMainLoopOnce = () => {
    try {
      run();
    } catch (thrown) {
      if (!isJump(thrown)) end(thrown, dataDir);
      throw thrown;
    }
  };
}

/** The exit status with which PostgreSQL leaves a failed statement and goes on: any other throw is its end. */
const LONG_JUMP = 100;

function isJump(thrown: unknown): boolean {
  return (thrown as { status?: unknown }).status === LONG_JUMP;
}

function end(thrown: unknown, dataDir: string): never {
  const remedy = 'Nothing that was acknowledged is lost.';
  console.error(
    isFull(dataDir)
      ? `The embedded database has ended, as ${dataDir} has no space left: make some, and start again. ${remedy}`
      : `The embedded database in ${dataDir} has ended (${String(thrown)}): see that the disk is well, and start again. ${remedy}`,
  );
  process.exit(1);
}
