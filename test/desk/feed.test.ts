import type { FeedEvent } from 'portico-client';
import { expect, it } from 'vitest';
import { createCache } from '../../web/src/graphql/cache.ts';
import { Intake, markRead } from '../../web/src/live/intake.ts';
import { NotificationRow } from '../../web/src/pages/notifications/row.ts';

it('the desk resumes the feed after the last event that has a cursor', () => {
  const intake = new Intake({ identify: () => 'Project:p' } as never, 'p');
  const cursorAfter = (event: object) => {
    intake.reach(event as FeedEvent);
    return intake.cursor;
  };
  const read = { type: 'read', readThrough: 8, notificationIds: [], unreadCount: 0 };
  const events = [{ type: 'ready', sequence: 7 }, { type: 'notification', sequence: 8 }, read, {}, { type: 'gap', from: 9, to: 11 }, {}];
  expect([intake.cursor, ...events.map(cursorAfter)]).toEqual([null, 7, 8, 8, 8, 11, 11]);
});

it('a notification stays read when a response arrives that was written before', () => {
  const cache = createCache();
  const row = { __typename: 'Notification', id: 'n', sequence: 1, kind: 'k', severity: 'info', title: 't', created: '', read: false };
  // Apollo writes the response to a second request so.
  const respond = (overwrite: boolean) => cache.writeFragment({ fragment: NotificationRow, data: row as never, overwrite });
  const isRead = () => cache.readFragment({ fragment: NotificationRow, from: { __typename: 'Notification', id: 'n' } })?.read;
  respond(false);
  expect(isRead()).toBe(false);
  markRead(cache, { ids: ['n'], through: 0 });
  for (const overwrite of [false, true]) {
    respond(overwrite);
    expect(isRead()).toBe(true);
  }
});
