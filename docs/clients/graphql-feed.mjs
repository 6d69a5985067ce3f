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
  let isEnded = false;
  // After 0.1 s, then twice as long each time, up to 10 s; not all clients at once.
  const wait = (tries) => new Promise((resolve) => setTimeout(resolve, Math.min(100 * 2 ** tries, 10_000) * (0.5 + Math.random() / 2)));
  const takeTicket = async () => {
    const response = await fetch(`${baseUrl}/v1/organizations/${organizationId}/projects/${projectId}/websocket-tickets`, {
      method: 'POST',
      headers: { authorization: `Bearer ${await getToken()}`, 'content-type': 'application/json' },
      body: JSON.stringify({ target: 'notifications' }),
    });
    if (!response.ok) throw new Error(`no ticket: ${response.status}`);
    return response.json();
  };
  // A ticket opens one socket: every connection takes a new one. This must not fail: graphql-ws would wait for it for ever.
  const takeUrl = async () => {
    for (let tries = 0; !isEnded; tries += 1) {
      try {
        const { path, ticket } = await takeTicket();
        return `${baseUrl.replace(/^http/, 'ws')}${path}?ticket=${ticket}`;
      } catch {
        await wait(tries);
      }
    }
    // It was ended meanwhile: nothing is to be opened any more.
    return new Promise(() => {});
  };
  const client = createClient({
    url: takeUrl,
    webSocketImpl,
    shouldRetry: () => true,
    retryAttempts: Number.POSITIVE_INFINITY,
    retryWait: wait,
  });
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
  return () => {
    isEnded = true;
    // While it is connecting, this ends as the connection does: perhaps with an error.
    client.dispose().catch(() => {});
  };
}
