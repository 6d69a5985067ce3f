import type { ProjectScope } from '../access/scope.ts';
import type { Viewer } from '../access/viewer.ts';
import type { OrganizationRole, ProjectRole } from '../generated/prisma/enums.ts';
import type { CheckAccess } from '../graph/accesscheck.ts';
import { builder } from '../graph/builder.ts';
import { byId, implementConnection } from '../graph/connectionfield.ts';
import type { Context, LoadMany } from '../graph/context.ts';
import { pageCost } from '../graph/cost.ts';
import { describeValues } from '../graph/enums.ts';
import { idempotencyKey, runIdempotently } from '../graph/idempotency.ts';
import { boundsOf, resolveList, type Slice } from '../graph/keyset.ts';
import { NodeRef, registerNode } from '../graph/node.ts';
import { implementPage, pageArgs } from '../graph/pagefield.ts';
import { ProjectRef, ProjectRoleEnum } from '../graph/project.ts';
import { UserRef, viewerOrColleague } from '../graph/user.ts';
import { Fault } from '../kernel/fault.ts';
import type { PageRequest } from '../kernel/page.ts';
import { parseUuid } from '../kernel/uuid.ts';
import { countMembers, countProjectMembers, listMembers, listProjectMembers, type Member } from './members.ts';
import { countProjects, listProjects, pageProjects } from './projects.ts';
import {
  countApiKeys,
  countOrganizations,
  createApiKey,
  findApiKeys,
  findOrganizations,
  getApiKey,
  getOrganization,
  listApiKeys,
  listOrganizations,
  type Membership,
  pageOrganizations,
  revokeApiKey,
} from './service.ts';

const OrganizationRoleEnum = builder.enumType('OrganizationRole', {
  description: 'Owners and admins are admins of every project of the organization; members see the projects that list them as a member.',
  values: describeValues<OrganizationRole>({
    owner: 'Owns the organization, and is an admin of each of its projects.',
    admin: 'An admin of each of its projects.',
    member: 'Sees the projects that list them as a member, with the role given there.',
  }),
});
const byUser = { keyOf: (member: Member<unknown>) => member.user.id, parseKey: parseUuid };

const OrganizationMemberRef = builder.objectRef<Member<OrganizationRole>>('OrganizationMember').implement({
  description: 'A member of an organization.',
  fields: (t) => ({
    role: t.expose('role', { type: OrganizationRoleEnum, description: 'The user’s role in it.' }),
    user: t.field({ type: UserRef, description: 'The user.', resolve: ({ user }, _args, context) => viewerOrColleague(context, user) }),
  }),
});
const OrganizationMemberConnection = implementConnection('OrganizationMember', OrganizationMemberRef);

const ProjectMemberRef = builder.objectRef<Member<ProjectRole>>('ProjectMember').implement({
  description: 'A user with access to a project: listed as a member of it, or an owner or admin of its organization.',
  fields: (t) => ({
    role: t.expose('role', { type: ProjectRoleEnum, description: 'The user’s role in it.' }),
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
    id: t.exposeID('id', { description: 'The id of the organization.' }),
    name: t.exposeString('name', { description: 'At most 255 characters.' }),
    currency: t.exposeString('currency', { description: 'The currency, as an ISO 4217 code.' }),
    role: t.expose('role', { type: OrganizationRoleEnum, description: 'The viewer’s role.' }),
    created: t.expose('created', { type: 'DateTime', description: 'When it was created.' }),
    projects: t.connection(
      {
        type: ProjectRef,
        description: 'The projects that the viewer may see, the oldest first.',
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
        description: 'The members of the organization, ordered by user id.',
        resolve: ({ id }, args, { loadBatched }) =>
          resolveList({ args, ...byUser, count: () => loadBatched(countMembers, id) }, (slice) => loadBatched(listMembers, id, slice)),
      },
      OrganizationMemberConnection,
    ),
  }),
});

const OrganizationConnection = implementConnection('Organization', OrganizationRef);
const OrganizationPage = implementPage('OrganizationPage', OrganizationRef);

const ApiKeyRef = builder.prismaObject('ApiKey', {
  description: 'An API key of the viewer. The key itself is shown only once, when it is created.',
  interfaces: [NodeRef],
  fields: (t) => ({
    id: t.exposeID('id', { description: 'The id of the key.' }),
    name: t.exposeString('name', { description: 'At most 255 characters.' }),
    hint: t.exposeString('hint', { description: 'The first characters of the key.' }),
    created: t.expose('created', { type: 'DateTime', description: 'When it was created.' }),
    lastUsed: t.expose('lastUsed', {
      type: 'DateTime',
      nullable: true,
      description: 'When it was last used, to the minute; null if it never was.',
    }),
    expires: t.expose('expires', { type: 'DateTime', nullable: true, description: 'When it expires; null if it does not.' }),
    revoked: t.expose('revoked', { type: 'DateTime', nullable: true, description: 'When it was revoked; null if it was not.' }),
  }),
});

const ApiKeyConnection = implementConnection('ApiKey', ApiKeyRef);

/** A loader whose keys are the viewer's id, however often: what a document asks of the viewer in many places is read once. */
function ofViewer<Args extends unknown[], Value>(
  load: (context: Context, ...args: Args) => Value | Promise<Value>,
): LoadMany<string, Args, Value> {
  return async (context, viewerIds, ...args) => {
    const value = await load(context, ...args);
    return viewerIds.map(() => value);
  };
}

const loadOrganizationList = ofViewer(({ database, requireViewer }, slice: Slice<string>) =>
  listOrganizations(database, requireViewer(), slice),
);
const loadOrganizationCount = ofViewer(({ database, requireViewer }) => countOrganizations(database, requireViewer()));
const loadOrganizationPage = ofViewer(({ database, requireViewer }, paging: PageRequest) =>
  pageOrganizations(database, requireViewer(), paging),
);
const loadApiKeyList = ofViewer(({ database, requireSession }, slice: Slice<string>) => listApiKeys(database, requireSession(), slice));
const loadApiKeyCount = ofViewer(({ database, requireSession }) => countApiKeys(database, requireSession()));

const ViewerRef = builder.objectRef<Viewer>('Viewer').implement({
  description: 'The user who asks.',
  interfaces: [UserRef, NodeRef],
  fields: (t) => ({
    id: t.id({ description: 'The id of the user.', resolve: (viewer) => viewer.userId }),
    created: t.expose('created', { type: 'DateTime', description: 'When the user was created.' }),
    organizations: t.connection(
      {
        type: OrganizationRef,
        description: 'The organizations that the viewer belongs to, the oldest first.',
        resolve: ({ userId }, args, { loadBatched }) =>
          resolveList({ args, ...byId, count: () => loadBatched(loadOrganizationCount, userId) }, (slice) =>
            loadBatched(loadOrganizationList, userId, slice),
          ),
      },
      OrganizationConnection,
    ),
    organizationPage: t.field({
      type: OrganizationPage,
      description: 'The organizations that the viewer belongs to, the oldest first, by page.',
      complexity: pageCost,
      args: pageArgs(t),
      resolve: ({ userId }, paging, { loadBatched }) => loadBatched(loadOrganizationPage, userId, paging),
    }),
    apiKeys: t.connection(
      {
        type: ApiKeyRef,
        description: 'The viewer’s API keys, the newest first; a revoked or expired one for another 90 days. Only for a user session.',
        resolve: ({ userId }, args, { loadBatched }) =>
          resolveList({ args, ...byId, count: () => loadBatched(loadApiKeyCount, userId) }, (slice) =>
            loadBatched(loadApiKeyList, userId, slice),
          ),
      },
      ApiKeyConnection,
    ),
  }),
});

function loadOrganizations({ database, requireViewer }: Context, ids: readonly string[]) {
  return findOrganizations(database, requireViewer(), ids);
}

builder.objectFields(ProjectRef, (t) => ({
  organization: t.field({
    type: OrganizationRef,
    description: 'The organization that it belongs to.',
    resolve: async ({ organizationId }, _args, { loadBatched }) => {
      const organization = await loadBatched(loadOrganizations, organizationId);
      if (!organization) throw Fault.notFound();
      return organization;
    },
  }),
  members: t.connection(
    {
      type: ProjectMemberRef,
      description: 'The users who may see the project, ordered by user id.',
      resolve: (scope, args, { loadByProject }) =>
        resolveList({ args, ...byUser, count: () => loadByProject(countProjectMembers, scope) }, (slice) =>
          loadByProject(listProjectMembers, scope, slice),
        ),
    },
    ProjectMemberConnection,
  ),
}));

registerNode('Organization', { outside: loadOrganizations });
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
    description: 'An organization that the viewer belongs to; `not_found` for any other.',
    args: { id: t.arg.id({ required: true, description: 'The id of the organization.' }) },
    extensions: {
      checkAccess: (({ id = '' }, { database, requireViewer }) => getOrganization(database, requireViewer(), id)) satisfies CheckAccess,
    },
    resolve: (_root, { id }, context) => getOrganization(context.database, context.requireViewer(), id),
  }),
}));

const CreateApiKeyInput = builder.inputType('CreateApiKeyInput', {
  description: 'The API key to create.',
  fields: (t) => ({
    name: t.field({
      type: 'Name',
      required: true,
      description: 'The name of the key: 1 to 255 characters.',
      extensions: { maxLength: 255 },
    }),
    expires: t.field({ type: 'DateTime', description: 'When the key expires. Without it, the key is valid until it is revoked.' }),
    idempotencyKey: idempotencyKey(t),
  }),
});
const CreateApiKeyPayload = builder.simpleObject(
  'CreateApiKeyPayload',
  {
    description: 'The result of `createApiKey`.',
    fields: (t) => ({
      key: t.string({ description: 'The key itself. It is shown only here.' }),
      apiKey: t.field({ type: ApiKeyRef, description: 'The stored record of the key, which does not contain the key itself.' }),
    }),
  },
  (t) => ({
    viewer: t.field({
      type: ViewerRef,
      description: 'The viewer, whose `apiKeys` have one more.',
      resolve: (_payload, _args, context) => context.requireViewer(),
    }),
  }),
);

const RevokeApiKeyInput = builder.inputType('RevokeApiKeyInput', {
  description: 'The API key to revoke.',
  fields: (t) => ({ id: t.id({ required: true, description: 'The id of the key.' }), idempotencyKey: idempotencyKey(t) }),
});
const RevokeApiKeyPayload = builder.simpleObject('RevokeApiKeyPayload', {
  description: 'The result of `revokeApiKey`.',
  fields: (t) => ({ apiKey: t.field({ type: ApiKeyRef, description: 'The revoked key.' }) }),
});

/**
 * An API key must not learn which keys exist: nothing is looked up for it, and `session_required` comes after the check of the
 * fields.
 */
const checkApiKeyAccess: CheckAccess = async ({ id = '' }, { database, requireViewer }) => {
  const { userId, credential } = requireViewer();
  if (credential.kind === 'session') await getApiKey(database, userId, id);
};

const RenewCredentialInput = builder.inputType('RenewCredentialInput', {
  description: 'A new credential for an open socket.',
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
  description: 'The result of `renewCredential`.',
  fields: (t) => ({ expires: t.field({ type: 'DateTime', description: 'The time until which the socket stays open.' }) }),
});

builder.mutationFields((t) => ({
  renewCredential: t.field({
    type: RenewCredentialPayload,
    nullable: true,
    description: 'On a WebSocket: continues it with a new session token, without interruption.',
    args: { input: t.arg({ type: RenewCredentialInput, required: true, description: 'The new credential.' }) },
    resolve: async (_root, { input }, context) => (await context.renewCredential(input.token)).credential,
  }),
  createApiKey: t.field({
    type: CreateApiKeyPayload,
    nullable: true,
    description: 'Creates an API key for the viewer. Only for a user session.',
    args: { input: t.arg({ type: CreateApiKeyInput, required: true, description: 'The key to create.' }) },
    resolve: (_root, { input }, context, info) =>
      runIdempotently({ input, context, info }, (within) => createApiKey(within, input, within.services.quotas.keysPerUser), {
        needsSession: true,
      }),
  }),
  revokeApiKey: t.field({
    type: RevokeApiKeyPayload,
    nullable: true,
    description: 'Revokes an API key of the viewer. Only for a user session.',
    args: { input: t.arg({ type: RevokeApiKeyInput, required: true, description: 'The key to revoke.' }) },
    extensions: { checkAccess: checkApiKeyAccess },
    resolve: (_root, { input }, context, info) =>
      runIdempotently({ input, context, info }, () => revokeApiKey(context.database, context.requireSession(), input.id), {
        needsSession: true,
        isRepeatable: true,
      }),
  }),
}));
