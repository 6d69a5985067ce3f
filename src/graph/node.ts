import type { GraphQLResolveInfo } from 'graphql';
import type { ProjectScope } from '../access/scope.ts';
import { Fault } from '../kernel/fault.ts';
import { parseUuid } from '../kernel/uuid.ts';
import type { Database } from '../platform/database.ts';
import { openReader, type ReadWeighed, readLight } from './answer.ts';
import { builder } from './builder.ts';
import type { Context } from './context.ts';
import { pageCost } from './cost.ts';

/** What one call of `nodes` may name. */
const MAX_NODES = 100;

/** A row that says itself which type it is of: what stands where a `Node` does. */
type Typed = object & { readonly __typename: string };

export const NodeRef = builder.interfaceRef<object>('Node').implement({
  description: 'What has an id: a UUID, the same at every door, which no two things share.',
  fields: (t) => ({ id: t.id({ description: 'The id.', resolve: (node) => (node as { id: string }).id }) }),
  resolveType: (node) => (node as Typed).__typename,
});

/** A thing of a project, and the scope through which it is asked for. */
export interface InProject {
  readonly scope: ProjectScope;
  readonly id: string;
}

/** The things, in the order in which they are asked for; null where the viewer may not know of one, or it is none of the project's. */
type LoadInProject = (context: Context, asked: readonly InProject[], read: ReadWeighed) => Promise<ReadonlyArray<object | null>>;

/** The same of what belongs to no project. */
type LoadOutside = (context: Context, ids: readonly string[]) => Promise<ReadonlyArray<object | null>>;

/** Of rows those that are asked for, each in its own project. */
export function pickInProject<Row extends { readonly id: string; readonly projectId: string }>(
  asked: readonly InProject[],
  rows: readonly Row[],
): Array<Row | null> {
  const found = new Map(rows.map((row) => [row.id, row]));
  return asked.map(({ scope, id }) => {
    const row = found.get(id);
    return row?.projectId === scope.projectId ? row : null;
  });
}

interface InProjectLoader {
  readonly inProject: LoadInProject;
  /** The fields that are read only where they are asked for. */
  readonly heavyFields?: ReadonlySet<string>;
}

type Loader = InProjectLoader | { readonly outside: LoadOutside };

/** The types that are nodes, as the statement below finds them. */
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

/** Each domain says how its own are loaded: all of a level at once. */
export function registerNode(name: NodeName, loader: Loader): void {
  loaders.set(name, loader);
}

/** The names that were registered. */
export function listNodeNames(): NodeName[] {
  return [...loaders.keys()];
}

/** A thing of a project by its id; null where there is none in this project that the viewer may know of. */
export function loadInProject<Row extends object>(
  context: Context,
  name: NodeName,
  { scope, id }: InProject,
  info: GraphQLResolveInfo,
): Promise<Row | null> {
  const loader = loaders.get(name);
  if (!loader || !('inProject' in loader)) throw new Error(`${name} is nothing of a project`);
  const read = loader.heavyFields ? openReader(context, info, loader.heavyFields) : readLight;
  return context.loadBatched<string, Row | null>(
    `${name}${read === readLight ? '' : ' whole'}`,
    `${scope.projectId} ${id}`,
    async (keys) => {
      const asked = keys.map((key) => {
        const [projectId = '', wanted = ''] = key.split(' ');
        return { scope: context.findProject(projectId), id: wanted };
      });
      return [...(await loader.inProject(context, asked, read))] as Array<Row | null>;
    },
  );
}

/** A node by its id; null where there is none that the viewer may know of, also where the id is malformed. */
async function loadNode(context: Context, text: string, info: GraphQLResolveInfo): Promise<Typed | null> {
  const viewer = context.requireViewer();
  const id = parseUuid(text);
  if (!id) return null;
  const found = await context.loadBatched('nodes', id, (ids) => findNodes(context.database, viewer.userId, ids));
  const loader = found && loaders.get(found.type);
  if (!loader) return null;
  const { type, projectId } = found;
  if ('outside' in loader) {
    const row = await context.loadBatched<string, object | null>(type, id, async (ids) => [...(await loader.outside(context, ids))]);
    return row && typed(row, type);
  }
  const scope = await openKnown(context, projectId);
  const row = scope && (await loadInProject(context, type, { scope, id }, info));
  return row && typed(row, type);
}

/** A node of the same project by its id, as far as the viewer may know of it; all else is null. */
export async function loadNodeInProject(context: Context, { scope, id: text }: InProject, info: GraphQLResolveInfo): Promise<Typed | null> {
  const id = parseUuid(text);
  if (!id) return null;
  const found = await context.loadBatched('nodes', id, (ids) => findNodes(context.database, scope.viewer.userId, ids));
  if (!found || found.projectId !== scope.projectId) return null;
  const row = await loadInProject(context, found.type, { scope, id }, info);
  return row && typed(row, found.type);
}

/** Access may be lost between the two statements. */
async function openKnown(context: Context, projectId: string): Promise<ProjectScope | null> {
  return context.openProject({ projectId }).catch((failure: unknown) => {
    if (failure instanceof Fault && failure.code === 'not_found') return null;
    throw failure;
  });
}

/** A copy, as a row may be shared by several places, of which not each is a `Node`; one of a type with kinds names its own. */
function typed(row: object, name: NodeName): Typed {
  return { __typename: name, ...row };
}

interface Found {
  readonly id: string;
  readonly type: NodeName;
  /** Its own id for what belongs to no project. */
  readonly projectId: string;
}

/**
 * Of each id its type, by one statement, null where the viewer is not even near it: no member of its project, or of none of
 * the organizations of a user. What they may see of a project is left to its domain. What is absent takes the same as what
 * is foreign.
 */
async function findNodes(database: Database, userId: string, ids: readonly string[]): Promise<Array<Found | null>> {
  const rows = await database.query<{ id: string | null; type: string; projectId: string | null }>`
    SELECT wanted.id, found.type, found.project_id AS "projectId"
    FROM unnest(${ids}::uuid[]) AS wanted (id)
    CROSS JOIN LATERAL (
      SELECT 'Project'::text AS type, project.id AS project_id FROM projects AS project WHERE project.id = wanted.id
      UNION ALL SELECT 'Instance', project_id FROM instances WHERE id = wanted.id
      UNION ALL SELECT 'Task', project_id FROM tasks WHERE id = wanted.id
      UNION ALL SELECT 'Dashboard', project_id FROM dashboards WHERE id = wanted.id
      UNION ALL SELECT 'Notification', project_id FROM notifications WHERE id = wanted.id
      UNION ALL SELECT 'ConsoleSession', project_id FROM console_sessions WHERE id = wanted.id
      UNION ALL SELECT 'Volume', project_id FROM volumes WHERE id = wanted.id
      UNION ALL SELECT 'Snapshot', project_id FROM snapshots WHERE id = wanted.id
      UNION ALL SELECT 'Backup', project_id FROM backups WHERE id = wanted.id
      UNION ALL SELECT 'Vpc', project_id FROM vpcs WHERE id = wanted.id
      UNION ALL SELECT 'SshKey', project_id FROM ssh_keys WHERE id = wanted.id
      UNION ALL
      SELECT 'BackupTrial', instance.project_id FROM backup_trials AS trial JOIN instances AS instance ON instance.id = trial.instance_id
      WHERE trial.id = wanted.id
    ) AS found
    JOIN projects AS project ON project.id = found.project_id
    JOIN organization_members AS member ON member.organization_id = project.organization_id AND member.user_id = ${userId}::uuid
    LEFT JOIN project_members AS listed ON listed.project_id = project.id AND listed.user_id = member.user_id
    WHERE member.role <> 'member' OR listed.role IS NOT NULL
    UNION ALL
    SELECT member.organization_id, 'Organization'::text, member.organization_id FROM organization_members AS member
    WHERE member.organization_id = ANY (${ids}::uuid[]) AND member.user_id = ${userId}::uuid
    UNION ALL
    SELECT key.id, 'ApiKey'::text, key.id FROM api_keys AS key WHERE key.id = ANY (${ids}::uuid[]) AND key.user_id = ${userId}::uuid
    UNION ALL
    SELECT users.id, 'User'::text, users.id FROM users
    WHERE users.id = ANY (${ids}::uuid[]) AND (users.id = ${userId}::uuid OR EXISTS (
      SELECT FROM organization_members AS theirs
      JOIN organization_members AS own ON own.organization_id = theirs.organization_id AND own.user_id = ${userId}::uuid
      WHERE theirs.user_id = users.id))`;
  const found = new Map(rows.map((row) => [row.id, row as Found]));
  return ids.map((id) => found.get(id) ?? null);
}

builder.queryFields((t) => ({
  node: t.field({
    type: NodeRef,
    nullable: true,
    description: 'Whatever has this id; null where there is nothing that the viewer may know of.',
    args: { id: t.arg.id({ required: true, description: 'The id, from any answer of any door.' }) },
    resolve: (_root, { id }, context, info) => loadNode(context, id, info),
  }),
  nodes: t.field({
    type: [NodeRef],
    nullable: { list: true, items: true },
    complexity: pageCost,
    description: 'Whatever has these ids, in their order; null in the place of each that the viewer may not know of.',
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
