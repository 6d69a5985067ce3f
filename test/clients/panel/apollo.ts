import { ApolloClient, gql, HttpLink, InMemoryCache } from '@apollo/client';
import { GraphQLWsLink } from '@apollo/client/link/subscriptions';
import { relayStylePagination } from '@apollo/client/utilities';
import type { IntrospectionQuery } from 'graphql';
import { createClient } from 'graphql-ws';
import WebSocket from 'ws';
import {
  type FeedEvent,
  feedSubscription,
  instanceQuery,
  markMutation,
  type NotificationsData,
  notificationsQuery,
  type Panel,
  type PanelData,
  type PanelOptions,
  panelQuery,
  showPage,
  showPanel,
} from './panel.ts';

interface NotificationsResponse {
  readonly project: { readonly __typename: 'Project'; readonly id: string; readonly notifications: NotificationsData };
}

/** The types of each interface and union, which the cache of Apollo Client has to be told. */
function listPossibleTypes({ __schema }: IntrospectionQuery): Record<string, string[]> {
  return Object.fromEntries(
    __schema.types.flatMap((type) =>
      'possibleTypes' in type && type.possibleTypes ? [[type.name, type.possibleTypes.map(({ name }) => name)]] : [],
    ),
  );
}

/** The panel in Apollo Client, with its normalised cache. */
export function openApollo({ url, socketUrl, token, organizationId, projectId }: PanelOptions, schema: IntrospectionQuery): Panel {
  const socket = createClient({ url: socketUrl, webSocketImpl: WebSocket, connectionParams: { Authorization: `Bearer ${token}` } });
  const live = new GraphQLWsLink(socket);
  const http = new HttpLink({ uri: url, headers: { authorization: `Bearer ${token}` } });
  const cache = new InMemoryCache({
    possibleTypes: listPossibleTypes(schema),
    typePolicies: {
      Project: { fields: { notifications: relayStylePagination(['filter']) } },
      // Each event takes the place of the one before.
      Subscription: { fields: { notificationFeed: { merge: (_before, event) => event } } },
    },
  });
  const client = new ApolloClient({ cache, link: http });
  const feed = new ApolloClient({ cache, link: live });
  const panel = gql(panelQuery);
  const notifications = gql(notificationsQuery);
  const ids = { organizationId, projectId };
  const project = { __typename: 'Project', id: projectId };

  async function read(paging: { first?: number; after?: string | null; last?: number; before?: string | null }): Promise<void> {
    await client.query({ query: notifications, variables: { ...ids, ...paging }, fetchPolicy: 'network-only' });
  }

  function shownNotifications(): NotificationsData {
    const found = cache.readQuery<NotificationsResponse>({ query: notifications, variables: ids });
    if (!found) throw new Error('no notifications in the cache');
    return found.project.notifications;
  }

  function tell(event: FeedEvent): void {
    if (event.__typename === 'NotificationAdded') {
      cache.updateQuery<NotificationsResponse>({ query: notifications, variables: ids }, (data) => {
        if (!data) return data;
        const edge = { __typename: 'NotificationEdge', cursor: '', node: event.notification };
        const list = { ...data.project.notifications, edges: [edge, ...data.project.notifications.edges] };
        return { project: { ...data.project, notifications: list } };
      });
      cache.modify({ id: cache.identify(project), fields: { unreadNotificationCount: (count: number) => count + 1 } });
    }
    if (event.__typename === 'NotificationsRead') {
      const isRead = new Set(event.notificationIds);
      for (const { node } of shownNotifications().edges) {
        if (!isRead.has(node.id) && node.sequence > event.readThrough) continue;
        cache.modify({ id: cache.identify({ __typename: 'Notification', id: node.id }), fields: { read: () => true } });
      }
    }
    if (event.__typename === 'NotificationsRead' || event.__typename === 'FeedReady')
      cache.modify({ id: cache.identify(project), fields: { unreadNotificationCount: () => event.unreadCount } });
  }

  return {
    load: async () => {
      await client.query({ query: panel });
    },
    shown() {
      const data = cache.readQuery<PanelData>({ query: panel });
      if (!data) throw new Error('no panel in the cache');
      return showPanel(data);
    },
    refetchInstance: async (id) => {
      await client.query({ query: gql(instanceQuery), variables: { id }, fetchPolicy: 'network-only' });
    },
    openNotifications: async (from, count) => {
      await read({ [from]: count });
    },
    async loadMore(direction, count) {
      const { pageInfo } = shownNotifications();
      await read(direction === 'next' ? { first: count, after: pageInfo.endCursor } : { last: count, before: pageInfo.startCursor });
    },
    notifications: () => showPage(shownNotifications()),
    mark: async (notificationIds) => {
      await client.mutate({ mutation: gql(markMutation), variables: { input: { ...ids, notificationIds } } });
    },
    follow: () =>
      new Promise((resolve, reject) => {
        const following = feed.subscribe<{ notificationFeed: FeedEvent }>({ query: gql(feedSubscription), variables: ids }).subscribe({
          next({ data, error }) {
            if (error || !data) return reject(error);
            tell(data.notificationFeed);
            if (data.notificationFeed.__typename === 'FeedReady') resolve(() => following.unsubscribe());
          },
          error: reject,
        });
      }),
    close() {
      client.stop();
      feed.stop();
      void socket.dispose();
    },
  };
}
