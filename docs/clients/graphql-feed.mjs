import { createClient } from 'graphql-ws';

const document = `subscription Feed($organizationId: ID!, $projectId: ID!, $after: Int) {
  notificationFeed(organizationId: $organizationId, projectId: $projectId, after: $after) {
    ... on FeedReady { type sequence readThrough unreadCount }
    ... on NotificationAdded { type sequence notification { id kind severity title body created read } }
    ... on NotificationsRead { type readThrough notificationIds unreadCount }
    ... on FeedGap { type from to }
  }
}`;

/**
 * Follows a project's feed, each notification once and in order, through every break. `getToken` gives a session token
 * that is good now; `after` is the last sequence that you have, or null. Returns the function that ends it.
 */
export function followFeed({ baseUrl, getToken, organizationId, projectId, after = null, onEvent, onEnd, webSocketImpl }) {
  let cursor = after;
  // A ticket opens one socket: every connection takes a new one.
  const takeUrl = async () => {
    const response = await fetch(`${baseUrl}/v1/organizations/${organizationId}/projects/${projectId}/websocket-tickets`, {
      method: 'POST',
      headers: { authorization: `Bearer ${await getToken()}`, 'content-type': 'application/json' },
      body: JSON.stringify({ target: 'notifications' }),
    });
    if (!response.ok) throw new Error(`no ticket: ${response.status}`);
    const { path, ticket } = await response.json();
    return `${baseUrl.replace(/^http/, 'ws')}${path}?ticket=${ticket}`;
  };
  const client = createClient({ url: takeUrl, webSocketImpl, shouldRetry: () => true, retryAttempts: Number.POSITIVE_INFINITY });
  client.subscribe(
    // The client sends this anew at each connection: the getter makes it go on where it left off.
    {
      query: document,
      variables: {
        organizationId,
        projectId,
        get after() {
          return cursor;
        },
      },
    },
    {
      next({ data, errors }) {
        if (!data) return onEnd?.(errors);
        const event = data.notificationFeed;
        cursor = event.sequence ?? event.to ?? cursor;
        onEvent(event);
      },
      error: (failure) => onEnd?.(failure),
      complete: () => onEnd?.(null),
    },
  );
  return () => client.dispose();
}
