/** The count of a key in its window, and the time until the window ends. */
export interface WindowCount {
  readonly count: number;
  readonly msLeft: number;
}

interface Window {
  count: number;
  readonly endsAt: number;
}

/** Bounds the memory: about 15 MiB of addresses, which clients can make up. */
const MAX_WINDOWS = 100_000;

/**
 * Fixed-window counters by key; a key's window begins with its first count. Unlike rate-limiter-flexible's `RateLimiterMemory`,
 * which holds a timer for each key and any number of keys, they are bounded. The clock is monotonic, so that setting the time
 * does not lengthen a window. Windows are kept in two generations, and the older one is dropped when the newer one is as old
 * as a window is long: all windows of the older one have ended by then. With more keys than fit, it is dropped earlier, and
 * its keys start new windows.
 */
export class FixedWindowCounters {
  readonly #windowMs: number;
  #current = new Map<string, Window>();
  #previous = new Map<string, Window>();
  #currentSince = performance.now();

  constructor(
    windowSeconds: number,
    private readonly maxWindows = MAX_WINDOWS,
  ) {
    this.#windowMs = windowSeconds * 1000;
  }

  get size(): number {
    return this.#current.size + this.#previous.size;
  }

  /** Adds to the key's count, and returns the new count. */
  count(key: string, by = 1): WindowCount {
    const now = performance.now();
    if (now - this.#currentSince >= this.#windowMs || this.#current.size >= this.maxWindows / 2) {
      this.#previous = this.#current;
      this.#current = new Map();
      this.#currentSince = now;
    }
    const window = this.#find(key, now) ?? this.#open(key, now);
    window.count += by;
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
