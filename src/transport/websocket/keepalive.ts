const SWEEP_INTERVAL_MS = 1_000;

interface Kept {
  /** Called every second. */
  keepAlive(): void;
}

/** All that is open, looked after by one timer, which runs while there is anything. */
export class KeepAlive<Connection extends Kept> {
  readonly #open = new Set<Connection>();
  #timer: NodeJS.Timeout | null = null;

  get open(): ReadonlySet<Connection> {
    return this.#open;
  }

  add(connection: Connection): void {
    this.#open.add(connection);
    this.#timer ??= setInterval(() => this.#sweep(), SWEEP_INTERVAL_MS);
  }

  delete(connection: Connection): void {
    this.#open.delete(connection);
    if (this.#open.size > 0 || !this.#timer) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }

  #sweep(): void {
    for (const connection of this.#open) connection.keepAlive();
  }
}
