import type { Logger } from './logger.ts';

/** How long a statement, or the wait for a connection, may take before the log has a line about it. */
const SLOW_MS = 1_000;
/** The lines about waits in a second: when the connections are exhausted, everybody waits. */
const WAIT_LINES_INTERVAL_MS = 1_000;

/** Logs what took long at the database: the text of a statement, which is the server's own, but none of its values. */
export class SlowLog {
  #lastWaitAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly log: Logger) {}

  /** `startedAt`: when it was sent, by `performance.now()`; null if it never was. */
  reportStatement(text: string, startedAt: number | null): void {
    const duration = startedAt === null ? 0 : performance.now() - startedAt;
    if (duration < SLOW_MS) return;
    this.log.warn({ statement: text.replace(/\s+/g, ' ').trim(), duration_ms: Math.round(duration) }, 'a slow statement');
  }

  /** `describe` returns what the line says about the wait besides. */
  reportWait(waitedMs: number, describe: () => object, message: string): void {
    const now = performance.now();
    if (waitedMs < SLOW_MS || now - this.#lastWaitAt < WAIT_LINES_INTERVAL_MS) return;
    this.#lastWaitAt = now;
    this.log.warn({ ...describe(), duration_ms: Math.round(waitedMs) }, message);
  }
}
