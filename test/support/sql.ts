import pg from 'pg';
import type { TestApp } from './app.ts';

/**
 * A separate connection to the gateway's database; its statements run one after another.
 * PGlite has only one connection, so there it is the gateway's own.
 */
export interface Connection {
  run(sql: string, values?: readonly unknown[]): Promise<Array<Record<string, unknown>>>;
  close(): Promise<void>;
}

export async function openConnection({ app, databaseUrl }: TestApp): Promise<Connection> {
  if (!databaseUrl) return { run: (sql, values = []) => app.database.$queryRawUnsafe(sql, ...values), close: async () => {} };
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  let last: Promise<unknown> = Promise.resolve();
  const run: Connection['run'] = (sql, values = []) => {
    const rows = last.then(async () => (await client.query(sql, [...values])).rows);
    last = rows.catch(() => {});
    return rows;
  };
  return { run, close: () => client.end() };
}

/** The SQLSTATE of a failure, as the driver reports it or as Prisma wraps it. */
export function sqlState(failure: unknown): string | undefined {
  const { code, meta } = failure as { code?: string; meta?: { driverAdapterError?: { cause?: { originalCode?: string } } } };
  return meta?.driverAdapterError?.cause?.originalCode ?? code;
}
