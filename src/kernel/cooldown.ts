/** Lets something happen, such as a line in the log, at most once in an interval. */
export class Cooldown {
  #endsAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly intervalMs: number) {}

  /** Whether it may happen now; then the interval begins anew. */
  begin(): boolean {
    const now = performance.now();
    if (now < this.#endsAt) return false;
    this.#endsAt = now + this.intervalMs;
    return true;
  }
}
