/** The theoretical arrival time of the next of many (messages, lines), by which the generic cell rate algorithm (GCRA) limits a rate. */
export class ArrivalTime {
  /** By `performance.now()`, in whole milliseconds. */
  #ms = 0;

  /** Counts what is due in as many milliseconds. */
  advance(milliseconds: number): void {
    this.#ms = Math.max(this.#ms, Math.round(performance.now())) + milliseconds;
  }

  /** By how many milliseconds it is ahead of the clock: what has been used of the burst. At 0 or below, the whole burst is available. */
  get aheadMs(): number {
    return this.#ms - Math.round(performance.now());
  }
}
