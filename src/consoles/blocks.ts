const SMALL = 4 * 1024;
const LARGE = 64 * 1024;
/** How many are kept for use again: as many as may be on their way to a client. */
const MOST = 10;

/**
 * Memory to read into, used again and again: whoever streams would otherwise leave a trail of garbage as long as the
 * stream. A console that says little takes little.
 */
export class Blocks {
  readonly #free: Uint8Array[] = [];
  #isBusy = false;

  take(): Uint8Array {
    return (this.#isBusy && this.#free.pop()) || Buffer.allocUnsafeSlow(this.#isBusy ? LARGE : SMALL);
  }

  /** A block of which so much was used, and which nobody needs any more. */
  giveBack(block: Uint8Array, used: number): void {
    if (used === block.length) this.#isBusy = true;
    else if (used < SMALL) this.#calm();
    if (this.#isBusy && block.length === LARGE && this.#free.length < MOST) this.#free.push(block);
  }

  #calm(): void {
    this.#isBusy = false;
    this.#free.length = 0;
  }
}
