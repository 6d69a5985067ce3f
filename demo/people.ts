import type { Prisma } from '../src/generated/prisma/client.ts';
import { demoId } from './identity.ts';
import { daysBefore } from './time.ts';

/** The demo's users, by their role in the main project; the outsider belongs only to the foreign organization. */
export const users = {
  owner: { id: demoId('user/owner', 0), email: 'owner@acme.example', name: 'Olivia Okafor' },
  admin: { id: demoId('user/admin', 1), email: 'admin@acme.example', name: 'Anton Adler' },
  member: { id: demoId('user/member', 2), email: 'member@acme.example', name: 'Mira Novák' },
  viewer: { id: demoId('user/viewer', 3), email: 'viewer@acme.example', name: 'Victor Vega' },
  outsider: { id: demoId('user/outsider', 4), email: 'outsider@globex.example', name: 'Oona Lindqvist' },
} as const;

export type DemoRole = keyof typeof users;

export const organization = { id: demoId('organization/acme', 0), name: 'Acme Cloud', currency: 'EUR' } as const;
export const foreignOrganization = { id: demoId('organization/globex', 1), name: 'Globex Hosting', currency: 'USD' } as const;

export const project = { id: demoId('project/production', 0), organizationId: organization.id, name: 'Production' } as const;
/** An empty project without members: only the organization's owner and admin can access it. */
export const emptyProject = { id: demoId('project/sandbox', 1), organizationId: organization.id, name: 'Sandbox' } as const;
export const foreignProject = { id: demoId('project/webshop', 2), organizationId: foreignOrganization.id, name: 'Webshop' } as const;

export function userRows(now: Date): Prisma.UserCreateManyInput[] {
  return Object.values(users).map((user, index) => ({ ...user, created: daysBefore(now, 420 - index * 20) }));
}

export function organizationRows(now: Date): Prisma.OrganizationCreateManyInput[] {
  return [
    { ...organization, created: daysBefore(now, 420) },
    { ...foreignOrganization, created: daysBefore(now, 340) },
  ];
}

export function organizationMemberRows(now: Date): Prisma.OrganizationMemberCreateManyInput[] {
  const organizationId = organization.id;
  return [
    { organizationId, userId: users.owner.id, role: 'owner', created: daysBefore(now, 420) },
    { organizationId, userId: users.admin.id, role: 'admin', created: daysBefore(now, 400) },
    { organizationId, userId: users.member.id, role: 'member', created: daysBefore(now, 380) },
    { organizationId, userId: users.viewer.id, role: 'member', created: daysBefore(now, 360) },
    { organizationId: foreignOrganization.id, userId: users.outsider.id, role: 'owner', created: daysBefore(now, 340) },
  ];
}

/** A trigger creates the notification log of each project. */
export function projectRows(now: Date): Prisma.ProjectCreateManyInput[] {
  return [
    { ...project, created: daysBefore(now, 419) },
    { ...emptyProject, created: daysBefore(now, 30) },
    { ...foreignProject, created: daysBefore(now, 339) },
  ];
}

export function projectMemberRows(now: Date): Prisma.ProjectMemberCreateManyInput[] {
  return [
    { projectId: project.id, userId: users.member.id, role: 'member', created: daysBefore(now, 380) },
    { projectId: project.id, userId: users.viewer.id, role: 'viewer', created: daysBefore(now, 360) },
  ];
}
