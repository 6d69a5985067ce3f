import { Severity } from '../generated/prisma/enums.ts';
import { builder } from '../graph/builder.ts';
import { resolveKeyset } from '../graph/connection.ts';
import { implementPage, pageArgs } from '../graph/page.ts';
import { ProjectRef } from '../graph/project.ts';
import { type FeedEvent, openFeed } from './feed.ts';
import type { Hubs } from './hubs.ts';
import type { Notification } from './log.ts';
import { countUnread, listNotifications, markRead, pageNotifications, publishNotification } from './service.ts';

declare module '../graph/context.ts' {
  interface Services {
    readonly notifications: Hubs;
  }
}

/** What one call of `markNotificationsRead` may name (§8). */
const MAX_NOTIFICATION_IDS = 200;

const SeverityEnum = builder.enumType(Severity, { name: 'Severity' });

const NotificationRef = builder.objectRef<Notification>('Notification').implement({
  fields: (t) => ({
    id: t.exposeID('id'),
    sequence: t.exposeInt('sequence', { description: 'Counts up by one per project, without gaps, in the order of commits.' }),
    kind: t.exposeString('kind', { description: '`instance.suspended`, …' }),
    severity: t.expose('severity', { type: SeverityEnum }),
    title: t.exposeString('title'),
    body: t.exposeString('body'),
    resourceType: t.exposeString('resourceType', { nullable: true }),
    resourceId: t.exposeString('resourceId', { nullable: true }),
    data: t.expose('data', { type: 'JSONObject' }),
    created: t.expose('created', { type: 'DateTime' }),
    read: t.exposeBoolean('read', { description: 'Whether the viewer has read it.' }),
  }),
});

const NotificationPage = implementPage('NotificationPage', NotificationRef);

const NotificationFilterInput = builder.inputType('NotificationFilter', {
  fields: (t) => ({
    unread: t.boolean({ description: 'true: what the viewer has not read; false: what they have.' }),
    severity: t.field({ type: SeverityEnum }),
    kind: t.field({ type: 'Text' }),
  }),
});

builder.objectFields(ProjectRef, (t) => ({
  notifications: t.connection({
    type: NotificationRef,
    description: 'The newest first.',
    args: { filter: t.arg({ type: NotificationFilterInput }) },
    resolve: (scope, args) =>
      resolveKeyset({ args, keyOf: (node: Notification) => node.sequence, parseKey: parseSequence }, (slice) =>
        listNotifications(scope, args.filter ?? {}, slice),
      ),
  }),
  notificationPage: t.field({
    type: NotificationPage,
    description: 'The same list by page, as v1 shows it.',
    args: { ...pageArgs(t), filter: t.arg({ type: NotificationFilterInput }) },
    resolve: (scope, { filter, ...paging }) => pageNotifications(scope, { filter: filter ?? {}, ...paging }),
  }),
  unreadNotificationCount: t.int({ resolve: countUnread }),
}));

const MarkNotificationsReadInput = builder.inputType('MarkNotificationsReadInput', {
  description: 'Without `notificationIds` (or with none in it) and without `throughSequence`, all are marked.',
  fields: (t) => ({
    organizationId: t.id({ required: true }),
    projectId: t.id({ required: true }),
    notificationIds: t.field({
      type: ['UUID'],
      description: `At most ${MAX_NOTIFICATION_IDS}. Unknown and repeated ones are ignored.`,
      extensions: { maxItems: MAX_NOTIFICATION_IDS },
    }),
    throughSequence: t.int({ description: 'Marks all up to this one, so that nothing is marked that was not shown.' }),
  }),
});

const MarkNotificationsReadPayload = builder.simpleObject('MarkNotificationsReadPayload', {
  fields: (t) => ({
    marked: t.int({ description: 'How many were unread before.' }),
    unreadCount: t.int({ description: 'How many are unread now.' }),
  }),
});

const PublishNotificationInput = builder.inputType('PublishNotificationInput', {
  fields: (t) => ({
    organizationId: t.id({ required: true }),
    projectId: t.id({ required: true }),
    kind: t.field({ type: 'Name', required: true }),
    severity: t.field({ type: SeverityEnum, required: true }),
    title: t.field({ type: 'Name', required: true }),
    body: t.field({ type: 'Text', required: true, defaultValue: '' }),
    resourceType: t.field({ type: 'Name' }),
    resourceId: t.field({ type: 'Name' }),
    data: t.field({ type: 'JSONObject', description: 'An empty object when left out. Not null.', extensions: { refusesNull: true } }),
  }),
});

const PublishNotificationPayload = builder.simpleObject('PublishNotificationPayload', {
  fields: (t) => ({ notification: t.field({ type: NotificationRef }) }),
});

builder.mutationFields((t) => ({
  markNotificationsRead: t.field({
    type: MarkNotificationsReadPayload,
    nullable: true,
    description: 'Marks notifications of the project as read by the viewer.',
    args: { input: t.arg({ type: MarkNotificationsReadInput, required: true }) },
    resolve: async (_root, { input }, context) => markRead(await context.openProject(input), context.services.notifications, input),
  }),
  publishNotification: t.field({
    type: PublishNotificationPayload,
    nullable: true,
    description: 'Appends a notification to the project’s log. Needs the role `admin`.',
    args: { input: t.arg({ type: PublishNotificationInput, required: true }) },
    resolve: async (_root, { input }, context) => ({
      notification: await publishNotification(await context.openProject(input), context.services.notifications, input),
    }),
  }),
}));

const FeedEventType = builder.enumType('FeedEventType', {
  description: 'What a feed event is, as the plain-JSON feed spells it.',
  values: ['ready', 'notification', 'read', 'gap'] as const,
});

type EventOf<Type> = Extract<FeedEvent, { type: Type }>;

const FeedReady = builder.objectRef<EventOf<'ready'>>('FeedReady').implement({
  description: 'The boundary between what the log had and what comes: told once, at the start.',
  fields: (t) => ({
    type: t.expose('type', { type: FeedEventType }),
    sequence: t.exposeInt('sequence', { description: 'The last number of the log at the boundary: a cursor.' }),
    readThrough: t.exposeInt('readThrough', { description: 'All up to this one is read.' }),
    unreadCount: t.exposeInt('unreadCount', { description: 'Unread among the numbers up to `sequence`.' }),
  }),
});

const NotificationAdded = builder.objectRef<EventOf<'notification'>>('NotificationAdded').implement({
  description: 'An entry of the log, in its order.',
  fields: (t) => ({
    type: t.expose('type', { type: FeedEventType }),
    sequence: t.exposeInt('sequence', { description: 'A cursor: pass the last one received as `after` to go on behind it.' }),
    notification: t.expose('notification', { type: NotificationRef }),
  }),
});

const NotificationsRead = builder.objectRef<EventOf<'read'>>('NotificationsRead').implement({
  description: 'The viewer has read something, through whichever door.',
  fields: (t) => ({
    type: t.expose('type', { type: FeedEventType }),
    readThrough: t.exposeInt('readThrough', { description: 'All up to this one is read.' }),
    notificationIds: t.exposeIDList('notificationIds', { description: 'What was read singly, above that.' }),
    unreadCount: t.exposeInt('unreadCount', { description: 'Unread among all that the feed has told so far.' }),
  }),
});

const FeedGap = builder.objectRef<EventOf<'gap'>>('FeedGap').implement({
  description: 'Numbers that the feed cannot tell: retention has removed them, or the cursor was beyond the end of the log.',
  fields: (t) => ({
    type: t.expose('type', { type: FeedEventType }),
    from: t.exposeInt('from'),
    to: t.exposeInt('to'),
  }),
});

const eventTypes = { ready: FeedReady, notification: NotificationAdded, read: NotificationsRead, gap: FeedGap };

const FeedEventRef = builder.unionType('FeedEvent', {
  types: Object.values(eventTypes),
  resolveType: (event) => eventTypes[(event as FeedEvent).type],
});

builder.subscriptionField('notificationFeed', (t) =>
  t.field({
    type: FeedEventRef,
    description:
      'The project’s notifications, each once and in order: those after the cursor, one `FeedReady`, then those that come. ' +
      'Without `after` it starts with `FeedReady`.',
    args: {
      organizationId: t.arg.id({ required: true }),
      projectId: t.arg.id({ required: true }),
      after: t.arg.int({ description: 'The last `sequence` that the client has.', extensions: { minimum: 0 } }),
    },
    subscribe: async (_root, { after, ...ids }, context) =>
      openFeed(await context.openProject(ids), { hubs: context.services.notifications, watchAccess: context.watchAccess }, after ?? null),
    resolve: (event) => event as FeedEvent,
  }),
);

function parseSequence(text: string): number | null {
  return /^[1-9]\d{0,9}$/.test(text) ? Number(text) : null;
}
