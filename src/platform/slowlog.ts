import { Cooldown } from '../kernel/cooldown.ts';
import type { Logger } from './logger.ts';

/** How long a statement, a wait or an operation may take before the log has a line about it. */
const SLOW_MS = 1_000;
/** The time between two lines: when the connections are exhausted, everybody waits. */
const LINES_INTERVAL_MS = 1_000;

/** Logs what took long: of a statement its text, which is the server's own, but none of its values. */
export class SlowLog {
  readonly #lines = new Cooldown(LINES_INTERVAL_MS);

  constructor(private readonly log: Logger) {}

  /** `startedAt`: when it was sent, by `performance.now()`; null if it never was. */
  reportStatement(text: string, startedAt: number | null): void {
    const duration = startedAt === null ? 0 : performance.now() - startedAt;
    if (duration < SLOW_MS) return;
    this.log.warn({ statement: text.replace(/\s+/g, ' ').trim(), duration_ms: Math.round(duration) }, 'a slow statement');
  }

  /** Logs what took long, at most one line a second. `describe` returns what the line says besides. */
  report(durationMs: number, describe: () => object, message: string, level: 'info' | 'warn' = 'warn'): void {
    if (durationMs < SLOW_MS || !this.#lines.begin()) return;
    this.log[level]({ ...describe(), duration_ms: Math.round(durationMs) }, message);
  }
}
