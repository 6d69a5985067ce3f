import { createHash } from 'node:crypto';
import { getOrInsert } from '../kernel/map.ts';

/**
 * Runs one statement, a tagged template whose values become parameters, and returns its rows. `bigint` is returned as a number,
 * `numeric` as text. Not Prisma's `$queryRaw` or TypedSQL, which take three times the CPU (for 20 rows 275 µs, this 90): it is
 * prepared once on each connection, and `npm run check:sql` checks its types against the schema.
 */
export type Query = <Row>(strings: TemplateStringsArray, ...values: readonly unknown[]) => Promise<Row[]>;

export interface Statement {
  /** Derived from the text alone, so that it is the same in every process: a pooler in front of PostgreSQL relies on it. */
  readonly name: string;
  readonly text: string;
}

/** Runs a statement and returns its rows. */
export type RunStatement = (statement: Statement, values: unknown[]) => Promise<unknown[]>;

const statements = new WeakMap<TemplateStringsArray, Statement>();
const ascendingStatements = new WeakMap<TemplateStringsArray, Statement>();

export function createQuery(run: RunStatement): Query {
  return createQueryOf(run, statements, (text) => text);
}

/** A query that reads a list from its other end: each descending order of the statement is an ascending one. */
export function createAscendingQuery(run: RunStatement): Query {
  return createQueryOf(run, ascendingStatements, (text) => text.replaceAll(' DESC', ''));
}

function createQueryOf(run: RunStatement, cache: WeakMap<TemplateStringsArray, Statement>, convert: (text: string) => string): Query {
  return <Row>(strings: TemplateStringsArray, ...values: unknown[]) =>
    run(
      getOrInsert(cache, strings, () => createStatement(convert(joinText(strings)))),
      values,
    ) as Promise<Row[]>;
}

function joinText(strings: TemplateStringsArray): string {
  return strings.reduce((start, end, index) => `${start}$${index}${end}`);
}

function createStatement(text: string): Statement {
  return { name: `portico_${createHash('sha256').update(text).digest('hex').slice(0, 24)}`, text };
}

/** The functions with side effects that our statements call. */
const sideEffects = /\b(mark_notifications_read|prune_\w+|has_\w+_room|pg_advisory_\w+)\b/i;
const writes = /\b(INSERT|UPDATE|DELETE|MERGE)\b/i;

/** Whether a statement only reads, so that it may be repeated where it is unknown whether it has run. */
export function isReadOnly(text: string): boolean {
  return /^\s*(SELECT|WITH)\b/i.test(text) && !writes.test(text) && !sideEffects.test(text);
}
