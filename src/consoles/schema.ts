import type { Instance } from '../generated/prisma/client.ts';
import type { ConsoleEnd, ConsoleKind } from '../generated/prisma/enums.ts';
import { builder } from '../graph/builder.ts';
import { pageCost } from '../graph/cost.ts';
import { describeValues } from '../graph/enums.ts';
import { idempotencyKey, runIdempotently } from '../graph/idempotency.ts';
import { byId, implementConnection, resolveList } from '../graph/list.ts';
import { loadInProject, NodeRef, registerNode } from '../graph/node.ts';
import { ownProject, ProjectRef } from '../graph/project.ts';
import { InstanceRef } from '../graph/refs.ts';
import { loadMember, UserRef } from '../graph/user.ts';
import type { Consoles } from './consoles.ts';
import {
  type ConsoleSession,
  countInstanceSessions,
  countSessions,
  endSession,
  findSessions,
  listInstanceSessions,
  listSessions,
} from './service.ts';

declare module '../graph/context.ts' {
  interface Services {
    readonly consoles: Consoles;
  }
}

const ConsoleKindEnum = builder.enumType('ConsoleKind', {
  description: 'What a console shows.',
  values: describeValues<ConsoleKind>({ serial: 'Text, as a terminal shows it.', vnc: 'A screen, by the protocol RFB.' }),
});

const ConsoleEndEnum = builder.enumType('ConsoleEnd', {
  description: 'Why a console session ended.',
  values: describeValues<ConsoleEnd>({
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
  }),
});

const ConsoleSessionState = builder.enumType('ConsoleSessionState', {
  description: 'Whether somebody is at a console.',
  values: describeValues({
    attached: 'Somebody is.',
    detached: 'Nobody is, for less than a minute, in which its user may come back.',
    over: 'It has ended.',
  }),
});

const ConsoleSessionRef = builder.objectRef<ConsoleSession>('ConsoleSession').implement({
  description: 'The record of a console session: who, from where, when and how much; never what was said.',
  interfaces: [NodeRef],
  fields: (t) => ({
    id: t.exposeID('id', { description: 'What a ticket names as `sessionId`, to attach to the session again.' }),
    project: t.field(ownProject),
    instanceId: t.exposeID('instanceId', { description: 'The instance, which may have been deleted since.' }),
    instance: t.field({
      type: InstanceRef,
      nullable: true,
      description: 'The instance; null where it is gone.',
      resolve: ({ projectId, instanceId }, _args, context, info) =>
        loadInProject<Instance>(context, 'Instance', { scope: context.findProject(projectId), id: instanceId }, info),
    }),
    instanceName: t.exposeString('instanceName', { description: 'The name of the instance when the session began.' }),
    userId: t.exposeID('userId', { description: 'Whose session it is.' }),
    user: t.field({
      type: UserRef,
      nullable: true,
      description: 'Whose session it is; null where they have left the organization.',
      resolve: ({ projectId, userId }, _args, context) => loadMember(context, context.findProject(projectId), userId),
    }),
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
    bytesIn: t.expose('bytesIn', {
      type: 'SafeInt',
      description: 'How many bytes went to the console; while the session runs, as of some seconds ago.',
    }),
    bytesOut: t.expose('bytesOut', {
      type: 'SafeInt',
      description: 'How many bytes came from the console; while the session runs, as of some seconds ago.',
    }),
  }),
});

registerNode('ConsoleSession', { inProject: ({ database }, requested) => findSessions(database, requested) });

const ConsoleSessionConnection = implementConnection('ConsoleSession', ConsoleSessionRef);

const ConsoleSessionFilterInput = builder.inputType('ConsoleSessionFilter', {
  description: 'What holds for all console sessions of a list.',
  fields: (t) => ({
    instanceId: t.field({ type: 'UUID', description: 'Of this instance alone, which may have been deleted.' }),
    userId: t.field({ type: 'UUID', description: 'Of this user alone.' }),
    running: t.boolean({ description: 'true: those that run; false: those that are over.' }),
  }),
});

builder.objectField(ProjectRef, 'consoleSessions', (t) =>
  t.connection(
    {
      type: ConsoleSessionRef,
      description: 'The console sessions of the project, the newest first: all for its admins, one’s own for others.',
      complexity: pageCost,
      args: { filter: t.arg({ type: ConsoleSessionFilterInput, description: 'Only these.' }) },
      resolve: (scope, { filter: given, ...args }, context) => {
        const filter = given ?? {};
        const key = `console sessions ${JSON.stringify(filter)}`;
        const count = () => context.loadByProject(`count of ${key}`, scope, (database, scopes) => countSessions(database, scopes, filter));
        return resolveList({ args, ...byId, count }, (slice) =>
          context.loadByProject(`${key} ${JSON.stringify(slice)}`, scope, (database, scopes) =>
            listSessions(database, scopes, filter, slice),
          ),
        );
      },
    },
    ConsoleSessionConnection,
  ),
);

builder.prismaObjectField('Instance', 'consoleSessions', (t) =>
  t.connection(
    {
      type: ConsoleSessionRef,
      description: 'The console sessions of the instance, the newest first: all for the project’s admins, one’s own for others.',
      complexity: pageCost,
      resolve: (instance, args, { database, findProject, loadBatched }) => {
        const key = `${instance.id} ${instance.projectId}`;
        const parseKeys = (keys: readonly string[]) =>
          keys.map((text) => {
            const [instanceId = '', projectId = ''] = text.split(' ');
            return { instanceId, scope: findProject(projectId) };
          });
        const count = () =>
          loadBatched('count of console sessions of instances', key, (keys) => countInstanceSessions(database, parseKeys(keys)));
        return resolveList({ args, ...byId, count }, (slice) =>
          loadBatched(`console sessions of instances ${JSON.stringify(slice)}`, key, (keys) =>
            listInstanceSessions(database, parseKeys(keys), slice),
          ),
        );
      },
    },
    ConsoleSessionConnection,
  ),
);

const EndConsoleSessionInput = builder.inputType('EndConsoleSessionInput', {
  description: 'A console session to be ended.',
  fields: (t) => ({
    organizationId: t.id({ required: true, description: 'The organization that the project belongs to.' }),
    projectId: t.id({ required: true, description: 'The project.' }),
    id: t.id({ required: true, description: 'The session.' }),
    idempotencyKey: idempotencyKey(t),
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
    args: { input: t.arg({ type: EndConsoleSessionInput, required: true, description: 'The session to end.' }) },
    resolve: (_root, { input }, context, info) =>
      runIdempotently(
        { input, context, info },
        async () => ({ consoleSession: await endSession(await context.openProject(input), context.services.consoles, input) }),
        { isRepeatable: true },
      ),
  }),
);
