import type { ConsoleEnd, ConsoleKind } from '../generated/prisma/enums.ts';
import type { CheckAccess } from '../graph/accesscheck.ts';
import { builder } from '../graph/builder.ts';
import { byId, implementConnection } from '../graph/connectionfield.ts';
import { describeValues } from '../graph/enums.ts';
import { idempotencyKey, runIdempotently } from '../graph/idempotency.ts';
import { ownInstance } from '../graph/instance.ts';
import { resolveList } from '../graph/keyset.ts';
import { NodeRef, registerNode } from '../graph/node.ts';
import { ownProject, ProjectRef, projectFields } from '../graph/project.ts';
import { loadMember, UserRef } from '../graph/user.ts';
import type { Consoles } from './consoles.ts';
import {
  type ConsoleSession,
  countInstanceSessions,
  countSessions,
  endSession,
  findOccupied,
  findSessions,
  getSession,
  listInstanceSessions,
  listSessions,
} from './service.ts';

declare module '../graph/context.ts' {
  interface Services {
    readonly consoles: Consoles;
  }
}

const ConsoleKindEnum = builder.enumType('ConsoleKind', {
  description: 'The kind of a console.',
  values: describeValues<ConsoleKind>({ serial: 'A serial line: text, as in a terminal.', vnc: 'A screen, over the RFB protocol.' }),
});

const ConsoleEndEnum = builder.enumType('ConsoleEnd', {
  description: 'Why a console session ended.',
  values: describeValues<ConsoleEnd>({
    ended: 'It was ended with `endConsoleSession`.',
    detached: 'No client attached to it again within a minute.',
    idle: 'It had no traffic for too long.',
    taken_over: 'Another session of the same serial console was started.',
    access_lost: 'Its user has lost access to the project, or the role `member`.',
    console_closed: 'The console has closed the connection.',
    console_unreachable: 'The console could not be reached, or the connection to it broke.',
    console_moved: 'The address of the instance’s console has changed: start a new session.',
    instance_gone: 'The instance was deleted, or moved to another project.',
    instance_not_running: 'The instance was stopped or suspended.',
    lost: 'The server process that ran it has died.',
  }),
});

const ConsoleSessionState = builder.enumType('ConsoleSessionState', {
  description: 'Whether a client is attached to a console session.',
  values: describeValues({
    attached: 'A client is attached.',
    detached: 'No client is attached; the user can attach again within a minute.',
    over: 'It has ended.',
  }),
});

const ConsoleSessionRef = builder.objectRef<ConsoleSession>('ConsoleSession').implement({
  description: 'The record of a console session: its user, client addresses, times and byte counts, but not the transferred data.',
  interfaces: [NodeRef],
  fields: (t) => ({
    id: t.exposeID('id', { description: 'The id of the session. Pass it as `sessionId` for a ticket, to attach to the session again.' }),
    project: t.field(ownProject),
    instanceId: t.exposeID('instanceId', { description: 'The id of the instance, which may have been deleted since.' }),
    instance: t.field(ownInstance('The instance; null if it no longer exists.')),
    instanceName: t.exposeString('instanceName', { description: 'The name of the instance when the session began.' }),
    userId: t.exposeID('userId', { description: 'The id of the user whose session it is.' }),
    user: t.field({
      type: UserRef,
      nullable: true,
      description: 'The user whose session it is; null if they have left the organization.',
      resolve: ({ projectId, userId }, _args, context) => loadMember(context, context.findProject(projectId), userId),
    }),
    userEmail: t.exposeString('userEmail', { description: 'The e-mail address of the user when the session began.' }),
    kind: t.expose('kind', { type: ConsoleKindEnum, description: 'The kind of the console.' }),
    state: t.field({
      type: ConsoleSessionState,
      description: 'Whether a client is attached, or the session has ended.',
      resolve: ({ ended, detachedAt }) => (ended ? 'over' : detachedAt ? 'detached' : 'attached'),
    }),
    clientAddresses: t.exposeStringList('clientAddresses', {
      description:
        'The addresses that it was opened or attached from, each once, the last twenty of them, the latest last. For IPv6, the /64 network.',
    }),
    created: t.expose('created', { type: 'DateTime', description: 'When it began.' }),
    ended: t.expose('ended', { type: 'DateTime', nullable: true, description: 'When it ended; null while it runs.' }),
    durationSeconds: t.int({
      description: 'The duration of the session in seconds, so far if it still runs.',
      resolve: ({ created, ended }) => Math.max(0, Math.floor(((ended ?? new Date()).getTime() - created.getTime()) / 1000)),
    }),
    endReason: t.expose('endReason', { type: ConsoleEndEnum, nullable: true, description: 'Why it ended; null while it runs.' }),
    bytesIn: t.expose('bytesIn', {
      type: 'SafeInt',
      description: 'The number of bytes sent to the console; while the session runs, as of some seconds ago.',
    }),
    bytesOut: t.expose('bytesOut', {
      type: 'SafeInt',
      description: 'The number of bytes received from the console; while the session runs, as of some seconds ago.',
    }),
  }),
});

registerNode('ConsoleSession', { inProject: findSessions });

const ConsoleSessionConnection = implementConnection('ConsoleSession', ConsoleSessionRef);

const ConsoleSessionFilterInput = builder.inputType('ConsoleSessionFilter', {
  description: 'Filters a list of console sessions. All conditions apply.',
  fields: (t) => ({
    instanceId: t.field({ type: 'UUID', description: 'Only those of this instance, which may have been deleted.' }),
    userId: t.field({ type: 'UUID', description: 'Only those of this user.' }),
    running: t.boolean({ description: 'true: only those that run; false: only those that have ended.' }),
  }),
});

builder.objectField(ProjectRef, 'consoleSessions', (t) =>
  t.connection(
    {
      type: ConsoleSessionRef,
      description: 'The console sessions of the project, the newest first: all of them for its admins, the viewer’s own for others.',
      args: { filter: t.arg({ type: ConsoleSessionFilterInput, description: 'Only items that match this filter.' }) },
      resolve: (scope, { filter: given, ...args }, context) => {
        const filter = given ?? {};
        const count = () => context.loadByProject(countSessions, scope, filter);
        return resolveList({ args, ...byId, count }, (slice) => context.loadByProject(listSessions, scope, filter, slice));
      },
    },
    ConsoleSessionConnection,
  ),
);

builder.prismaObjectField('Instance', 'consoleSessions', (t) =>
  t.connection(
    {
      type: ConsoleSessionRef,
      description:
        'The console sessions of the instance, the newest first: all of them for the project’s admins, the viewer’s own for others.',
      resolve: ({ id, projectId }, args, { loadInScope }) => {
        const count = () => loadInScope(countInstanceSessions, projectId, id);
        return resolveList({ args, ...byId, count }, (slice) => loadInScope(listInstanceSessions, projectId, id, slice));
      },
    },
    ConsoleSessionConnection,
  ),
);

builder.prismaObjectField('Instance', 'consoleOccupied', (t) =>
  t.boolean({
    description:
      'Whether somebody is attached to the instance’s serial console now, also where the viewer does not see that session: to open the console ends it, so ask before you do. Screens are shared, and do not count.',
    resolve: ({ id, projectId }, _args, { loadInScope }) => loadInScope(findOccupied, projectId, id),
  }),
);

const EndConsoleSessionInput = builder.inputType('EndConsoleSessionInput', {
  description: 'The console session to end.',
  fields: (t) => ({
    ...projectFields(t),
    id: t.id({ required: true, description: 'The id of the session.' }),
    idempotencyKey: idempotencyKey(t),
  }),
});

const EndConsoleSessionPayload = builder.simpleObject('EndConsoleSessionPayload', {
  description: 'The result of `endConsoleSession`.',
  fields: (t) => ({ consoleSession: t.field({ type: ConsoleSessionRef, description: 'The ended session.' }) }),
});

builder.mutationField('endConsoleSession', (t) =>
  t.field({
    type: EndConsoleSessionPayload,
    nullable: true,
    description:
      'Ends a console session, and closes its socket within a second. Needs the role `member`; only admins see the sessions of other users. A session that has ended does not change.',
    args: { input: t.arg({ type: EndConsoleSessionInput, required: true, description: 'The session to end.' }) },
    extensions: {
      checkAccess: (async ({ organizationId = '', projectId = '', id = '' }, context) =>
        getSession(await context.openProject({ organizationId, projectId }), id)) satisfies CheckAccess,
    },
    resolve: (_root, { input }, context, info) =>
      runIdempotently(
        { input, context, info },
        async () => ({ consoleSession: await endSession(await context.openProject(input), context.services.consoles, input) }),
        { isRepeatable: true },
      ),
  }),
);
