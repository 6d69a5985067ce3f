import pg from 'pg';
import { withTimeout } from '../kernel/timeout.ts';
import { withSession } from './sessionoptions.ts';

/** The timeout of a probe's statement; together with the silence before it (`SERVER_SILENCE_MS`) it stays below 1.5 s. */
export const PROBE_DEADLINE_MS = 700;

/**
 * Probes PostgreSQL on a dedicated connection, which is opened when it is first needed and then stays open: on a machine under
 * load, connecting may take longer than a server may be silent.
 */
export class Probe {
  #client: pg.Client | null = null;
  #isClosed = false;
  /** The end of the last statement: the next one waits for it. */
  #last: Promise<unknown> = Promise.resolve();

  /** `options` are the settings of its session. */
  constructor(
    private readonly url: string,
    private readonly options: string,
  ) {}

  /**
   * The rows of a statement; none where the server answers with an error: one that rejects new connections may go on serving those that
   * are open. Throws where it does not answer, or reports an outage. `isAlone`: no other connection is open, so it is an outage, too,
   * that a new one is rejected. `isRejected`: an attempt to connect was, so that the probe's own connection, which is open, says nothing of
   * new ones; one of them takes its place.
   */
  query(text: string, values?: unknown[], { isAlone, isRejected } = { isAlone: false, isRejected: false }): Promise<unknown[]> {
    const rows = this.#last.then(() => this.#run(text, values, isAlone, isRejected));
    this.#last = rows.catch(() => {});
    return rows;
  }

  async #run(text: string, values: unknown[] | undefined, isAlone: boolean, isRejected: boolean): Promise<unknown[]> {
    if (isAlone && isRejected) await this.#open();
    let isOpen = false;
    try {
      const client = this.#client ?? (await this.#open());
      isOpen = true;
      return (await withTimeout(client.query(text, values), PROBE_DEADLINE_MS)).rows;
    } catch (failure) {
      this.#disconnect();
      if (!isReply(failure) || (isAlone && !isOpen)) throw failure;
      return [];
    }
  }

  /** Closes the connection, also one that is being opened. After that, statements are rejected. */
  close(): void {
    this.#isClosed = true;
    this.#disconnect();
  }

  #disconnect(): void {
    const client = this.#client;
    this.#client = null;
    client?.end().catch(() => {});
  }

  #requireOpen(): void {
    if (this.#isClosed) throw new Error('the probe is closed');
  }

  async #open(): Promise<pg.Client> {
    this.#requireOpen();
    const client = new pg.Client({
      connectionTimeoutMillis: PROBE_DEADLINE_MS,
      // It is idle for days: whatever stands in between may forget a connection on which nothing passes.
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
      ...withSession(this.url, this.options),
      application_name: 'portico probe',
    });
    client.on('error', () => {});
    client.once('end', () => {
      if (this.#client === client) this.#client = null;
    });
    await client.connect();
    this.#disconnect();
    this.#client = client;
    if (this.#isClosed) this.#disconnect();
    this.#requireOpen();
    return client;
  }
}

/**
 * Whether an error is a reply of a PostgreSQL that serves: not of one that stops or has no such database, of a pooler that has lost it,
 * or of the socket.
 */
export function isReply(failure: unknown): boolean {
  return failure instanceof pg.DatabaseError && !/^(57P|08|3D000)/.test(failure.code ?? '');
}
