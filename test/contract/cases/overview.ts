import type { TestApp } from '../../support/app.ts';
import type { Case, Who } from '../../support/doors.ts';
import { ids } from '../../support/fixtures.ts';

const zeros = {
  attention: {
    instances_without_hypervisor: 0,
    instances_suspended: 0,
    instances_throttled: 0,
    cancellations_scheduled: 0,
    tasks_failed_24h: 0,
    tasks_stuck: 0,
  },
  instances_by_status: [],
  instances_total: 0,
  resources_allocated: { vcpu: 0, ram_mb: 0, ram_gb: 0, storage_gb: 0 },
  resources_count: { volumes: 0, vpcs: 0, ssh_keys: 0, snapshots: 0, backups: 0, storage_gb: 0 },
  tasks_by_status: [],
  tasks_recent_count: 0,
};

/** The figures of §2.5, counted row by row: no counter, and nothing of the service's own statement. */
export async function recount({ app }: TestApp, projectId: string): Promise<typeof zeros> {
  const count = async (from: string, expression = 'count(*)') => {
    const sql = `SELECT (${expression})::float8 AS figure FROM ${from}`;
    const [row] = await app.database.prisma.$queryRawUnsafe<Array<{ figure: number | null }>>(sql, projectId, new Date());
    return row?.figure ?? 0;
  };
  const byStatus = async (from: string) => {
    const sql = `SELECT status::text AS status, count(*)::int AS count FROM ${from} GROUP BY status`;
    const rows = await app.database.prisma.$queryRawUnsafe<Array<{ status: string; count: number }>>(sql, projectId, new Date());
    return rows.sort((a, b) => (a.status < b.status ? -1 : 1)) as never[];
  };
  // Every statement takes the same two values: the project and the moment.
  const of = (table: string) => `${table} CROSS JOIN (SELECT $2::timestamptz AS moment) AS clock WHERE project_id = $1::uuid`;
  const instances = `${of('instances')} AND status::text <> 'deleted'`;
  const recent = `${of('tasks')} AND created >= moment - interval '24 hours'`;
  return {
    attention: {
      instances_without_hypervisor: await count(`${instances} AND hypervisor IS NULL`),
      instances_suspended: await count(`${instances} AND status = 'suspended'`),
      instances_throttled: await count(`${instances} AND throttled`),
      cancellations_scheduled: await count(`${instances} AND cancellation_at > moment`),
      tasks_failed_24h: await count(`${of('tasks')} AND status = 'failed' AND finished >= moment - interval '24 hours'`),
      tasks_stuck: await count(`${of('tasks')} AND status IN ('pending', 'running') AND created < moment - interval '1 hour'`),
    },
    instances_by_status: await byStatus(instances),
    instances_total: await count(instances),
    resources_allocated: {
      vcpu: await count(instances, 'sum(vcpu)'),
      ram_mb: await count(instances, 'sum(ram_mb)'),
      ram_gb: Math.floor((await count(instances, 'sum(ram_mb)')) / 1024),
      storage_gb: await count(instances, 'sum(storage_gb)'),
    },
    resources_count: {
      volumes: await count(of('volumes')),
      vpcs: await count(of('vpcs')),
      ssh_keys: await count(of('ssh_keys')),
      snapshots: await count(of('snapshots')),
      backups: await count(of('backups')),
      storage_gb: await count(of('volumes'), 'sum(size_gb)'),
    },
    tasks_by_status: await byStatus(recent),
    tasks_recent_count: await count(recent),
  };
}

const counted = (as: Who, place: Case['place'] = {}): Case => ({
  name: `the rows of ${place.project_id ? 'another organization’s project' : 'the project'}, counted for ${as}`,
  operation: 'compute_overview',
  status: 200,
  as,
  place,
  prepare: async (app) => ({ body: [await recount(app, place.project_id ?? ids.project.id)] }),
});

export const overviewCases: readonly Case[] = [
  counted('owner'),
  counted('viewer'),
  counted('member by key'),
  counted('outsider', { organization_id: ids.foreignOrganization.id, project_id: ids.foreignProject.id }),
  {
    name: 'an empty project is one element, all zeros',
    operation: 'compute_overview',
    status: 200,
    place: { project_id: ids.emptyProject.id },
    body: [zeros],
  },
];
