import type { Socket } from 'node:net';

const SWEEP_INTERVAL_MS = 1_000;

interface BacklogParts {
  /** The bytes that may wait for one client address, and for all together. */
  readonly limits: { readonly perAddress: number; readonly inAll: number };
  /** Called with each connection that is ended, before it is. */
  readonly onEnd: () => void;
}

/** The connections of one client address with bytes that wait. */
interface Group {
  readonly address: string;
  readonly entries: Set<Entry>;
  bytes: number;
}

/** A connection with bytes that wait. */
interface Entry {
  readonly socket: Socket;
  group: Group;
  /** Kept for the connection beside what its stream has: requests, bodies, the rest of an answer. */
  held: number;
  /** All of it, as it was counted last. */
  bytes: number;
  /** How much the peer had taken then, and when it last took something. */
  taken: number;
  since: number;
  patienceMs: number;
}

const nothingYet = { held: 0, bytes: 0, patienceMs: Number.POSITIVE_INFINITY };

/** The entry is kept on the socket itself: a WeakMap costs V8 more the more connections there are. */
const key = Symbol('backlog');
type Noted = Socket & { [key]?: Entry };

/**
 * The bytes that wait in memory for peers that do not read. Beyond the bound of an address, its connection that has stalled
 * longest is ended; beyond the bound of all, such a connection of the address with the largest backlog. So clients that read
 * keep their connections, whatever others do.
 */
export class Backlog {
  readonly #parts: BacklogParts;
  readonly #groups = new Map<string, Group>();
  #bytes = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(parts: BacklogParts) {
    this.#parts = parts;
  }

  /**
   * To be called right after a write to a socket: it counts what the kernel did not take, which nearly always is nothing.
   * A socket whose peer takes none of it for as long as `patienceMs` is ended.
   */
  note(socket: Socket, address: string, patienceMs = Number.POSITIVE_INFINITY): void {
    if (socket.writableLength === 0 && !(socket as Noted)[key]) return;
    const entry = this.#enter(socket, address);
    entry.patienceMs = patienceMs;
    this.#recount(entry);
    this.#keepBounds(entry.group);
  }

  /** Counts what is kept for a connection beside its stream; a negative number gives it back. */
  hold(socket: Socket, address: string, bytes: number): void {
    if (bytes < 0 && !(socket as Noted)[key]) return;
    const entry = this.#enter(socket, address);
    entry.held = Math.max(0, entry.held + bytes);
    this.#recount(entry);
    if (bytes > 0) this.#keepBounds(entry.group);
  }

  /** The bytes that wait now. */
  get bytes(): number {
    return this.#bytes;
  }

  #enter(socket: Noted, address: string): Entry {
    const known = socket[key];
    if (!known) {
      const entry: Entry = { socket, group: this.#groupOf(address), ...nothingYet, taken: takenBy(socket), since: performance.now() };
      socket[key] = entry;
      entry.group.entries.add(entry);
      this.#timer ??= setInterval(() => this.#sweep(), SWEEP_INTERVAL_MS).unref();
      return entry;
    }
    // Behind a proxy a connection carries requests of one client after another.
    if (known.group.address !== address) {
      this.#leave(known);
      known.group = this.#groupOf(address);
      known.group.entries.add(known);
    }
    return known;
  }

  #groupOf(address: string): Group {
    const known = this.#groups.get(address);
    if (known) return known;
    const group: Group = { address, entries: new Set(), bytes: 0 };
    this.#groups.set(address, group);
    return group;
  }

  #leave(entry: Entry): void {
    const { group, bytes } = entry;
    entry.bytes = 0;
    group.bytes -= bytes;
    this.#bytes -= bytes;
    group.entries.delete(entry);
    if (group.entries.size === 0) this.#groups.delete(group.address);
  }

  #forget(entry: Entry): void {
    this.#leave(entry);
    delete (entry.socket as Noted)[key];
    if (this.#groups.size > 0 || !this.#timer) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }

  #recount(entry: Entry): void {
    const { socket, group } = entry;
    const taken = takenBy(socket);
    if (taken !== entry.taken) {
      entry.taken = taken;
      entry.since = performance.now();
    }
    const bytes = socket.destroyed ? 0 : socket.writableLength + entry.held;
    group.bytes += bytes - entry.bytes;
    this.#bytes += bytes - entry.bytes;
    entry.bytes = bytes;
    if (bytes === 0) this.#forget(entry);
  }

  /** The figures are those of the last count: before a connection is ended for them, they are taken anew. */
  #keepBounds(group: Group): void {
    const { perAddress, inAll } = this.#parts.limits;
    if (group.bytes > perAddress) {
      for (const entry of group.entries) this.#recount(entry);
      while (group.bytes > perAddress && this.#endOne(group));
    }
    if (this.#bytes <= inAll) return;
    for (const { entries } of this.#groups.values()) for (const entry of entries) this.#recount(entry);
    while (this.#bytes > inAll && this.#endOne(this.#findLargest(group)));
  }

  #findLargest(group: Group): Group {
    let largest = group;
    for (const other of this.#groups.values()) if (other.bytes > largest.bytes) largest = other;
    return largest;
  }

  /** Ends the connection that has stalled longest; returns whether there was one. */
  #endOne({ entries }: Group): boolean {
    let longest: Entry | null = null;
    for (const entry of entries) if (!longest || entry.since < longest.since) longest = entry;
    if (longest) this.#end(longest);
    return longest !== null;
  }

  #end(entry: Entry): void {
    this.#parts.onEnd();
    this.#forget(entry);
    entry.socket.destroy();
  }

  #sweep(): void {
    const now = performance.now();
    for (const { entries } of [...this.#groups.values()]) {
      for (const entry of [...entries]) {
        this.#recount(entry);
        if (entry.bytes > 0 && entry.socket.writableLength > 0 && now - entry.since > entry.patienceMs) this.#end(entry);
      }
    }
  }
}

/** The bytes that the kernel has taken of all that were written. */
function takenBy(socket: Socket): number {
  return socket.bytesWritten - socket.writableLength;
}
