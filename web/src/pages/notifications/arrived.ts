import type { InMemoryCache } from '@apollo/client';
import type { FeedEvent } from 'portico-client';
import { NotificationRow } from './row.ts';

/** At most this many new notifications are shown above the loaded list; with more the list is reloaded. */
const MAX_ARRIVED = 50;
const FRESH_MS = 3_000;

type Added = Extract<FeedEvent, { type: 'notification' }>;

export interface State {
  /** The new notifications above the list, the newest first. */
  readonly ids: readonly string[];
  /** Those among them that have just arrived, which are highlighted. */
  readonly fresh: ReadonlySet<string>;
  /** How many arrived but are not shown, and the sequence number of the last: the list was scrolled down, or full. */
  readonly missed: number;
  readonly lastMissed: number;
  /** Whether they are missed only because of MAX_ARRIVED. */
  readonly isFull: boolean;
  /** How many of them are unread. */
  readonly missedUnread: number;
  /** How many arrived that the filter hides, and how many of them are unread. */
  readonly hidden: number;
  readonly hiddenUnread: number;
  /** The highest sequence number that the feed has delivered. */
  readonly newest: number;
  /** The sequence numbers that the feed could not deliver. */
  readonly gap: { readonly from: number; readonly to: number } | null;
}

const emptyState: State = {
  ids: [],
  fresh: new Set(),
  missed: 0,
  lastMissed: 0,
  isFull: false,
  missedUnread: 0,
  hidden: 0,
  hiddenUnread: 0,
  newest: 0,
  gap: null,
};

/** The notifications since a list was loaded: the shown ones as rows in the cache, all others only counted. */
export class Arrivals {
  #state = emptyState;
  readonly #cache: InMemoryCache;
  readonly #projectId: string;
  readonly #sequences = new Map<string, number>();
  readonly #watchers = new Set<() => void>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** The list itself contains everything up to this sequence number. */
  #reached = 0;

  constructor(cache: InMemoryCache, projectId: string) {
    this.#cache = cache;
    this.#projectId = projectId;
  }

  readonly watch = (watcher: () => void) => {
    this.#watchers.add(watcher);
    return () => {
      this.#watchers.delete(watcher);
      if (this.#watchers.size === 0) this.clear();
    };
  };
  readonly read = () => this.#state;

  /** Adds a new notification. */
  add({ sequence, notification }: Added, { isShown, isAtTop }: { readonly isShown: boolean; readonly isAtTop: boolean }): void {
    const { ids, fresh, missed, missedUnread, hidden, hiddenUnread } = this.#state;
    const unread = notification.read ? 0 : 1;
    const newest = Math.max(sequence, this.#state.newest);
    // A feed that comes back delivers what a list that was loaded meanwhile contains.
    if (sequence <= this.#reached) return this.#set({ newest });
    if (!isShown) return this.#set({ newest, hidden: hidden + 1, hiddenUnread: hiddenUnread + unread });
    // A row cannot be shown above one that is missed.
    const isFull = isAtTop && (this.#state.isFull || ids.length >= MAX_ARRIVED);
    if (!isAtTop || missed > 0 || isFull) {
      return this.#set({ newest, missed: missed + 1, missedUnread: missedUnread + unread, lastMissed: sequence, isFull });
    }
    const { id, kind, severity, title, created, read } = notification;
    const project = { __typename: 'Project', id: this.#projectId };
    const data = { __typename: 'Notification', id, sequence, kind, severity, title, created, read, project } as never;
    // `writeFragment` makes the cache retain the object until it is released.
    this.#cache.writeFragment({ fragment: NotificationRow, data });
    this.#sequences.set(id, sequence);
    this.#set({ newest, ids: [id, ...ids], fresh: new Set([...fresh, id]) });
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#set({ fresh: new Set() }), FRESH_MS);
  }

  /** The list itself contains everything up to this sequence number now. */
  reach(sequence: number): void {
    this.#reached = Math.max(sequence, this.#reached);
    const { ids, missed, missedUnread, lastMissed, isFull } = this.#state;
    const left = ids.filter((id) => (this.#sequences.get(id) ?? 0) > sequence);
    // Sequence numbers have no gaps: not more than these can still be missing.
    const missing = Math.max(0, lastMissed - sequence);
    if (left.length === ids.length && missed <= missing) return;
    this.#release(ids.filter((id) => !left.includes(id)));
    this.#set({
      ids: left,
      missed: Math.min(missed, missing),
      missedUnread: Math.min(missedUnread, missing),
      isFull: isFull && missing > 0,
    });
  }

  setGap(gap: State['gap']): void {
    this.#set({ gap });
  }

  clear(): void {
    clearTimeout(this.#timer);
    this.#release(this.#state.ids);
    this.#set(emptyState);
  }

  #release(ids: readonly string[]): void {
    for (const id of ids) {
      this.#cache.release(toCacheId(id));
      this.#sequences.delete(id);
    }
  }

  #set(changes: Partial<State>): void {
    this.#state = { ...this.#state, ...changes };
    for (const watcher of this.#watchers) watcher();
  }
}

const toCacheId = (id: string) => `Notification:${id}`;

/** How many have arrived that are unread and not shown. */
export const countUnseen = ({ missedUnread, hiddenUnread }: State): number => missedUnread + hiddenUnread;
