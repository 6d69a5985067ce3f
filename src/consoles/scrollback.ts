const FIRST_BYTES = 4 * 1024;

/**
 * The last bytes of an output, at most `capacity` of them. Every byte has a position, counted from the beginning of the
 * session, by which a client that comes back names the next byte that it needs.
 */
export class Scrollback {
  /** A ring buffer. It grows up to the capacity before anything in it is overwritten. */
  #ring = Buffer.alloc(0);
  #kept = 0;
  #write = 0;
  #end: number;

  constructor(
    private readonly capacity: number,
    end = 0,
  ) {
    this.#end = end;
  }

  /** The position of the oldest byte that is kept. */
  get start(): number {
    return this.#end - this.#kept;
  }

  /** The position of the next byte. */
  get end(): number {
    return this.#end;
  }

  append(bytes: Uint8Array): void {
    this.#end += bytes.length;
    const last = bytes.length > this.capacity ? bytes.subarray(bytes.length - this.capacity) : bytes;
    if (this.#kept + last.length > this.#ring.length && this.#ring.length < this.capacity) this.#grow(this.#kept + last.length);
    const size = this.#ring.length;
    if (size === 0) return;
    const untilEdge = last.subarray(0, size - this.#write);
    this.#ring.set(untilEdge, this.#write);
    this.#ring.set(last.subarray(untilEdge.length), 0);
    this.#write = (this.#write + last.length) % size;
    this.#kept = Math.min(size, this.#kept + last.length);
  }

  /** A copy of the output from a position on, which lies between `start` and `end`. */
  readFrom(position: number): Buffer {
    const count = this.#end - position;
    const from = this.#write - count;
    if (from >= 0) return Buffer.from(this.#ring.subarray(from, this.#write));
    return Buffer.concat([this.#ring.subarray(from + this.#ring.length), this.#ring.subarray(0, this.#write)]);
  }

  /** Nothing has been overwritten yet: the output begins at the beginning of the ring. */
  #grow(needed: number): void {
    const ring = Buffer.alloc(Math.min(this.capacity, Math.max(needed, this.#ring.length * 2, FIRST_BYTES)));
    ring.set(this.#ring.subarray(0, this.#kept));
    this.#ring = ring;
    this.#write = this.#kept;
  }
}
