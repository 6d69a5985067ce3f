/** The count of a key in its window, and how long the window still lasts. */
export interface Spent {
  readonly count: number;
  readonly msLeft: number;
}

interface Window {
  count: number;
  readonly endsAt: number;
}

/** The windows in memory at once: about 15 MiB of addresses, which clients can make up. */
const MAX_WINDOWS = 100_000;

/**
 * Fixed-window counters by key; a key's window begins with its first count. The clock is monotonic, so that setting the time
 * makes no window longer. There are two generations: every window of the older one began before the newer generation, so when
 * that is as old as a window is long, the older one is dropped. Where more keys come than fit, it is dropped before, and its
 * keys begin anew.
 */
export class Windows {
  readonly #windowMs: number;
  #current = new Map<string, Window>();
  #previous = new Map<string, Window>();
  #begunAt = performance.now();

  constructor(
    windowSeconds: number,
    private readonly maxWindows = MAX_WINDOWS,
  ) {
    this.#windowMs = windowSeconds * 1000;
  }

  get size(): number {
    return this.#current.size + this.#previous.size;
  }

  /** One more for the key; the count includes it. */
  count(key: string): Spent {
    const now = performance.now();
    if (now - this.#begunAt >= this.#windowMs || this.#current.size >= this.maxWindows / 2) {
      this.#previous = this.#current;
      this.#current = new Map();
      this.#begunAt = now;
    }
    const window = this.#find(key, now) ?? this.#open(key, now);
    window.count += 1;
    return { count: window.count, msLeft: window.endsAt - now };
  }

  #find(key: string, now: number): Window | null {
    const window = this.#current.get(key) ?? this.#previous.get(key);
    return window && window.endsAt > now ? window : null;
  }

  #open(key: string, now: number): Window {
    const window = { count: 0, endsAt: now + this.#windowMs };
    this.#current.set(key, window);
    return window;
  }
}
