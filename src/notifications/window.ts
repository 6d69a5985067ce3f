import type { Batch, LogEntry } from './entries.ts';
import type { NotificationEvent } from './events.ts';

/** The limits of one batch. The window holds two: the one that the followers are reading, and the one before it. */
export const BATCH = { limit: 128, maxBytes: 512 * 1024 } as const;
const WINDOW_SIZE = 2 * BATCH.limit;
const WINDOW_BYTES = 2 * BATCH.maxBytes;

/** A live entry with its event: one object for all feeds, so that it is rendered once. */
export interface LiveEntry {
  readonly sequence: number;
  readonly bytes: number;
  readonly event: NotificationEvent;
}

/** The newest entries that a hub has read, in a gapless sequence bounded by entries and by bytes. */
export class Window {
  #entries: LiveEntry[] = [];
  #bytes = 0;
  /** The sequence at which the newer half of the window begins. */
  #recentFrom = 0;

  get bytes(): number {
    return this.#bytes;
  }

  get isFull(): boolean {
    return this.#entries.length >= WINDOW_SIZE || this.#bytes >= WINDOW_BYTES;
  }

  /** Appends a batch; after a gap in the log the window holds that batch alone. */
  add({ entries }: Batch): void {
    const isNext = entries[0]?.sequence === (this.#entries.at(-1)?.sequence ?? 0) + 1;
    const all = [...(isNext ? this.#entries : []), ...entries.map(toLive)];
    let bytes = 0;
    let first = all.length;
    let recent = first;
    while (first > 0 && all.length - first < WINDOW_SIZE) {
      const size = all[first - 1]?.bytes ?? 0;
      if (bytes > 0 && bytes + size > WINDOW_BYTES) break;
      bytes += size;
      first -= 1;
      if (all.length - first <= BATCH.limit && (bytes <= BATCH.maxBytes || recent === all.length)) recent = first;
    }
    this.#recentFrom = all[recent]?.sequence ?? 0;
    this.#entries = all.slice(first);
    this.#bytes = bytes;
  }

  clear(): void {
    this.#entries = [];
    this.#bytes = 0;
  }

  /** Whether the entry after a position has been evicted from the window, or has never been in it. */
  lacks(position: number): boolean {
    const first = this.#entries[0];
    return first === undefined || position + 1 < first.sequence;
  }

  /** The entries, in order. */
  get entries(): readonly LiveEntry[] {
    return this.#entries;
  }

  entryAfter(position: number): LiveEntry | null {
    return this.#entries[position + 1 - (this.#entries[0]?.sequence ?? 0)] ?? null;
  }

  /** Whether the entry after a position is in the newer half. */
  isRecent(position: number): boolean {
    return position + 1 >= this.#recentFrom;
  }
}

function toLive(entry: LogEntry): LiveEntry {
  const { sequence, bytes } = entry;
  return { sequence, bytes, event: { type: 'notification', sequence, notification: entry, isShared: true } };
}
