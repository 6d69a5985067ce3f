/** The owner of memory that can be filled again, so that it may be evicted. */
export interface Evictable {
  evict(): void;
}

/** A bound in bytes for the memory of many owners together. Beyond it, the least recently used owner is evicted. */
export class MemoryBudget {
  readonly #bytesByOwner = new Map<Evictable, number>();
  #bytes = 0;

  constructor(private readonly maxBytes: number) {}

  get bytes(): number {
    return this.#bytes;
  }

  /** Sets the bytes that an owner uses, and makes it the most recent owner, which is never evicted. */
  reserve(owner: Evictable, bytes: number): void {
    this.release(owner);
    if (bytes === 0) return;
    this.#bytesByOwner.set(owner, bytes);
    this.#bytes += bytes;
    for (const other of this.#bytesByOwner.keys()) {
      if (this.#bytes <= this.maxBytes || other === owner) return;
      this.release(other);
      other.evict();
    }
  }

  release(owner: Evictable): void {
    this.#bytes -= this.#bytesByOwner.get(owner) ?? 0;
    this.#bytesByOwner.delete(owner);
  }
}
