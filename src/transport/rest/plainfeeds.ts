import { socketPaths } from '../../graph/socketpaths.ts';
import type { PlainFeed } from './plainfeed.ts';
import { notification } from './routes.ts';

/** The plain-JSON sockets (§6): each event of the subscription is one frame. A console carries bytes, which no document could describe. */
export const plainFeeds: readonly PlainFeed[] = [
  {
    path: socketPaths.notifications,
    operation: `subscription notification_feed($organization_id: ID!, $project_id: ID!, $after: Int) {
      event: notificationFeed(organizationId: $organization_id, projectId: $project_id, after: $after) {
        ... on FeedReady { type sequence read_through: readThrough unread_count: unreadCount }
        ... on NotificationAdded { type sequence notification { ${notification} } }
        ... on NotificationsRead { type read_through: readThrough notification_ids: notificationIds unread_count: unreadCount }
        ... on FeedGap { type from to }
      }
    }`,
    event: (data) => data.event,
  },
];
