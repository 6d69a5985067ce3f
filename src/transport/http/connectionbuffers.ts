import type { Socket } from 'node:net';
import { getOrInsert } from '../../kernel/map.ts';

const SWEEP_INTERVAL_MS = 1_000;
/** A connection without progress for this long has stalled. */
const STALLED_MS = 1_000;
/** How long bytes wait for a peer that reads none of them, where nothing else is said. */
const DEFAULT_STALL_TIMEOUT_MS = 300_000;

interface BufferDependencies {
  /** The bytes that may wait for one client address, and for all together. */
  readonly limits: { readonly perAddress: number; readonly inAll: number };
  /** Called before each connection that is ended for its buffers. */
  readonly onEnd: () => void;
}

/** The connections of one client address with waiting bytes. */
interface Group {
  readonly address: string;
  readonly entries: Set<Entry>;
  bytes: number;
}

/** A connection with waiting bytes. */
interface Entry {
  readonly socket: Socket;
  group: Group;
  /** Bytes in memory for the connection besides its stream's: requests, bodies, the rest of a response. */
  reserved: number;
  /** The total at the last count. */
  bytes: number;
  /** The bytes that the kernel had accepted at the last count, and the time of the last progress. */
  accepted: number;
  progressedAt: number;
  stallTimeoutMs: number;
}

const emptyCounts = { reserved: 0, bytes: 0, stallTimeoutMs: Number.POSITIVE_INFINITY };

/** The entry is stored on the socket itself: in V8, the cost of a WeakMap grows with the number of connections. */
const key = Symbol('buffers');
type TrackedSocket = Socket & { [key]?: Entry };

/**
 * The bytes that wait in memory for peers that do not read. Beyond the limit of an address, its connection that has stalled
 * longest is ended. Beyond the limit of all, connections that have stalled are ended first, those of the address with the largest
 * buffers before others, then those whose last progress is longest ago. So clients that read keep their connections, whatever
 * others do.
 */
export class ConnectionBuffers {
  readonly #dependencies: BufferDependencies;
  readonly #groups = new Map<string, Group>();
  #bytes = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(dependencies: BufferDependencies) {
    this.#dependencies = dependencies;
  }

  /**
   * Counts the bytes that the kernel has not accepted, nearly always none. Call it right after a write to the socket. A socket
   * whose peer reads none of them for `stallTimeoutMs` is ended.
   */
  record(socket: Socket, address: string, stallTimeoutMs = DEFAULT_STALL_TIMEOUT_MS): void {
    if (socket.writableLength === 0 && !(socket as TrackedSocket)[key]) return;
    const now = performance.now();
    const entry = this.#track(socket, address, now);
    entry.stallTimeoutMs = stallTimeoutMs;
    this.#recount(entry, now);
    this.#enforceLimits(entry.group, now);
  }

  /** Counts bytes in memory for a connection besides its stream's; a negative number releases them. */
  reserve(socket: Socket, address: string, bytes: number): void {
    if (bytes < 0 && !(socket as TrackedSocket)[key]) return;
    const now = performance.now();
    const entry = this.#track(socket, address, now);
    entry.reserved = Math.max(0, entry.reserved + bytes);
    this.#recount(entry, now);
    if (bytes > 0) this.#enforceLimits(entry.group, now);
  }

  /** The bytes that wait now. */
  get bytes(): number {
    return this.#bytes;
  }

  #track(socket: TrackedSocket, address: string, now: number): Entry {
    const known = socket[key];
    if (!known) {
      const group = this.#groupOf(address);
      const entry: Entry = { socket, group, ...emptyCounts, accepted: acceptedBytes(socket), progressedAt: now };
      socket[key] = entry;
      group.entries.add(entry);
      this.#timer ??= setInterval(() => this.#sweep(), SWEEP_INTERVAL_MS).unref();
      return entry;
    }
    // A proxy's connection carries the requests of one client after another.
    if (known.group.address !== address) {
      this.#leaveGroup(known);
      known.group = this.#groupOf(address);
      known.group.entries.add(known);
    }
    return known;
  }

  #groupOf(address: string): Group {
    return getOrInsert(this.#groups, address, (): Group => ({ address, entries: new Set(), bytes: 0 }));
  }

  #leaveGroup(entry: Entry): void {
    const { group, bytes } = entry;
    entry.bytes = 0;
    group.bytes -= bytes;
    this.#bytes -= bytes;
    group.entries.delete(entry);
    if (group.entries.size === 0) this.#groups.delete(group.address);
  }

  #untrack(entry: Entry): void {
    this.#leaveGroup(entry);
    delete (entry.socket as TrackedSocket)[key];
    if (this.#groups.size > 0 || !this.#timer) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }

  #recount(entry: Entry, now: number): void {
    const { socket, group } = entry;
    const accepted = acceptedBytes(socket);
    if (accepted !== entry.accepted) {
      entry.accepted = accepted;
      entry.progressedAt = now;
    }
    const bytes = socket.destroyed ? 0 : socket.writableLength + entry.reserved;
    group.bytes += bytes - entry.bytes;
    this.#bytes += bytes - entry.bytes;
    entry.bytes = bytes;
    if (bytes === 0) this.#untrack(entry);
  }

  /**
   * The totals are as of the last counts: entries are counted again before a connection is ended. One time is taken for all of them:
   * with later ones, a connection whose progress is noticed only now would seem to have moved after a response that has just begun,
   * which would then be ended first.
   */
  #enforceLimits(group: Group, now: number): void {
    const { perAddress, inAll } = this.#dependencies.limits;
    if (group.bytes > perAddress) {
      for (const entry of group.entries) this.#recount(entry, now);
      while (group.bytes > perAddress && this.#endLongestStalled(group));
    }
    if (this.#bytes <= inAll) return;
    for (const { entries } of this.#groups.values()) for (const entry of entries) this.#recount(entry, now);
    for (const entry of this.#rankEntries(now)) {
      if (this.#bytes <= inAll) return;
      this.#end(entry);
    }
  }

  /** All entries, in the order in which they are to be ended. */
  #rankEntries(now: number): Entry[] {
    const stalledSince = now - STALLED_MS;
    const stalledBytes = ({ progressedAt, group }: Entry) => (progressedAt <= stalledSince ? group.bytes : 0);
    const entries = [...this.#groups.values()].flatMap((group) => [...group.entries]);
    return entries.sort((a, b) => stalledBytes(b) - stalledBytes(a) || a.progressedAt - b.progressedAt);
  }

  /** Ends the connection that has stalled longest; returns whether there was one. */
  #endLongestStalled({ entries }: Group): boolean {
    let longest: Entry | null = null;
    for (const entry of entries) if (!longest || entry.progressedAt < longest.progressedAt) longest = entry;
    if (longest) this.#end(longest);
    return longest !== null;
  }

  #end(entry: Entry): void {
    this.#dependencies.onEnd();
    this.#untrack(entry);
    entry.socket.destroy();
  }

  #sweep(): void {
    const now = performance.now();
    for (const { entries } of [...this.#groups.values()]) {
      for (const entry of [...entries]) {
        this.#recount(entry, now);
        const isStalled = now - entry.progressedAt > entry.stallTimeoutMs;
        if (entry.bytes > 0 && entry.socket.writableLength > 0 && isStalled) this.#end(entry);
      }
    }
  }
}

/** The handle of a socket alone shows what a write under way has left. The timeouts of Node.js look for progress there, too. */
type HandledSocket = Socket & { readonly _handle?: { readonly bytesWritten: number; readonly writeQueueSize: number } | null };

/** The bytes of all that were written that the kernel has accepted, also of a large write under way. */
function acceptedBytes(socket: HandledSocket): number {
  const handle = socket._handle;
  return handle ? handle.bytesWritten - handle.writeQueueSize : socket.bytesWritten - socket.writableLength;
}
