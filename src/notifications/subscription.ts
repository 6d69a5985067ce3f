import { builder } from '../graph/builder.ts';
import { describeValues } from '../graph/enums.ts';
import { type FeedEvent, openFeed } from './feed.ts';
import { MAX_EVENT_IDS } from './log.ts';
import { NotificationRef } from './schema.ts';

const FeedEventType = builder.enumType('FeedEventType', {
  description: 'What a feed event is, as the plain-JSON feed spells it.',
  values: describeValues({
    ready: 'What the log had is told.',
    notification: 'A notification of the log, or a new one.',
    read: 'Something was marked as read.',
    gap: 'A part of the log is gone, or has not come yet.',
  }),
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
    notificationIds: t.exposeIDList('notificationIds', {
      description: `What was read singly, above that: at most ${MAX_EVENT_IDS} of them, more come in further events.`,
    }),
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
    async subscribe(_root, { after, ...ids }, { openProject, services, watchAccess, reserveDocument }) {
      const feed = openFeed(await openProject(ids), { hubs: services.notifications, watchAccess }, after ?? null);
      if (reserveDocument) feed.runOnEnd(reserveDocument());
      return feed;
    },
    resolve: (event) => event as FeedEvent,
  }),
);
