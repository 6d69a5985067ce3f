import { initGraphQLTada, type TadaDocumentNode } from 'gql.tada';
import { print } from 'graphql';
import { createClient } from 'graphql-ws';
import type { introspection } from '../generated/graphql-env.d.ts';

const graphql = initGraphQLTada<{
  introspection: introspection;
  scalars: { DateTime: string; UUID: string; Name: string; Text: string; JSON: unknown; JSONObject: object; SafeInt: number };
}>();

const whoAmI = graphql(`query WhoAmI { viewer { id email organizations(first: 1) { nodes { id name role } } } }`);
const organization = graphql(`query Organization($id: ID!) { organization(id: $id) { currency projects { nodes { id name } } } }`);
const project = graphql(`query Project($organizationId: ID!, $id: ID!) {
  project(organizationId: $organizationId, id: $id) {
    unreadNotificationCount
    computeOverview { instancesTotal attention { tasksStuck } }
    instances(first: 2, filter: { attention: suspended }) { nodes { name status backupTrial { eligible blockers } } pageInfo { hasNextPage endCursor } }
    consoleSessions(first: 1, filter: { running: true }) { nodes { id userEmail kind clientAddresses bytesIn } }
    notifications(first: 3) { edges { cursor node { sequence severity title data created } } }
  }
}`);
const createTicket = graphql(`mutation Ticket($input: CreateWebsocketTicketInput!) {
  createWebsocketTicket(input: $input) { ticket path expiresIn }
}`);
const createDashboard = graphql(
  `mutation Create($input: CreateDashboardInput!) { createDashboard(input: $input) { dashboard { id version } } }`,
);
const updateDashboard = graphql(
  `mutation Update($input: UpdateDashboardInput!) { updateDashboard(input: $input) { dashboard { name version } } }`,
);
const patchDashboard = graphql(
  `mutation Patch($input: PatchDashboardInput!) { patchDashboard(input: $input) { dashboard { name version widgets } } }`,
);
const node = graphql(`query Node($id: ID!) { node(id: $id) { __typename id ... on Dashboard { name createdBy { id name } } } }`);
const nodes = graphql(`query Nodes($ids: [ID!]!) { nodes(ids: $ids) { __typename id } }`);
const deleteDashboard = graphql(`mutation Delete($input: DeleteDashboardInput!) { deleteDashboard(input: $input) { deletedId } }`);
const markRead = graphql(
  `mutation Mark($input: MarkNotificationsReadInput!) { markNotificationsRead(input: $input) { marked unreadCount } }`,
);
const publish = graphql(`mutation Publish($input: PublishNotificationInput!) {
  publishNotification(input: $input) { notification { sequence title } }
}`);
const publishMany = graphql(`mutation PublishMany($input: PublishNotificationsInput!) {
  publishNotifications(input: $input) { notifications { sequence title } }
}`);
const createKey = graphql(`mutation CreateKey($input: CreateApiKeyInput!) { createApiKey(input: $input) { key apiKey { id name } } }`);
const revokeKey = graphql(`mutation RevokeKey($input: RevokeApiKeyInput!) { revokeApiKey(input: $input) { apiKey { revoked } } }`);
const endSession = graphql(`mutation End($input: EndConsoleSessionInput!) {
  endConsoleSession(input: $input) { consoleSession { id state endReason } }
}`);
const renew = graphql(`mutation Renew($input: RenewCredentialInput!) { renewCredential(input: $input) { expires } }`);
const feed = graphql(`subscription Feed($organizationId: ID!, $projectId: ID!, $after: Int) {
  notificationFeed(organizationId: $organizationId, projectId: $projectId, after: $after) {
    __typename
    ... on FeedReady { sequence unreadCount }
    ... on NotificationAdded { sequence notification { title severity } }
    ... on NotificationsRead { readThrough notificationIds }
    ... on FeedGap { from to }
  }
}`);

/** All that this client says: a test compares it with the root fields that there are. */
export const documents = [
  whoAmI,
  organization,
  project,
  createTicket,
  createDashboard,
  updateDashboard,
  patchDashboard,
  node,
  nodes,
  deleteDashboard,
  markRead,
  publish,
  publishMany,
  endSession,
  createKey,
  revokeKey,
  renew,
  feed,
];

interface Home {
  readonly baseUrl: string;
  readonly token: string;
  readonly organizationId: string;
  readonly projectId: string;
  readonly webSocketImpl: unknown;
}

/** A program as a frontend would write it: every root field, typed by the published schema alone. */
export async function useEveryField({ baseUrl, token, webSocketImpl, ...place }: Home) {
  async function send<Result, Variables>(document: TadaDocumentNode<Result, Variables>, variables: Variables): Promise<Result> {
    const response = await fetch(`${baseUrl}/graphql`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ query: print(document), variables }),
    });
    const { data, errors } = await response.json();
    if (errors) throw new Error(JSON.stringify(errors));
    return data;
  }

  const { viewer } = await send(whoAmI, {});
  const { organization: home } = await send(organization, { id: place.organizationId });
  const { project: opened } = await send(project, { organizationId: place.organizationId, id: place.projectId });
  const { createWebsocketTicket: ticket } = await send(createTicket, { input: { ...place, target: 'notifications' } });
  const { createDashboard: created } = await send(createDashboard, { input: { ...place, name: 'Typed', widgets: { any: 'thing' } } });
  const { id = '', version } = created?.dashboard ?? {};
  const { updateDashboard: updated } = await send(updateDashboard, {
    input: { ...place, id, name: 'Typed again', expectedVersion: version },
  });
  const { patchDashboard: patched } = await send(patchDashboard, { input: { ...place, id, widgets: ['patched'] } });
  const { node: found } = await send(node, { id });
  const { nodes: many } = await send(nodes, { ids: [place.projectId, id, place.organizationId] });
  const { deleteDashboard: deleted } = await send(deleteDashboard, { input: { ...place, id } });
  const { publishNotifications: published } = await send(publishMany, {
    input: { ...place, notifications: ['One', 'Two'].map((title) => ({ kind: 'test.typed', severity: 'info' as const, title })) },
  });
  const { createApiKey: key } = await send(createKey, { input: { name: 'typed' } });
  const { revokeApiKey: revoked } = await send(revokeKey, { input: { id: key?.apiKey.id ?? '' } });
  const endsNothing = await send(endSession, { input: { ...place, id: place.projectId } }).then(
    () => false,
    ({ message }: Error) => message.includes('not_found'),
  );

  const socket = createClient({
    url: `${baseUrl.replace('http', 'ws')}/graphql`,
    webSocketImpl,
    connectionParams: { authorization: `Bearer ${token}` },
  });
  async function* listen<Result, Variables extends Record<string, unknown>>(
    document: TadaDocumentNode<Result, Variables>,
    variables: Variables,
  ) {
    for await (const { data, errors } of socket.iterate<Result>({ query: print(document), variables })) {
      if (!data) throw new Error(JSON.stringify(errors));
      yield data;
    }
  }
  const told: string[] = [];
  let isRenewed = false;
  for await (const { notificationFeed: event } of listen(feed, place)) {
    told.push(event.__typename === 'NotificationAdded' ? event.notification.title : event.__typename);
    if (event.__typename === 'FeedReady') {
      for await (const { renewCredential } of listen(renew, { input: { token } })) isRenewed = Boolean(renewCredential?.expires);
      await send(publish, { input: { ...place, kind: 'test.typed', severity: 'info', title: 'Told live' } });
    }
    if (event.__typename === 'NotificationAdded') await send(markRead, { input: { ...place, throughSequence: event.sequence } });
    if (event.__typename === 'NotificationsRead') break;
  }
  await socket.dispose();

  return {
    email: viewer?.email,
    currency: home?.currency,
    instances: opened?.computeOverview.instancesTotal,
    suspended: opened?.instances.nodes.map(({ status }) => status),
    severities: opened?.notifications.edges.map(({ node }) => node.severity).length,
    expiresIn: ticket?.expiresIn,
    updated: updated?.dashboard.name,
    patched: { name: patched?.dashboard.name, widgets: patched?.dashboard.widgets },
    found: found?.__typename === 'Dashboard' ? found.name : null,
    many: many?.map((one) => one?.__typename),
    published: published?.notifications.map(({ title }) => title),
    isDeleted: deleted?.deletedId === id,
    isRevoked: revoked?.apiKey.revoked !== null,
    isRenewed,
    consoles: opened?.consoleSessions.nodes.length,
    endsNothing,
    told,
  };
}
