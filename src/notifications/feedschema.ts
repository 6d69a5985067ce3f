import { builder } from '../graph/builder.ts';
import { describeValues } from '../graph/enums.ts';
import type { FeedEvent } from './events.ts';
import { openFeed } from './feed.ts';
import { MAX_EVENT_IDS } from './readstate.ts';
import { NotificationRef } from './schema.ts';

const FeedEventType = builder.enumType('FeedEventType', {
  description: 'The type of a feed event, spelled as in the plain-JSON feed.',
  values: describeValues({
    ready: 'The replay of the log is complete, or the log went back.',
    notification: 'A notification, from the replay of the log or new.',
    read: 'Notifications were marked as read, or retention has changed the unread count.',
    gap: 'A part of the log was deleted, does not exist yet, or was replaced, as the log went back.',
  }),
});

type EventOf<Type> = Extract<FeedEvent, { type: Type }>;

const FeedReady = builder.objectRef<EventOf<'ready'>>('FeedReady').implement({
  description:
    'Sent when the replay of the log is complete: new notifications follow. Sent once more where the log went back, with the cursor ' +
    'to reconnect with, before the feed ends.',
  fields: (t) => ({
    type: t.expose('type', { type: FeedEventType, description: 'Always `ready`.', extensions: { values: ['ready'] } }),
    sequence: t.exposeInt('sequence', { description: 'The last sequence of the log at this point: a cursor.' }),
    readThrough: t.exposeInt('readThrough', { description: 'All notifications up to this sequence are read.' }),
    unreadCount: t.exposeInt('unreadCount', { description: 'The number of unread notifications up to `sequence`.' }),
  }),
});

const NotificationAdded = builder.objectRef<EventOf<'notification'>>('NotificationAdded').implement({
  description: 'An entry of the log. Entries arrive in the order of the log.',
  fields: (t) => ({
    type: t.expose('type', { type: FeedEventType, description: 'Always `notification`.', extensions: { values: ['notification'] } }),
    sequence: t.exposeInt('sequence', {
      description: 'The sequence of the entry, a cursor: pass the last one received as `after` to resume after it.',
    }),
    notification: t.expose('notification', { type: NotificationRef, description: 'The entry.' }),
  }),
});

const NotificationsRead = builder.objectRef<EventOf<'read'>>('NotificationsRead').implement({
  description: 'The viewer has read notifications, through any API, or retention has changed the unread count.',
  fields: (t) => ({
    type: t.expose('type', { type: FeedEventType, description: 'Always `read`.', extensions: { values: ['read'] } }),
    readThrough: t.exposeInt('readThrough', { description: 'All notifications up to this sequence are read.' }),
    notificationIds: t.exposeIDList('notificationIds', {
      description: `The ids of the notifications after that which were read individually: at most ${MAX_EVENT_IDS}, more come in further events.`,
    }),
    unreadCount: t.exposeInt('unreadCount', {
      description: 'The number of unread notifications up to this point of the feed, also of those before its cursor.',
    }),
  }),
});

const FeedGap = builder.objectRef<EventOf<'gap'>>('FeedGap').implement({
  description:
    'Entries that the feed cannot deliver: retention has deleted them, the cursor was beyond the end of the log, or the log went back.',
  fields: (t) => ({
    type: t.expose('type', { type: FeedEventType, description: 'Always `gap`.', extensions: { values: ['gap'] } }),
    from: t.exposeInt('from', { description: 'The first sequence that cannot be delivered.' }),
    to: t.exposeInt('to', { description: 'The last one, a cursor.' }),
  }),
});

const eventTypes = { ready: FeedReady, notification: NotificationAdded, read: NotificationsRead, gap: FeedGap };

const FeedEventRef = builder.unionType('FeedEvent', {
  description: 'An event of the feed.',
  types: Object.values(eventTypes),
  resolveType: (event) => eventTypes[(event as FeedEvent).type],
});

builder.subscriptionField('notificationFeed', (t) =>
  t.field({
    type: FeedEventRef,
    description:
      'The project’s notifications, each once and in order: first those after the cursor, then the event `FeedReady` (in plain JSON ' +
      '`ready`), then new ones. Without `after`, the feed begins with that event.',
    args: {
      organizationId: t.arg.id({ required: true, description: 'The id of the organization that the project belongs to.' }),
      projectId: t.arg.id({ required: true, description: 'The id of the project.' }),
      after: t.arg.int({ description: 'The last `sequence` that the client has received.', extensions: { minimum: 0 } }),
    },
    async subscribe(_root, { after, ...ids }, { openProject, services, watchAccess, reserveDocument }) {
      const scope = await openProject(ids);
      const release = reserveDocument?.() ?? (() => {});
      try {
        const feed = openFeed(scope, { hubs: services.hubs, watchAccess }, after ?? null);
        feed.runOnEnd(release);
        return feed;
      } catch (failure) {
        release();
        throw failure;
      }
    },
    resolve: (event) => event as FeedEvent,
  }),
);
