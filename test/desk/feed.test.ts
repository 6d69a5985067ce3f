import type { FeedEvent } from 'portico-client';
import { expect, it } from 'vitest';
import { createCache } from '../../web/src/graphql/cache.ts';
import { Intake, markRead, markReadThrough } from '../../web/src/live/intake.ts';
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

it('a project’s notifications that have been read up to a sequence number leave those of other projects unread', () => {
  const cache = createCache();
  const write = (id: string, sequence: number, projectId: string) => {
    const project = { __typename: 'Project', id: projectId };
    const row = { __typename: 'Notification', id, sequence, kind: 'k', severity: 'info', title: 't', created: '', read: false, project };
    cache.writeFragment({ fragment: NotificationRow, data: row as never });
  };
  write('earlier', 1, 'p');
  write('last', 2, 'p');
  write('later', 3, 'p');
  write('elsewhere', 1, 'q');
  const listRead = () =>
    ['earlier', 'last', 'later', 'elsewhere'].filter(
      (id) => cache.readFragment({ fragment: NotificationRow, from: { __typename: 'Notification', id } })?.read,
    );
  expect(listRead()).toEqual([]);
  markReadThrough(cache, 'p', 2);
  expect(listRead()).toEqual(['earlier', 'last']);
  const intake = new Intake(cache, 'q');
  intake.take([{ type: 'ready', sequence: 1, readThrough: 1, unreadCount: 0 }], () => {});
  expect(listRead()).toEqual(['earlier', 'last', 'elsewhere']);
});

it('a notification stays read when a response arrives that was written before', () => {
  const cache = createCache();
  const row = {
    __typename: 'Notification',
    id: 'n',
    sequence: 1,
    kind: 'k',
    severity: 'info',
    title: 't',
    created: '',
    read: false,
    project: null,
  };
  // Apollo writes the response to a second request so.
  const respond = (overwrite: boolean) => cache.writeFragment({ fragment: NotificationRow, data: row as never, overwrite });
  const isRead = () => cache.readFragment({ fragment: NotificationRow, from: { __typename: 'Notification', id: 'n' } })?.read;
  respond(false);
  expect(isRead()).toBe(false);
  markRead(cache, ['n']);
  for (const overwrite of [false, true]) {
    respond(overwrite);
    expect(isRead()).toBe(true);
  }
});
