const SMALL_BYTES = 4 * 1024;
const LARGE_BYTES = 64 * 1024;
/** The number of buffers kept for reuse: one that is read into, and one on its way to a client. */
const MAX_FREE = 2;

/**
 * A pool of the read buffers of one console, so that a stream does not leave as much garbage as it has bytes. A console with
 * little output has small buffers.
 */
export class BufferPool {
  readonly #free: Uint8Array[] = [];
  #isBusy = false;

  acquire(): Uint8Array {
    return (this.#isBusy && this.#free.pop()) || Buffer.allocUnsafeSlow(this.#isBusy ? LARGE_BYTES : SMALL_BYTES);
  }

  /** Gives back a buffer of which `used` bytes were filled. */
  release(buffer: Uint8Array, used: number): void {
    if (used === buffer.length) this.#isBusy = true;
    else if (used < SMALL_BYTES) {
      this.#isBusy = false;
      this.#free.length = 0;
    }
    if (this.#isBusy && buffer.length === LARGE_BYTES && this.#free.length < MAX_FREE) this.#free.push(buffer);
  }
}
