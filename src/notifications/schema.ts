import type { ProjectScope } from '../access/scope.ts';
import type { Severity } from '../generated/prisma/enums.ts';
import { builder } from '../graph/builder.ts';
import { implementConnection } from '../graph/connectionfield.ts';
import { pageCost } from '../graph/cost.ts';
import { describeValues } from '../graph/enums.ts';
import { type FieldReader, openReader } from '../graph/fieldreader.ts';
import { idempotencyKey, runIdempotently } from '../graph/idempotency.ts';
import { resolveList, type Slice } from '../graph/keyset.ts';
import { loadInProject, loadNodeInProject, NodeRef, registerNode } from '../graph/node.ts';
import { implementPage, pageArgs } from '../graph/pagefield.ts';
import { ProjectRef, projectFields } from '../graph/project.ts';
import { selectsAny } from '../graph/selection.ts';
import { Fault } from '../kernel/fault.ts';
import type { Database } from '../platform/database.ts';
import { countByResource, listByResource } from './byresource.ts';
import { type NotificationFilter, parseFilter } from './filter.ts';
import { type FoundNotification, findNotifications } from './find.ts';
import { heavyFields } from './heavycolumns.ts';
import type { Hubs } from './hubs.ts';
import type { Notification } from './log.ts';
import { countNotificationsByProject, listNotificationsByProject, pageNotificationsByProject } from './manyprojects.ts';
import { countUnread, findUnread, type MarkResult, markRead } from './marking.ts';
import { listNotifications, pageNotifications } from './oneproject.ts';

declare module '../graph/context.ts' {
  interface Services {
    readonly hubs: Hubs;
  }
}

/** The most ids in one call of `markNotificationsRead` (§8). */
const MAX_NOTIFICATION_IDS = 200;

export const SeverityEnum = builder.enumType('Severity', {
  description: 'How urgent a notification is.',
  values: describeValues<Severity>({
    info: 'For information.',
    warning: 'Needs to be looked at.',
    critical: 'Needs immediate action.',
  }),
});

/** A notification with its project; the events of a feed are shared, and have none. */
export type ProjectNotification = Notification & { readonly projectId?: string };

/** Adds the project's id to the rows themselves. */
export function addProjectId({ projectId }: Pick<ProjectScope, 'projectId'>, rows: readonly Notification[]): FoundNotification[] {
  return rows.map((row) => Object.assign(row, { projectId }));
}

export const NotificationRef = builder.objectRef<ProjectNotification>('Notification').implement({
  description: 'An entry of a project’s notification log. It is visible to everyone who may see the project.',
  interfaces: [NodeRef],
  fields: (t) => ({
    id: t.exposeID('id', { description: 'The id of the notification, a UUIDv7.' }),
    project: t.field({
      type: ProjectRef,
      nullable: true,
      description:
        'The project that it belongs to. Null in a feed, whose events are shared by its subscribers: there it is the project of the feed.',
      resolve: ({ projectId }, _args, { findProject }) => (projectId === undefined ? null : findProject(projectId)),
    }),
    sequence: t.exposeInt('sequence', {
      description: 'The number of the entry in the project’s log. It increases by one, without gaps, in the order of commits.',
    }),
    kind: t.exposeString('kind', { description: 'What has happened: `instance.suspended`, `backup.failed`, … Other values may occur.' }),
    severity: t.expose('severity', { type: SeverityEnum, description: 'How urgent it is.' }),
    title: t.exposeString('title', { description: 'The title: at most 500 characters.' }),
    body: t.exposeString('body', { description: 'The text below the title; empty if there is none.' }),
    resourceType: t.exposeString('resourceType', {
      nullable: true,
      description: 'The type of what it is about: `instance`, `invoice`, …; null if it is about nothing.',
    }),
    resourceId: t.exposeString('resourceId', {
      nullable: true,
      description: 'The id of what it is about, which is not always a UUID; null if it is about nothing.',
    }),
    resource: t.field({
      type: NodeRef,
      nullable: true,
      description:
        'The object of the project that it is about; null if that no longer exists, is not visible, or is not an object of this API. ' +
        'Always null in a feed, whose events are delivered without further reads: use `node(id)`.',
      resolve: ({ projectId, resourceId }, _args, context, info) =>
        projectId === undefined || resourceId === null
          ? null
          : loadNodeInProject(context, { scope: context.findProject(projectId), id: resourceId }, info),
    }),
    data: t.expose('data', { type: 'JSONObject', description: 'Details, which depend on the kind.' }),
    created: t.expose('created', { type: 'DateTime', description: 'When it was published.' }),
    read: t.exposeBoolean('read', { description: 'Whether the viewer has read it.' }),
  }),
});

registerNode('Notification', {
  inProject: findNotifications,
  heavyFields,
});

const NotificationConnection = implementConnection('Notification', NotificationRef);
const NotificationPage = implementPage('NotificationPage', NotificationRef);

const NotificationFilterInput = builder.inputType('NotificationFilter', {
  description: 'Filters a list of notifications. All conditions apply.',
  fields: (t) => ({
    unread: t.boolean({ description: 'true: only those that the viewer has not read; false: only those that they have read.' }),
    severity: t.field({ type: SeverityEnum, description: 'Only those of this severity.' }),
    kind: t.field({
      type: 'Text',
      description: 'Only those of this kind: at most 255 characters. An empty text does not filter.',
      extensions: { maxLength: 255 },
    }),
  }),
});

/** The notifications of each project: those of one by a statement that reads sequences and rows together. */
async function loadNotifications(
  database: Database,
  scopes: readonly ProjectScope[],
  part: { filter: NotificationFilter; slice: Slice<number> },
  reader: FieldReader,
): Promise<ProjectNotification[][]> {
  const [only] = scopes;
  if (!only || scopes.length > 1) return listNotificationsByProject(database, scopes, part, reader);
  return [addProjectId(only, await listNotifications(only, part, reader))];
}

/** One page of the notifications of each project; a single project has a statement of its own, as above. */
const loadPages: typeof pageNotificationsByProject = async (database, scopes, paging, reader) => {
  const [only] = scopes;
  if (!only || scopes.length > 1) return pageNotificationsByProject(database, scopes, paging, reader);
  const page = await pageNotifications(only, paging, reader);
  return [{ ...page, results: addProjectId(only, page.results) }];
};

builder.objectFields(ProjectRef, (t) => ({
  notifications: t.connection(
    {
      type: NotificationRef,
      description: 'The notifications of the project, the newest first.',
      args: { filter: t.arg({ type: NotificationFilterInput, description: 'Only items that match this filter.' }) },
      resolve: (scope, { filter: given, ...args }, context, info) => {
        const filter = parseFilter(given);
        const reader = openReader(context, info, heavyFields);
        const count = () => context.loadByProject(countNotificationsByProject, scope, filter);
        const keyset = { args, keyOf: (node: Notification) => node.sequence, parseKey: parseSequence, count };
        return resolveList(keyset, (slice) => context.loadByProject(loadNotifications, scope, { filter, slice }, reader));
      },
    },
    NotificationConnection,
  ),
  notificationPage: t.field({
    type: NotificationPage,
    description: 'The notifications of the project, the newest first, by page.',
    complexity: pageCost,
    args: { ...pageArgs(t), filter: t.arg({ type: NotificationFilterInput, description: 'Only items that match this filter.' }) },
    async resolve(scope, { filter, ...paging }, context, info) {
      const reader = openReader(context, info, heavyFields);
      const page = await context.loadByProject(loadPages, scope, { filter: parseFilter(filter), ...paging }, reader);
      if (!page) throw Fault.notFound();
      return page;
    },
  }),
  unreadNotificationCount: t.int({
    description: 'The number of notifications that the viewer has not read.',
    resolve: (scope, _args, context) => context.loadByProject(countUnread, scope),
  }),
}));

builder.prismaObjectField('Instance', 'notifications', (t) =>
  t.connection(
    {
      type: NotificationRef,
      description: 'The notifications about the instance, the newest first.',
      resolve: ({ id, projectId }, args, context, info) => {
        const reader = openReader(context, info, heavyFields);
        const count = () => context.loadInScope(countByResource, projectId, id);
        const keyset = { args, keyOf: (node: Notification) => node.sequence, parseKey: parseSequence, count };
        return resolveList(keyset, (slice) => context.loadInScope(listByResource, projectId, id, slice, reader));
      },
    },
    NotificationConnection,
  ),
);

const describeIds = (withoutIds: string) =>
  `The ids of the notifications to mark, at most ${MAX_NOTIFICATION_IDS}. ${withoutIds} Unknown and repeated ids are ignored.`;

const MarkNotificationsReadInput = builder.inputType('MarkNotificationsReadInput', {
  description: 'The notifications to mark: those that are named by id, or all up to a sequence, or all.',
  fields: (t) => ({
    ...projectFields(t),
    notificationIds: t.field({
      type: ['UUID'],
      description: describeIds('Empty or omitted: all up to `throughSequence`, or without that all unread ones.'),
      extensions: { maxItems: MAX_NOTIFICATION_IDS, v1Description: describeIds('Empty or omitted: all unread ones.') },
    }),
    throughSequence: t.int({
      description:
        'Marks all notifications up to this sequence, so that none is marked that the user has not been shown. Ignored beside `notificationIds`.',
    }),
    idempotencyKey: idempotencyKey(t),
  }),
});

/** The result of marking, and the scope in which it was done. */
interface Marking extends MarkResult {
  readonly scope: ProjectScope;
  /** The named notifications that were unread. */
  readonly changedIds: readonly string[];
}

const MarkNotificationsReadPayload = builder.objectRef<Marking>('MarkNotificationsReadPayload').implement({
  description: 'The result of marking notifications as read.',
  fields: (t) => ({
    marked: t.exposeInt('marked', { description: 'How many of the marked notifications were unread before.' }),
    unreadCount: t.exposeInt('unreadCount', { description: 'The number of notifications of the project that are unread now.' }),
    project: t.expose('scope', { type: ProjectRef, description: 'The project, with its current unread count.' }),
    notifications: t.field({
      type: [NotificationRef],
      description: 'The notifications that were named by id and unread before; without ids, none.',
      complexity: { field: 1, multiplier: MAX_NOTIFICATION_IDS },
      resolve: async ({ scope, changedIds }, _args, context, info) => {
        const rows = await Promise.all(
          changedIds.map((id) => loadInProject<ProjectNotification>(context, 'Notification', { scope, id }, info)),
        );
        return rows.filter((row) => row !== null);
      },
    }),
  }),
});

const changedField: ReadonlySet<string> = new Set(['notifications']);

builder.mutationField('markNotificationsRead', (t) =>
  t.field({
    type: MarkNotificationsReadPayload,
    nullable: true,
    description: 'Marks notifications of the project as read by the viewer.',
    args: { input: t.arg({ type: MarkNotificationsReadInput, required: true, description: 'The notifications to mark.' }) },
    resolve: async (_root, { input }, context, info) => {
      const marking = await runIdempotently({ input, context, info }, async ({ openProject, services }) => {
        const scope = await openProject(input);
        const ids = input.notificationIds ?? [];
        const changedIds = ids.length > 0 && selectsAny(info, changedField) ? await findUnread(scope, ids) : [];
        return { ...(await markRead(scope, services.hubs, input)), changedIds };
      });
      return marking && { ...marking, scope: await context.openProject(input) };
    },
  }),
);

function parseSequence(text: string): number | null {
  return /^[1-9]\d{0,9}$/.test(text) ? Number(text) : null;
}
