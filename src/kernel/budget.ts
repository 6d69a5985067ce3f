/** The owner of memory that can be filled again, and is evicted where there is no room for it. */
export interface Evictable {
  evict(): void;
}

/** A bound for the memory of many owners together. Beyond it, the least recently used owner is evicted. */
export class MemoryBudget {
  readonly #held = new Map<Evictable, number>();
  #bytes = 0;

  constructor(private readonly maxBytes: number) {}

  /** The bytes that are held now. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Sets the bytes of an owner, which becomes the most recent one. The most recent owner is not evicted, whatever its size. */
  hold(owner: Evictable, bytes: number): void {
    this.release(owner);
    if (bytes === 0) return;
    this.#held.set(owner, bytes);
    this.#bytes += bytes;
    for (const other of this.#held.keys()) {
      if (this.#bytes <= this.maxBytes || other === owner) return;
      this.release(other);
      other.evict();
    }
  }

  /** Removes an owner that holds nothing any more. */
  release(owner: Evictable): void {
    this.#bytes -= this.#held.get(owner) ?? 0;
    this.#held.delete(owner);
  }
}
