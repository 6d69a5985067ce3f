/** A notification, as the feed tells it. */
export interface FeedNotification {
  readonly id: string;
  /** The place in the project's log, and the cursor behind it. */
  readonly sequence: number;
  /** `instance.started`, … An open list. */
  readonly kind: string;
  readonly severity: 'info' | 'warning' | 'critical';
  readonly title: string;
  readonly body: string;
  /** What it is about; null where it is about nothing. */
  readonly resourceType: string | null;
  readonly resourceId: string | null;
  readonly data: { readonly [name: string]: unknown };
  /** An ISO 8601 date in UTC. */
  readonly created: string;
  readonly read: boolean;
}

/** What a feed tells, in the order of `sequence`. */
export type FeedEvent =
  /** An entry of the log; `sequence` is the cursor. */
  | { readonly type: 'notification'; readonly sequence: number; readonly notification: FeedNotification }
  /** The boundary between what the log had and what comes: once for each connection. */
  | { readonly type: 'ready'; readonly sequence: number; readonly readThrough: number; readonly unreadCount: number }
  /** The user has read something, through whichever door. */
  | { readonly type: 'read'; readonly readThrough: number; readonly notificationIds: readonly string[]; readonly unreadCount: number }
  /** Numbers that cannot be told: retention has removed them, or the cursor was beyond the end of the log. */
  | { readonly type: 'gap'; readonly from: number; readonly to: number };

/** The cursor behind an event; null where it has none. */
export const cursorOf = (event: FeedEvent): number | null =>
  event.type === 'gap' ? event.to : event.type === 'read' ? null : event.sequence;

export const feedDocument = `subscription Feed($organizationId: ID!, $projectId: ID!, $after: Int) {
  notificationFeed(organizationId: $organizationId, projectId: $projectId, after: $after) {
    ... on NotificationAdded { type sequence notification { id sequence kind severity title body resourceType resourceId data created read } }
    ... on FeedReady { type sequence readThrough unreadCount }
    ... on NotificationsRead { type readThrough notificationIds unreadCount }
    ... on FeedGap { type from to }
  }
}`;

/** What a connection to a feed is made of. */
export interface FeedRequest {
  readonly url: string;
  readonly credential: string;
  readonly variables: { readonly organizationId: string; readonly projectId: string; readonly after: number | null };
  readonly signal: AbortSignal;
}
