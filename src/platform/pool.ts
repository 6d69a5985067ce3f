import pg from 'pg';
import { Cooldown } from '../kernel/cooldown.ts';
import { Breaker } from './breaker.ts';
import { DeadConnectionDetector, pidOf } from './deadconnections.ts';
import { DATABASE_AWAY, hasCode, missingCodes, READ_TIMEOUT, readOnlyServer, toConnectionFailure } from './errors.ts';
import type { Logger } from './logger.ts';
import { PreparedQuery, type Row } from './prepared.ts';
import { isReply, PROBE_DEADLINE_MS, Probe } from './probe.ts';
import { isReadOnly, type Statement } from './query.ts';
import { planOptions, sessionOptions, withSession } from './sessionoptions.ts';
import { SlowLog } from './slowlog.ts';
import { TablesCheck } from './tablescheck.ts';

/** How long PostgreSQL may send nothing, while statements wait for it, before it is probed. */
const SERVER_SILENCE_MS = 500;
const WATCH_INTERVAL_MS = 100;
const PROBE_INTERVAL_MS = 250;
/** How often the connections to a server that takes no writes are replaced, at most. */
const REPLACEMENT_INTERVAL_MS = 1_000;

/** The timeouts of every connection. A statement that takes longer is cancelled, first by the server. */
const timeouts = {
  statement_timeout: 5_000,
  query_timeout: 6_000,
  idle_in_transaction_session_timeout: 5_000,
};

/** Ends a backend by its number, if it is a session of ours: behind a pooler the number may be that of another session, or of none. */
const TERMINATION = `
  SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE pid = $1 AND usename = current_user AND datname = current_database() AND application_name = 'portico' AND state = 'active'`;

type Release = (failure?: Error | boolean) => void;
type ConnectCallback = (failure: Error | undefined, client: pg.PoolClient | undefined, release: Release) => void;

/**
 * A pool that detects an outage of PostgreSQL, also a server that merely falls silent, without limiting the duration of a single
 * statement. In an outage every statement that waits or runs fails at once with `service_unavailable`, and so do new ones until
 * the server answers again. A statement that was rejected while it waited for a connection is never run.
 *
 * A single connection that falls silent is replaced: its reads are run again on another connection, its writes fail, as it is
 * unknown how far they came.
 */
export class Pool extends pg.Pool {
  readonly breaker: Breaker;
  readonly slowLog: SlowLog;
  readonly #log: Logger;
  readonly #probe: Probe;
  readonly #tables: TablesCheck;
  /** For single connections; separate, since a late reply closes a probe's connection, which must not affect the probe of the server. */
  readonly #silenceProbe: Probe;
  readonly #pendingConnects = new Set<(failure: Error) => void>();
  readonly #busy = new Set<pg.Client>();
  readonly #deadConnections: DeadConnectionDetector;
  readonly #watchTimer: NodeJS.Timeout;
  /** The busy connections that are closed when they are released. */
  readonly #outdated = new WeakSet<pg.Client>();
  readonly #replacement = new Cooldown(REPLACEMENT_INTERVAL_MS);
  /** Whether an attempt to connect was rejected, and none has succeeded since. */
  #isRejected = false;
  #lastReplyAt = performance.now();
  /** The last reply, or the last moment at which none was due. */
  #lastActiveAt = performance.now();

  /** `session` are the settings of its sessions. */
  constructor({ url, size, log, session = sessionOptions }: { url: string; size: number; log: Logger; session?: string }) {
    super({
      max: size,
      connectionTimeoutMillis: 3_000,
      idleTimeoutMillis: 30_000,
      ...timeouts,
      keepAlive: true,
      ...withSession(url, `${session} ${planOptions}`),
      application_name: 'portico',
    });
    this.slowLog = new SlowLog(log);
    this.#log = log;
    this.#probe = new Probe(url, session);
    this.#tables = new TablesCheck(this.#probe);
    // A role may be set to become another one, which would neither see nor end the sessions of the first.
    this.#silenceProbe = new Probe(url, `${session} -c role=none`);
    this.breaker = new Breaker({
      name: 'database',
      probe: () => this.#probeServer(),
      // `#probeServer` has a deadline of its own; this margin is for a process that was busy at that moment.
      deadlineMs: PROBE_DEADLINE_MS + 100,
      intervalMs: PROBE_INTERVAL_MS,
      onOpen: () => this.#closeConnections(),
      log,
    });
    this.#deadConnections = new DeadConnectionDetector({ query: (sql, values) => this.#silenceProbe.query(sql, values), log });
    // A new connection is not a reply: a pooler also accepts one while PostgreSQL is away.
    this.on('connect', (client) => {
      this.#isRejected = false;
      client.on('drain', () => this.#recordReply());
    });
    this.on('acquire', (client) => void this.#busy.add(client));
    this.on('release', (failure, client) => {
      this.#busy.delete(client);
      if (this.#outdated.has(client)) client.end().catch(() => {});
      if (hasCode(failure, readOnlyServer) && this.#replacement.begin()) this.#replaceConnections();
      if (failure && !isReply(failure)) this.breaker.startProbing();
      if (failure instanceof Error && failure.message === READ_TIMEOUT) this.#terminate(client);
    });
    this.on('remove', (client) => void this.#busy.delete(client));
    // Without a listener, an idle connection that breaks would end the process.
    this.on('error', () => this.breaker.startProbing());
    this.#watchTimer = setInterval(() => this.#watch(), WATCH_INTERVAL_MS).unref();
  }

  /** The driver reads the certificates that the URL names for each connection: one that is away fails the connection, not the process. */
  newClient(pending: { callback: ConnectCallback }): void {
    const { newClient } = pg.Pool.prototype as unknown as { newClient(this: Pool, pending: { callback: ConnectCallback }): void };
    try {
      newClient.call(this, pending);
    } catch (failure) {
      pending.callback(failure as Error, undefined as never, () => {});
    }
  }

  override connect(): Promise<pg.PoolClient>;
  override connect(callback: ConnectCallback): void;
  override connect(callback?: ConnectCallback): Promise<pg.PoolClient> | undefined {
    if (!callback) {
      return new Promise((resolve, reject) => {
        this.connect((failure, client) => (client ? resolve(client) : reject(failure)));
      });
    }
    if (this.breaker.isOpen) {
      process.nextTick(callback, createAwayError(), undefined, () => {});
      return undefined;
    }
    const startedAt = performance.now();
    let isRejected = false;
    const reject = (failure: Error) => {
      isRejected = true;
      callback(failure, undefined, () => {});
    };
    this.#pendingConnects.add(reject);
    super.connect((failure, client, release) => {
      this.#pendingConnects.delete(reject);
      const describe = () => ({ busy: this.#busy.size, waiting: this.waitingCount });
      this.slowLog.report(performance.now() - startedAt, describe, 'a long wait for a database connection');
      if (isReply(failure)) this.#isRejected = true;
      // A server that rejects connections may be full, or gone.
      if (failure) this.breaker.startProbing();
      if (isRejected) client && release();
      else callback(failure && toConnectionFailure(failure), client, release);
    });
    return undefined;
  }

  /** Runs a prepared statement on the next free connection. After one that fails pg-pool closes it; `runTransaction` mostly keeps its own. */
  run(statement: Statement, values: readonly unknown[]): Promise<Row[]> {
    const run = () => {
      const query = new PreparedQuery(statement, values);
      // The driver resolves with whatever the query passes to its callback: the rows.
      const rows = super.query(query) as unknown as Promise<Row[]>;
      return rows.finally(() => this.slowLog.reportStatement(statement.text, query.sentAt));
    };
    return run()
      .catch((failure) => retryRead(failure, statement.text, run))
      .catch((failure) => this.throwAsOutage(failure));
  }

  /** Called by Prisma's adapter, with a statement and its values. */
  override query(...args: readonly unknown[]): never {
    const config = args[0] as pg.QueryConfig;
    // The driver declares many overloads, of which `bind` keeps only the last.
    const send = super.query.bind(this) as unknown as (query: pg.Query) => Promise<pg.QueryResult>;
    const run = () => {
      const query = new pg.Query(config);
      const { submit } = query;
      /** When it was sent, after a wait for a connection; null before. */
      let sentAt: number | null = null;
      query.submit = (connection) => {
        sentAt = performance.now();
        return submit.call(query, connection);
      };
      return send(query).finally(() => this.slowLog.reportStatement(config.text, sentAt));
    };
    return run()
      .catch((failure) => retryRead(failure, config.text, run))
      .catch((failure) => this.throwAsOutage(failure)) as never;
  }

  /** Whether tables were missing when they were last looked for. */
  get lacksTables(): boolean {
    return this.#tables.failure !== null;
  }

  /** Looks for the tables, without which it is an outage. */
  async checkTables(): Promise<void> {
    await this.#runTablesCheck().catch(() => {});
    const { failure } = this.#tables;
    if (failure) this.breaker.open(failure);
  }

  /** Rejects with the failure of a statement; as in an outage, if it failed for something missing and our tables are missing too. */
  async throwAsOutage(failure: unknown): Promise<never> {
    if (!hasCode(failure, missingCodes)) throw failure;
    await this.checkTables();
    throw this.lacksTables ? createAwayError() : failure;
  }

  #runTablesCheck(): Promise<void> {
    return this.#tables.run({ isAlone: this.idleCount === 0 && this.#busy.size === 0, isRejected: this.#isRejected });
  }

  override async end(): Promise<void> {
    clearInterval(this.#watchTimer);
    this.breaker.stop();
    this.#probe.close();
    this.#silenceProbe.close();
    await super.end();
  }

  /** Records a reply of the server. */
  #recordReply(): void {
    this.#lastReplyAt = performance.now();
    this.#lastActiveAt = this.#lastReplyAt;
  }

  /**
   * Ends the backend of a connection that this side closes while its statement runs. A backend that waits for a synchronous standby
   * does not notice that its client has gone: in time such backends would take every connection that PostgreSQL has.
   */
  #terminate(client: pg.PoolClient): void {
    this.#silenceProbe.query(TERMINATION, [pidOf(client)]).catch((failure) => {
      this.#log.debug({ err: failure }, 'a backend that was given up could not be ended');
    });
  }

  /** A reply on any other connection counts as well, in case only the probe's connection has fallen silent. */
  async #probeServer(): Promise<void> {
    const startedAt = performance.now();
    try {
      await this.#runTablesCheck();
    } catch (failure) {
      if (this.#lastReplyAt <= startedAt) throw failure;
    }
    this.#recordReply();
    const { failure } = this.#tables;
    if (failure) throw failure;
  }

  #watch(): void {
    this.#deadConnections.check(this.#busy);
    const isInUse = this.totalCount > this.idleCount || this.waitingCount > 0;
    if (!isInUse) this.#lastActiveAt = performance.now();
    else if (performance.now() - this.#lastActiveAt > SERVER_SILENCE_MS) this.breaker.startProbing();
  }

  /** Rejects what waits and closes every connection: those to a server that has been replaced would never end by themselves. */
  #closeConnections(): void {
    const failure = createAwayError();
    for (const reject of this.#pendingConnects) reject(failure);
    this.#pendingConnects.clear();
    for (const client of this.#busy) client.end().catch(() => {});
    this.#closeIdle();
  }

  /** Closes the connections that are idle now, and the others when they are released: a new one may lead to another server. */
  #replaceConnections(): void {
    for (const client of this.#busy) this.#outdated.add(client);
    this.#closeIdle();
  }

  #closeIdle(): void {
    for (let idle = this.idleCount; idle > 0; idle -= 1) super.connect((_failure, client, release) => client && release(true));
  }
}

/** Runs a read again on another connection where this side has closed its connection; otherwise rejects with the failure. */
function retryRead<Result>(failure: unknown, text: string, run: () => Promise<Result>): Promise<Result> {
  // The driver's message for a connection that this side has ended; one that broke is terminated `unexpectedly`.
  const wasClosed = failure instanceof Error && failure.message === 'Connection terminated';
  return wasClosed && isReadOnly(text) ? run() : Promise.reject(failure);
}

/** Not a Fault: Prisma takes any error with a `code` for one of its own. */
function createAwayError(): Error {
  return new Error(DATABASE_AWAY);
}
