import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createClient } from 'graphql-ws';
import {
  ConnectionHandler,
  commitMutation,
  createOperationDescriptor,
  Environment,
  fetchQuery,
  type GraphQLTaggedNode,
  getRequest,
  getSelector,
  Network,
  Observable,
  type ReaderFragment,
  RecordSource,
  type RecordSourceSelectorProxy,
  requestSubscription,
  type SelectorStoreUpdater,
  Store,
  type Variables,
} from 'relay-runtime';
import WebSocket from 'ws';
import { type FeedEvent, type NotificationsData, type Panel, type PanelData, type PanelOptions, showPage, showPanel } from './panel.ts';

const KEY = 'Panel_notifications';

/** A document as Relay's compiler has written it. */
export async function readArtifact(folder: string, name: string): Promise<GraphQLTaggedNode> {
  const { default: node } = await import(pathToFileURL(join(folder, `${name}.graphql.ts`)).href);
  return node;
}

/** The environment of Relay's documentation: documents by `fetch`, subscriptions by graphql-ws. */
export function openEnvironment({ url, socketUrl, token }: Pick<PanelOptions, 'url' | 'socketUrl' | 'token'>) {
  const socket = createClient({ url: socketUrl, webSocketImpl: WebSocket, connectionParams: { Authorization: `Bearer ${token}` } });
  const network = Network.create(
    async ({ text }, variables) => {
      const response = await fetch(url, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ query: text, variables }),
      });
      return response.json();
    },
    ({ text, name }, variables) =>
      Observable.create((sink) =>
        socket.subscribe({ operationName: name, query: text ?? '', variables }, sink as Parameters<typeof socket.subscribe>[1]),
      ),
  );
  return { environment: new Environment({ network, store: new Store(new RecordSource()) }), close: () => void socket.dispose() };
}

/** The panel in Relay's runtime, with the documents that its compiler has made of `relay/Panel.ts`. */
export async function openRelay(options: PanelOptions, artifacts: string): Promise<Panel> {
  const { projectId, organizationId } = options;
  const { environment, close } = openEnvironment(options);
  const panel = await readArtifact(artifacts, 'PanelQuery');
  const instance = await readArtifact(artifacts, 'PanelInstanceQuery');
  const notifications = await readArtifact(artifacts, 'PanelNotificationsQuery');
  const fragment = (await readArtifact(artifacts, 'Panel_notifications')) as ReaderFragment;
  const mark = await readArtifact(artifacts, 'PanelMarkMutation');
  const feed = await readArtifact(artifacts, 'PanelFeedSubscription');
  /** What the page was opened with: the fragment is read with it, whatever parts have come to it since. */
  let opened: Variables = { id: projectId };
  const held: Array<{ dispose(): void }> = [];

  async function fetchAnew(query: GraphQLTaggedNode, variables: Variables): Promise<void> {
    held.push(environment.retain(createOperationDescriptor(getRequest(query), variables)));
    await fetchQuery(environment, query, variables, { fetchPolicy: 'network-only' }).toPromise();
  }

  function readCached<Data>(query: GraphQLTaggedNode, variables: Variables): Data {
    const { data, isMissingData } = environment.lookup(createOperationDescriptor(getRequest(query), variables).fragment);
    if (!data || isMissingData) throw new Error('something is not in the store');
    return data as Data;
  }

  function shownNotifications(): NotificationsData {
    const { node } = readCached<{ node: unknown }>(notifications, opened);
    const selector = getSelector(fragment, node);
    if (selector?.kind !== 'SingularReaderSelector') throw new Error('no project in the store');
    return (environment.lookup(selector).data as { notifications: NotificationsData }).notifications;
  }

  function tell(store: RecordSourceSelectorProxy): void {
    const event = store.getRootField('notificationFeed');
    const project = store.get(projectId);
    const type = event?.getValue('__typename') as FeedEvent['__typename'];
    const list = project && ConnectionHandler.getConnection(project, KEY);
    if (!event || !project || !list) return;
    if (type === 'NotificationAdded') {
      const node = event.getLinkedRecord('notification');
      if (!node) return;
      ConnectionHandler.insertEdgeBefore(list, ConnectionHandler.createEdge(store, list, node, 'NotificationEdge'));
      project.setValue(Number(project.getValue('unreadNotificationCount')) + 1, 'unreadNotificationCount');
    }
    if (type === 'NotificationsRead') {
      const isRead = new Set(event.getValue('notificationIds') as string[]);
      for (const edge of list.getLinkedRecords('edges') ?? []) {
        const node = edge.getLinkedRecord('node');
        if (!node || (!isRead.has(node.getDataID()) && Number(node.getValue('sequence')) > Number(event.getValue('readThrough')))) continue;
        node.setValue(true, 'read');
      }
    }
    if (type === 'NotificationsRead' || type === 'FeedReady')
      project.setValue(Number(event.getValue('unreadCount')), 'unreadNotificationCount');
  }

  return {
    load: () => fetchAnew(panel, {}),
    shown: () => showPanel(readCached<PanelData>(panel, {})),
    refetchInstance: (id) => fetchAnew(instance, { id }),
    async openNotifications(from, count) {
      opened = { id: projectId, [from]: count };
      await fetchAnew(notifications, opened);
    },
    async loadMore(direction, count) {
      const { pageInfo } = shownNotifications();
      const part = direction === 'next' ? { first: count, after: pageInfo.endCursor } : { last: count, before: pageInfo.startCursor };
      await fetchAnew(notifications, { id: projectId, ...part });
    },
    notifications: () => showPage(shownNotifications()),
    mark: (notificationIds) =>
      new Promise((resolve, reject) => {
        const variables = { input: { organizationId, projectId, notificationIds } };
        commitMutation(environment, { mutation: mark, variables, onCompleted: () => resolve(), onError: reject });
      }),
    follow: () =>
      new Promise((resolve, reject) => {
        const following = requestSubscription<{ variables: Variables; response: { notificationFeed: FeedEvent } }>(environment, {
          subscription: feed,
          variables: { organizationId, projectId },
          updater: tell as SelectorStoreUpdater<{ notificationFeed: FeedEvent }>,
          onNext(data) {
            if (data?.notificationFeed.__typename === 'FeedReady') resolve(() => following.dispose());
          },
          onError: reject,
        });
      }),
    close() {
      for (const entry of held) entry.dispose();
      close();
    },
  };
}
