import type { ProjectScope } from '../access/scope.ts';
import type { Severity } from '../generated/prisma/enums.ts';
import { openReader, readWithoutHeavyFields } from '../graph/answer.ts';
import { builder } from '../graph/builder.ts';
import { pageCost } from '../graph/cost.ts';
import { describeValues } from '../graph/enums.ts';
import { idempotencyKey, runIdempotently } from '../graph/idempotency.ts';
import { implementConnection, resolveList } from '../graph/list.ts';
import { loadInProject, loadNodeInProject, NodeRef, registerNode } from '../graph/node.ts';
import { implementPage, pageArgs } from '../graph/page.ts';
import { ProjectRef } from '../graph/project.ts';
import { selectsAny } from '../graph/selection.ts';
import { countBySubject, listBySubject } from './about.ts';
import { countNotificationsByProject, findNotifications, findUnread, listNotificationsByProject } from './find.ts';
import type { Hubs } from './hubs.ts';
import type { Notification } from './log.ts';
import { countUnread, heavyFields, listNotifications, type MarkResult, markRead, pageNotifications } from './service.ts';

declare module '../graph/context.ts' {
  interface Services {
    readonly notifications: Hubs;
  }
}

/** The most ids in one call of `markNotificationsRead` (§8). */
const MAX_NOTIFICATION_IDS = 200;

export const SeverityEnum = builder.enumType('Severity', {
  description: 'How urgent a notification is.',
  values: describeValues<Severity>({
    info: 'To be known.',
    warning: 'To be looked at.',
    critical: 'To be acted on at once.',
  }),
});

/** A notification with its project; the events of a feed are shared, and have none. */
export type ProjectNotification = Notification & { readonly projectId?: string };

export function inProject({ projectId }: Pick<ProjectScope, 'projectId'>, rows: readonly Notification[]): ProjectNotification[] {
  return rows.map((row) => Object.assign(row, { projectId }));
}

export const NotificationRef = builder.objectRef<ProjectNotification>('Notification').implement({
  description: 'An entry of a project’s notification log. All who may see the project see it.',
  interfaces: [NodeRef],
  fields: (t) => ({
    id: t.exposeID('id', { description: 'A UUIDv7.' }),
    project: t.field({
      type: ProjectRef,
      nullable: true,
      description:
        'The project that it belongs to. Null in a feed, whose events are told to many: there it is the one that was subscribed to.',
      resolve: ({ projectId }, _args, { findProject }) => (projectId === undefined ? null : findProject(projectId)),
    }),
    sequence: t.exposeInt('sequence', { description: 'Counts up by one per project, without gaps, in the order of commits.' }),
    kind: t.exposeString('kind', { description: 'What has happened: `instance.suspended`, `backup.failed`, … An open list.' }),
    severity: t.expose('severity', { type: SeverityEnum, description: 'How urgent it is.' }),
    title: t.exposeString('title', { description: 'One line.' }),
    body: t.exposeString('body', { description: 'The text below the title; empty where there is none.' }),
    resourceType: t.exposeString('resourceType', { nullable: true, description: 'What it is about: `instance`, `invoice`, …' }),
    resourceId: t.exposeString('resourceId', { nullable: true, description: 'Which one; not always a UUID.' }),
    resource: t.field({
      type: NodeRef,
      nullable: true,
      description:
        'What it is about, within the project; null where that is gone, not to be seen, or nothing with an id of ours. ' +
        'Always null in a feed, whose events are told without a look at anything else: `node(id)` finds it.',
      resolve: ({ projectId, resourceId }, _args, context, info) =>
        projectId === undefined || resourceId === null
          ? null
          : loadNodeInProject(context, { scope: context.findProject(projectId), id: resourceId }, info),
    }),
    data: t.expose('data', { type: 'JSONObject', description: 'Details, by kind.' }),
    created: t.expose('created', { type: 'DateTime', description: 'When it was published.' }),
    read: t.exposeBoolean('read', { description: 'Whether the viewer has read it.' }),
  }),
});

registerNode('Notification', {
  inProject: ({ database }, requested, read) => findNotifications(database, requested, read),
  heavyFields,
});

const NotificationConnection = implementConnection('Notification', NotificationRef);
const NotificationPage = implementPage('NotificationPage', NotificationRef);

const NotificationFilterInput = builder.inputType('NotificationFilter', {
  description: 'What holds for all notifications of a list.',
  fields: (t) => ({
    unread: t.boolean({ description: 'true: what the viewer has not read; false: what they have.' }),
    severity: t.field({ type: SeverityEnum, description: 'Of this severity alone.' }),
    kind: t.field({
      type: 'Text',
      description: 'Of this kind alone: at most 255 characters.',
      extensions: { maxLength: 255 },
    }),
  }),
});

builder.objectFields(ProjectRef, (t) => ({
  notifications: t.connection(
    {
      type: NotificationRef,
      description: 'The notifications of the project, the newest first.',
      complexity: pageCost,
      args: { filter: t.arg({ type: NotificationFilterInput, description: 'Only these.' }) },
      resolve: (scope, { filter: nullableFilter, ...args }, context, info) => {
        const filter = nullableFilter ?? {};
        const read = openReader(context, info, heavyFields);
        const name = `notifications ${JSON.stringify(filter)}`;
        const count = () =>
          context.loadByProject(`count of ${name}`, scope, (database, scopes) => countNotificationsByProject(database, scopes, filter));
        const keyset = { args, keyOf: (node: Notification) => node.sequence, parseKey: parseSequence, count };
        return resolveList(keyset, (slice) =>
          context.loadByProject(`${name} ${read === readWithoutHeavyFields} ${JSON.stringify(slice)}`, scope, async (database, scopes) =>
            scopes.length === 1
              ? [inProject(scope, await listNotifications(scope, { filter, slice }, read))]
              : listNotificationsByProject(database, scopes, { filter, slice }, read),
          ),
        );
      },
    },
    NotificationConnection,
  ),
  notificationPage: t.field({
    type: NotificationPage,
    description: 'The notifications of the project, the newest first, by page.',
    complexity: pageCost,
    args: { ...pageArgs(t), filter: t.arg({ type: NotificationFilterInput, description: 'Only these.' }) },
    resolve: async (scope, { filter, ...paging }, context, info) => {
      const page = await pageNotifications(scope, { filter: filter ?? {}, ...paging }, openReader(context, info, heavyFields));
      return { ...page, results: inProject(scope, page.results) };
    },
  }),
  unreadNotificationCount: t.int({
    description: 'How many notifications the viewer has not read.',
    resolve: (scope, _args, context) => context.loadByProject('unread', scope, countUnread),
  }),
}));

builder.prismaObjectField('Instance', 'notifications', (t) =>
  t.connection(
    {
      type: NotificationRef,
      description: 'The notifications about the instance, the newest first.',
      complexity: pageCost,
      resolve: (instance, args, context, info) => {
        const { database, findProject, loadBatched } = context;
        const key = `${instance.id} ${findProject(instance.projectId).projectId}`;
        const subjects = (keys: readonly string[]) =>
          keys.map((text) => {
            const [id = '', projectId = ''] = text.split(' ');
            return { id, scope: findProject(projectId) };
          });
        const read = openReader(context, info, heavyFields);
        const count = () => loadBatched('count of notifications about', key, (keys) => countBySubject(database, subjects(keys)));
        const keyset = { args, keyOf: (node: Notification) => node.sequence, parseKey: parseSequence, count };
        return resolveList(keyset, (slice) =>
          loadBatched(`notifications about ${read === readWithoutHeavyFields} ${JSON.stringify(slice)}`, key, (keys) =>
            listBySubject(database, subjects(keys), slice, read),
          ),
        );
      },
    },
    NotificationConnection,
  ),
);

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
  description: 'What marking has changed.',
  fields: (t) => ({
    marked: t.exposeInt('marked', { description: 'How many of them were unread before.' }),
    unreadCount: t.exposeInt('unreadCount', { description: 'How many notifications of the project are unread now.' }),
    project: t.expose('scope', { type: ProjectRef, description: 'The project, with its count of what is unread now.' }),
    notifications: t.field({
      type: [NotificationRef],
      description: 'Those that were named and unread before. None where all were marked, or all up to a sequence.',
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
    args: { input: t.arg({ type: MarkNotificationsReadInput, required: true, description: 'What to mark.' }) },
    resolve: async (_root, { input }, context, info) => {
      const marking = await runIdempotently({ input, context, info }, async ({ openProject, services }) => {
        const scope = await openProject(input);
        const ids = input.throughSequence === null || input.throughSequence === undefined ? (input.notificationIds ?? []) : [];
        const changedIds = ids.length > 0 && selectsAny(info, changedField) ? await findUnread(scope, ids) : [];
        return { ...(await markRead(scope, services.notifications, input)), changedIds };
      });
      return marking && { ...marking, scope: await context.openProject(input) };
    },
  }),
);

function parseSequence(text: string): number | null {
  return /^[1-9]\d{0,9}$/.test(text) ? Number(text) : null;
}
