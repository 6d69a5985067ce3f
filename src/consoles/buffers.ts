const SMALL = 4 * 1024;
const LARGE = 64 * 1024;
/** How many buffers are kept for reuse: as many as may be on their way to a client. */
const MOST = 10;

/**
 * The read buffers of one console, reused: a stream would otherwise leave as much garbage as it has bytes. A console with
 * little output has small buffers.
 */
export class BufferPool {
  readonly #free: Uint8Array[] = [];
  #isBusy = false;

  acquire(): Uint8Array {
    return (this.#isBusy && this.#free.pop()) || Buffer.allocUnsafeSlow(this.#isBusy ? LARGE : SMALL);
  }

  /** Gives back a buffer of which `used` bytes were filled. */
  release(buffer: Uint8Array, used: number): void {
    if (used === buffer.length) this.#isBusy = true;
    else if (used < SMALL) this.#calm();
    if (this.#isBusy && buffer.length === LARGE && this.#free.length < MOST) this.#free.push(buffer);
  }

  #calm(): void {
    this.#isBusy = false;
    this.#free.length = 0;
  }
}
