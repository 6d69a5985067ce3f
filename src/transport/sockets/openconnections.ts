const SWEEP_INTERVAL_MS = 1_000;

interface Swept {
  /** Called every second. */
  keepAlive(): void;
}

/** The open connections, kept alive by one timer, which runs while there are any. */
export class OpenConnections<Connection extends Swept> {
  readonly #all = new Set<Connection>();
  #timer: NodeJS.Timeout | null = null;

  get all(): ReadonlySet<Connection> {
    return this.#all;
  }

  add(connection: Connection): void {
    this.#all.add(connection);
    this.#timer ??= setInterval(() => this.#sweep(), SWEEP_INTERVAL_MS);
  }

  delete(connection: Connection): void {
    this.#all.delete(connection);
    if (this.#all.size > 0 || !this.#timer) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }

  #sweep(): void {
    for (const connection of this.#all) connection.keepAlive();
  }
}
