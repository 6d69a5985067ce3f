import pg from 'pg';
import type { TestApp } from './app.ts';

/** A server that answers nothing fails a test, or the preparation of a run, which has no other limit. */
const LIMITS = { connectionTimeoutMillis: 30_000, query_timeout: 150_000 };

/** Opens a connection that has none of the product's timeouts; the settings are those of `pg`, in milliseconds. */
export async function connectTo(url: string, settings: pg.ClientConfig = {}): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, ...LIMITS, ...settings });
  await client.connect();
  return client;
}

/** Runs one statement over a connection of its own. */
export async function execute(
  url: string,
  sql: string,
  values: unknown[] = [],
  settings?: pg.ClientConfig,
): Promise<Array<Record<string, unknown>>> {
  const client = await connectTo(url, settings);
  try {
    return (await client.query(sql, values)).rows;
  } finally {
    await client.end();
  }
}

export function databaseUrl(server: string, name: string): string {
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
}

/**
 * A separate connection to the gateway's database; its statements run one after another.
 * PGlite has only one connection, so there it is the gateway's own.
 */
export interface Connection {
  run(sql: string, values?: readonly unknown[]): Promise<Array<Record<string, unknown>>>;
  close(): Promise<void>;
}

export async function openConnection({ app, databaseUrl }: TestApp): Promise<Connection> {
  if (!databaseUrl) return { run: (sql, values = []) => app.database.prisma.$queryRawUnsafe(sql, ...values), close: async () => {} };
  const client = await connectTo(databaseUrl);
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

/**
 * The blocks that a statement reads, the lesser of two runs: a connection whose caches PostgreSQL has emptied, as it does when
 * too much happens in other databases, reads some 600 blocks of the catalogs first.
 */
export async function countBlocks({ run }: Connection, toSql: () => string, values: readonly unknown[] = []): Promise<number> {
  const count = async () => {
    const [row] = await run(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${toSql()}`, values);
    const plan = Object.values(row ?? {})[0] as string | object;
    const [{ Plan: root }] = typeof plan === 'string' ? JSON.parse(plan) : plan;
    return root['Shared Hit Blocks'] + root['Shared Read Blocks'];
  };
  return Math.min(await count(), await count());
}
