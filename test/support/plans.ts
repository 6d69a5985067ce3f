import type { TestApp } from './app.ts';

/** A statement as Prisma sent it. */
export interface Statement {
  readonly sql: string;
  readonly values: readonly unknown[];
}

/** What one run of a statement read of a table, by itself or in the functions and triggers that it called. */
export interface Reading {
  readonly table: string;
  readonly scans: number;
  readonly rows: number;
}

interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly Plans?: readonly PlanNode[];
}

type Queries = { $on(event: 'query', listen: (event: { query: string; params: string }) => void): void };

/** Every statement from now on, with its values. */
export function recordStatements({ app }: TestApp): Statement[] {
  const recorded: Statement[] = [];
  (app.database as unknown as Queries).$on('query', ({ query, params }) =>
    recorded.push({ sql: query, values: readValues(query, params) }),
  );
  return recorded;
}

/** Prisma tells the values as JSON: bytes in base64, which only hashes are. */
function readValues(sql: string, params: string): unknown[] {
  const values = JSON.parse(params) as unknown[];
  const isHash = (value: unknown) => /secret_hash|ticket_hash/.test(sql) && typeof value === 'string' && /^[\w+/]{43}=$/.test(value);
  return values.map((value) => (isHash(value) ? Buffer.from(value as string, 'base64') : value));
}

class Undo extends Error {}

/**
 * Runs a statement again and undoes it; returns the tables that its plan scans from end to end, and what was read.
 * An insert is only planned: twice the same key would be refused.
 */
export async function explain({ app }: TestApp, { sql, values }: Statement): Promise<{ scanned: string[]; readings: Reading[] }> {
  const mode = /^\s*INSERT/i.test(sql) ? '' : 'ANALYZE, ';
  const found: { scanned: string[]; readings: Reading[] } = { scanned: [], readings: [] };
  try {
    await app.database.$transaction(async (transaction) => {
      const before = await transaction.$queryRawUnsafe<Count[]>(counts);
      const [row] = await transaction.$queryRawUnsafe<Array<Record<string, unknown>>>(`EXPLAIN (${mode}FORMAT JSON) ${sql}`, ...values);
      const after = await transaction.$queryRawUnsafe<Count[]>(counts);
      const plan = Object.values(row ?? {})[0] as string | Array<{ Plan: PlanNode }>;
      const [root] = (typeof plan === 'string' ? JSON.parse(plan) : plan) as Array<{ Plan: PlanNode }>;
      if (root) collectScans(root.Plan, found.scanned);
      found.readings.push(...compare(before, after));
      throw new Undo();
    });
  } catch (failure) {
    if (!(failure instanceof Undo)) throw failure;
  }
  return found;
}

interface Count {
  readonly table: string;
  readonly scans: number;
  readonly rows: number;
}

/** This transaction's own counters; they begin with what the session has not reported yet, so only a difference counts. */
const counts = `SELECT relname::text AS table, seq_scan::int AS scans, (seq_tup_read + coalesce(idx_tup_fetch, 0))::int AS rows
  FROM pg_stat_xact_user_tables`;

function compare(before: readonly Count[], after: readonly Count[]): Reading[] {
  const earlier = new Map(before.map((count) => [count.table, count]));
  return after.flatMap(({ table, scans, rows }) => {
    const reading = { table, scans: scans - (earlier.get(table)?.scans ?? 0), rows: rows - (earlier.get(table)?.rows ?? 0) };
    return reading.scans > 0 || reading.rows > 0 ? [reading] : [];
  });
}

function collectScans(node: PlanNode, scanned: string[]): void {
  if (node['Node Type'] === 'Seq Scan' && node['Relation Name']) scanned.push(node['Relation Name']);
  for (const part of node.Plans ?? []) collectScans(part, scanned);
}
