import type pg from 'pg';
import { getOrInsert } from '../kernel/map.ts';
import { parserOf } from './decode.ts';
import { type Encoded, encode } from './encode.ts';
import type { Statement } from './query.ts';

/**
 * The part of a connection of `pg` that is used here, which pg-cursor, a package of pg's own, uses too: the messages of the
 * protocol, and the events that come back.
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
 * The statements that each connection has parsed, with their columns, null until those are known: PostgreSQL refuses to run
 * a statement whose columns have changed.
 */
const parsedByConnection = new WeakMap<PgConnection, Map<string, readonly Column[] | null>>();

/**
 * A prepared statement on its way, for `client.query` and `pool.query`, which give it the callback: it is called with the
 * rows. Unlike the driver's own it asks only once a connection what the columns are, which for a row or two is most of
 * the work.
 */
export class Prepared implements pg.Submittable {
  /** Set by the driver. */
  callback: ((failure: Error | null, rows?: Row[]) => void) | undefined;
  readonly #rows: Row[] = [];
  #columns: readonly Column[] | null = null;
  #failure: Error | null = null;
  #stopWaiting: (() => void) | null = null;

  constructor(
    private readonly statement: Statement,
    private readonly values: readonly unknown[],
  ) {}

  /** Returns the error of a value that cannot be encoded, before anything is sent. */
  submit(given: unknown): Error | undefined {
    const connection = given as PgConnection;
    const { name } = this.statement;
    const parsed = parsedOn(connection);
    let values: readonly Encoded[];
    try {
      values = this.values.map(encode);
    } catch (failure) {
      return failure as Error;
    }
    this.#columns = parsed.get(name) ?? null;
    // The messages leave as one write: each by itself would cost Node a call of the system, and wake PostgreSQL up.
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
    this.#stopWaiting = () => connection.removeListener('parseComplete', onParsed);
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

  handleCommandComplete(_message: unknown, given: unknown): void {
    const parsed = parsedOn(given as PgConnection);
    // A statement that answers nothing has no columns.
    if (!parsed.get(this.statement.name)) parsed.set(this.statement.name, this.#columns ?? []);
  }

  handleReadyForQuery(): void {
    if (this.#failure) this.callback?.(this.#failure);
    else this.callback?.(null, this.#rows);
  }

  handleError(failure: Error): void {
    this.#stopWaiting?.();
    this.callback?.(failure);
  }

  handleEmptyQuery(): void {}

  handlePortalSuspended(): void {}
}

function parsedOn(connection: PgConnection): Map<string, readonly Column[] | null> {
  return getOrInsert(parsedByConnection, connection, () => new Map());
}
