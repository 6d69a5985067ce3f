import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { runCases } from '../support/doors.ts';
import { makeProject } from '../support/fixtures.ts';
import { overviewCases, recount } from './cases/overview.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.close());

runCases(() => app, overviewCases);

const readOverview = async (projectId: string) => {
  const path = `/v1/organizations/${app.demo.organization_id}/projects/${projectId}/compute/overview`;
  const { json } = await app.ask('GET', path);
  expect(json).toHaveLength(1);
  return json[0];
};

/** For each figure of `attention` the list that it opens, walked to its end. */
const lists = {
  instancesWithoutHypervisor: ['instances', 'without_hypervisor'],
  instancesSuspended: ['instances', 'suspended'],
  instancesThrottled: ['instances', 'throttled'],
  cancellationsScheduled: ['instances', 'cancellation_scheduled'],
  tasksFailed24h: ['tasks', 'failed_24h'],
  tasksStuck: ['tasks', 'stuck'],
} as const;

async function openList(projectId: string, [list, attention]: readonly ['instances' | 'tasks', string]): Promise<string[]> {
  const filter = list === 'instances' ? 'InstanceFilter' : 'TaskFilter';
  const document = `query ($organizationId: ID!, $id: ID!, $filter: ${filter}, $after: String) {
    project(organizationId: $organizationId, id: $id) {
      list: ${list}(filter: $filter, first: 2, after: $after) { nodes { id } pageInfo { hasNextPage endCursor } }
    }
  }`;
  const found: string[] = [];
  const variables = { organizationId: app.demo.organization_id, id: projectId, filter: { attention } };
  const walk = async (after: string | null): Promise<string[]> => {
    const { nodes, pageInfo } = (await app.graphql(document, { ...variables, after })).json.data.project.list;
    found.push(...nodes.map(({ id }: { id: string }) => id));
    expect(new Set(found).size, 'a page repeats what the one before had').toBe(found.length);
    return pageInfo.hasNextPage ? walk(pageInfo.endCursor) : found;
  };
  return walk(null);
}

async function readAttention(projectId: string): Promise<Record<keyof typeof lists, number>> {
  const document = `query ($organizationId: ID!, $id: ID!) {
    project(organizationId: $organizationId, id: $id) { computeOverview { attention { ${Object.keys(lists).join(' ')} } } }
  }`;
  const response = await app.graphql(document, { organizationId: app.demo.organization_id, id: projectId });
  return response.json.data.project.computeOverview.attention;
}

describe('attention', () => {
  for (const [figure, list] of Object.entries(lists)) {
    it(`${figure} is the length of the list that it opens`, async () => {
      const attention = await readAttention(app.demo.project_id);
      const found = await openList(app.demo.project_id, list);
      expect(found).toHaveLength(attention[figure as keyof typeof lists]);
      expect(found.length).toBeGreaterThan(0);
      expect(new Set(found).size).toBe(found.length);
      expect(await openList(app.demo.empty_project_id, list)).toEqual([]);
    });
  }
});

describe('at a fixed time', () => {
  const HOUR_MS = 3_600_000;
  let now: Date;
  const ago = (ms: number) => new Date(now.getTime() - ms);

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['Date'] });
    now = new Date();
    vi.setSystemTime(now);
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('a day and an hour end to the millisecond, for the figures and for the lists behind them', async () => {
    const projectId = await makeProject(app);
    const base = { projectId, kind: 'test' };
    const failed = { ...base, status: 'failed' as const };
    await app.app.database.prisma.task.createMany({
      data: [
        { ...failed, created: ago(90 * HOUR_MS), finished: ago(24 * HOUR_MS) },
        { ...failed, created: ago(90 * HOUR_MS), finished: ago(24 * HOUR_MS + 1) },
        { ...base, status: 'running', created: ago(HOUR_MS) },
        { ...base, status: 'pending', created: ago(HOUR_MS + 1) },
        { ...base, status: 'succeeded', created: ago(24 * HOUR_MS), finished: ago(HOUR_MS) },
        { ...base, status: 'succeeded', created: ago(24 * HOUR_MS + 1), finished: ago(HOUR_MS) },
        { ...base, status: 'cancelled', created: ago(23 * HOUR_MS), finished: ago(22 * HOUR_MS) },
      ],
    });
    const overview = await readOverview(projectId);
    expect(overview).toMatchObject({
      attention: { tasks_failed_24h: 1, tasks_stuck: 1 },
      tasks_by_status: [
        { status: 'cancelled', count: 1 },
        { status: 'pending', count: 1 },
        { status: 'running', count: 1 },
        { status: 'succeeded', count: 1 },
      ],
      tasks_recent_count: 4,
    });
    expect(overview).toEqual(await recount(app, projectId));
    expect(await openList(projectId, lists.tasksFailed24h)).toHaveLength(1);
    expect(await openList(projectId, lists.tasksStuck)).toHaveLength(1);
  });

  it('a cancellation counts until its time, and deleted instances count nowhere', async () => {
    const projectId = await makeProject(app);
    const base = { projectId, name: 'x', plan: 'vps-s', region: 'x', vcpu: 3, ramMb: 1023, storageGb: 7 };
    await app.app.database.prisma.instance.createMany({
      data: [
        { ...base, status: 'active', hypervisor: 'hv', cancellationAt: now },
        { ...base, status: 'stopped', hypervisor: 'hv', cancellationAt: ago(-1) },
        { ...base, status: 'suspended', throttled: true },
        { ...base, status: 'deleted', throttled: true, cancellationAt: ago(-1) },
      ],
    });
    const overview = await readOverview(projectId);
    expect(overview).toMatchObject({
      attention: { instances_without_hypervisor: 1, instances_suspended: 1, instances_throttled: 1, cancellations_scheduled: 1 },
      instances_by_status: [
        { status: 'active', count: 1 },
        { status: 'stopped', count: 1 },
        { status: 'suspended', count: 1 },
      ],
      instances_total: 3,
      resources_allocated: { vcpu: 9, ram_mb: 3069, ram_gb: 2, storage_gb: 21 },
    });
    expect(overview).toEqual(await recount(app, projectId));
    for (const name of ['instancesWithoutHypervisor', 'instancesSuspended', 'instancesThrottled', 'cancellationsScheduled'] as const) {
      expect(await openList(projectId, lists[name]), name).toHaveLength(1);
    }
    vi.setSystemTime(ago(-1));
    expect((await readOverview(projectId)).attention.cancellations_scheduled).toBe(0);
    expect(await openList(projectId, lists.cancellationsScheduled)).toEqual([]);
  });
});

it('adds up beyond 32 bits', async () => {
  const projectId = await makeProject(app);
  const base = {
    projectId,
    name: 'huge',
    status: 'active' as const,
    plan: 'x',
    region: 'x',
    vcpu: 1,
    ramMb: 2_147_483_647,
    storageGb: 2_000_000_000,
  };
  await app.app.database.prisma.instance.createMany({ data: [base, base, base] });
  await app.app.database.prisma.volume.createMany({
    data: [1, 2].map((name) => ({ projectId, name: String(name), sizeGb: 2_000_000_000 })),
  });
  const overview = await readOverview(projectId);
  expect(overview.resources_allocated).toEqual({ vcpu: 3, ram_mb: 6_442_450_941, ram_gb: 6_291_455, storage_gb: 6_000_000_000 });
  expect(overview.resources_count.storage_gb).toBe(4_000_000_000);
  expect(overview).toEqual(await recount(app, projectId));
});
