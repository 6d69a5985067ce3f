import type { Logger } from './logger.ts';

interface BreakerSettings {
  /** Names the dependency in the log. */
  readonly name: string;
  /** Probes the dependency. */
  readonly ask: () => Promise<unknown>;
  /** How long an answer may take. */
  readonly deadlineMs: number;
  /** How long to wait after a bad answer before the next question. */
  readonly intervalMs: number;
  readonly onOpen?: () => void;
  readonly log: Logger;
}

/**
 * A circuit breaker, which probes its dependency by itself: while it is open, requests fail at once instead of waiting one by
 * one. It closes at the first good answer to a probe.
 */
export class Breaker {
  #isOpen = false;
  #isAsking = false;
  #isStopped = false;

  constructor(private readonly settings: BreakerSettings) {}

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Starts probing, after a failure that may mean an outage. */
  suspect(): void {
    if (!this.#isAsking && !this.#isStopped) void this.#askUntilGood();
  }

  stop(): void {
    this.#isStopped = true;
  }

  async #askUntilGood(): Promise<void> {
    this.#isAsking = true;
    while (!this.#isStopped && !(await this.#askOnce())) await rest(this.settings.intervalMs);
    this.#isAsking = false;
  }

  async #askOnce(): Promise<boolean> {
    const { ask, deadlineMs } = this.settings;
    const answer = ask();
    try {
      await withinTime(answer, deadlineMs);
      this.#close();
      return true;
    } catch (failure) {
      this.#open(failure);
      // The next probe waits for the end of this one, however late: they would pile up.
      await answer.catch(() => {});
      return false;
    }
  }

  #open(failure: unknown): void {
    if (this.#isOpen || this.#isStopped) return;
    this.#isOpen = true;
    const { name, log, onOpen } = this.settings;
    log.warn({ dependency: name, err: failure }, 'a dependency is away');
    onOpen?.();
  }

  #close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.settings.log.warn({ dependency: this.settings.name }, 'a dependency is back');
  }
}

/** The answer, or a rejection when it is late. A process that was busy reads first what has arrived. */
export function withinTime<Answer>(answer: Promise<Answer>, ms: number): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => setImmediate(() => reject(new Error(`no answer within ${ms} ms`))), ms);
    answer.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

function rest(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}
