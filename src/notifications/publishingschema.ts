import type { ProjectScope } from '../access/scope.ts';
import { builder, type InputFields } from '../graph/builder.ts';
import { idempotencyKey, runIdempotently, type WriteContext } from '../graph/idempotency.ts';
import { ProjectRef, projectFields } from '../graph/project.ts';
import { checkPublishedSize, MAX_PUBLISHED_BYTES, publishNotifications } from './publishing.ts';
import { addProjectId, NotificationRef, type ProjectNotification, SeverityEnum } from './schema.ts';

/** The most notifications in one call of `publishNotifications`. */
const MAX_PUBLISHED = 100;

const content = (t: InputFields) => ({
  kind: t.field({
    type: 'Name',
    required: true,
    description: 'What has happened: `instance.suspended`, … At most 255 characters.',
    extensions: { maxLength: 255 },
  }),
  severity: t.field({ type: SeverityEnum, required: true, description: 'How urgent it is.' }),
  title: t.field({
    type: 'Name',
    required: true,
    description: 'The title: 1 to 500 characters, not all of them blank.',
    extensions: { maxLength: 500 },
  }),
  body: t.field({
    type: 'Text',
    required: true,
    defaultValue: '',
    description: 'The text below the title: at most 20000 characters.',
    extensions: { maxLength: 20_000 },
  }),
  resourceType: t.field({
    type: 'Name',
    description: 'The type of what it is about: `instance`, `invoice`, … At most 255 characters.',
    extensions: { maxLength: 255 },
  }),
  resourceId: t.field({ type: 'Name', description: 'The id of what it is about: at most 255 characters.', extensions: { maxLength: 255 } }),
  data: t.field({
    type: 'JSONObject',
    description: 'Details, which depend on the kind: a JSON object of up to 64 KiB. Empty if omitted. Not null.',
    extensions: { rejectsNull: true },
  }),
});

const PublishNotificationInput = builder.inputType('PublishNotificationInput', {
  description: 'The notification to publish.',
  fields: (t) => ({ ...projectFields(t), ...content(t), idempotencyKey: idempotencyKey(t) }),
});

const PublishNotificationPayload = builder.simpleObject('PublishNotificationPayload', {
  description: 'The result of `publishNotification`.',
  fields: (t) => ({ notification: t.field({ type: NotificationRef, description: 'The published notification.' }) }),
});

const NewNotification = builder.inputType('NewNotification', {
  description: 'One of several notifications to publish.',
  fields: content,
});

const PublishNotificationsInput = builder.inputType('PublishNotificationsInput', {
  description: 'Notifications to publish together.',
  fields: (t) => ({
    ...projectFields(t),
    notifications: t.field({
      type: [NewNotification],
      required: true,
      description: `The notifications, in the order in which they are appended to the log: at most ${MAX_PUBLISHED}, and ${MAX_PUBLISHED_BYTES / 1024} KiB as JSON.`,
      extensions: { maxItems: MAX_PUBLISHED },
    }),
    idempotencyKey: idempotencyKey(t),
  }),
});

/** The published notifications, and the scope in which they were published. */
interface Publishing {
  readonly scope: ProjectScope;
  readonly notifications: readonly ProjectNotification[];
}

const PublishNotificationsPayload = builder.objectRef<Publishing>('PublishNotificationsPayload').implement({
  description: 'The result of `publishNotifications`.',
  fields: (t) => ({
    notifications: t.field({
      type: [NotificationRef],
      description: 'The published notifications, in the order of the log, which is the given order.',
      complexity: { field: 1, multiplier: MAX_PUBLISHED },
      resolve: ({ notifications }) => [...notifications],
    }),
    project: t.expose('scope', { type: ProjectRef, description: 'The project, with its current unread count.' }),
  }),
});

builder.mutationFields((t) => ({
  publishNotification: t.field({
    type: PublishNotificationPayload,
    nullable: true,
    description: 'Appends a notification to the project’s log. Needs the role `admin`.',
    args: { input: t.arg({ type: PublishNotificationInput, required: true, description: 'The notification.' }) },
    resolve: (_root, { input }, context, info) =>
      runIdempotently({ input, context, info }, async ({ openProject, services }) => {
        const scope = await openProject(input);
        const [notification] = addProjectId(scope, await publishNotifications(scope, services, [input]));
        return { notification: notification as ProjectNotification };
      }),
  }),
  publishNotifications: t.field({
    type: PublishNotificationsPayload,
    nullable: true,
    description:
      'Appends notifications to the project’s log, all of them or none, with consecutive numbers in the order given. Needs the role `admin`.',
    args: { input: t.arg({ type: PublishNotificationsInput, required: true, description: 'The notifications.' }) },
    resolve: async (_root, { input }, context, info) => {
      const publish = async ({ openProject, services }: WriteContext) => {
        const scope = await openProject(input);
        return { notifications: addProjectId(scope, await publishNotifications(scope, services, input.notifications)) };
      };
      const published = await runIdempotently({ input, context, info }, publish, {
        checkSize: () => checkPublishedSize(input.notifications),
      });
      return published && { ...published, scope: await context.openProject(input) };
    },
  }),
}));
