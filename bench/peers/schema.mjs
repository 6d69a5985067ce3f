// The part of Portico's schema that the reads use, and its resolvers for the GraphQL peers without Prisma.
import { isUuid, notFound, openPool, Refusal, reasonOf, roleOf, spend, verify } from './access.mjs';
import * as statements from './statements.mjs';

const pool = openPool();

/** @param {{name: string, text: string}} statement @param {unknown[]} values */
const query = async (statement, values) => (await pool.query({ ...statement, values })).rows;

export const typeDefs = /* GraphQL */ `
  scalar DateTime
  scalar JSON
  type Query { project(organizationId: ID!, id: ID!): Project }
  type Project {
    id: ID!
    computeOverview: ComputeOverview
    notifications(first: Int = 20, after: String): NotificationConnection
    dashboards(first: Int = 20, after: String): DashboardConnection
    instances(first: Int = 20, after: String): InstanceConnection
  }
  type PageInfo { hasNextPage: Boolean! endCursor: String }
  type StatusCount { status: String! count: Int! }
  type ComputeOverview {
    attention: ComputeAttention!
    instancesByStatus: [StatusCount!]!
    instancesTotal: Int!
    resourcesAllocated: ResourcesAllocated!
    resourcesCount: ResourcesCount!
    tasksByStatus: [StatusCount!]!
    tasksRecentCount: Int!
  }
  type ComputeAttention {
    instancesWithoutHypervisor: Int! instancesSuspended: Int! instancesThrottled: Int!
    cancellationsScheduled: Int! tasksFailed24h: Int! tasksStuck: Int!
  }
  type ResourcesAllocated { vcpu: Float! ramMb: Float! ramGb: Float! storageGb: Float! }
  type ResourcesCount { volumes: Int! vpcs: Int! sshKeys: Int! snapshots: Int! backups: Int! storageGb: Float! }
  type NotificationConnection { nodes: [Notification!]! pageInfo: PageInfo! }
  type Notification {
    id: ID! sequence: Int! kind: String! severity: String! title: String! body: String! resourceType: String resourceId: String
    data: JSON! created: DateTime! read: Boolean!
  }
  type DashboardConnection { nodes: [Dashboard!]! pageInfo: PageInfo! }
  type Dashboard {
    id: ID! name: String! description: String! widgets: JSON isDefault: Boolean! isPublic: Boolean! version: Int!
    created: DateTime! modified: DateTime! createdById: ID!
  }
  type InstanceConnection { nodes: [Instance!]! pageInfo: PageInfo! }
  type Instance {
    id: ID! name: String! status: String! plan: String! region: String! vcpu: Int! ramMb: Int! storageGb: Int! hypervisor: String
    created: DateTime! backupTrial: BackupTrialState!
  }
  type BackupTrialState { trial: BackupTrial eligible: Boolean! reason: String! monthlyPrice: String! currency: String! trialDays: Int! }
  type BackupTrial { id: ID! status: String! source: String! cycle: String! monthlyPrice: String! startedAt: DateTime endsAt: DateTime created: DateTime! }
`;

/** The user of a request, and the rate limit headers of its response. @param {string | undefined} authorization */
export async function authenticate(authorization) {
  const { userId } = await verify(authorization);
  const [user] = await query(statements.user, [userId]);
  if (!user || user.disabled_at) throw new Refusal(401, 'not_authenticated', 'The credential is not valid.');
  return { userId, headers: await spend(userId) };
}

/** @typedef {{userId: string}} Context @typedef {{id: string, userId: string, isAdmin: boolean, currency: string}} Project */

/** One page; an extra row shows whether there is a next one. @param {any[]} rows @param {number} first @param {(row: any) => string | number} keyOf */
function page(rows, first, keyOf) {
  const nodes = rows.slice(0, first);
  const last = nodes.at(-1);
  return {
    nodes,
    pageInfo: { hasNextPage: rows.length > first, endCursor: last ? Buffer.from(String(keyOf(last))).toString('base64url') : null },
  };
}

const keyOf = (/** @type {string | undefined} */ cursor) => (cursor ? Buffer.from(cursor, 'base64url').toString() : null);
/** @typedef {{first: number, after?: string}} Paging */

export const queryFields = {
  /** @param {unknown} _root @param {{organizationId: string, id: string}} ids @param {Context} context @returns {Promise<Project>} */
  async project(_root, { organizationId, id }, { userId }) {
    if (!isUuid(organizationId) || !isUuid(id)) throw notFound();
    const [row] = await query(statements.access, [organizationId, id, userId]);
    return { id, userId, isAdmin: roleOf(row) === 'admin', currency: row?.currency };
  },
};

export const projectFields = {
  /** @param {Project} project */
  async computeOverview({ id }) {
    const [row] = await query(statements.overview, [id]);
    const [figures] = row?.response ?? [];
    return toCamel(figures);
  },
  /** @param {Project} project @param {Paging} paging */
  async notifications({ id, userId }, { first, after }) {
    const rows = await query(statements.notifications, [id, userId, keyOf(after), first + 1]);
    return page(rows, first, ({ sequence }) => sequence);
  },
  /** @param {Project} project @param {Paging} paging */
  async dashboards({ id, userId, isAdmin }, { first, after }) {
    return page(await query(statements.dashboards, [id, isAdmin, userId, keyOf(after), first + 1]), first, (row) => row.id);
  },
  /** @param {Project} project @param {Paging} paging */
  async instances({ id, currency }, { first, after }) {
    const rows = await query(statements.instances, [id, keyOf(after), first + 1]);
    return page(
      rows.map((row) => ({ ...row, currency })),
      first,
      (row) => row.id,
    );
  },
};

/** The trial states of the instances of one list, which all belong to one project. @param {readonly {id: string, projectId: string, currency: string}[]} instances */
export async function loadTrials(instances) {
  const ids = instances.map(({ id }) => id);
  const [facts, trials] = await Promise.all([
    query(statements.trialFacts, [ids, instances[0]?.projectId]),
    query(statements.latestTrials, [ids]),
  ]);
  const factsById = new Map(facts.map((row) => [row.id, row]));
  const trialsById = new Map(trials.map((row) => [row.instance, row]));
  return instances.map(({ id, currency }) => {
    const row = factsById.get(id);
    const reason = reasonOf(row ?? {});
    const trial = trialsById.get(id);
    return {
      trial: trial ? toCamel(trial) : null,
      eligible: reason === '',
      reason,
      monthlyPrice: row?.monthly_price,
      currency: row?.currency ?? currency,
      trialDays: row?.trial_days,
    };
  });
}

/** Renames columns to GraphQL's camelCase. @param {any} value @returns {any} */
function toCamel(value) {
  if (Array.isArray(value)) return value.map(toCamel);
  if (typeof value !== 'object' || value === null || value instanceof Date) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase()), toCamel(item)]),
  );
}
