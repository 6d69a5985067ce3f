import type { FeedEvent } from 'portico-client';
import { expect, it } from 'vitest';
import { Intake } from '../../web/src/live/intake.ts';

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
