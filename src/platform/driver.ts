import type { Prisma } from '../generated/prisma/client.ts';
import type { Statement } from './query.ts';

/** Runs a statement and returns its rows. */
export type RunStatement = (statement: Statement, values: unknown[]) => Promise<unknown[]>;

/** A database's driver, as Prisma's adapter and for the statements that go to it directly. */
export interface Driver {
  readonly adapter: NonNullable<Prisma.PrismaClientOptions['adapter']>;
  readonly run: RunStatement;
  /** Runs `work` in a transaction: what it returns is committed, what it throws undoes all. */
  transact<Result>(work: (run: RunStatement) => Promise<Result>): Promise<Result>;
  /** Null: the embedded database has no connections. */
  readonly connections: PoolState | null;
}

/** The state of the connections to PostgreSQL, for health and metrics. */
export interface PoolState {
  readonly isAway: boolean;
  count(): { busy: number; idle: number; waiting: number };
}
