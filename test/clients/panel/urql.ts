import { Client, fetchExchange, gql, subscriptionExchange } from '@urql/core';
import { type Cache, cacheExchange, type KeyingConfig } from '@urql/exchange-graphcache';
import { relayPagination } from '@urql/exchange-graphcache/extras';
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

const unreadCount = gql`
  fragment _ on Project {
    id
    unreadNotificationCount
  }
`;
const readState = gql`
  fragment _ on Notification {
    id
    read
  }
`;

/** The types that have no id lie within what they belong to, as graphcache has to be told. */
function embedded({ __schema }: IntrospectionQuery): KeyingConfig {
  const types = __schema.types.filter((type) => type.kind === 'OBJECT' && !type.name.startsWith('__'));
  return Object.fromEntries(
    types.flatMap((type) => (type.kind === 'OBJECT' && !type.fields.some(({ name }) => name === 'id') ? [[type.name, () => null]] : [])),
  );
}

/** The panel in urql, with graphcache and the schema that is published. */
export function openUrql({ url, socketUrl, token, organizationId, projectId }: PanelOptions, schema: IntrospectionQuery): Panel {
  const socket = createClient({ url: socketUrl, webSocketImpl: WebSocket, connectionParams: { Authorization: `Bearer ${token}` } });
  const ids = { organizationId, projectId };
  const project = { __typename: 'Project', id: projectId };
  let opening: Record<string, unknown> = {};

  function tell(event: FeedEvent, cache: Cache): void {
    if (event.__typename === 'NotificationAdded') {
      cache.updateQuery<NotificationsResponse>({ query: notificationsQuery, variables: { ...ids, ...opening } }, (data) => {
        if (!data) return data;
        const edge = { __typename: 'NotificationEdge', cursor: '', node: event.notification };
        const list = { ...data.project.notifications, edges: [edge, ...data.project.notifications.edges] };
        return { ...data, project: { ...data.project, notifications: list } };
      });
      const count = cache.resolve(project, 'unreadNotificationCount');
      cache.writeFragment(unreadCount, { ...project, unreadNotificationCount: Number(count) + 1 });
    }
    if (event.__typename === 'NotificationsRead') {
      const isRead = new Set(event.notificationIds);
      const shown = cache.readQuery<NotificationsResponse>({ query: notificationsQuery, variables: { ...ids, ...opening } });
      for (const { node } of shown?.project.notifications.edges ?? []) {
        if (!isRead.has(node.id) && node.sequence > event.readThrough) continue;
        cache.writeFragment(readState, { __typename: 'Notification', id: node.id, read: true });
      }
    }
    if (event.__typename === 'NotificationsRead' || event.__typename === 'FeedReady')
      cache.writeFragment(unreadCount, { ...project, unreadNotificationCount: event.unreadCount });
  }

  const client = new Client({
    url,
    preferGetMethod: false,
    fetchOptions: { headers: { authorization: `Bearer ${token}` } },
    exchanges: [
      cacheExchange({
        schema,
        keys: embedded(schema),
        resolvers: { Project: { notifications: relayPagination() } },
        updates: {
          Subscription: {
            notificationFeed: (result, _args, cache) => tell(result.notificationFeed as FeedEvent, cache),
          },
        },
      }),
      fetchExchange,
      subscriptionExchange({
        forwardSubscription: ({ query = '', variables }) => ({
          subscribe: (sink) => ({ unsubscribe: socket.subscribe({ query, variables }, sink as never) }),
        }),
      }),
    ],
  });

  async function fetchAnew(query: string, variables: Record<string, unknown>): Promise<void> {
    const { error } = await client.query(query, variables, { requestPolicy: 'network-only' }).toPromise();
    if (error) throw error;
  }

  /** What the cache has, without a request. */
  function readCached<Data>(query: string, variables: Record<string, unknown>): Data {
    let found: Data | undefined;
    client
      .query<Data>(query, variables, { requestPolicy: 'cache-only' })
      .subscribe(({ data }) => {
        found = data;
      })
      .unsubscribe();
    if (!found) throw new Error('nothing in the cache');
    return found;
  }

  const shownNotifications = () => readCached<NotificationsResponse>(notificationsQuery, { ...ids, ...opening }).project.notifications;

  return {
    load: () => fetchAnew(panelQuery, {}),
    shown: () => showPanel(readCached<PanelData>(panelQuery, {})),
    refetchInstance: (id) => fetchAnew(instanceQuery, { id }),
    async openNotifications(from, count) {
      opening = { [from]: count };
      await fetchAnew(notificationsQuery, { ...ids, ...opening });
    },
    async loadMore(direction, count) {
      const { pageInfo } = shownNotifications();
      const part = direction === 'next' ? { first: count, after: pageInfo.endCursor } : { last: count, before: pageInfo.startCursor };
      await fetchAnew(notificationsQuery, { ...ids, ...part });
    },
    notifications: () => showPage(shownNotifications()),
    async mark(notificationIds) {
      const { error } = await client.mutation(markMutation, { input: { ...ids, notificationIds } }).toPromise();
      if (error) throw error;
    },
    follow: () =>
      new Promise((resolve, reject) => {
        const following = client.subscription<{ notificationFeed: FeedEvent }>(feedSubscription, ids).subscribe(({ data, error }) => {
          if (error) reject(error);
          if (data?.notificationFeed.__typename === 'FeedReady') resolve(() => following.unsubscribe());
        });
      }),
    close: () => void socket.dispose(),
  };
}
