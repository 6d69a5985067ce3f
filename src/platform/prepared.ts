import type pg from 'pg';
import { getOrInsert } from '../kernel/map.ts';
import { parserOf } from './decode.ts';
import { type Encoded, encode } from './encode.ts';
import type { Statement } from './query.ts';

/**
 * The part of pg's Connection that is used here, which pg-cursor, a package by pg's authors, uses as well: the methods that send
 * protocol messages, and the events for the replies.
 */
interface PgConnection {
  readonly stream: { cork(): void; uncork(): void };
  parse(statement: Statement): void;
  bind(binding: { statement: string; values: readonly Encoded[] }): void;
  describe(portal: { type: 'P'; name: string }): void;
  execute(portal: { portal: string }): void;
  sync(): void;
  once(event: 'parseComplete', listener: () => void): void;
  removeListener(event: 'parseComplete', listener: () => void): void;
}

interface Column {
  readonly name: string;
  readonly parse: (text: string) => unknown;
}

export type Row = Record<string, unknown>;

/**
 * The statements that each connection has parsed, with their columns, which are null until they are known. They may be cached:
 * PostgreSQL declines to run a prepared statement whose columns have changed.
 */
const columnsByConnection = new WeakMap<PgConnection, Map<string, readonly Column[] | null>>();

/**
 * One run of a prepared statement, for `client.query` and `pool.query`: its callback gets the rows. Unlike the driver's own query
 * it requests the description of the columns only once per connection, which for a row or two is most of the work.
 */
export class PreparedQuery implements pg.Submittable {
  /** Set by the driver. */
  callback: ((failure: Error | null, rows?: Row[]) => void) | undefined;
  /** When it was sent to PostgreSQL, by `performance.now()`; null before. */
  sentAt: number | null = null;
  readonly #rows: Row[] = [];
  #columns: readonly Column[] | null = null;
  #failure: Error | null = null;
  #removeListener: (() => void) | null = null;

  constructor(
    private readonly statement: Statement,
    private readonly values: readonly unknown[],
  ) {}

  /** Returns the error of a value that cannot be encoded, before anything is sent. */
  submit(pgConnection: unknown): Error | undefined {
    const connection = pgConnection as PgConnection;
    const { name } = this.statement;
    const parsed = parsedStatementsOf(connection);
    let values: readonly Encoded[];
    try {
      values = this.values.map(encode);
    } catch (failure) {
      return failure as Error;
    }
    this.#columns = parsed.get(name) ?? null;
    this.sentAt = performance.now();
    // The messages leave as one write: single writes would each cost Node a system call, and wake PostgreSQL up.
    connection.stream.cork();
    try {
      if (!parsed.has(name)) this.#parse(connection, parsed);
      connection.bind({ statement: name, values });
      if (!this.#columns) connection.describe({ type: 'P', name: '' });
      connection.execute({ portal: '' });
      connection.sync();
    } finally {
      connection.stream.uncork();
    }
    return undefined;
  }

  #parse(connection: PgConnection, parsed: Map<string, readonly Column[] | null>): void {
    const onParsed = () => void parsed.set(this.statement.name, null);
    connection.once('parseComplete', onParsed);
    this.#removeListener = () => connection.removeListener('parseComplete', onParsed);
    connection.parse(this.statement);
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

  handleCommandComplete(_message: unknown, connection: unknown): void {
    const parsed = parsedStatementsOf(connection as PgConnection);
    // A statement that returns no rows has no columns.
    if (!parsed.get(this.statement.name)) parsed.set(this.statement.name, this.#columns ?? []);
  }

  handleReadyForQuery(): void {
    if (this.#failure) this.callback?.(this.#failure);
    else this.callback?.(null, this.#rows);
  }

  handleError(failure: Error): void {
    this.#removeListener?.();
    this.callback?.(failure);
  }

  handleEmptyQuery(): void {}

  handlePortalSuspended(): void {}
}

function parsedStatementsOf(connection: PgConnection): Map<string, readonly Column[] | null> {
  return getOrInsert(columnsByConnection, connection, () => new Map());
}
