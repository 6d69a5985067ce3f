const SWEEP_INTERVAL_MS = 1_000;

interface Kept {
  /** Called every second. */
  keepAlive(): void;
}

/** The open connections, kept alive by one timer, which runs while there are any. */
export class KeepAlive<SocketConnection extends Kept> {
  readonly #open = new Set<SocketConnection>();
  #timer: NodeJS.Timeout | null = null;

  get open(): ReadonlySet<SocketConnection> {
    return this.#open;
  }

  add(connection: SocketConnection): void {
    this.#open.add(connection);
    this.#timer ??= setInterval(() => this.#sweep(), SWEEP_INTERVAL_MS);
  }

  delete(connection: SocketConnection): void {
    this.#open.delete(connection);
    if (this.#open.size > 0 || !this.#timer) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }

  #sweep(): void {
    for (const connection of this.#open) connection.keepAlive();
  }
}
