import { setTimeout as sleep } from 'node:timers/promises';
import { withTimeout } from '../kernel/timeout.ts';
import type { Logger } from './logger.ts';
import { OutageLog } from './outagelog.ts';

interface BreakerSettings {
  /** Names the dependency in the log. */
  readonly name: string;
  /** Resolves when the dependency answers. */
  readonly probe: () => Promise<unknown>;
  /** The timeout of a probe. */
  readonly deadlineMs: number;
  /** The pause between a failed probe and the next one. */
  readonly intervalMs: number;
  readonly onOpen?: () => void;
  readonly log: Logger;
}

/**
 * A circuit breaker that probes its dependency: while it is open, requests fail at once instead of each waiting for a timeout.
 * The first probe that succeeds closes it.
 */
export class Breaker {
  readonly #outage: OutageLog;
  #isProbing = false;
  #isStopped = false;

  constructor(private readonly settings: BreakerSettings) {
    this.#outage = new OutageLog(settings.name, settings.log);
  }

  get isOpen(): boolean {
    return this.#outage.isAway;
  }

  /** Opens at once, after a failure that is an outage. */
  open(failure: unknown): void {
    this.#open(failure);
    this.startProbing();
  }

  /** Starts probing, after a failure that may mean an outage. Without effect while it is probing. */
  startProbing(): void {
    if (!this.#isProbing && !this.#isStopped) void this.#probeUntilSuccess();
  }

  stop(): void {
    this.#isStopped = true;
  }

  async #probeUntilSuccess(): Promise<void> {
    this.#isProbing = true;
    while (!this.#isStopped && !(await this.#probeOnce())) await sleep(this.settings.intervalMs, undefined, { ref: false });
    this.#isProbing = false;
  }

  async #probeOnce(): Promise<boolean> {
    const { probe, deadlineMs } = this.settings;
    const reply = probe();
    try {
      await withTimeout(reply, deadlineMs);
      this.#outage.recordReply();
      return true;
    } catch (failure) {
      this.#open(failure);
      // The next probe waits until this one has ended, however late: otherwise they would pile up.
      await reply.catch(() => {});
      return false;
    }
  }

  #open(failure: unknown): void {
    if (this.#isStopped) return;
    const isNew = !this.isOpen;
    this.#outage.recordFailure(failure);
    if (isNew) this.settings.onOpen?.();
  }
}
