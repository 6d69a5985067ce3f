import pg from 'pg';
import { prepareValue } from 'pg/lib/utils.js';
import type { Statement } from './query.ts';

/** The part of a connection of `pg` that a query of one's own is given. */
interface Connection {
  readonly stream: { cork(): void; uncork(): void };
  readonly parsedStatements: Readonly<Record<string, string>>;
  parse(statement: Statement): void;
  bind(binding: { statement: string; values: readonly unknown[]; valueMapper: (value: unknown) => unknown }): void;
  describe(portal: { type: 'P'; name: string }): void;
  execute(portal: { portal: string }): void;
  sync(): void;
}

interface Column {
  readonly name: string;
  readonly parse: (text: string) => unknown;
}

export type Row = Record<string, unknown>;

/** What each connection's statements answer with: PostgreSQL refuses to run one whose columns have changed. */
const columnsByConnection = new WeakMap<Connection, Map<string, readonly Column[]>>();

/**
 * A prepared statement on its way, for `pool.query`: resolves with the rows. Unlike the driver's own it asks only once a
 * connection what the columns are, which for a row or two is most of the work.
 */
export class Prepared implements pg.Submittable {
  /** Both are read by the driver, which keeps account of what each connection has parsed. */
  readonly name: string;
  readonly text: string;
  /** Set by the driver. */
  callback: ((failure: Error | null, rows?: Row[]) => void) | undefined;
  readonly #values: readonly unknown[];
  readonly #rows: Row[] = [];
  #columns: readonly Column[] | undefined;
  #failure: Error | null = null;

  constructor({ name, text }: Statement, values: readonly unknown[]) {
    this.name = name;
    this.text = text;
    this.#values = values;
  }

  submit(given: unknown): Error | undefined {
    const connection = given as Connection;
    const { name, text } = this;
    this.#columns = columnsByConnection.get(connection)?.get(name);
    connection.stream.cork();
    try {
      if (connection.parsedStatements[name] === undefined) connection.parse({ name, text });
      connection.bind({ statement: name, values: this.#values, valueMapper: toParameter });
      if (!this.#columns) connection.describe({ type: 'P', name: '' });
      connection.execute({ portal: '' });
      connection.sync();
    } catch (failure) {
      return failure as Error;
    } finally {
      connection.stream.uncork();
    }
    return undefined;
  }

  handleRowDescription({ fields }: { fields: ReadonlyArray<{ name: string; dataTypeID: number; format: 'text' }> }): void {
    this.#columns = fields.map(({ name, dataTypeID, format }) => ({ name, parse: parserOf(dataTypeID, format) }));
  }

  handleDataRow({ fields }: { fields: ReadonlyArray<string | null> }): void {
    const row: Row = {};
    const columns = this.#columns ?? [];
    try {
      for (let index = 0; index < columns.length; index += 1) {
        const { name, parse } = columns[index] as Column;
        const text = fields[index] as string | null;
        row[name] = text === null ? null : parse(text);
      }
    } catch (failure) {
      this.#failure = failure as Error;
    }
    this.#rows.push(row);
  }

  handleCommandComplete(_message: unknown, given: unknown): void {
    const connection = given as Connection;
    // A statement that answers nothing has no columns.
    const known = columnsByConnection.get(connection) ?? new Map<string, readonly Column[]>();
    if (!known.has(this.name)) columnsByConnection.set(connection, known.set(this.name, this.#columns ?? []));
  }

  handleReadyForQuery(): void {
    if (this.#failure) this.callback?.(this.#failure);
    else this.callback?.(null, this.#rows);
  }

  handleError(failure: Error): void {
    this.callback?.(failure);
  }

  handleEmptyQuery(): void {}

  handlePortalSuspended(): void {}
}

function toParameter(value: unknown): unknown {
  return value instanceof Date ? value.toISOString() : prepareValue(value);
}

/** A `bigint` is a number here: none of ours comes near 2^53. */
function parserOf(type: number, format: 'text'): (text: string) => unknown {
  const { INT8, TIMESTAMPTZ } = pg.types.builtins;
  const parse = pg.types.getTypeParser(type, format);
  if (type === INT8) return Number;
  return type === TIMESTAMPTZ ? (text) => parseMoment(text) ?? parse(text) : parse;
}

/**
 * A moment as PostgreSQL writes it in UTC, which all our connections are in: `2026-01-31 12:00:00.123456+00`. Null for one
 * that is written otherwise, as those of the first thousand years, which `Date.UTC` would take for later ones.
 */
function parseMoment(text: string): Date | null {
  const end = text.length - 3;
  if (end < 19 || end > 26 || text[0] === '0' || text[4] !== '-' || text[10] !== ' ' || !text.endsWith('+00')) return null;
  const digit = (at: number) => text.charCodeAt(at) - 48;
  const two = (at: number) => digit(at) * 10 + digit(at + 1);
  let ms = 0;
  for (let at = 20, unit = 100; at < end && unit >= 1; at += 1, unit /= 10) ms += digit(at) * unit;
  return new Date(Date.UTC(two(0) * 100 + two(2), two(5) - 1, two(8), two(11), two(14), two(17), ms));
}
