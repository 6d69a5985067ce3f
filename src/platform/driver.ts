import type { Prisma } from '../generated/prisma/client.ts';
import type { Statement } from './query.ts';

/** A database's driver, as Prisma's adapter and for the statements that go to it directly. */
export interface Driver {
  readonly adapter: NonNullable<Prisma.PrismaClientOptions['adapter']>;
  readonly run: (statement: Statement, values: unknown[]) => Promise<unknown[]>;
  /** Null: the embedded database has no connections. */
  readonly connections: Connections | null;
}

/** The connections to PostgreSQL, for those who look after them. */
export interface Connections {
  readonly isAway: boolean;
  count(): { busy: number; idle: number; waiting: number };
}
