import type pg from 'pg';
import { hasCode, missingCodes, READ_TIMEOUT, readOnlyServer } from './errors.ts';
import { PreparedQuery, type Row } from './prepared.ts';
import type { RunStatement } from './query.ts';
import type { SlowLog } from './slowlog.ts';

/**
 * The SQLSTATEs after which a connection is of no more use: a write to a server that takes none, which may have been replaced as the
 * primary, so that a new connection leads to its successor; and a statement that was prepared before a column changed its type (0A000).
 */
const uselessCodes = new Set([...readOnlyServer, '0A000']);

/** The part of a pool that a transaction uses. The embedded database's pool has neither a log of what is slow nor outages. */
interface TransactionPool {
  connect(): Promise<pg.PoolClient>;
  readonly slowLog?: Pick<SlowLog, 'reportStatement'>;
  throwAsOutage?(failure: unknown): Promise<never>;
}

/** Runs `work` in a transaction on one connection of the pool: commits when it returns, rolls back when it throws. */
export async function runTransaction<Result>(pool: TransactionPool, work: (run: RunStatement) => Promise<Result>): Promise<Result> {
  const client = await pool.connect();
  // The running statement gets the error of a broken connection; without a listener the same error would end the process.
  const ignore = () => {};
  client.on('error', ignore);
  let broken: Error | undefined;
  try {
    await client.query('BEGIN');
    const result = await work((statement, values) => {
      const query = new PreparedQuery(statement, values);
      return runOn(client, query).finally(() => pool.slowLog?.reportStatement(statement.text, query.sentAt));
    });
    // PostgreSQL answers COMMIT with ROLLBACK where a statement has failed and `work` ignored it.
    const { command } = await client.query('COMMIT');
    if (command !== 'COMMIT') throw new Error('a statement of the transaction had failed, so nothing of it was kept');
    return result;
  } catch (failure) {
    // A connection that still waits for a reply would not answer this either.
    if (failure instanceof Error && failure.message === READ_TIMEOUT) broken = failure;
    else
      await client.query('ROLLBACK').catch((thrown: Error) => {
        broken = thrown;
      });
    // Its prepared statements are of no use either if tables were dropped and created anew.
    if (hasCode(failure, uselessCodes) || hasCode(failure, missingCodes)) broken = failure as Error;
    await pool.throwAsOutage?.(failure);
    throw failure;
  } finally {
    client.removeListener('error', ignore);
    client.release(broken);
  }
}

/** `client.query` returns a submittable itself, no promise: the callback gets the result. */
function runOn(client: pg.PoolClient, query: PreparedQuery): Promise<Row[]> {
  return new Promise((resolve, reject) => {
    query.callback = (failure, rows) => (failure ? reject(failure) : resolve(rows ?? []));
    client.query(query);
  });
}
