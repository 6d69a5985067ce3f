import { LRUCache } from 'lru-cache';
import type { PrismaClient } from '../generated/prisma/client.ts';
import { recordDuration } from '../kernel/duration.ts';
import { getOrInsert } from '../kernel/map.ts';
import { KeyedSemaphore } from '../kernel/semaphore.ts';
import type { Database } from './database.ts';
import type { Logger } from './logger.ts';
import type { Query } from './query.ts';
import { SlowLog } from './slowlog.ts';

/** The users whose databases are cached: with Prisma’s client, one takes 15 KiB and 0.15 ms to make. */
const MAX_CACHED = 1_000;
/** How long a statement waits for others of its user: a document may have many that are slow. */
const MAX_WAIT_MS = 60_000;

/**
 * A bulkhead: the operations of one user have at most half of the connections, for statements and transactions. A document with
 * many lists would otherwise fill the pool's queue, in which everybody waits.
 */
export class UserDatabases {
  readonly #semaphore: KeyedSemaphore;
  readonly #slowLog: SlowLog;
  readonly #databases = new LRUCache<string, Database>({ max: MAX_CACHED });

  constructor(
    private readonly database: Database,
    connections: number,
    log: Logger,
  ) {
    this.#slowLog = new SlowLog(log);
    // The statements that wait are bounded with the operations.
    this.#semaphore = new KeyedSemaphore(Math.max(1, Math.floor(connections / 2)), Number.POSITIVE_INFINITY, MAX_WAIT_MS);
  }

  /** The database for the operations of a user: statements beyond the limit wait for others of the user. */
  of(userId: string): Database {
    return getOrInsert<string, Database>(this.#databases, userId, () => this.#make(userId));
  }

  #make(userId: string): Database {
    const { prisma, shared, afterCommit, transact } = this.database;
    const recordWait = (milliseconds: number) =>
      this.#slowLog.report(milliseconds, () => ({ user_id: userId }), 'a long wait for other statements of the user');
    const withPermit = async <Result>(work: () => Promise<Result>): Promise<Result> => {
      const permit = this.#semaphore.acquire(userId, () => 0);
      try {
        if (permit.acquired) await recordDuration(permit.acquired, recordWait);
        return await work();
      } finally {
        permit.release();
      }
    };
    const limit =
      (run: Query): Query =>
      (strings, ...values) =>
        withPermit(() => run(strings, ...values));
    const query = limit(this.database.query);
    const ascendingQuery = limit(this.database.queryInOrder(true));
    const open = () =>
      prisma.$extends({ query: { $allOperations: ({ args, query: run }) => withPermit(() => run(args)) } }) as unknown as PrismaClient;
    let client: PrismaClient | null = null;
    return {
      // Few users need it.
      get prisma() {
        return (client ??= open());
      },
      shared,
      afterCommit,
      query,
      queryInOrder: (isAscending) => (isAscending ? ascendingQuery : query),
      transact: (work) => withPermit(() => transact(work)),
    };
  }
}
