import { ArrivalTime } from '../kernel/arrivaltime.ts';

/** The lines at once, and how long each takes to be allowed again: 20 a second. */
const MAX_LINES = 1_000;
const LINE_MS = 50;

/** Limits the lines of the log that anybody can cause: nobody may fill a disk with them, or push out of a log what else is in it. */
export class LineLimit {
  readonly #nextArrival = new ArrivalTime();
  #omitted = 0;

  /** How many lines were left out since the last one; null if this one is to be left out, too. */
  spend(): number | null {
    if (this.#nextArrival.aheadMs > (MAX_LINES - 1) * LINE_MS) {
      this.#omitted += 1;
      return null;
    }
    this.#nextArrival.advance(LINE_MS);
    const omitted = this.#omitted;
    this.#omitted = 0;
    return omitted;
  }
}
