import type { Logger } from './logger.ts';

/** The least time between two lines about the same cause: the causes of two servers may alternate. */
const LINES_INTERVAL_MS = 60_000;

/**
 * Logs the outages of a dependency: one line when an outage begins, one when its cause changes, and one when it ends. A new cause
 * counts only after two attempts in a row have failed for it, because each of several addresses may fail for a cause of its own.
 */
export class OutageLog {
  /** The cause of the last line; null while there is no outage. */
  #logged: string | null = null;
  #latest: string | null = null;
  /** When each cause of this outage had its last line. */
  readonly #loggedAt = new Map<string, number>();

  constructor(
    private readonly dependency: string,
    private readonly log: Logger,
  ) {}

  get isAway(): boolean {
    return this.#logged !== null;
  }

  recordFailure(failure: unknown): void {
    const cause = causeOf(failure);
    const now = performance.now();
    const isRecent = now - (this.#loggedAt.get(cause) ?? Number.NEGATIVE_INFINITY) < LINES_INTERVAL_MS;
    const isChange = cause !== this.#logged && cause === this.#latest && !isRecent;
    this.#latest = cause;
    if (this.#logged !== null && !isChange) return;
    const message = this.#logged === null ? 'a dependency is away' : 'a dependency is away by another cause';
    this.#logged = cause;
    this.#loggedAt.set(cause, now);
    this.log.warn({ dependency: this.dependency, err: failure }, message);
  }

  recordReply(): void {
    if (this.#logged === null) return;
    this.#logged = null;
    this.#latest = null;
    this.#loggedAt.clear();
    this.log.warn({ dependency: this.dependency }, 'a dependency is back');
  }
}

/** The code of a failure, or the word with which an error of Redis begins; none for silence, however it is noticed. */
function causeOf(failure: unknown): string {
  const { code, message, cause } = failure as { code?: unknown; message?: unknown; cause?: unknown };
  if (typeof code === 'string') return code;
  return /^[A-Z]+(?= )/.exec(String(message))?.[0] ?? (cause instanceof Error ? causeOf(cause) : '');
}
