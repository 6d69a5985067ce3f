import type { ConsoleSession } from '../generated/prisma/client.ts';
import { type ConsoleEnd, ConsoleKind } from '../generated/prisma/enums.ts';
import { builder } from '../graph/builder.ts';
import { resolveKeyset } from '../graph/connection.ts';
import { ProjectRef } from '../graph/project.ts';
import { parseUuid } from '../kernel/uuid.ts';
import type { Consoles } from './consoles.ts';
import { endSession, listInstanceSessions, listSessions } from './service.ts';

declare module '../graph/context.ts' {
  interface Services {
    readonly consoles: Consoles;
  }
}

const ConsoleKindEnum = builder.enumType(ConsoleKind, {
  name: 'ConsoleKind',
  description: 'serial: text, as a terminal shows it. vnc: a screen, by the protocol RFB.',
});

const endDescriptions: Readonly<Record<ConsoleEnd, string>> = {
  ended: 'Somebody has ended it: `endConsoleSession`.',
  detached: 'Nobody came back to it for a minute.',
  idle: 'Nothing passed for too long.',
  taken_over: 'Another session of the same serial console has begun.',
  access_lost: 'Its user has lost the access, or the role `member`.',
  console_closed: 'The console has closed the connection.',
  console_unreachable: 'The console was not to be reached, or the connection to it broke.',
  console_moved: 'The console of the instance is elsewhere now: a new session finds it.',
  instance_gone: 'The instance was deleted, or moved to another project.',
  instance_not_running: 'The instance was stopped or suspended.',
  lost: 'The server that carried it has died.',
};

const ConsoleEndEnum = builder.enumType('ConsoleEnd', {
  description: 'Why a console session ended.',
  values: Object.fromEntries(Object.entries(endDescriptions).map(([name, description]) => [name, { value: name, description }])) as {
    [Name in ConsoleEnd]: { value: Name; description: string };
  },
});

const ConsoleSessionState = builder.enumType('ConsoleSessionState', {
  description: 'attached: somebody is. detached: nobody is, for less than a minute, in which its user may come back. over: it has ended.',
  values: ['attached', 'detached', 'over'] as const,
});

const ConsoleSessionRef = builder.objectRef<ConsoleSession>('ConsoleSession').implement({
  description: 'The record of a console session: who, from where, when and how much; never what was said.',
  fields: (t) => ({
    id: t.exposeID('id', { description: 'What a ticket names as `sessionId`, to attach to the session again.' }),
    instanceId: t.exposeID('instanceId', { description: 'The instance, which may have been deleted since.' }),
    instanceName: t.exposeString('instanceName', { description: 'The name of the instance when the session began.' }),
    userId: t.exposeID('userId', { description: 'Whose session it is.' }),
    userEmail: t.exposeString('userEmail', { description: 'The address of the user when the session began.' }),
    kind: t.expose('kind', { type: ConsoleKindEnum, description: 'What kind of console it is.' }),
    state: t.field({
      type: ConsoleSessionState,
      description: 'Whether somebody is attached, or it is over.',
      resolve: ({ ended, detachedAt }) => (ended ? 'over' : detachedAt ? 'detached' : 'attached'),
    }),
    clientAddresses: t.exposeStringList('clientAddresses', {
      description: 'Each address that it was opened or attached from, once; the latest stands last. Of IPv6 the network.',
    }),
    created: t.expose('created', { type: 'DateTime', description: 'When it began.' }),
    ended: t.expose('ended', { type: 'DateTime', nullable: true, description: 'Null while it runs.' }),
    durationSeconds: t.int({
      description: 'For how long it ran, or has run so far.',
      resolve: ({ created, ended }) => Math.max(0, Math.floor(((ended ?? new Date()).getTime() - created.getTime()) / 1000)),
    }),
    endReason: t.expose('endReason', { type: ConsoleEndEnum, nullable: true, description: 'Null while it runs.' }),
    bytesIn: t.field({
      type: 'SafeInt',
      description: 'How many bytes went to the console; while the session runs, as of some seconds ago.',
      resolve: ({ bytesIn }) => Number(bytesIn),
    }),
    bytesOut: t.field({
      type: 'SafeInt',
      description: 'How many bytes came from the console; while the session runs, as of some seconds ago.',
      resolve: ({ bytesOut }) => Number(bytesOut),
    }),
  }),
});

const byId = { keyOf: (node: ConsoleSession) => node.id, parseKey: parseUuid };

const ConsoleSessionFilterInput = builder.inputType('ConsoleSessionFilter', {
  description: 'What holds for all console sessions of a list.',
  fields: (t) => ({
    instanceId: t.field({ type: 'UUID', description: 'Of this instance alone, which may have been deleted.' }),
    userId: t.field({ type: 'UUID', description: 'Of this user alone.' }),
    running: t.boolean({ description: 'true: those that run; false: those that are over.' }),
  }),
});

builder.objectField(ProjectRef, 'consoleSessions', (t) =>
  t.connection({
    type: ConsoleSessionRef,
    description: 'The console sessions of the project, the newest first: all for its admins, one’s own for others.',
    args: { filter: t.arg({ type: ConsoleSessionFilterInput, description: 'Only these.' }) },
    resolve: (scope, args) => resolveKeyset({ args, ...byId }, (slice) => listSessions(scope, args.filter ?? {}, slice)),
  }),
);

builder.prismaObjectField('Instance', 'consoleSessions', (t) =>
  t.connection({
    type: ConsoleSessionRef,
    description: 'The console sessions of the instance, the newest first: all for the project’s admins, one’s own for others.',
    resolve: (instance, args, context) =>
      resolveKeyset({ args, ...byId }, async (slice) => {
        const scope = await context.findProject(instance.projectId);
        const name = `console sessions of ${scope.projectId} ${JSON.stringify(slice)}`;
        return context.loadBatched(name, instance.id, (ids) => listInstanceSessions(scope, ids, slice));
      }),
  }),
);

const EndConsoleSessionInput = builder.inputType('EndConsoleSessionInput', {
  description: 'A console session to be ended.',
  fields: (t) => ({
    organizationId: t.id({ required: true, description: 'The organization that the project belongs to.' }),
    projectId: t.id({ required: true, description: 'The project.' }),
    id: t.id({ required: true, description: 'The session.' }),
  }),
});

const EndConsoleSessionPayload = builder.simpleObject('EndConsoleSessionPayload', {
  description: 'What `endConsoleSession` answers.',
  fields: (t) => ({ consoleSession: t.field({ type: ConsoleSessionRef, description: 'The session as it is now.' }) }),
});

builder.mutationField('endConsoleSession', (t) =>
  t.field({
    type: EndConsoleSessionPayload,
    nullable: true,
    description:
      'Ends a console session, and closes its socket within a second. Needs the role `member`; a session of somebody else is seen by admins alone. One that is over stays as it is.',
    args: { input: t.arg({ type: EndConsoleSessionInput, required: true }) },
    resolve: async (_root, { input }, context) => ({
      consoleSession: await endSession(await context.openProject(input), context.services.consoles, input),
    }),
  }),
);
