import { createHash } from 'node:crypto';

/**
 * Runs one statement and returns its rows: a tagged template whose values become parameters. It goes to the driver directly,
 * and is prepared once on each connection; values come back as JavaScript has them, `bigint` as a number, `numeric` as text.
 */
export type Query = <Row>(strings: TemplateStringsArray, ...values: readonly unknown[]) => Promise<Row[]>;

export interface Statement {
  /** The name depends on the text alone, in every process, as a pooler between us and PostgreSQL needs it. */
  readonly name: string;
  readonly text: string;
}

const statements = new WeakMap<TemplateStringsArray, Statement>();

export function createQuery(run: (statement: Statement, values: unknown[]) => Promise<unknown[]>): Query {
  return <Row>(strings: TemplateStringsArray, ...values: unknown[]) => run(statementOf(strings), values) as Promise<Row[]>;
}

function statementOf(strings: TemplateStringsArray): Statement {
  const known = statements.get(strings);
  if (known) return known;
  const text = strings.reduce((start, end, index) => `${start}$${index}${end}`);
  const name = `portico_${createHash('sha256').update(text).digest('hex').slice(0, 24)}`;
  const statement = { name, text };
  statements.set(strings, statement);
  return statement;
}

/** The functions with side effects that our statements call. */
const actions = /\b(mark_notifications_read|prune_\w+|has_\w+_room|pg_advisory_\w+)\b/i;
const writes = /\b(INSERT|UPDATE|DELETE|MERGE)\b/i;

/** Whether a statement only reads, so that it may be run again where it is unknown whether it has run. */
export function isRead(text: string): boolean {
  return /^\s*(SELECT|WITH)\b/i.test(text) && !writes.test(text) && !actions.test(text);
}
