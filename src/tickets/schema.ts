import { TicketTarget } from '../generated/prisma/enums.ts';
import { builder } from '../graph/builder.ts';
import { checkTicketRequest, createTicket } from './service.ts';

const TicketTargetEnum = builder.enumType(TicketTarget, { name: 'TicketTarget', description: 'Which WebSocket a ticket opens.' });

const CreateWebsocketTicketInput = builder.inputType('CreateWebsocketTicketInput', {
  fields: (t) => ({
    organizationId: t.id({ required: true }),
    projectId: t.id({ required: true }),
    target: t.field({ type: TicketTargetEnum, required: true }),
    instanceId: t.field({ type: 'UUID', description: 'Required for `console`.' }),
    sessionId: t.field({ type: 'UUID', description: 'The console session to attach to again.' }),
  }),
});

const CreateWebsocketTicketPayload = builder.simpleObject('CreateWebsocketTicketPayload', {
  fields: (t) => ({
    ticket: t.string({ description: 'Passed as the query parameter `ticket` of the WebSocket’s URL. It opens one socket, once.' }),
    path: t.string({ description: 'The absolute path of the WebSocket, without host or query.' }),
    expiresIn: t.int({ description: 'Seconds.' }),
  }),
});

builder.mutationField('createWebsocketTicket', (t) =>
  t.field({
    type: CreateWebsocketTicketPayload,
    nullable: true,
    description: 'Issues a ticket for one WebSocket of the project. Only for a user session.',
    args: { input: t.arg({ type: CreateWebsocketTicketInput, required: true }) },
    resolve: async (_root, { input }, context) => {
      checkTicketRequest(input);
      return createTicket(await context.openProject(input), input);
    },
  }),
);
