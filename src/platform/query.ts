import { createHash } from 'node:crypto';
import { Prisma } from '../generated/prisma/client.ts';

/**
 * Runs one statement and returns its rows: a tagged template whose values become parameters, and whose fragments
 * (`Prisma.sql`) become text. It goes to the driver directly, and is prepared once on each connection; values come back
 * as JavaScript has them, `bigint` as a number, `numeric` as text.
 */
export interface Query {
  <Row>(statement: Prisma.Sql): Promise<Row[]>;
  <Row>(strings: TemplateStringsArray, ...values: readonly unknown[]): Promise<Row[]>;
}

export interface Statement {
  /** The same for the same text, in every process: what a pooler between us and PostgreSQL may rely on. */
  readonly name: string;
  readonly text: string;
}

/** Texts are made of fragments that the code has, never of what a client sends: there are few of them. */
const statements = new Map<string, Statement>();
const statementOf = new WeakMap<TemplateStringsArray, Statement>();

export function createQuery(run: (statement: Statement, values: unknown[]) => Promise<unknown[]>): Query {
  return (<Row>(given: TemplateStringsArray | Prisma.Sql, ...values: unknown[]): Promise<Row[]> => {
    const strings = given instanceof Prisma.Sql || values.some((value) => value instanceof Prisma.Sql) ? null : given;
    const known = strings && statementOf.get(strings);
    if (known) return run(known, values) as Promise<Row[]>;
    const sql = given instanceof Prisma.Sql ? given : new Prisma.Sql(given, values);
    const statement = prepare(sql.text);
    // Without fragments a template has the same text each time.
    if (strings) statementOf.set(strings, statement);
    return run(statement, sql.values) as Promise<Row[]>;
  }) as Query;
}

function prepare(text: string): Statement {
  const known = statements.get(text);
  if (known) return known;
  const name = `portico_${createHash('sha256').update(text).digest('hex').slice(0, 24)}`;
  const statement = { name, text };
  statements.set(text, statement);
  return statement;
}
