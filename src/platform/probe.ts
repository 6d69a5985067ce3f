import pg from 'pg';
import { withinTime } from './breaker.ts';

/** How long PostgreSQL may take for an empty statement; together with the silence before it stays below 1.5 s. */
export const PROBE_DEADLINE_MS = 700;

/**
 * A connection of its own, kept open once it was needed: on a machine under load, making one may take longer than a
 * server should be silent.
 */
export class Probe {
  #client: pg.Client | null = null;
  #connecting: Promise<pg.Client> | null = null;

  constructor(private readonly url: string) {}

  /** Resolves when the server answers, also with an error, unless that says that the server is not there. */
  async ask(): Promise<void> {
    await this.query('SELECT');
  }

  /** The rows of a statement; none where the server answers with an error. */
  async query(text: string, values?: unknown[]): Promise<unknown[]> {
    try {
      const client = this.#client ?? (await this.#connect());
      return (await withinTime(client.query(text, values), PROBE_DEADLINE_MS)).rows;
    } catch (failure) {
      this.close();
      const { code } = failure as { code?: unknown };
      const isAnswer = typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && !/^(57P|08)/.test(code);
      if (!isAnswer) throw failure;
      return [];
    }
  }

  close(): void {
    const client = this.#client;
    this.#client = null;
    client?.end().catch(() => {});
  }

  #connect(): Promise<pg.Client> {
    this.#connecting ??= this.#open().finally(() => {
      this.#connecting = null;
    });
    return this.#connecting;
  }

  async #open(): Promise<pg.Client> {
    const client = new pg.Client({
      connectionString: this.url,
      connectionTimeoutMillis: PROBE_DEADLINE_MS,
      application_name: 'portico probe',
    });
    client.on('error', () => {});
    client.once('end', () => {
      if (this.#client === client) this.#client = null;
    });
    await client.connect();
    this.#client = client;
    return client;
  }
}
