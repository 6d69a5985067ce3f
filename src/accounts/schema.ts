import type { ProjectScope } from '../access/scope.ts';
import type { Viewer } from '../access/viewer.ts';
import type { OrganizationRole, ProjectRole } from '../generated/prisma/enums.ts';
import { builder } from '../graph/builder.ts';
import { boundsOf } from '../graph/connection.ts';
import { pageCost } from '../graph/cost.ts';
import { describeValues } from '../graph/enums.ts';
import { idempotencyKey, runIdempotently } from '../graph/idempotency.ts';
import { byId, implementConnection, resolveList } from '../graph/list.ts';
import type { Locate } from '../graph/locate.ts';
import { NodeRef, registerNode } from '../graph/node.ts';
import { implementPage, pageArgs } from '../graph/page.ts';
import { ProjectRef, ProjectRoleEnum } from '../graph/project.ts';
import { UserRef, viewerOrColleague } from '../graph/user.ts';
import { Fault } from '../kernel/fault.ts';
import { parseUuid } from '../kernel/uuid.ts';
import { countMembers, countProjectMembers, listMembers, listProjectMembers, type Member } from './members.ts';
import { countProjects, listProjects, pageProjects } from './projects.ts';
import {
  countApiKeys,
  countOrganizations,
  createApiKey,
  findApiKeys,
  findOrganizations,
  getOrganization,
  type KeyQuota,
  listApiKeys,
  listOrganizations,
  type Membership,
  pageOrganizations,
  revokeApiKey,
} from './service.ts';

declare module '../graph/context.ts' {
  interface Services {
    readonly keys: KeyQuota;
  }
}

const OrganizationRoleEnum = builder.enumType('OrganizationRole', {
  description: 'Owners and admins are admins of every project of the organization; members see the projects that list them.',
  values: describeValues<OrganizationRole>({
    owner: 'An admin of each of its projects, who owns it.',
    admin: 'An admin of each of its projects.',
    member: 'Sees the projects that list them, as what they are listed.',
  }),
});
const byUser = { keyOf: (member: Member<unknown>) => member.user.id, parseKey: parseUuid };

const OrganizationMemberRef = builder.objectRef<Member<OrganizationRole>>('OrganizationMember').implement({
  description: 'A user in an organization.',
  fields: (t) => ({
    role: t.expose('role', { type: OrganizationRoleEnum, description: 'What they may do in it.' }),
    user: t.field({ type: UserRef, description: 'The user.', resolve: ({ user }, _args, context) => viewerOrColleague(context, user) }),
  }),
});
const OrganizationMemberConnection = implementConnection('OrganizationMember', OrganizationMemberRef);

const ProjectMemberRef = builder.objectRef<Member<ProjectRole>>('ProjectMember').implement({
  description: 'A user in a project: listed there, or an owner or admin of its organization.',
  fields: (t) => ({
    role: t.expose('role', { type: ProjectRoleEnum, description: 'What they may do in it.' }),
    user: t.field({ type: UserRef, description: 'The user.', resolve: ({ user }, _args, context) => viewerOrColleague(context, user) }),
  }),
});
const ProjectMemberConnection = implementConnection('ProjectMember', ProjectMemberRef);
const ProjectConnection = implementConnection('Project', ProjectRef);
const ProjectPage = implementPage('ProjectPage', ProjectRef);

const OrganizationRef = builder.objectRef<Membership>('Organization').implement({
  description: 'An organization that the viewer belongs to.',
  interfaces: [NodeRef],
  fields: (t) => ({
    id: t.exposeID('id', { description: 'The organization.' }),
    name: t.exposeString('name', { description: 'At most 255 characters.' }),
    currency: t.exposeString('currency', { description: 'ISO 4217.' }),
    role: t.expose('role', { type: OrganizationRoleEnum, description: 'The viewer’s role.' }),
    created: t.expose('created', { type: 'DateTime', description: 'When it was made.' }),
    projects: t.connection(
      {
        type: ProjectRef,
        description: 'The projects that the viewer may see, the oldest first.',
        complexity: pageCost,
        resolve: ({ id }, args, context) => {
          const keyOf = (scope: ProjectScope) => scope.projectId;
          return resolveList({ args, keyOf, parseKey: parseUuid, count: () => countProjects(context, id) }, (slice) =>
            listProjects(context, id, boundsOf(slice, 'asc')),
          );
        },
      },
      ProjectConnection,
    ),
    projectPage: t.field({
      type: ProjectPage,
      description: 'The projects that the viewer may see, the oldest first, by page.',
      complexity: pageCost,
      args: pageArgs(t),
      resolve: ({ id }, paging, context) => pageProjects(context, id, paging),
    }),
    members: t.connection(
      {
        type: OrganizationMemberRef,
        description: 'Who belongs to the organization, in the order of their ids.',
        complexity: pageCost,
        resolve: ({ id }, args, { database, loadBatched }) =>
          resolveList(
            { args, ...byUser, count: () => loadBatched('count of members', id, (ids) => countMembers(database, ids)) },
            (slice) => loadBatched(`members ${JSON.stringify(slice)}`, id, (ids) => listMembers(database, ids, slice)),
          ),
      },
      OrganizationMemberConnection,
    ),
  }),
});

const OrganizationConnection = implementConnection('Organization', OrganizationRef);
const OrganizationPage = implementPage('OrganizationPage', OrganizationRef);

const ApiKeyRef = builder.prismaObject('ApiKey', {
  description: 'An API key of the viewer. Its text is shown once, when it is made.',
  interfaces: [NodeRef],
  fields: (t) => ({
    id: t.exposeID('id', { description: 'The key.' }),
    name: t.exposeString('name', { description: 'At most 255 characters.' }),
    hint: t.exposeString('hint', { description: 'How the key begins.' }),
    created: t.expose('created', { type: 'DateTime', description: 'When it was made.' }),
    lastUsed: t.expose('lastUsed', { type: 'DateTime', nullable: true, description: 'To the minute; null until it is used.' }),
    expires: t.expose('expires', { type: 'DateTime', nullable: true, description: 'Null where it is good until it is revoked.' }),
    revoked: t.expose('revoked', { type: 'DateTime', nullable: true, description: 'Null while it is good.' }),
  }),
});

const ApiKeyConnection = implementConnection('ApiKey', ApiKeyRef);

const ViewerRef = builder.objectRef<Viewer>('Viewer').implement({
  description: 'The user who asks.',
  interfaces: [UserRef, NodeRef],
  fields: (t) => ({
    id: t.id({ description: 'The user.', resolve: (viewer) => viewer.userId }),
    created: t.expose('created', { type: 'DateTime', description: 'When they were made known.' }),
    organizations: t.connection(
      {
        type: OrganizationRef,
        description: 'The organizations that they belong to, the oldest first.',
        complexity: pageCost,
        resolve: (viewer, args, { database }) =>
          resolveList({ args, ...byId, count: () => countOrganizations(database, viewer) }, (slice) =>
            listOrganizations(database, viewer, slice),
          ),
      },
      OrganizationConnection,
    ),
    organizationPage: t.field({
      type: OrganizationPage,
      description: 'The organizations that they belong to, the oldest first, by page.',
      complexity: pageCost,
      args: pageArgs(t),
      resolve: (viewer, paging, { database }) => pageOrganizations(database, viewer, paging),
    }),
    apiKeys: t.connection(
      {
        type: ApiKeyRef,
        description: 'The newest first. Only for a user session.',
        complexity: pageCost,
        resolve: (_viewer, args, { database, requireSession }) =>
          resolveList({ args, ...byId, count: async () => countApiKeys(database, requireSession()) }, (slice) =>
            listApiKeys(database, requireSession(), slice),
          ),
      },
      ApiKeyConnection,
    ),
  }),
});

builder.objectFields(ProjectRef, (t) => ({
  organization: t.field({
    type: OrganizationRef,
    description: 'The organization that it belongs to.',
    resolve: async ({ organizationId, viewer }, _args, { database, loadBatched }) => {
      const organization = await loadBatched('Organization', organizationId, (ids) => findOrganizations(database, viewer, ids));
      if (!organization) throw Fault.notFound();
      return organization;
    },
  }),
  members: t.connection(
    {
      type: ProjectMemberRef,
      description: 'Who may see the project, in the order of their ids.',
      complexity: pageCost,
      resolve: (scope, args, { loadByProject }) =>
        resolveList({ args, ...byUser, count: () => loadByProject('count of members', scope, countProjectMembers) }, (slice) =>
          loadByProject(`members ${JSON.stringify(slice)}`, scope, (database, scopes) => listProjectMembers(database, scopes, slice)),
        ),
    },
    ProjectMemberConnection,
  ),
}));

registerNode('Organization', {
  outside: ({ database, requireViewer }, ids) => findOrganizations(database, requireViewer(), ids),
});
registerNode('ApiKey', { outside: ({ database, requireViewer }, ids) => findApiKeys(database, requireViewer(), ids) });

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
    extensions: {
      locate: (({ id = '' }, { database, requireViewer }) => getOrganization(database, requireViewer(), id)) satisfies Locate,
    },
    resolve: (_root, { id }, context) => getOrganization(context.database, context.requireViewer(), id),
  }),
}));

const CreateApiKeyInput = builder.inputType('CreateApiKeyInput', {
  description: 'An API key to be made.',
  fields: (t) => ({
    name: t.field({
      type: 'Name',
      required: true,
      description: 'To tell it from the others: 1 to 255 characters.',
      extensions: { maxLength: 255 },
    }),
    expires: t.field({ type: 'DateTime', description: 'Without it the key is good until it is revoked.' }),
    idempotencyKey: idempotencyKey(t),
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
  fields: (t) => ({ id: t.id({ required: true, description: 'The key’s id.' }), idempotencyKey: idempotencyKey(t) }),
});
const RevokeApiKeyPayload = builder.simpleObject('RevokeApiKeyPayload', {
  description: 'What `revokeApiKey` answers.',
  fields: (t) => ({ apiKey: t.field({ type: ApiKeyRef, description: 'The key, revoked.' }) }),
});

const RenewCredentialInput = builder.inputType('RenewCredentialInput', {
  description: 'A fresh credential for an open socket.',
  fields: (t) => ({
    token: t.field({
      type: 'Text',
      required: true,
      description: 'A session token of the same user: at most 16384 characters.',
      extensions: { maxLength: 16_384 },
    }),
  }),
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
    args: { input: t.arg({ type: RenewCredentialInput, required: true, description: 'The fresh credential.' }) },
    resolve: async (_root, { input }, context) => (await context.renewCredential(input.token)).credential,
  }),
  createApiKey: t.field({
    type: CreateApiKeyPayload,
    nullable: true,
    description: 'Makes an API key for the viewer. Only for a user session.',
    args: { input: t.arg({ type: CreateApiKeyInput, required: true, description: 'The key to make.' }) },
    resolve: (_root, { input }, context, info) =>
      runIdempotently({ input, context, info }, (within) => createApiKey(within, input, within.services.keys), { needsSession: true }),
  }),
  revokeApiKey: t.field({
    type: RevokeApiKeyPayload,
    nullable: true,
    description: 'Revokes an API key of the viewer. Only for a user session.',
    args: { input: t.arg({ type: RevokeApiKeyInput, required: true, description: 'The key to revoke.' }) },
    resolve: (_root, { input }, context, info) =>
      runIdempotently({ input, context, info }, () => revokeApiKey(context.database, context.requireSession(), input.id), {
        needsSession: true,
        isRepeatable: true,
      }),
  }),
}));
