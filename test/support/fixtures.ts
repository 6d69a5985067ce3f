import { emptyProject, foreignOrganization, foreignProject, organization, project, users } from '../../demo/people.ts';
import type { Dashboard, ProjectRole, Severity } from '../../src/generated/prisma/client.ts';
import type { TestApp } from './app.ts';

export const ABSENT_ID = '00000000-0000-7000-8000-000000000000';
const DAY_MS = 86_400_000;

export const ids = { organization, project, emptyProject, foreignOrganization, foreignProject, users };

/** The time of the demo's seeding, to which all its times are relative: the owner was created 420 days before it. */
export async function seededAt({ app }: TestApp): Promise<Date> {
  const owner = await app.database.prisma.user.findUniqueOrThrow({ where: { id: users.owner.id } });
  return new Date(owner.created.getTime() + 420 * DAY_MS);
}

/** Creates an empty project in the demo's organization; the member and the viewer have the given roles, if any. */
export async function makeProject({ app }: TestApp, roles: { member?: ProjectRole; viewer?: ProjectRole } = {}): Promise<string> {
  const { id: projectId } = await app.database.prisma.project.create({
    data: { organizationId: organization.id, name: 'Made for a test' },
  });
  const members = Object.entries(roles).map(([who, role]) => ({ projectId, userId: users[who as keyof typeof roles].id, role }));
  await app.database.prisma.projectMember.createMany({ data: members });
  return projectId;
}

/** Creates a dashboard at version 5 whose fields all differ from the defaults; it belongs to the member unless `data` says otherwise. */
export function makeDashboard({ app }: TestApp, projectId: string, data: Partial<Dashboard> = {}): Promise<Dashboard> {
  const created = new Date('2026-03-01T08:00:00.000Z');
  const modified = new Date('2026-04-01T09:30:00.000Z');
  return app.database.prisma.dashboard.create({
    data: {
      projectId,
      createdById: users.member.id,
      name: 'Before',
      description: 'As it was.',
      isPublic: true,
      version: 5,
      created,
      modified,
      ...data,
      widgets: [{ type: 'stat', title: 'Before' }],
    },
  });
}

/** Creates notifications numbered from 1; returns their ids, the oldest first. */
export async function makeNotifications(
  { app }: TestApp,
  projectId: string,
  count: number,
  severity: Severity = 'info',
): Promise<string[]> {
  const rows = Array.from({ length: count }, (_, index) => ({
    projectId,
    kind: 'test.made',
    severity,
    title: `Number ${index + 1}`,
    body: '',
    data: {},
  }));
  // Each is a statement of its own, because the order of several rows in one statement is up to the database.
  const made: string[] = [];
  for (const data of rows) made.push((await app.database.prisma.notification.create({ data, select: { id: true } })).id);
  return made;
}
