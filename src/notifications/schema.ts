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

const SeverityEnum = builder.enumType(Severity, { name: 'Severity', description: 'How urgent a notification is.' });

const NotificationRef = builder.objectRef<Notification>('Notification').implement({
  description: 'An entry of a project’s notification log. All who may see the project see it.',
  fields: (t) => ({
    id: t.exposeID('id', { description: 'A UUIDv7.' }),
    sequence: t.exposeInt('sequence', { description: 'Counts up by one per project, without gaps, in the order of commits.' }),
    kind: t.exposeString('kind', { description: 'What has happened: `instance.suspended`, `backup.failed`, … An open list.' }),
    severity: t.expose('severity', { type: SeverityEnum, description: 'How urgent it is.' }),
    title: t.exposeString('title', { description: 'One line.' }),
    body: t.exposeString('body', { description: 'The text below the title; empty where there is none.' }),
    resourceType: t.exposeString('resourceType', { nullable: true, description: 'What it is about: `instance`, `invoice`, …' }),
    resourceId: t.exposeString('resourceId', { nullable: true, description: 'Which one; not always a UUID.' }),
    data: t.expose('data', { type: 'JSONObject', description: 'Details, by kind.' }),
    created: t.expose('created', { type: 'DateTime', description: 'When it was published.' }),
    read: t.exposeBoolean('read', { description: 'Whether the viewer has read it.' }),
  }),
});

const NotificationPage = implementPage('NotificationPage', NotificationRef);

const NotificationFilterInput = builder.inputType('NotificationFilter', {
  description: 'What holds for all notifications of a list.',
  fields: (t) => ({
    unread: t.boolean({ description: 'true: what the viewer has not read; false: what they have.' }),
    severity: t.field({ type: SeverityEnum, description: 'Of this severity alone.' }),
    kind: t.field({ type: 'Text', description: 'Of this kind alone.' }),
  }),
});

builder.objectFields(ProjectRef, (t) => ({
  notifications: t.connection({
    type: NotificationRef,
    description: 'The notifications of the project, the newest first.',
    args: { filter: t.arg({ type: NotificationFilterInput, description: 'Only these.' }) },
    resolve: (scope, args) =>
      resolveKeyset({ args, keyOf: (node: Notification) => node.sequence, parseKey: parseSequence }, (slice) =>
        listNotifications(scope, args.filter ?? {}, slice),
      ),
  }),
  notificationPage: t.field({
    type: NotificationPage,
    description: 'The notifications of the project, the newest first, by page.',
    args: { ...pageArgs(t), filter: t.arg({ type: NotificationFilterInput, description: 'Only these.' }) },
    resolve: (scope, { filter, ...paging }) => pageNotifications(scope, { filter: filter ?? {}, ...paging }),
  }),
  unreadNotificationCount: t.int({ description: 'How many notifications the viewer has not read.', resolve: countUnread }),
}));

const MarkNotificationsReadInput = builder.inputType('MarkNotificationsReadInput', {
  description: 'Without `notificationIds` (or with none in it) and without `throughSequence`, all are marked.',
  fields: (t) => ({
    organizationId: t.id({ required: true, description: 'The organization that the project belongs to.' }),
    projectId: t.id({ required: true, description: 'The project.' }),
    notificationIds: t.field({
      type: ['UUID'],
      description: `The notifications to mark, at most ${MAX_NOTIFICATION_IDS}: empty or left out, all unread ones. Unknown and repeated ids are ignored.`,
      extensions: { maxItems: MAX_NOTIFICATION_IDS },
    }),
    throughSequence: t.int({ description: 'Marks all up to this one, so that nothing is marked that was not shown.' }),
  }),
});

const MarkNotificationsReadPayload = builder.simpleObject('MarkNotificationsReadPayload', {
  description: 'What marking has changed.',
  fields: (t) => ({
    marked: t.int({ description: 'How many of them were unread before.' }),
    unreadCount: t.int({ description: 'How many notifications of the project are unread now.' }),
  }),
});

const PublishNotificationInput = builder.inputType('PublishNotificationInput', {
  description: 'A notification to be published.',
  fields: (t) => ({
    organizationId: t.id({ required: true, description: 'The organization that the project belongs to.' }),
    projectId: t.id({ required: true, description: 'The project.' }),
    kind: t.field({ type: 'Name', required: true, description: 'What has happened: `instance.suspended`, …' }),
    severity: t.field({ type: SeverityEnum, required: true, description: 'How urgent it is.' }),
    title: t.field({ type: 'Name', required: true, description: 'One line.' }),
    body: t.field({ type: 'Text', required: true, defaultValue: '', description: 'The text below the title.' }),
    resourceType: t.field({ type: 'Name', description: 'What it is about: `instance`, `invoice`, …' }),
    resourceId: t.field({ type: 'Name', description: 'Which one.' }),
    data: t.field({
      type: 'JSONObject',
      description: 'Details, by kind. An empty object when left out. Not null.',
      extensions: { refusesNull: true },
    }),
  }),
});

const PublishNotificationPayload = builder.simpleObject('PublishNotificationPayload', {
  description: 'What `publishNotification` answers.',
  fields: (t) => ({ notification: t.field({ type: NotificationRef, description: 'The notification that was published.' }) }),
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
    type: t.expose('type', { type: FeedEventType, description: 'Always `ready`.', extensions: { values: ['ready'] } }),
    sequence: t.exposeInt('sequence', { description: 'The last number of the log at the boundary: a cursor.' }),
    readThrough: t.exposeInt('readThrough', { description: 'All up to this one is read.' }),
    unreadCount: t.exposeInt('unreadCount', { description: 'Unread among the numbers up to `sequence`.' }),
  }),
});

const NotificationAdded = builder.objectRef<EventOf<'notification'>>('NotificationAdded').implement({
  description: 'An entry of the log, in its order.',
  fields: (t) => ({
    type: t.expose('type', { type: FeedEventType, description: 'Always `notification`.', extensions: { values: ['notification'] } }),
    sequence: t.exposeInt('sequence', { description: 'A cursor: pass the last one received as `after` to go on behind it.' }),
    notification: t.expose('notification', { type: NotificationRef, description: 'The entry itself.' }),
  }),
});

const NotificationsRead = builder.objectRef<EventOf<'read'>>('NotificationsRead').implement({
  description: 'The viewer has read something, through whichever door.',
  fields: (t) => ({
    type: t.expose('type', { type: FeedEventType, description: 'Always `read`.', extensions: { values: ['read'] } }),
    readThrough: t.exposeInt('readThrough', { description: 'All up to this one is read.' }),
    notificationIds: t.exposeIDList('notificationIds', { description: 'What was read singly, above that.' }),
    unreadCount: t.exposeInt('unreadCount', { description: 'Unread among all that the feed has told so far.' }),
  }),
});

const FeedGap = builder.objectRef<EventOf<'gap'>>('FeedGap').implement({
  description: 'Numbers that the feed cannot tell: retention has removed them, or the cursor was beyond the end of the log.',
  fields: (t) => ({
    type: t.expose('type', { type: FeedEventType, description: 'Always `gap`.', extensions: { values: ['gap'] } }),
    from: t.exposeInt('from', { description: 'The first number that cannot be told.' }),
    to: t.exposeInt('to', { description: 'The last one: a cursor.' }),
  }),
});

const eventTypes = { ready: FeedReady, notification: NotificationAdded, read: NotificationsRead, gap: FeedGap };

const FeedEventRef = builder.unionType('FeedEvent', {
  description: 'What the feed tells.',
  types: Object.values(eventTypes),
  resolveType: (event) => eventTypes[(event as FeedEvent).type],
});

builder.subscriptionField('notificationFeed', (t) =>
  t.field({
    type: FeedEventRef,
    description:
      'The project’s notifications, each once and in order: those after the cursor, the boundary (`FeedReady`, in plain JSON ' +
      '`ready`), then those that come. Without `after` it starts with the boundary.',
    args: {
      organizationId: t.arg.id({ required: true, description: 'The organization that the project belongs to.' }),
      projectId: t.arg.id({ required: true, description: 'The project.' }),
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
