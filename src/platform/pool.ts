import pg from 'pg';
import { Breaker, withinTime } from './breaker.ts';
import { DATABASE_AWAY } from './errors.ts';
import type { Logger } from './logger.ts';
import { Prepared, type Row } from './prepared.ts';
import { PROBE_DEADLINE_MS, Probe } from './probe.ts';
import { isRead, type Statement } from './query.ts';
import { SilenceWatch } from './silence.ts';

/** How long PostgreSQL may be silent, while statements wait for it, before it is suspected. */
const SILENCE_MS = 500;
const WATCH_INTERVAL_MS = 100;
const PROBE_INTERVAL_MS = 250;

/** The timeouts of every connection. A statement that takes longer is cancelled, first by the server. */
const timeouts = {
  statement_timeout: 5_000,
  query_timeout: 6_000,
  idle_in_transaction_session_timeout: 5_000,
};

type Release = (failure?: Error | boolean) => void;
type Connected = (failure: Error | undefined, client: pg.PoolClient | undefined, release: Release) => void;

/**
 * A pool that notices when PostgreSQL has gone, also when it merely falls silent, without a limit on the length of a single
 * statement. Then every statement that waits or runs fails at once with `service_unavailable`, and so do new ones until the
 * server answers again. A statement that was refused while it waited for a connection is never run.
 *
 * Where only one connection falls silent, it is replaced: its reads are run again on another connection, its writes fail, as
 * it is unknown how far they came.
 */
export class Pool extends pg.Pool {
  readonly breaker: Breaker;
  readonly #probe: Probe;
  /** The probe of single connections: a late answer to it must not break off the probe of the server. */
  readonly #silenceProbe: Probe;
  readonly #waiting = new Set<(failure: Error) => void>();
  readonly #busy = new Set<pg.Client>();
  readonly #silence: SilenceWatch;
  readonly #watching: NodeJS.Timeout;
  #activeAt = performance.now();

  constructor({ url, size, log }: { url: string; size: number; log: Logger }) {
    super({
      connectionString: url,
      max: size,
      connectionTimeoutMillis: 3_000,
      idleTimeoutMillis: 30_000,
      ...timeouts,
      keepAlive: true,
      // Compiling a statement takes longer than any of ours does, and planning one anew as long as most. A plan that is kept
      // must be right when a table has grown that was empty when it was made, in the functions and foreign keys as well.
      options: '-c timezone=UTC -c jit=off -c plan_cache_mode=force_generic_plan -c enable_seqscan=off',
      application_name: 'portico',
    });
    this.#probe = new Probe(url);
    this.#silenceProbe = new Probe(url);
    this.breaker = new Breaker({
      name: 'database',
      ask: () => this.#probeServer(),
      // It keeps its own; this one is for a process that was busy at that moment.
      deadlineMs: PROBE_DEADLINE_MS + 100,
      intervalMs: PROBE_INTERVAL_MS,
      onOpen: () => this.#breakOff(),
      log,
    });
    this.#silence = new SilenceWatch({ ask: (sql, values) => this.#silenceProbe.query(sql, values), log });
    this.on('connect', (client) => {
      this.#noteActivity();
      client.on('drain', () => this.#noteActivity());
    });
    this.on('acquire', (client) => void this.#busy.add(client));
    this.on('release', (_failure, client) => void this.#busy.delete(client));
    this.on('remove', (client) => void this.#busy.delete(client));
    // Without a listener, an idle connection that breaks would end the process.
    this.on('error', () => this.breaker.suspect());
    this.#watching = setInterval(() => this.#watch(), WATCH_INTERVAL_MS).unref();
  }

  override connect(): Promise<pg.PoolClient>;
  override connect(callback: Connected): void;
  override connect(callback?: Connected): Promise<pg.PoolClient> | undefined {
    if (!callback) {
      return new Promise((resolve, reject) => {
        this.connect((failure, client) => (client ? resolve(client) : reject(failure)));
      });
    }
    if (this.breaker.isOpen) {
      process.nextTick(callback, away(), undefined, () => {});
      return undefined;
    }
    let isRefused = false;
    const refuse = (failure: Error) => {
      isRefused = true;
      callback(failure, undefined, () => {});
    };
    this.#waiting.add(refuse);
    super.connect((failure, client, release) => {
      this.#waiting.delete(refuse);
      // A server that turns connections away may be full, or gone.
      if (failure) this.breaker.suspect();
      if (isRefused) client && release();
      else callback(failure, client, release);
    });
    return undefined;
  }

  /** Runs a prepared statement on the next connection that is free. */
  run(statement: Statement, values: readonly unknown[]): Promise<Row[]> {
    // The driver calls back with what the query gives it: the rows.
    const ask = () => super.query(new Prepared(statement, values)) as unknown as Promise<Row[]>;
    return ask().catch((failure) => retryRead(failure, statement.text, ask));
  }

  /** The query of Prisma's adapter, which passes a statement with its values. */
  override query(...given: readonly unknown[]): never {
    // The driver declares many forms of a query, and `bind` keeps the last of them.
    const ask = super.query.bind(this) as unknown as (...given: readonly unknown[]) => Promise<unknown>;
    const { text } = given[0] as { text: string };
    return ask(...given).catch((failure) => retryRead(failure, text, () => ask(...given))) as never;
  }

  override async end(): Promise<void> {
    clearInterval(this.#watching);
    this.breaker.stop();
    this.#probe.close();
    this.#silenceProbe.close();
    await super.end();
  }

  #noteActivity(): void {
    this.#activeAt = performance.now();
  }

  /** A good answer on any connection counts, also where the probe's own connection has fallen silent. */
  async #probeServer(): Promise<void> {
    const askedAt = performance.now();
    try {
      await withinTime(this.#probe.ask(), PROBE_DEADLINE_MS);
    } catch (failure) {
      if (this.#activeAt <= askedAt) throw failure;
    }
    this.#noteActivity();
  }

  #watch(): void {
    this.#silence.check(this.#busy);
    const isAsked = this.totalCount > this.idleCount || this.waitingCount > 0;
    if (!isAsked) this.#noteActivity();
    else if (performance.now() - this.#activeAt > SILENCE_MS) this.breaker.suspect();
  }

  /** Closes every connection: those to a server that has been replaced would never end by themselves. */
  #breakOff(): void {
    const failure = away();
    for (const refuse of this.#waiting) refuse(failure);
    this.#waiting.clear();
    for (const client of this.#busy) client.end().catch(() => {});
    for (let left = this.idleCount; left > 0; left -= 1) super.connect((_failure, client, release) => client && release(true));
  }
}

/** Runs a read again on another connection, where its own was closed. */
function retryRead<Answer>(failure: unknown, text: string, ask: () => Promise<Answer>): Promise<Answer> {
  // The driver's word for a connection that this side has ended; one that broke is terminated `unexpectedly`.
  const isGivenUp = failure instanceof Error && failure.message === 'Connection terminated';
  return isGivenUp && isRead(text) ? ask() : Promise.reject(failure);
}

/** No Fault: Prisma takes whatever has a `code` for an error of its own. */
function away(): Error {
  return new Error(DATABASE_AWAY);
}
