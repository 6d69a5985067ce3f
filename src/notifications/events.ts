import type { Shareable } from '../graph/source.ts';
import type { Notification } from './log.ts';

/** The replay of the log is complete, or the log went back. */
export interface ReadyEvent {
  readonly type: 'ready';
  readonly sequence: number;
  readonly readThrough: number;
  readonly unreadCount: number;
}

/** A notification, from the replay of the log or new. */
export interface NotificationEvent extends Shareable {
  readonly type: 'notification';
  readonly sequence: number;
  readonly notification: Notification;
}

/** Notifications were marked as read, or retention has changed the unread count. */
export interface ReadEvent {
  readonly type: 'read';
  readonly readThrough: number;
  readonly notificationIds: readonly string[];
  readonly unreadCount: number;
}

/** A part of the log, both ends included, that was deleted, does not exist yet, or was replaced. */
export interface GapEvent {
  readonly type: 'gap';
  readonly from: number;
  readonly to: number;
}

/** The events of a feed, in the order of the log. */
export type FeedEvent = ReadyEvent | NotificationEvent | ReadEvent | GapEvent;
