const INITIAL_BYTES = 4 * 1024;

/**
 * The last bytes of a session's output, at most `capacity` of them. A position counts bytes from the beginning of the
 * session: a client that reconnects names the next byte that it needs by its position.
 */
export class Scrollback {
  /** A ring buffer. It grows up to the capacity before anything in it is overwritten. */
  #ring = Buffer.alloc(0);
  #length = 0;
  #writeIndex = 0;
  #end: number;

  constructor(
    private readonly capacity: number,
    end = 0,
  ) {
    this.#end = end;
  }

  /** The position of the oldest stored byte. */
  get start(): number {
    return this.#end - this.#length;
  }

  /** The position of the next byte. */
  get end(): number {
    return this.#end;
  }

  append(bytes: Uint8Array): void {
    this.#end += bytes.length;
    const last = bytes.length > this.capacity ? bytes.subarray(bytes.length - this.capacity) : bytes;
    if (this.#length + last.length > this.#ring.length && this.#ring.length < this.capacity) this.#grow(this.#length + last.length);
    const size = this.#ring.length;
    if (size === 0) return;
    const untilEdge = last.subarray(0, size - this.#writeIndex);
    this.#ring.set(untilEdge, this.#writeIndex);
    this.#ring.set(last.subarray(untilEdge.length), 0);
    this.#writeIndex = (this.#writeIndex + last.length) % size;
    this.#length = Math.min(size, this.#length + last.length);
  }

  /** A copy of the output from a position on, which lies between `start` and `end`. */
  readFrom(position: number): Buffer {
    const from = this.#writeIndex - (this.#end - position);
    if (from >= 0) return Buffer.from(this.#ring.subarray(from, this.#writeIndex));
    return Buffer.concat([this.#ring.subarray(from + this.#ring.length), this.#ring.subarray(0, this.#writeIndex)]);
  }

  /** Moves the output into a larger ring. No byte has been overwritten yet: the oldest one is at index 0. */
  #grow(needed: number): void {
    const ring = Buffer.alloc(Math.min(this.capacity, Math.max(needed, this.#ring.length * 2, INITIAL_BYTES)));
    ring.set(this.#ring.subarray(0, this.#length));
    this.#ring = ring;
    this.#writeIndex = this.#length;
  }
}
