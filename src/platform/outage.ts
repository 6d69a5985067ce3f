import type { Logger } from './logger.ts';

/**
 * What the log says of the outages of a dependency: one line when an outage begins, one for each cause that takes the place of the
 * one before, and one when it ends. Two attempts in a row have to fail by a new cause: of several addresses each may have its own.
 */
export class OutageLog {
  /** The cause of the last line; null while there is no outage. */
  #told: string | null = null;
  #latest: string | null = null;

  constructor(
    private readonly dependency: string,
    private readonly log: Logger,
  ) {}

  get isAway(): boolean {
    return this.#told !== null;
  }

  noteFailure(failure: unknown): void {
    const cause = causeOf(failure);
    const isChange = cause !== this.#told && cause === this.#latest;
    this.#latest = cause;
    if (this.#told !== null && !isChange) return;
    const message = this.#told === null ? 'a dependency is away' : 'a dependency is away by another cause';
    this.#told = cause;
    this.log.warn({ dependency: this.dependency, err: failure }, message);
  }

  noteAnswer(): void {
    if (this.#told === null) return;
    this.#told = null;
    this.#latest = null;
    this.log.warn({ dependency: this.dependency }, 'a dependency is back');
  }
}

/** The code of a failure, or the word with which an error of Redis begins; none for silence, however it is noticed. */
function causeOf(failure: unknown): string {
  const { code, message, cause } = failure as { code?: unknown; message?: unknown; cause?: unknown };
  if (typeof code === 'string') return code;
  return /^[A-Z]+(?= )/.exec(String(message))?.[0] ?? (cause instanceof Error ? causeOf(cause) : '');
}
