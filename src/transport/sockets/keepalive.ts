const SWEEP_INTERVAL_MS = 1_000;

interface Swept {
  /** Called every second. */
  keepAlive(): void;
}

/** The open connections, kept alive by one timer, which runs while there are any. */
export class KeepAlive<Connection extends Swept> {
  readonly #connections = new Set<Connection>();
  #timer: NodeJS.Timeout | null = null;

  get connections(): ReadonlySet<Connection> {
    return this.#connections;
  }

  add(connection: Connection): void {
    this.#connections.add(connection);
    this.#timer ??= setInterval(() => this.#sweep(), SWEEP_INTERVAL_MS);
  }

  delete(connection: Connection): void {
    this.#connections.delete(connection);
    if (this.#connections.size > 0 || !this.#timer) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }

  #sweep(): void {
    for (const connection of this.#connections) connection.keepAlive();
  }
}
