import { type Command, Option } from 'commander';
import type { components } from '../v1.ts';
import { CommandFailure, isUncertain } from './failure.ts';
import { type FollowOptions, follow, severityStyles } from './follow.ts';
import { readData, readNumber } from './input.ts';
import { noteMore, type PageOptions, readPage, withPages } from './lists.ts';
import { exactJson, parseExactly } from './numbers.ts';
import { type GlobalOptions, openSession } from './options.ts';
import { note, writeDocument, writeLine, writeTable, writeValue } from './output.ts';
import { formatTime } from './text.ts';

type Page = components['schemas']['NotificationPage'];
type ListOptions = GlobalOptions & PageOptions & FollowOptions & { readonly follow?: boolean };

const severityOption = (text: string) => new Option('--severity <severity>', text).choices(['info', 'warning', 'critical']);

export function addNotifications(program: Command): void {
  const list = program
    .command('notifications')
    .description('list the notifications of the project, the newest first, or follow them')
    .option('--unread', 'only those that you have not read')
    .addOption(severityOption('only those of this severity'))
    .option('--kind <kind>', 'only those of this kind, such as instance.suspended')
    .option('--follow', 'show what comes from now on, through every break, until Ctrl-C')
    .addOption(new Option('--after <sequence>', 'with --follow: begin behind this one').argParser(readNumber(0)))
    .option('--cursor <file>', 'with --follow: save the position in this file, and continue from there');
  withPages(list).action(async (_options: unknown, command: Command) => {
    const options = command.optsWithGlobals<ListOptions>();
    if (!options.follow && (options.after !== undefined || options.cursor !== undefined))
      throw new CommandFailure('--after and --cursor are for --follow.', 2);
    const session = await openSession(options);
    if (options.follow) return follow(session, options);
    const { unread, severity, kind } = options;
    const text = await readPage(session, 'notifications', options, { unread, severity, kind });
    if (options.json) return writeDocument(text);
    const listed = JSON.parse(text) as Page;
    const rows = listed.results.map((one) => [
      String(one.sequence),
      formatTime(one.created),
      { text: one.severity, style: severityStyles[one.severity] },
      one.read ? '' : 'unread',
      one.id,
      one.kind,
      one.title,
    ]);
    await writeTable(['#', 'CREATED (UTC)', 'SEVERITY', 'READ', 'ID', 'KIND', 'TITLE'], rows);
    noteMore(listed);
  });
  addRead(program);
  addPublish(program);
}

function addRead(program: Command): void {
  program
    .command('read [ids...]')
    .description('mark notifications as read')
    .option('--all', 'all that are unread')
    .action(async (ids: string[], _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<GlobalOptions & { readonly all?: boolean }>();
      if (ids.length === 0 ? !options.all : options.all) throw new CommandFailure('Say either ids or --all.', 2);
      const session = await openSession(options);
      const body = JSON.stringify({ notification_ids: ids });
      const { text } = await session.v1('POST', 'notifications/read', { body });
      if (options.json) return writeDocument(text);
      const { marked, unread_count } = JSON.parse(text) as components['schemas']['MarkNotificationsReadResult'];
      await writeLine(`${marked} marked as read, ${unread_count} unread.`);
    });
}

interface PublishOptions {
  readonly kind: string;
  readonly severity: string;
  readonly body?: string;
  readonly data?: string;
  readonly resourceType?: string;
  readonly resourceId?: string;
  readonly idempotencyKey?: string;
}

/** The selection, aliased to v1's field names. */
const published = 'id sequence kind severity title body resource_type: resourceType resource_id: resourceId data created read';

function addPublish(program: Command): void {
  program
    .command('publish <title>')
    .description('publish a notification to all who see the project')
    .requiredOption('--kind <kind>', 'what has happened, such as maintenance.scheduled')
    .addOption(severityOption('how urgent it is').default('info'))
    .option('--body <text>', 'the text below the title')
    .option('--data <json>', 'details: a JSON object, @file, or - for standard input')
    .option('--resource-type <type>', 'what it is about, such as instance')
    .option('--resource-id <id>', 'which one')
    .option('--idempotency-key <key>', 'what is sent again with the same key is done once')
    .action(async (title: string, _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<GlobalOptions & PublishOptions>();
      const { kind, severity, body, resourceType, resourceId } = options;
      const session = await openSession(options);
      const data = options.data === undefined ? undefined : parseExactly(await readData(options.data));
      const { id: projectId, organizationId } = await session.project();
      const idempotencyKey = options.idempotencyKey ?? crypto.randomUUID();
      const input = { organizationId, projectId, kind, severity, title, body, data, resourceType, resourceId, idempotencyKey };
      const document = `mutation ($input: PublishNotificationInput!) { publishNotification(input: $input) { notification { ${published} } } }`;
      type Data = { publishNotification: { notification: components['schemas']['Notification'] } };
      const { publishNotification } = await session.query<Data>(document, { input }, exactJson).catch((failure: unknown) => {
        if (isUncertain(failure))
          note(`Whether it was published is told by sending it again with --idempotency-key ${idempotencyKey}: it is published once.`);
        throw failure;
      });
      const { notification } = publishNotification;
      if (options.json) return writeValue(notification);
      await writeLine(`Published as number ${notification.sequence}: ${notification.id}`);
    });
}
