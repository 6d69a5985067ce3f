import { LRUCache } from 'lru-cache';
import { Turns } from '../access/turns.ts';
import { getOrInsert } from '../kernel/map.ts';
import { noteDuration } from '../kernel/wait.ts';
import type { Database } from '../platform/database.ts';
import type { Logger } from '../platform/logger.ts';
import type { Query } from '../platform/query.ts';
import { SlowLog } from '../platform/slow.ts';

/** The users whose databases are kept: with Prisma’s client, one takes 15 KiB and 0.15 ms to make. */
const MAX_KEPT = 1_000;
/** How long a statement waits for others of its user: a document may have many that are slow. */
const MAX_WAIT_MS = 60_000;

/**
 * Divides the connections among the users: the operations of one have at most half of them, for statements and transactions. A
 * document with many lists would otherwise fill the pool's queue, in which everybody waits.
 */
export class Shares {
  readonly #turns: Turns;
  readonly #slowLog: SlowLog;
  readonly #databases = new LRUCache<string, Database>({ max: MAX_KEPT });

  constructor(
    private readonly database: Database,
    connections: number,
    log: Logger,
  ) {
    this.#slowLog = new SlowLog(log);
    // What waits is bounded with the operations.
    this.#turns = new Turns(Math.max(1, Math.floor(connections / 2)), Number.POSITIVE_INFINITY, MAX_WAIT_MS);
  }

  /** The database for the operations of a user: what it is asked beyond the user's share waits for their other statements. */
  of(userId: string): Database {
    return getOrInsert<string, Database>(this.#databases, userId, () => this.#make(userId));
  }

  #make(userId: string): Database {
    const { shared, afterCommit, query, queryAscending, transact } = this.database;
    const noteWait = (milliseconds: number) =>
      this.#slowLog.reportWait(milliseconds, () => ({ user_id: userId }), 'a long wait for other statements of the user');
    const inTurn = async <Result>(work: () => Promise<Result>): Promise<Result> => {
      const turn = this.#turns.take(userId, () => 0);
      try {
        if (turn.beginning) await noteDuration(turn.beginning, noteWait);
        return await work();
      } finally {
        turn.end();
      }
    };
    const share =
      (run: Query): Query =>
      (strings, ...values) =>
        inTurn(() => run(strings, ...values));
    const own: Pick<Database, 'shared' | 'afterCommit' | 'query' | 'queryAscending' | 'transact'> = {
      shared,
      afterCommit,
      query: share(query),
      queryAscending: share(queryAscending),
      transact: (work) => inTurn(() => transact(work)),
    };
    let client: object | null = null;
    const open = () => shared.$extends({ query: { $allOperations: ({ args, query: run }) => inTurn(() => run(args)) } });
    const prisma = new Proxy(shared, { get: (_shared, name) => Reflect.get((client ??= open()), name) });
    // An assignment would reach the client that all share.
    return Object.create(prisma, Object.getOwnPropertyDescriptors(own)) as Database;
  }
}
