import type pg from 'pg';
import type { Logger } from './logger.ts';

/** How long a connection may be silent, while a statement runs on it, before PostgreSQL is asked about it. */
const CONNECTION_SILENCE_MS = 250;
/**
 * How many times as long as that query took a connection must have been silent to be dead: if PostgreSQL answers the query slowly,
 * it is short of CPU, and may not have begun with the connection's statement yet.
 */
const MIN_SILENCE_RATIO = 20;

/** The properties of pg's Client that its types omit. */
interface ClientInternals {
  readonly readyForQuery: boolean;
  readonly processID: number | null;
  readonly connection: { readonly stream: { readonly bytesRead: number; readonly bytesWritten: number } };
}

/** The byte counts of a connection, and the check at which they were last seen to change. */
interface Traffic {
  readonly read: number;
  readonly written: number;
  readonly since: number;
  /** Whether PostgreSQL has reported since then, once, that it is not working on this connection. */
  isSuspect: boolean;
}

interface Backend {
  readonly pid: number;
  readonly isWorking: boolean;
}

/** A backend that waits for its client to read (`ClientWrite`) counts as idle. */
const BACKENDS = `
  SELECT pid, coalesce(state NOT LIKE 'idle%', true) AND wait_event IS DISTINCT FROM 'ClientWrite' AS "isWorking"
  FROM pg_stat_activity WHERE pid = ANY ($1)`;

/**
 * Detects single dead connections, and closes them: a statement waits for a reply, nothing arrives, and PostgreSQL, asked twice
 * on another connection, is not working on it. A statement that merely takes long is left alone. So are all connections where
 * PostgreSQL knows none of them, as behind a pooler: there only the timeouts count.
 */
export class DeadConnectionDetector {
  readonly #traffic = new Map<pg.Client, Traffic>();
  #isQuerying = false;

  constructor(
    private readonly dependencies: { readonly query: (sql: string, values: unknown[]) => Promise<unknown[]>; readonly log: Logger },
  ) {}

  /** Called at intervals with the connections that are in use. */
  check(busy: ReadonlySet<pg.Client>): void {
    const now = performance.now();
    for (const client of this.#traffic.keys()) if (!busy.has(client)) this.#traffic.delete(client);
    let isSilent = false;
    for (const client of busy) {
      const { readyForQuery, connection } = internalsOf(client);
      if (readyForQuery) {
        this.#traffic.delete(client);
        continue;
      }
      const { bytesRead: read, bytesWritten: written } = connection.stream;
      const known = this.#traffic.get(client);
      if (known?.read !== read || known.written !== written) this.#traffic.set(client, { read, written, since: now, isSuspect: false });
      else if (now - known.since >= CONNECTION_SILENCE_MS) isSilent = true;
    }
    if (isSilent && !this.#isQuerying) void this.#checkBackends(now, busy);
  }

  async #checkBackends(now: number, busy: ReadonlySet<pg.Client>): Promise<void> {
    this.#isQuerying = true;
    try {
      const silent = [...this.#traffic].filter(([, { since }]) => now - since >= CONNECTION_SILENCE_MS);
      const backends = (await this.dependencies.query(BACKENDS, [[...busy].map(pidOf).filter((pid) => pid !== null)])) as Backend[];
      const answeredAt = performance.now();
      const working = new Map(backends.map(({ pid, isWorking }) => [pid, isWorking]));
      for (const [client, traffic] of silent) {
        // Traffic during the query has replaced the entry.
        if (this.#traffic.get(client) !== traffic || isMoving(client, traffic)) continue;
        // A backend that is not in the list is gone, unless PostgreSQL knows none of them.
        const isWorking = working.get(pidOf(client) ?? 0) ?? working.size === 0;
        if (isWorking) traffic.isSuspect = false;
        else if (traffic.isSuspect && answeredAt - traffic.since > MIN_SILENCE_RATIO * (answeredAt - now)) this.#close(client);
        else traffic.isSuspect = true;
      }
    } catch (failure) {
      // The breaker detects an outage of PostgreSQL as a whole.
      this.dependencies.log.debug({ err: failure }, 'PostgreSQL does not say which connections it works for');
    } finally {
      this.#isQuerying = false;
    }
  }

  /** Closes a connection: its statement fails at once, and the pool replaces it. */
  #close(client: pg.Client): void {
    this.#traffic.delete(client);
    this.dependencies.log.warn({ backend: pidOf(client) }, 'a database connection fell silent and is replaced');
    client.end().catch(() => {});
  }
}

function isMoving(client: pg.Client, { read, written }: Traffic): boolean {
  const { readyForQuery, connection } = internalsOf(client);
  return readyForQuery || connection.stream.bytesRead !== read || connection.stream.bytesWritten !== written;
}

/** The number of a connection's backend; null before it is known. */
export function pidOf(client: pg.Client): number | null {
  return internalsOf(client).processID;
}

function internalsOf(client: pg.Client): ClientInternals {
  return client as unknown as ClientInternals;
}
