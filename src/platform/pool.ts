import pg from 'pg';
import { DATABASE_AWAY } from '../kernel/fault.ts';
import { Breaker } from './breaker.ts';
import type { Log } from './log.ts';
import { Prepared, type Row } from './prepared.ts';
import type { Statement } from './query.ts';

/** How long PostgreSQL may be silent, while something is asked of it, before it is suspected. */
const SILENCE_MS = 500;
const WATCH_INTERVAL_MS = 100;
/** How long an empty statement may take then; together with the silence it stays below 1.5 s. */
const PROBE_DEADLINE_MS = 700;
const PROBE_INTERVAL_MS = 250;

/** What every connection is opened with. A statement that takes longer is cancelled, first by the server. */
const timeouts = {
  statement_timeout: 5_000,
  query_timeout: 6_000,
  idle_in_transaction_session_timeout: 5_000,
};

type Release = (failure?: Error | boolean) => void;
type Connected = (failure: Error | undefined, client: pg.PoolClient | undefined, release: Release) => void;

/**
 * A pool that notices when PostgreSQL has gone, also when it merely falls silent: no single statement has to be short for
 * that. Then whatever waits or runs fails at once with `service_unavailable`, and so does all that comes until the
 * server answers again. What was refused while it waited for a connection is never run.
 */
export class Pool extends pg.Pool {
  readonly breaker: Breaker;
  readonly #probe: Probe;
  readonly #waiting = new Set<(failure: Error) => void>();
  readonly #busy = new Set<pg.Client>();
  readonly #watching: NodeJS.Timeout;
  #heardAt = performance.now();

  constructor({ url, size, log }: { url: string; size: number; log: Log }) {
    super({
      connectionString: url,
      max: size,
      connectionTimeoutMillis: 3_000,
      idleTimeoutMillis: 30_000,
      ...timeouts,
      keepAlive: true,
      options: '-c timezone=UTC',
      application_name: 'portico',
    });
    this.#probe = new Probe(url);
    this.breaker = new Breaker({
      name: 'database',
      ask: () => this.#probe.ask().then(() => this.#hear()),
      deadlineMs: PROBE_DEADLINE_MS,
      intervalMs: PROBE_INTERVAL_MS,
      onOpen: () => this.#breakOff(),
      log,
    });
    this.on('connect', (client) => {
      this.#hear();
      client.on('drain', () => this.#hear());
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
    return this.query(new Prepared(statement, values)) as unknown as Promise<Row[]>;
  }

  override async end(): Promise<void> {
    clearInterval(this.#watching);
    this.breaker.stop();
    this.#probe.close();
    await super.end();
  }

  #hear(): void {
    this.#heardAt = performance.now();
  }

  #watch(): void {
    const isAsked = this.totalCount > this.idleCount || this.waitingCount > 0;
    if (!isAsked) this.#hear();
    else if (performance.now() - this.#heardAt > SILENCE_MS) this.breaker.suspect();
  }

  /** Every connection is given up: those of a server that has been replaced would never say that they are dead. */
  #breakOff(): void {
    const failure = away();
    for (const refuse of this.#waiting) refuse(failure);
    this.#waiting.clear();
    for (const client of this.#busy) client.end().catch(() => {});
    for (let left = this.idleCount; left > 0; left -= 1) super.connect((_failure, client, release) => client && release(true));
  }
}

/** No Fault: Prisma takes whatever has a `code` for an error of its own. */
function away(): Error {
  return new Error(DATABASE_AWAY);
}

/**
 * A connection of its own, kept open once it was needed: on a machine under load, making one may take longer than a
 * server should be silent.
 */
class Probe {
  readonly #url: string;
  #client: pg.Client | null = null;

  constructor(url: string) {
    this.#url = url;
  }

  /** Resolves when the server lives: also where it has an error to tell, unless that is that it is not there. */
  async ask(): Promise<void> {
    const client = this.#client ?? (await this.#connect());
    if (client) await client.query('SELECT').catch((failure) => this.#judge(failure));
  }

  close(): void {
    const client = this.#client;
    this.#client = null;
    client?.end().catch(() => {});
  }

  async #connect(): Promise<pg.Client | null> {
    const client = new pg.Client({
      connectionString: this.#url,
      connectionTimeoutMillis: PROBE_DEADLINE_MS,
      query_timeout: PROBE_DEADLINE_MS,
      application_name: 'portico probe',
    });
    client.on('error', () => {});
    client.once('end', () => {
      if (this.#client === client) this.#client = null;
    });
    try {
      await client.connect();
    } catch (failure) {
      this.#judge(failure);
      return null;
    }
    this.#client = client;
    return client;
  }

  #judge(failure: unknown): void {
    this.close();
    const { code } = failure as { code?: unknown };
    const isAnswer = typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && !/^(57P|08)/.test(code);
    if (!isAnswer) throw failure;
  }
}
