import type { TicketTarget } from '../generated/prisma/enums.ts';
import { builder } from '../graph/builder.ts';
import { describeValues } from '../graph/enums.ts';
import { idempotencyKey, runIdempotently } from '../graph/idempotency.ts';
import { projectFields } from '../graph/project.ts';
import { createTicket } from './service.ts';

const TicketTargetEnum = builder.enumType('TicketTarget', {
  description: 'The WebSocket that a ticket opens.',
  values: describeValues<TicketTarget>({
    notifications: 'The live feed of the project.',
    console: 'The console of an instance.',
  }),
});

const CreateWebsocketTicketInput = builder.inputType('CreateWebsocketTicketInput', {
  description: 'What a ticket is for.',
  fields: (t) => ({
    ...projectFields(t),
    target: t.field({ type: TicketTargetEnum, required: true, description: 'The WebSocket that the ticket is for.' }),
    instanceId: t.field({
      type: 'UUID',
      description: 'The id of the instance whose console to open: required for `console`.',
      extensions: { requiredFor: { field: 'target', value: 'console', message: 'This field is required for a console.' } },
    }),
    sessionId: t.field({ type: 'UUID', description: 'The id of a running console session to attach to again.' }),
    idempotencyKey: idempotencyKey(t),
  }),
});

const CreateWebsocketTicketPayload = builder.simpleObject('CreateWebsocketTicketPayload', {
  description: 'A ticket, which opens one WebSocket of the project, once, within 30 seconds.',
  fields: (t) => ({
    ticket: t.string({ description: 'The value for the query parameter `ticket` of the WebSocket’s URL.' }),
    path: t.string({
      description:
        'The path of the WebSocket, without query: it is appended to the base URL of the service, which may have a path of its own.',
    }),
    expiresIn: t.int({ description: 'The number of seconds for which the ticket is valid.' }),
  }),
});

builder.mutationField('createWebsocketTicket', (t) =>
  t.field({
    type: CreateWebsocketTicketPayload,
    nullable: true,
    description: 'Issues a ticket for one WebSocket of the project; for `console`, needs the role `member`. Only for a user session.',
    args: { input: t.arg({ type: CreateWebsocketTicketInput, required: true, description: 'What the ticket is for.' }) },
    resolve: (_root, { input }, context, info) =>
      runIdempotently({ input, context, info }, async ({ openProject }) => createTicket(await openProject(input), input), {
        needsSession: true,
      }),
  }),
);
