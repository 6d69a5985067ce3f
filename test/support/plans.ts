import pg from 'pg';
import { isPostgres, type TestApp } from './app.ts';

/** A statement and its parameter values. */
export interface Statement {
  readonly sql: string;
  readonly values: readonly unknown[];
}

/** The reads of a table by one run of a statement, including the functions and triggers that it called. */
export interface Reading {
  readonly table: string;
  readonly scans: number;
  readonly rows: number;
}

interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  /** How often the node has run, in a plan that was executed. */
  readonly 'Actual Loops'?: number;
  /** The pairs of rows of each run that were compared in vain. */
  readonly 'Rows Removed by Join Filter'?: number;
  readonly Plans?: readonly PlanNode[];
}

/** Records every statement from now on, with its values. */
export function recordStatements({ listen }: TestApp): Statement[] {
  const recorded: Statement[] = [];
  listen((sql, values) => recorded.push({ sql, values: values.map((value) => readValue(sql, value)) }));
  return recorded;
}

/** Decodes the base64 in which Prisma reports bytes: hashes, and a scrollback of the same length. */
function readValue(sql: string, value: unknown): unknown {
  const isHash = /secret_hash|ticket_hash|scrollback/.test(sql) && typeof value === 'string' && /^[\w+/]{43}=$/.test(value);
  return isHash ? Buffer.from(value, 'base64') : value;
}

class Undo extends Error {}

/**
 * The reads of a statement under two plans: the custom plan for its own values, with PostgreSQL's default settings, and the
 * generic plan, with the settings of the gateway's connections. Which one the gateway uses depends on the database.
 */
interface Explained {
  /** The tables that either plan scans from end to end. */
  readonly scanned: string[];
  /** The reads under the plan that the gateway uses: on PostgreSQL the generic plan. */
  readonly readings: Reading[];
  readonly withItsValues: Reading[];
  readonly withAnyValues: Reading[];
  /** The pairs of rows that joins under the generic plan compared in vain: rows that are kept in memory are read again for each. */
  readonly compared: number;
}

/** Runs a statement again under each plan and rolls it back. An insert is only planned, because its key exists already. */
export async function explain({ app }: TestApp, { sql, values }: Statement): Promise<Explained> {
  const mode = /^\s*INSERT|INSERT INTO api_keys/i.test(sql) ? '' : 'ANALYZE, ';
  const found: { own?: Plan; general?: Plan } = {};
  try {
    await app.database.prisma.$transaction(async (transaction) => {
      await transaction.$executeRawUnsafe('SET LOCAL enable_seqscan = on');
      const counts = await readCounts(transaction);
      found.own = await runPlan(transaction, counts, `EXPLAIN (${mode}FORMAT JSON) ${sql}`, values);
      await transaction.$queryRawUnsafe(
        `SELECT set_config('enable_seqscan', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true)`,
      );
      await transaction.$executeRawUnsafe(`PREPARE general AS ${sql}`);
      const given = values.length > 0 ? `(${values.map(literal).join(', ')})` : '';
      found.general = await runPlan(transaction, found.own.counts, `EXPLAIN (${mode}FORMAT JSON) EXECUTE general${given}`, []);
      await transaction.$executeRawUnsafe('DEALLOCATE general');
      throw new Undo();
    });
  } catch (failure) {
    if (!(failure instanceof Undo)) throw failure;
  }
  const { own, general } = found;
  if (!own || !general) throw new Error('both plans were made');
  const readings = isPostgres ? general.readings : own.readings;
  const scanned = [...own.scanned, ...general.scanned];
  return { scanned, readings, withItsValues: own.readings, withAnyValues: general.readings, compared: general.compared };
}

type Transaction = Parameters<Parameters<TestApp['app']['database']['prisma']['$transaction']>[0]>[0];

interface Plan {
  readonly scanned: string[];
  readonly readings: Reading[];
  readonly compared: number;
  /** The transaction's counters after it. */
  readonly counts: readonly Count[];
}

async function runPlan(transaction: Transaction, before: readonly Count[], sql: string, values: readonly unknown[]): Promise<Plan> {
  const [row] = await transaction.$queryRawUnsafe<Array<Record<string, unknown>>>(sql, ...values);
  const after = await readCounts(transaction);
  const plan = Object.values(row ?? {})[0] as string | Array<{ Plan: PlanNode }>;
  const [root] = (typeof plan === 'string' ? JSON.parse(plan) : plan) as Array<{ Plan: PlanNode }>;
  const nodes = root ? nodesOf(root.Plan) : [];
  const scanned = nodes.flatMap((node) => (node['Node Type'] === 'Seq Scan' ? (node['Relation Name'] ?? []) : []));
  const compared = nodes.reduce((sum, node) => sum + (node['Rows Removed by Join Filter'] ?? 0) * (node['Actual Loops'] ?? 0), 0);
  return { scanned, readings: compare(before, after), compared, counts: after };
}

/** Writes a value as a literal for `EXECUTE`, which gives it the type of the parameter. */
function literal(value: unknown): string {
  if (value === null || value === undefined) return 'NULL';
  if (value instanceof Uint8Array) return `'\\x${Buffer.from(value).toString('hex')}'`;
  const items = Array.isArray(value) ? value.map((item) => (item === null ? 'NULL' : JSON.stringify(textOf(item)))) : null;
  return pg.escapeLiteral(items ? `{${items.join(',')}}` : textOf(value));
}

function textOf(value: unknown): string {
  if (value instanceof Date) return value.toISOString();
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

interface Count {
  readonly table: string;
  readonly scans: number;
  readonly rows: number;
}

/** The transaction's own counters. They include reads that the session has not reported yet, so only differences are meaningful. */
const readCounts = (transaction: Transaction) =>
  transaction.$queryRawUnsafe<Count[]>(
    `SELECT relname::text AS table, seq_scan::int AS scans, (seq_tup_read + coalesce(idx_tup_fetch, 0))::int AS rows
     FROM pg_stat_xact_user_tables`,
  );

function compare(before: readonly Count[], after: readonly Count[]): Reading[] {
  const earlier = new Map(before.map((count) => [count.table, count]));
  return after.flatMap(({ table, scans, rows }) => {
    const reading = { table, scans: scans - (earlier.get(table)?.scans ?? 0), rows: rows - (earlier.get(table)?.rows ?? 0) };
    return reading.scans > 0 || reading.rows > 0 ? [reading] : [];
  });
}

const nodesOf = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)];
