import type { ApolloCache, InMemoryCache } from '@apollo/client';
import type { FeedEvent } from 'portico-client';

/** After this many events the cache is garbage collected, including its memoized results. */
const SWEEP_EVERY = 200;

/** Applies the events of a project's feed to the cache: read states, and the unread count. */
export class Intake {
  readonly #cache: ApolloCache;
  readonly #projectId: string;
  #cursor: number | null = null;
  #readThrough = 0;
  #unread: number | null = null;
  #sinceSweep = 0;

  constructor(cache: ApolloCache, projectId: string) {
    this.#cache = cache;
    this.#projectId = projectId;
  }

  /** The cursor at which the feed resumes after a break; null if it has not begun. */
  get cursor(): number | null {
    return this.#cursor;
  }

  /** Advances the cursor as soon as an event has arrived. */
  reach(event: FeedEvent): void {
    if (event.type === 'notification' || event.type === 'ready') this.#cursor = event.sequence;
    else if (event.type === 'gap') this.#cursor = event.to;
  }

  /**
   * A new notification changes only the count: listeners that show it write it to the cache, which so does not grow with the log. They
   * get each event before the next one is applied, which may mark as read what they have written.
   */
  take(events: readonly FeedEvent[], deliver: (event: FeedEvent) => void): void {
    this.#cache.batch({
      update: (cache) => {
        for (const event of events) {
          this.#apply(cache, event);
          deliver(event);
        }
        this.settle();
      },
    });
    this.#sinceSweep += events.length;
    if (this.#sinceSweep < SWEEP_EVERY) return;
    this.#sinceSweep = 0;
    (this.#cache as InMemoryCache).gc({ resetResultCache: true });
  }

  #apply(cache: ApolloCache, event: FeedEvent): void {
    if (event.type === 'notification' && !event.notification.read && this.#unread !== null) this.#unread += 1;
    if (event.type !== 'read' && event.type !== 'ready') return;
    this.#unread = event.unreadCount;
    const through = event.readThrough > this.#readThrough ? event.readThrough : 0;
    this.#readThrough = Math.max(this.#readThrough, event.readThrough);
    if (event.type === 'read') markRead(cache, event.notificationIds);
    if (through > 0) markReadThrough(cache, this.#projectId, through);
  }

  /** Writes the feed's unread count to the cache, replacing an older one from a query's response. */
  settle(): void {
    const unread = this.#unread;
    if (unread === null) return;
    const id = toProjectKey(this.#cache, this.#projectId);
    this.#cache.modify({ id, fields: { unreadNotificationCount: () => unread } });
  }
}

/** Marks cached notifications as read. */
export function markRead(cache: ApolloCache, ids: readonly string[]): void {
  for (const id of ids) mark(cache, cache.identify({ __typename: 'Notification', id }));
}

/** Marks the project's cached notifications as read up to a sequence number, which other projects have, too. */
export function markReadThrough(cache: ApolloCache, projectId: string, through: number): void {
  const key = toProjectKey(cache, projectId);
  for (const [id, { project, sequence = Number.POSITIVE_INFINITY }] of listUnread(cache)) {
    if (project?.__ref === key && sequence <= through) mark(cache, id);
  }
}

const mark = (cache: ApolloCache, id: string | undefined) => cache.modify({ id, fields: { read: () => true } });

const toProjectKey = (cache: ApolloCache, id: string) => cache.identify({ __typename: 'Project', id });

interface CachedObject {
  readonly __typename?: string;
  readonly id?: string;
  readonly project?: { readonly __ref: string } | null;
  readonly sequence?: number;
  readonly read?: boolean;
}

/** The cached notifications that are unread. */
export function listUnread(cache: ApolloCache): [string, CachedObject][] {
  const objects = Object.entries(cache.extract(true) as Record<string, CachedObject>);
  return objects.filter(([, { __typename, read }]) => __typename === 'Notification' && read === false);
}
