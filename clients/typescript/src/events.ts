/** A notification, as the feed delivers it. */
export interface FeedNotification {
  readonly id: string;
  /** The position in the project's log, which is also the cursor after this notification. */
  readonly sequence: number;
  /** `instance.started`, … An open list. */
  readonly kind: string;
  readonly severity: 'info' | 'warning' | 'critical';
  readonly title: string;
  readonly body: string;
  /** The type of the resource that it is about; null if it is about none. */
  readonly resourceType: string | null;
  readonly resourceId: string | null;
  readonly data: { readonly [name: string]: unknown };
  /** An ISO 8601 date in UTC. */
  readonly created: string;
  readonly read: boolean;
}

/** An event of a feed; events come in the order of `sequence`. */
export type FeedEvent =
  /** An entry of the log; `sequence` is the cursor. */
  | { readonly type: 'notification'; readonly sequence: number; readonly notification: FeedNotification }
  /** The boundary between stored and live events; again before a connection ends because the log went back. */
  | { readonly type: 'ready'; readonly sequence: number; readonly readThrough: number; readonly unreadCount: number }
  /** The user has read notifications, through any API, or retention has changed the unread count. */
  | { readonly type: 'read'; readonly readThrough: number; readonly notificationIds: readonly string[]; readonly unreadCount: number }
  /** Sequences that cannot be delivered: retention has removed them, the cursor was beyond the end of the log, or the log went back. */
  | { readonly type: 'gap'; readonly from: number; readonly to: number };

/** The cursor after an event; null if it has none. */
export function cursorOf(event: FeedEvent): number | null {
  if (event.type === 'notification' || event.type === 'ready') return event.sequence;
  return event.type === 'gap' ? event.to : null;
}

export const feedDocument = `subscription Feed($organizationId: ID!, $projectId: ID!, $after: Int) {
  notificationFeed(organizationId: $organizationId, projectId: $projectId, after: $after) {
    ... on NotificationAdded { type sequence notification { id sequence kind severity title body resourceType resourceId data created read } }
    ... on FeedReady { type sequence readThrough unreadCount }
    ... on NotificationsRead { type readThrough notificationIds unreadCount }
    ... on FeedGap { type from to }
  }
}`;

/** The parameters of a connection to a feed. */
export interface FeedRequest {
  readonly url: string;
  readonly credential: string;
  readonly variables: { readonly organizationId: string; readonly projectId: string; readonly after: number | null };
  readonly signal: AbortSignal;
  /** Rewrites the JSON of each message before it is parsed. */
  readonly rewrite?: ((json: string) => string) | undefined;
}
