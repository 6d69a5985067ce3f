import { access, constants, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { CursorStore, FeedEvent, FeedNotification } from '../index.ts';
import { describeState } from '../state.ts';
import { CommandFailure } from './failure.ts';
import { note, paint, type Style, write, writeEvent } from './output.ts';
import { replaceFile } from './replace.ts';
import type { Session } from './session.ts';
import { clean, formatTime } from './text.ts';

export interface FollowOptions {
  readonly json?: boolean;
  readonly unread?: boolean;
  readonly severity?: string;
  readonly kind?: string;
  readonly after?: number;
  readonly cursor?: string;
}

/** The length of most kinds. */
const KIND_COLUMNS = 24;

export const severityStyles: Readonly<Record<FeedNotification['severity'], Style>> = { info: 'blue', warning: 'yellow', critical: 'red' };

/** Prints the events of the project until the program is stopped or retrying cannot help. */
export async function follow(session: Session, options: FollowOptions): Promise<void> {
  const { id: project, name } = await session.project();
  const feed = await session.feed({
    project,
    ...(options.after !== undefined && { after: options.after }),
    ...(options.cursor !== undefined && { store: keepIn(options.cursor) }),
    onState: (state) => state.name !== 'ended' && note(`[${name}: ${describeState(state)}]`),
  });
  for await (const event of feed) {
    if (event.type === 'notification' && !isWanted(event, options)) continue;
    if (options.json) await writeEvent(toV1(event));
    else await show(event);
  }
}

const isWanted = ({ notification }: Extract<FeedEvent, { type: 'notification' }>, { unread, severity, kind }: FollowOptions): boolean =>
  !(unread && notification.read) && (!severity || notification.severity === severity) && (!kind || notification.kind === kind);

async function show(event: FeedEvent): Promise<void> {
  if (event.type === 'gap') return note(`[${event.from} to ${event.to} are no longer kept]`);
  if (event.type !== 'notification') return note(`[${event.unreadCount} unread]`);
  const { severity, kind, title, created } = event.notification;
  const place = clean(`${event.sequence}  ${formatTime(created)}`);
  const marked = paint(clean(severity).padEnd('critical'.length), severityStyles[severity]);
  await write(`${place}  ${marked}  ${clean(kind).padEnd(KIND_COLUMNS)}  ${clean(title)}\n`);
}

/** The event with v1's field names. */
function toV1(event: FeedEvent): object {
  if (event.type === 'ready') {
    const { type, sequence, readThrough, unreadCount } = event;
    return { type, sequence, read_through: readThrough, unread_count: unreadCount };
  }
  if (event.type === 'read') {
    const { type, readThrough, notificationIds, unreadCount } = event;
    return { type, read_through: readThrough, notification_ids: notificationIds, unread_count: unreadCount };
  }
  if (event.type === 'gap') return event;
  const { type, sequence, notification } = event;
  const { resourceType: resource_type, resourceId: resource_id, data, created, read, ...before } = notification;
  return { type, sequence, notification: { ...before, resource_type, resource_id, data, created, read } };
}

/** A cursor store in a file, which holds the last sequence that was printed. */
function keepIn(path: string): CursorStore {
  const failToWrite = (failure: NodeJS.ErrnoException): never => {
    throw new CommandFailure(`${path} cannot be written (${failure.code}).`);
  };
  return {
    async load() {
      const text = await readFile(path, 'utf8').catch((failure: NodeJS.ErrnoException) => {
        if (failure.code === 'ENOENT') return '';
        throw new CommandFailure(`${path} cannot be read (${failure.code}).`);
      });
      // The file is replaced by another one of its folder.
      await access(dirname(path), constants.W_OK).catch(failToWrite);
      if (text.trim() === '') return null;
      if (!/^\d{1,15}\s*$/.test(text)) throw new CommandFailure(`${path} holds no sequence.`);
      return Number(text);
    },
    save: (sequence) => replaceFile(path, `${sequence}\n`).catch(failToWrite),
  };
}
