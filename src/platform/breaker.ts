import type { Log } from './log.ts';

interface BreakerSettings {
  /** Names the dependency in the log. */
  readonly name: string;
  /** Asks the dependency for a sign of life. */
  readonly ask: () => Promise<unknown>;
  /** How long an answer may take. */
  readonly deadlineMs: number;
  /** How long to wait after a bad answer before the next question. */
  readonly intervalMs: number;
  readonly onOpen?: () => void;
  readonly log: Log;
}

/**
 * Finds out whether a dependency answers by asking it, once for all, so that requests need not wait for it one by one:
 * they are turned away while the breaker is open. It closes by itself at the first good answer.
 */
export class Breaker {
  readonly #settings: BreakerSettings;
  #isOpen = false;
  #isAsking = false;
  #isStopped = false;

  constructor(settings: BreakerSettings) {
    this.#settings = settings;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Something went wrong that may mean an outage. */
  suspect(): void {
    if (!this.#isAsking && !this.#isStopped) void this.#askUntilGood();
  }

  stop(): void {
    this.#isStopped = true;
  }

  async #askUntilGood(): Promise<void> {
    this.#isAsking = true;
    while (!this.#isStopped && !(await this.#askOnce())) await rest(this.#settings.intervalMs);
    this.#isAsking = false;
  }

  async #askOnce(): Promise<boolean> {
    const { ask, deadlineMs } = this.#settings;
    const answer = ask();
    try {
      await withinTime(answer, deadlineMs);
      this.#close();
      return true;
    } catch (failure) {
      this.#open(failure);
      // The next question only after the answer to this one, however late: they would pile up.
      await answer.catch(() => {});
      return false;
    }
  }

  #open(failure: unknown): void {
    if (this.#isOpen || this.#isStopped) return;
    this.#isOpen = true;
    const { name, log, onOpen } = this.#settings;
    log.warn({ dependency: name, err: failure }, 'a dependency is away');
    onOpen?.();
  }

  #close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#settings.log.warn({ dependency: this.#settings.name }, 'a dependency is back');
  }
}

/** The answer, or a rejection when it has not come in time. A process that was busy first looks at what has arrived. */
export function withinTime<Answer>(answer: Promise<Answer>, ms: number): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => setImmediate(() => reject(new Error(`no answer within ${ms} ms`))), ms);
    answer.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

function rest(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}
