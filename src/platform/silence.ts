import type pg from 'pg';
import type { Logger } from './logger.ts';

/** How long a connection may be silent, while something is asked of it, before PostgreSQL is asked about it. */
const SILENCE_MS = 250;
/** How many times as long as PostgreSQL takes to answer that: where it is short of CPU, it may not have begun yet. */
const PATIENCE = 20;

/** The properties of a driver's client that its types leave out. */
interface Wire {
  readonly readyForQuery: boolean;
  readonly processID: number | null;
  readonly connection: { readonly stream: { readonly bytesRead: number; readonly bytesWritten: number } };
}

/** The bytes that had passed on a connection at the last check. */
interface Traffic {
  readonly read: number;
  readonly written: number;
  readonly since: number;
  /** PostgreSQL has said once, since then, that it is not working for this connection. */
  isSuspect: boolean;
}

interface Backend {
  readonly pid: number;
  readonly isWorking: boolean;
}

/** A backend that waits for its client to read counts as idle. */
const BACKENDS = `
  SELECT pid, coalesce(state NOT LIKE 'idle%', true) AND wait_event IS DISTINCT FROM 'ClientWrite' AS "isWorking"
  FROM pg_stat_activity WHERE pid = ANY ($1)`;

/**
 * Finds dead connections among living ones: a statement waits for an answer, nothing arrives, and PostgreSQL, asked twice on
 * another connection, is not working on it. A statement that merely takes long is left alone, and so is every connection
 * that PostgreSQL does not know, as behind a pooler: there only the deadlines count.
 */
export class SilenceWatch {
  readonly #traffic = new Map<pg.Client, Traffic>();
  #isAsking = false;

  constructor(private readonly parts: { readonly ask: (sql: string, values: unknown[]) => Promise<unknown[]>; readonly log: Logger }) {}

  /** Called at intervals with the connections that are in use. */
  check(busy: ReadonlySet<pg.Client>): void {
    const now = performance.now();
    for (const client of this.#traffic.keys()) if (!busy.has(client)) this.#traffic.delete(client);
    let isSilent = false;
    for (const client of busy) {
      const { readyForQuery, connection } = wireOf(client);
      if (readyForQuery) {
        this.#traffic.delete(client);
        continue;
      }
      const { bytesRead: read, bytesWritten: written } = connection.stream;
      const known = this.#traffic.get(client);
      if (known?.read !== read || known.written !== written) this.#traffic.set(client, { read, written, since: now, isSuspect: false });
      else if (now - known.since >= SILENCE_MS) isSilent = true;
    }
    if (isSilent && !this.#isAsking) void this.#probe(now, busy);
  }

  async #probe(now: number, busy: ReadonlySet<pg.Client>): Promise<void> {
    this.#isAsking = true;
    try {
      const silent = [...this.#traffic].filter(([, { since }]) => now - since >= SILENCE_MS);
      const backends = (await this.parts.ask(BACKENDS, [[...busy].map(pidOf).filter((pid) => pid !== null)])) as Backend[];
      const answeredAt = performance.now();
      const working = new Map(backends.map(({ pid, isWorking }) => [pid, isWorking]));
      for (const [client, traffic] of silent) {
        // Traffic since then has replaced the entry.
        if (this.#traffic.get(client) !== traffic || isMoving(client, traffic)) continue;
        // A backend that is not in the list has gone, unless PostgreSQL knows none of them.
        const isWorking = working.get(pidOf(client) ?? 0) ?? working.size === 0;
        if (isWorking) traffic.isSuspect = false;
        else if (traffic.isSuspect && answeredAt - traffic.since > PATIENCE * (answeredAt - now)) this.#giveUp(client);
        else traffic.isSuspect = true;
      }
    } catch (failure) {
      // The breaker finds out whether PostgreSQL is there at all.
      this.parts.log.debug({ err: failure }, 'PostgreSQL does not say which connections it works for');
    } finally {
      this.#isAsking = false;
    }
  }

  /** Closes a connection: its statement fails at once, and the pool replaces it. */
  #giveUp(client: pg.Client): void {
    this.#traffic.delete(client);
    this.parts.log.warn({ backend: pidOf(client) }, 'a database connection fell silent and is replaced');
    client.end().catch(() => {});
  }
}

function isMoving(client: pg.Client, { read, written }: Traffic): boolean {
  const { readyForQuery, connection } = wireOf(client);
  return readyForQuery || connection.stream.bytesRead !== read || connection.stream.bytesWritten !== written;
}

function pidOf(client: pg.Client): number | null {
  return wireOf(client).processID;
}

function wireOf(client: pg.Client): Wire {
  return client as unknown as Wire;
}
