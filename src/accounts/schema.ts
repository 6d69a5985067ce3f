import type { Viewer } from '../access/viewer.ts';
import { OrganizationRole } from '../generated/prisma/enums.ts';
import { builder } from '../graph/builder.ts';
import { resolveKeyset } from '../graph/connection.ts';
import { ProjectRoleEnum } from '../graph/project.ts';
import { parseUuid } from '../kernel/uuid.ts';
import {
  createApiKey,
  getOrganization,
  listApiKeys,
  listOrganizations,
  listProjects,
  type Membership,
  type ProjectSummary,
  revokeApiKey,
} from './service.ts';

const OrganizationRoleEnum = builder.enumType(OrganizationRole, {
  name: 'OrganizationRole',
  description: 'Owners and admins are admins of every project of the organization; members see the projects that list them.',
});
const byId = { keyOf: (node: { id: string }) => node.id, parseKey: parseUuid };

const ProjectSummaryRef = builder.objectRef<ProjectSummary>('ProjectSummary').implement({
  description: 'A project in a list. What is in it hangs under the root field `project`.',
  fields: (t) => ({
    id: t.exposeID('id'),
    organizationId: t.exposeID('organizationId'),
    name: t.exposeString('name'),
    role: t.expose('role', { type: ProjectRoleEnum, description: 'What the viewer may do in it.' }),
    created: t.expose('created', { type: 'DateTime' }),
  }),
});

const OrganizationRef = builder.objectRef<Membership>('Organization').implement({
  description: 'An organization that the viewer belongs to.',
  fields: (t) => ({
    id: t.exposeID('id'),
    name: t.exposeString('name'),
    currency: t.exposeString('currency', { description: 'ISO 4217.' }),
    role: t.expose('role', { type: OrganizationRoleEnum, description: 'The viewer’s role.' }),
    created: t.expose('created', { type: 'DateTime' }),
    projects: t.connection({
      type: ProjectSummaryRef,
      description: 'The projects that the viewer may see, the oldest first.',
      resolve: ({ id }, args, context) =>
        resolveKeyset({ args, ...byId }, (slice) =>
          context.loadBatched(`projects ${JSON.stringify(slice)}`, id, (ids) =>
            listProjects(context.database, context.requireViewer(), ids, slice),
          ),
        ),
    }),
  }),
});

const ApiKeyRef = builder.prismaObject('ApiKey', {
  description: 'An API key of the viewer. Its text is shown once, when it is made.',
  fields: (t) => ({
    id: t.exposeID('id'),
    name: t.exposeString('name'),
    hint: t.exposeString('hint', { description: 'How the key begins.' }),
    created: t.expose('created', { type: 'DateTime' }),
    lastUsed: t.expose('lastUsed', { type: 'DateTime', nullable: true, description: 'To the minute.' }),
    expires: t.expose('expires', { type: 'DateTime', nullable: true }),
    revoked: t.expose('revoked', { type: 'DateTime', nullable: true }),
  }),
});

const ViewerRef = builder.objectRef<Viewer>('Viewer').implement({
  description: 'The user who asks.',
  fields: (t) => ({
    id: t.id({ resolve: (viewer) => viewer.userId }),
    email: t.exposeString('email'),
    name: t.exposeString('name'),
    created: t.expose('created', { type: 'DateTime' }),
    organizations: t.connection({
      type: OrganizationRef,
      resolve: (viewer, args, { database }) => resolveKeyset({ args, ...byId }, (slice) => listOrganizations(database, viewer, slice)),
    }),
    apiKeys: t.connection({
      type: ApiKeyRef,
      description: 'The newest first. Only for a user session.',
      resolve: (_viewer, args, context) =>
        resolveKeyset({ args, ...byId }, (slice) => listApiKeys(context.database, context.requireSession(), slice)),
    }),
  }),
});

builder.queryFields((t) => ({
  viewer: t.field({
    type: ViewerRef,
    nullable: true,
    description: 'The user who asks; null without a credential.',
    resolve: (_root, _args, { viewer }) => viewer,
  }),
  organization: t.field({
    type: OrganizationRef,
    nullable: true,
    description: 'An organization that the viewer belongs to; any other is `not_found`.',
    args: { id: t.arg.id({ required: true, description: 'The organization.' }) },
    resolve: (_root, { id }, context) => getOrganization(context.database, context.requireViewer(), id),
  }),
}));

const CreateApiKeyInput = builder.inputType('CreateApiKeyInput', {
  description: 'An API key to be made.',
  fields: (t) => ({
    name: t.field({ type: 'Name', required: true, description: 'To tell it from the others.' }),
    expires: t.field({ type: 'DateTime', description: 'Without it the key is good until it is revoked.' }),
  }),
});
const CreateApiKeyPayload = builder.simpleObject('CreateApiKeyPayload', {
  description: 'What `createApiKey` answers.',
  fields: (t) => ({
    key: t.string({ description: 'The key itself: shown once, here.' }),
    apiKey: t.field({ type: ApiKeyRef, description: 'What is kept of it.' }),
  }),
});

const RevokeApiKeyInput = builder.inputType('RevokeApiKeyInput', {
  description: 'An API key to be revoked.',
  fields: (t) => ({ id: t.id({ required: true, description: 'The key’s id.' }) }),
});
const RevokeApiKeyPayload = builder.simpleObject('RevokeApiKeyPayload', {
  description: 'What `revokeApiKey` answers.',
  fields: (t) => ({ apiKey: t.field({ type: ApiKeyRef, description: 'The key, revoked.' }) }),
});

const RenewCredentialInput = builder.inputType('RenewCredentialInput', {
  description: 'A fresh credential for an open socket.',
  fields: (t) => ({ token: t.field({ type: 'Text', required: true, description: 'A session token of the same user.' }) }),
});
const RenewCredentialPayload = builder.simpleObject('RenewCredentialPayload', {
  description: 'What `renewCredential` answers.',
  fields: (t) => ({ expires: t.field({ type: 'DateTime', description: 'Until when the socket stays open.' }) }),
});

builder.mutationFields((t) => ({
  renewCredential: t.field({
    type: RenewCredentialPayload,
    nullable: true,
    description: 'On a WebSocket: goes on with a fresh session token, without a break.',
    args: { input: t.arg({ type: RenewCredentialInput, required: true }) },
    resolve: async (_root, { input }, context) => (await context.renewCredential(input.token)).credential,
  }),
  createApiKey: t.field({
    type: CreateApiKeyPayload,
    nullable: true,
    description: 'Makes an API key for the viewer. Only for a user session.',
    args: { input: t.arg({ type: CreateApiKeyInput, required: true }) },
    resolve: (_root, { input }, context) => createApiKey(context.database, context.requireSession(), input),
  }),
  revokeApiKey: t.field({
    type: RevokeApiKeyPayload,
    nullable: true,
    description: 'Revokes an API key of the viewer. Only for a user session.',
    args: { input: t.arg({ type: RevokeApiKeyInput, required: true }) },
    resolve: (_root, { input }, context) => revokeApiKey(context.database, context.requireSession(), input.id),
  }),
}));
