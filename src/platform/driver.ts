import type { Prisma } from '../generated/prisma/client.ts';
import type { RunStatement } from './query.ts';

/** A database driver: Prisma's adapter for it, and direct access for handwritten statements. */
export interface Driver {
  readonly adapter: NonNullable<Prisma.PrismaClientOptions['adapter']>;
  readonly run: RunStatement;
  /** Runs `work` in a transaction: commits when it returns, rolls back when it throws. */
  transact<Result>(work: (run: RunStatement) => Promise<Result>): Promise<Result>;
  /** Null for the embedded database, which has no connections. */
  readonly pool: PoolState | null;
}

/** The state of the connections to PostgreSQL, for health checks and metrics. */
export interface PoolState {
  readonly isAway: boolean;
  /** Whether PostgreSQL answers, but tables are missing. */
  readonly lacksTables: boolean;
  /** Looks for the tables; while some are missing, the database is away. */
  checkTables(): Promise<void>;
  count(): { busy: number; idle: number; waiting: number };
}
