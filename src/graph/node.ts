import type { GraphQLResolveInfo } from 'graphql';
import type { InProject, ProjectScope } from '../access/scope.ts';
import { Fault } from '../kernel/fault.ts';
import { pickRows } from '../kernel/rows.ts';
import { parseUuid } from '../kernel/uuid.ts';
import { builder } from './builder.ts';
import type { Context, LoadMany } from './context.ts';
import { pageCost } from './cost.ts';
import { type FieldReader, openReader, withoutHeavyFields } from './fieldreader.ts';
import type { LoadInScope } from './requestloaders.ts';

/** The most ids in one call of `nodes`. */
const MAX_NODES = 100;

/** A row that names its GraphQL type, as a `Node` must. */
type TypedRow = object & { readonly __typename: string };

export const NodeRef = builder.interfaceRef<object>('Node').implement({
  description: 'An object with an id: a UUID, the same in every API and unique across all types.',
  fields: (t) => ({ id: t.id({ description: 'The id.', resolve: (node) => (node as { id: string }).id }) }),
  resolveType: (node) => (node as TypedRow).__typename,
});

/** Loads objects of projects, in the order of the request; null for one that the viewer may not see or that is not of the project. */
type FindInProject = LoadInScope<[reader: FieldReader], object | null>;

/** The same for objects that belong to no project. */
type FindOutside = LoadMany<string, [], object | null>;

/** The rows in the order of the request; null for a row that is missing or of another project. */
export function pickInProject<Row extends { readonly id: string; readonly projectId: string }>(
  requested: readonly InProject[],
  rows: readonly Row[],
): Array<Row | null> {
  const ids = requested.map(({ id }) => id);
  return pickRows(ids, rows, ({ id }) => id).map((row, index) => (row?.projectId === requested[index]?.scope.projectId ? row : null));
}

interface InProjectLoader {
  readonly inProject: FindInProject;
  /** The fields that are read only if they are selected. */
  readonly heavyFields?: ReadonlySet<string>;
}

type Loader = InProjectLoader | { readonly outside: FindOutside };

/** The types that are nodes: those that `findNodes` finds. */
export type NodeName =
  | 'ApiKey'
  | 'Backup'
  | 'BackupTrial'
  | 'ConsoleSession'
  | 'Dashboard'
  | 'Instance'
  | 'Notification'
  | 'Organization'
  | 'Project'
  | 'Snapshot'
  | 'SshKey'
  | 'Task'
  | 'User'
  | 'Volume'
  | 'Vpc';

const loaders = new Map<NodeName, Loader>();

/** Registers the loader of a domain's type, which loads all nodes of a level of a document at once. */
export function registerNode(name: NodeName, loader: Loader): void {
  loaders.set(name, loader);
}

export function listNodeNames(): NodeName[] {
  return [...loaders.keys()];
}

/**
 * An object of a project by its id; null if there is none in this project that the viewer may see. The id is one that the database
 * returned: a client's id may be malformed, and has to pass `parseUuid` first.
 */
export function loadInProject<Row extends object>(
  context: Context,
  name: NodeName,
  { scope, id }: InProject,
  info: GraphQLResolveInfo,
): Promise<Row | null> {
  const loader = loaders.get(name);
  if (!loader || !('inProject' in loader)) throw new Error(`${name} is nothing of a project`);
  const reader = loader.heavyFields ? openReader(context, info, loader.heavyFields) : withoutHeavyFields;
  return context.loadInScope(loader.inProject, scope.projectId, id, reader) as Promise<Row | null>;
}

/** A node by its id; null if the id is malformed or there is no such node that the viewer may see. */
async function loadNode(context: Context, id: string, info: GraphQLResolveInfo): Promise<TypedRow | null> {
  const found = await findNode(context, id);
  const loader = found && loaders.get(found.type);
  if (!loader) return null;
  if ('outside' in loader) {
    const row = await context.loadBatched(loader.outside, found.id);
    return row && withTypename(row, found.type);
  }
  const scope = await openProjectIfVisible(context, found.projectId);
  const row = scope && (await loadInProject(context, found.type, { scope, id: found.id }, info));
  return row && withTypename(row, found.type);
}

/** A node of the scope's project by its id; null if the id is malformed or there is no such node that the viewer may see. */
export async function loadNodeInProject(context: Context, { scope, id }: InProject, info: GraphQLResolveInfo): Promise<TypedRow | null> {
  const found = await findNode(context, id);
  if (!found || found.projectId !== scope.projectId) return null;
  const row = await loadInProject(context, found.type, { scope, id: found.id }, info);
  return row && withTypename(row, found.type);
}

function findNode({ loadBatched }: Context, text: string): Promise<FoundNode | null> | null {
  const id = parseUuid(text);
  return id === null ? null : loadBatched(findNodes, id);
}

/** Null if access was lost after the node was found. */
async function openProjectIfVisible(context: Context, projectId: string): Promise<ProjectScope | null> {
  return context.openProject({ projectId }).catch((failure: unknown) => {
    if (failure instanceof Fault && failure.code === 'not_found') return null;
    throw failure;
  });
}

/** A copy, as several fields may share a row, not all of them of type `Node`. A row that names its own type keeps it. */
function withTypename(row: object, name: NodeName): TypedRow {
  return { __typename: name, ...row };
}

interface FoundNode {
  readonly id: string;
  readonly type: NodeName;
  /** The node's own id if it belongs to no project. */
  readonly projectId: string;
}

/**
 * The type of each id, by one statement; null if the viewer is not a member of its project, may not see it there, or shares no
 * organization with a user. The domain still decides what is shown of the project: here an absent id takes as long as one without access.
 */
async function findNodes({ database, requireViewer }: Context, ids: readonly string[]): Promise<Array<FoundNode | null>> {
  const { userId } = requireViewer();
  const rows = await database.query<{ id: string | null; type: string; projectId: string | null }>`
    SELECT wanted.id, found.type, found.project_id AS "projectId"
    FROM unnest(${ids}::uuid[]) AS wanted (id)
    CROSS JOIN LATERAL (
      SELECT 'Project'::text AS type, project.id AS project_id, false AS is_private FROM projects AS project WHERE project.id = wanted.id
      UNION ALL SELECT 'Instance', project_id, false FROM instances WHERE id = wanted.id
      UNION ALL SELECT 'Task', project_id, false FROM tasks WHERE id = wanted.id
      UNION ALL SELECT 'Dashboard', project_id, NOT is_public AND created_by <> ${userId}::uuid FROM dashboards WHERE id = wanted.id
      UNION ALL SELECT 'Notification', project_id, false FROM notifications WHERE id = wanted.id
      UNION ALL SELECT 'ConsoleSession', project_id, user_id <> ${userId}::uuid FROM console_sessions WHERE id = wanted.id
      UNION ALL SELECT 'Volume', project_id, false FROM volumes WHERE id = wanted.id
      UNION ALL SELECT 'Snapshot', project_id, false FROM snapshots WHERE id = wanted.id
      UNION ALL SELECT 'Backup', project_id, false FROM backups WHERE id = wanted.id
      UNION ALL SELECT 'Vpc', project_id, false FROM vpcs WHERE id = wanted.id
      UNION ALL SELECT 'SshKey', project_id, false FROM ssh_keys WHERE id = wanted.id
      UNION ALL
      SELECT 'BackupTrial', instance.project_id, false FROM backup_trials AS trial JOIN instances AS instance ON instance.id = trial.instance_id
      WHERE trial.id = wanted.id
    ) AS found
    CROSS JOIN LATERAL (SELECT id, organization_id FROM projects WHERE projects.id = found.project_id LIMIT 1) AS project
    CROSS JOIN LATERAL (
      SELECT role FROM organization_members WHERE organization_id = project.organization_id AND user_id = ${userId}::uuid LIMIT 1
    ) AS member
    LEFT JOIN LATERAL (
      SELECT role FROM project_members WHERE project_id = project.id AND user_id = ${userId}::uuid LIMIT 1
    ) AS listed ON true
    WHERE member.role <> 'member' OR listed.role = 'admin' OR (listed.role IS NOT NULL AND NOT found.is_private)
    UNION ALL
    SELECT member.organization_id, 'Organization'::text, member.organization_id FROM organization_members AS member
    WHERE member.organization_id = ANY (${ids}::uuid[]) AND member.user_id = ${userId}::uuid
    UNION ALL
    SELECT key.id, 'ApiKey'::text, key.id FROM api_keys AS key WHERE key.id = ANY (${ids}::uuid[]) AND key.user_id = ${userId}::uuid
    UNION ALL
    SELECT users.id, 'User'::text, users.id FROM users
    WHERE users.id = ANY (${ids}::uuid[]) AND (users.id = ${userId}::uuid OR (
      SELECT true FROM organization_members AS theirs
      JOIN organization_members AS own ON own.organization_id = theirs.organization_id AND own.user_id = ${userId}::uuid
      WHERE theirs.user_id = users.id LIMIT 1))`;
  return pickRows(ids, rows as FoundNode[], ({ id }) => id);
}

builder.queryFields((t) => ({
  node: t.field({
    type: NodeRef,
    nullable: true,
    description: 'The object with this id; null if there is none that the viewer may see.',
    args: { id: t.arg.id({ required: true, description: 'The id, as returned by any API.' }) },
    resolve: (_root, { id }, context, info) => {
      context.requireViewer();
      return loadNode(context, id, info);
    },
  }),
  nodes: t.field({
    type: [NodeRef],
    nullable: { list: true, items: true },
    complexity: pageCost,
    description: 'The objects with these ids, in the same order; null in place of each that does not exist or that the viewer may not see.',
    args: {
      ids: t.arg.idList({
        required: true,
        description: `The ids: at most ${MAX_NODES}.`,
        extensions: { maxItems: MAX_NODES },
      }),
    },
    resolve: (_root, { ids }, context, info) => {
      context.requireViewer();
      return Promise.all(ids.map((id) => loadNode(context, String(id), info)));
    },
  }),
}));
