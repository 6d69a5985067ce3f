import pg from 'pg';
import { withTimeout } from './breaker.ts';

/** The timeout of an empty statement; together with the silence before it (`SERVER_SILENCE_MS`) it stays below 1.5 s. */
export const PROBE_DEADLINE_MS = 700;

/**
 * Probes PostgreSQL on a dedicated connection, which is opened when it is first needed and then stays open: on a machine under
 * load, connecting may take longer than a server may be silent.
 */
export class Probe {
  #client: pg.Client | null = null;
  #connecting: Promise<pg.Client> | null = null;

  constructor(private readonly url: string) {}

  /**
   * The rows of a statement; none where the server answers with an error. Throws where it does not answer, reports an outage,
   * or refuses the role or the database.
   */
  async query(text: string, values?: unknown[]): Promise<unknown[]> {
    try {
      const client = this.#client ?? (await this.#connect());
      return (await withTimeout(client.query(text, values), PROBE_DEADLINE_MS)).rows;
    } catch (failure) {
      this.close();
      const { code } = failure as { code?: unknown };
      const isAnswer = typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && !/^(57P|08|28|3D)/.test(code);
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
