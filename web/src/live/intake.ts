import type { ApolloCache, InMemoryCache } from '@apollo/client';
import type { FeedEvent } from 'portico-client';

/** After this many events the cache lets go of what nobody shows any more, and of the results that it keeps of it. */
const SWEEP_EVERY = 200;

/** Brings the events of a project's feed into the cache: what shows a notification, or how many are unread, changes with it. */
export class Intake {
  readonly #cache: ApolloCache;
  readonly #project: string | undefined;
  #cursor: number | null = null;
  #readThrough = 0;
  #unread: number | null = null;
  #taken = 0;

  constructor(cache: ApolloCache, projectId: string) {
    this.#cache = cache;
    this.#project = cache.identify({ __typename: 'Project', id: projectId });
  }

  /** Where the feed goes on after a break; null where it has not begun. */
  get cursor(): number | null {
    return this.#cursor;
  }

  /** Keeps how far the feed has come, as soon as an event is there. */
  reach(event: FeedEvent): void {
    if (event.type !== 'read') this.#cursor = event.type === 'gap' ? event.to : event.sequence;
  }

  /** A new notification only counts: those who show it write it, so that the cache does not grow with the log. */
  take(events: readonly FeedEvent[]): void {
    this.#cache.batch({
      update: (cache) => {
        for (const event of events) {
          if (event.type === 'notification' && !event.notification.read && this.#unread !== null) this.#unread += 1;
          if (event.type !== 'read' && event.type !== 'ready') continue;
          this.#unread = event.unreadCount;
          const through = event.readThrough > this.#readThrough ? event.readThrough : 0;
          this.#readThrough = Math.max(this.#readThrough, event.readThrough);
          markRead(cache, { ids: event.type === 'read' ? event.notificationIds : [], through });
        }
        this.settle();
      },
    });
    this.#taken += events.length;
    if (this.#taken < SWEEP_EVERY) return;
    this.#taken = 0;
    (this.#cache as InMemoryCache).gc({ resetResultCache: true });
  }

  /** The count as the feed has told it, in the place of an older one that an answer may have brought. */
  settle(): void {
    const unread = this.#unread;
    if (unread !== null) this.#cache.modify({ id: this.#project, fields: { unreadNotificationCount: () => unread } });
  }
}

/** Of the notifications that the cache has: the named ones, and all up to a number. */
export function markRead(cache: ApolloCache, { ids, through }: { readonly ids: readonly string[]; readonly through: number }): void {
  const mark = (id: string | undefined) => cache.modify({ id, fields: { read: () => true } });
  for (const id of ids) mark(cache.identify({ __typename: 'Notification', id }));
  if (through === 0) return;
  for (const [id, { sequence = Number.POSITIVE_INFINITY }] of listUnread(cache)) if (sequence <= through) mark(id);
}

interface Known {
  readonly __typename?: string;
  readonly id?: string;
  readonly sequence?: number;
  readonly read?: boolean;
}

/** The notifications that the cache has as unread. */
export function listUnread(cache: ApolloCache): [string, Known][] {
  const known = Object.entries(cache.extract(true) as Record<string, Known>);
  return known.filter(([, { __typename, read }]) => __typename === 'Notification' && read === false);
}
