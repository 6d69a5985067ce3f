import type { ApiKey } from '../generated/prisma/client.ts';
import type { Database } from '../platform/database.ts';
import { readId } from '../platform/operatorinput.ts';
import { type Listing, MAX_READ, toListing } from '../platform/operatoroutput.ts';
import { findOrganization, findProject, findUser } from './operatorcommands.ts';

/** Where a list continues: after the item with this id. */
export interface After {
  readonly after?: string;
}

const whereAfter = ({ after }: After) => (after === undefined ? {} : { gt: readId(after) });

/** The users, in the order of their ids. Throws an OperatorError for an `after` that is not an id, as the other lists do. */
export async function listUsers(database: Database, after: After): Promise<Listing> {
  const rows = await database.prisma.user.findMany({ where: { id: whereAfter(after) }, orderBy: { id: 'asc' }, take: MAX_READ });
  return toListing(rows, ({ id, email, name, disabledAt }) => [id, email, describeState(disabledAt), name]);
}

/** The organizations, in the order of their ids. */
export async function listAllOrganizations(database: Database, after: After): Promise<Listing> {
  const rows = await database.prisma.organization.findMany({ where: { id: whereAfter(after) }, orderBy: { id: 'asc' }, take: MAX_READ });
  return toListing(rows, ({ id, currency, name }) => [id, currency, name]);
}

/** The projects, or those of one organization, in the order of their ids. Throws an OperatorError for an unknown organization. */
export async function listAllProjects(database: Database, organization: string | undefined, after: After): Promise<Listing> {
  const where = {
    id: whereAfter(after),
    ...(organization !== undefined && { organizationId: await findOrganization(database, organization) }),
  };
  const rows = await database.prisma.project.findMany({ where, orderBy: { id: 'asc' }, take: MAX_READ });
  return toListing(rows, ({ id, organizationId, name }) => [id, organizationId, name]);
}

const member = { id: true, email: true, disabledAt: true } as const;

/**
 * The members of an organization, or those who may see one of its projects, in the order of their ids. Throws an OperatorError for
 * an unknown organization or project.
 */
export async function listAllMembers(
  database: Database,
  { organization, project, ...after }: After & { organization: string; project?: string },
): Promise<Listing> {
  const organizationId = await findOrganization(database, organization);
  const order = { orderBy: { userId: 'asc' }, take: MAX_READ } as const;
  const where = { organizationId, userId: whereAfter(after) };
  if (project === undefined) {
    const rows = await database.prisma.organizationMember.findMany({ where, ...order, select: { role: true, user: { select: member } } });
    return toListing(rows, ({ role, user }) => [user.id, user.email, describeState(user.disabledAt), role]);
  }
  const projectId = await findProject(database, organizationId, project);
  const rows = await database.prisma.organizationMember.findMany({
    where: { ...where, OR: [{ role: { not: 'member' } }, { user: { projects: { some: { projectId } } } }] },
    ...order,
    select: { role: true, user: { select: { ...member, projects: { where: { projectId }, select: { role: true } } } } },
  });
  return toListing(rows, ({ role, user }) => {
    const own = user.projects[0]?.role ?? '';
    return [user.id, user.email, describeState(user.disabledAt), role === 'member' ? own : `admin, as ${role} of the organization`];
  });
}

/** The API keys of a user, the newest first; never their secrets. Throws an OperatorError for an unknown user. */
export async function listUserKeys(database: Database, email: string, { after }: After): Promise<Listing> {
  const { id: userId } = await findUser(database, email);
  const rows = await database.prisma.apiKey.findMany({
    where: { userId, id: after === undefined ? {} : { lt: readId(after) } },
    omit: { secretHash: true },
    orderBy: { id: 'desc' },
    take: MAX_READ,
  });
  const now = new Date();
  return toListing(rows, (key) => [
    key.id,
    key.hint,
    describeValidity(key, now),
    key.lastUsed ? `last used ${key.lastUsed.toISOString()}` : 'never used',
    key.name,
  ]);
}

const describeState = (disabledAt: Date | null): string => (disabledAt ? `disabled ${disabledAt.toISOString()}` : 'active');

function describeValidity({ revoked, expires }: Pick<ApiKey, 'revoked' | 'expires'>, now: Date): string {
  if (revoked) return `revoked ${revoked.toISOString()}`;
  if (!expires) return 'valid';
  return `${expires > now ? 'valid until' : 'expired'} ${expires.toISOString()}`;
}
