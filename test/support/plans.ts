import type { TestApp } from './app.ts';

/** A statement as it was sent. */
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

/** Every statement from now on, with its values. */
export function recordStatements({ listen }: TestApp): Statement[] {
  const recorded: Statement[] = [];
  listen((sql, values) => recorded.push({ sql, values: values.map((value) => readValue(sql, value)) }));
  return recorded;
}

/** Prisma tells bytes in base64, which hashes are, and a scrollback of as many bytes. */
function readValue(sql: string, value: unknown): unknown {
  const isHash = /secret_hash|ticket_hash|scrollback/.test(sql) && typeof value === 'string' && /^[\w+/]{43}=$/.test(value);
  return isHash ? Buffer.from(value, 'base64') : value;
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
      const general = await planForAny(transaction, sql);
      if (general) collectScans(general.Plan, found.scanned);
      throw new Undo();
    });
  } catch (failure) {
    if (!(failure instanceof Undo)) throw failure;
  }
  return found;
}

type Transaction = Parameters<Parameters<TestApp['app']['database']['$transaction']>[0]>[0];

/** The plan that PostgreSQL may settle on for a prepared statement, whatever the values. */
async function planForAny(transaction: Transaction, sql: string): Promise<{ Plan: PlanNode } | undefined> {
  const count = Math.max(0, ...[...sql.matchAll(/\$(\d+)/g)].map(([, index]) => Number(index)));
  const values = count > 0 ? `(${Array.from({ length: count }, () => 'NULL').join(', ')})` : '';
  await transaction.$executeRawUnsafe('SET LOCAL plan_cache_mode = force_generic_plan');
  await transaction.$executeRawUnsafe(`PREPARE general AS ${sql}`);
  const [row] = await transaction.$queryRawUnsafe<Array<Record<string, unknown>>>(`EXPLAIN (FORMAT JSON) EXECUTE general${values}`);
  await transaction.$executeRawUnsafe('DEALLOCATE general');
  const plan = Object.values(row ?? {})[0] as string | Array<{ Plan: PlanNode }>;
  return ((typeof plan === 'string' ? JSON.parse(plan) : plan) as Array<{ Plan: PlanNode }>)[0];
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
