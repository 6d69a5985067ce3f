import type { Prisma } from '../src/generated/prisma/client.ts';
import { findInstance, foreignFleet } from './compute.ts';
import { demoId } from './identity.ts';
import { foreignProject, project, users } from './people.ts';
import { daysBefore } from './time.ts';

export const dashboards = {
  default: demoId('dashboard/operations', 0),
  public: demoId('dashboard/traffic', 1),
  private: demoId('dashboard/night-shift', 2),
} as const;
export const foreignDashboardId = demoId('dashboard/shop', 3);

/** The default dashboard is the admin's, the public one the member's, the private one the owner's, so that each has other editors. */
export function dashboardRows(now: Date): Prisma.DashboardCreateManyInput[] {
  return [
    {
      id: dashboards.default,
      projectId: project.id,
      createdById: users.admin.id,
      name: 'Operations',
      description: 'What the team looks at first.',
      widgets: operations,
      isDefault: true,
      isPublic: true,
      version: 4,
      created: daysBefore(now, 300),
      modified: daysBefore(now, 6),
    },
    {
      id: dashboards.public,
      projectId: project.id,
      createdById: users.member.id,
      name: 'Traffic',
      description: 'Requests and errors of the web tier.',
      widgets: traffic,
      isDefault: false,
      isPublic: true,
      version: 2,
      created: daysBefore(now, 120),
      modified: daysBefore(now, 45),
    },
    {
      id: dashboards.private,
      projectId: project.id,
      createdById: users.owner.id,
      name: 'Night shift',
      description: '',
      widgets: nightShift,
      isDefault: false,
      isPublic: false,
      version: 1,
      created: daysBefore(now, 20),
      modified: daysBefore(now, 20),
    },
    {
      id: foreignDashboardId,
      projectId: foreignProject.id,
      createdById: users.outsider.id,
      name: 'Shop',
      description: 'Of another organization: nobody at Acme may know of it.',
      widgets: shop,
      isDefault: true,
      isPublic: true,
      version: 1,
      created: daysBefore(now, 200),
      modified: daysBefore(now, 200),
    },
  ];
}

const operations: Prisma.InputJsonValue = [
  {
    type: 'timeseries',
    title: 'CPU by instance',
    position: { x: 0, y: 0, w: 8, h: 4 },
    query: { metric: 'cpu.utilization', group_by: ['instance'], aggregate: 'p95', range: '6h', step: '1m' },
    thresholds: [
      { at: 0.8, severity: 'warning' },
      { at: 0.95, severity: 'critical' },
    ],
    legend: null,
  },
  {
    type: 'stat',
    title: 'Instances that need attention',
    position: { x: 8, y: 0, w: 4, h: 2 },
    query: { metric: 'instances.attention', filters: { status: ['suspended', 'error'] } },
    unit: null,
  },
  {
    type: 'table',
    title: 'Tasks that failed in the last 24 h',
    position: { x: 8, y: 2, w: 4, h: 2 },
    columns: [{ field: 'kind' }, { field: 'instance.name', link: true }, { field: 'finished', format: 'relative' }],
    limit: 10,
  },
];

const traffic: Prisma.InputJsonValue = [
  {
    type: 'timeseries',
    title: 'Requests per second',
    position: { x: 0, y: 0, w: 12, h: 4 },
    series: ['web-01', 'web-02', 'web-03'].map((name) => ({
      label: name,
      query: { metric: 'http.requests', instance: findInstance(name).id },
    })),
    stacked: true,
  },
  {
    type: 'heatmap',
    title: 'Latency (ms)',
    position: { x: 0, y: 4, w: 6, h: 4 },
    query: { metric: 'http.latency', buckets: [5, 10, 25, 50, 100, 250, 500, 1000] },
    colors: { from: '#e8f5e9', to: '#b71c1c' },
  },
  {
    type: 'stat',
    title: 'Error rate',
    position: { x: 6, y: 4, w: 6, h: 4 },
    query: { ratio: [{ metric: 'http.requests', filters: { status: '5xx' } }, { metric: 'http.requests' }] },
    format: { style: 'percent', digits: 2 },
  },
];

const nightShift: Prisma.InputJsonValue = {
  layout: 'free',
  widgets: [
    { type: 'note', text: 'Wer Bereitschaft hat: zuerst db-01 prüfen. ☎ +49 30 555 0123' },
    { type: 'gauge', title: 'db-01: disk', query: { metric: 'disk.used', instance: findInstance('db-01').id }, max: 320, warn_at: null },
  ],
  refresh_seconds: 30,
};

const shop: Prisma.InputJsonValue = [
  { type: 'stat', title: 'Checkout latency', query: { metric: 'http.latency', instances: foreignFleet.slice(0, 2).map(({ id }) => id) } },
];
