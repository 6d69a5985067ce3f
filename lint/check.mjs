import { Worker } from 'node:worker_threads';
import { openDatabase } from './database.mjs';
import { checkParameters } from './parameters.mjs';

/**
 * Compares the hand-written SQL statements in the folders below `root` with the migrated schema. SafeQL checks the names,
 * types and nullability of columns; `checkParameters` checks the type that PostgreSQL infers for each parameter of the text
 * that is really sent. The database is a PGlite in memory: no server, no download.
 */
export async function check({ root, migrations, folders }) {
  const { database, server, url } = await openDatabase(migrations);
  try {
    const { problems, statements } = await lint({ root, url, folders });
    problems.push(...(await checkParameters(database, statements)));
    return { problems, count: statements.length };
  } finally {
    await server.stop();
    await database.close();
  }
}

/** Runs SafeQL in its own thread, as it blocks its thread while it waits for the database, which runs in this one. */
function lint(workerData) {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('worker.mjs', import.meta.url), { workerData });
    worker.once('message', (outcome) => {
      resolve(outcome);
      worker.terminate();
    });
    worker.once('error', reject);
    worker.once('exit', () => reject(new Error('the check of the statements ended without a response')));
  });
}
