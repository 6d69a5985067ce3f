import { generateKey } from '../access/apikey.ts';
import { Prisma } from '../generated/prisma/client.ts';
import { OrganizationRole, ProjectRole } from '../generated/prisma/enums.ts';
import { lengthProblem, textProblem } from '../kernel/text.ts';
import type { Database, SqlClient } from '../platform/database.ts';
import { OperatorError } from '../platform/operatorerror.ts';
import { readId } from '../platform/operatorinput.ts';
import { printable } from '../platform/operatoroutput.ts';
import type { Query } from '../platform/query.ts';

const MAX_NAME_LENGTH = 255;
const MAX_EMAIL_LENGTH = 255;

interface Provisioned {
  readonly id: string;
}

/**
 * Adds a user without any membership. An `id` must be the one that the identity provider has for them. Throws an OperatorError
 * for an invalid value, and for an e-mail address or id that is taken.
 */
export async function addUser(database: Database, { email, name, id }: { email: string; name: string; id?: string }): Promise<Provisioned> {
  if (!/^[^\s@]+@[^\s@]+$/.test(email)) throw new OperatorError(`${email} is not an e-mail address.`);
  const problem = textProblem(email) ?? lengthProblem(email, MAX_EMAIL_LENGTH);
  if (problem) throw new OperatorError(`The e-mail address cannot be used: ${problem}`);
  const data = { email, name: readName(name), ...(id !== undefined && { id: readId(id) }) };
  return database.prisma.user.create({ data, select: { id: true } }).catch((failure: unknown) => {
    const isTaken = failure instanceof Prisma.PrismaClientKnownRequestError && failure.code === 'P2002';
    throw isTaken ? new OperatorError('There is a user with this e-mail address or id already.') : failure;
  });
}

/**
 * Disables a user, who loses all access with the next request, or enables them again; returns what they are then. Throws an
 * OperatorError for an unknown user.
 */
export async function setDisabled(database: Database, email: string, isDisabled: boolean): Promise<string> {
  const { id } = await findUser(database, email);
  const changed = await database.query<{ id: string }>`
    UPDATE users SET disabled_at = CASE WHEN ${isDisabled}::boolean THEN now() END
    WHERE id = ${id}::uuid AND (disabled_at IS NULL) = ${isDisabled}::boolean RETURNING id`;
  return `${email} ${changed.length > 0 ? 'is' : 'was already'} ${isDisabled ? 'disabled' : 'active'}.`;
}

/** Makes an API key of an active user and returns it; it is stored only as a hash. Throws an OperatorError for an invalid name. */
export async function addApiKey(database: Database, { email, name }: { email: string; name: string }): Promise<string> {
  const { id: userId } = await findActiveUser(database, email);
  const { key, secretHash, hint } = generateKey();
  await database.prisma.apiKey.create({ data: { userId, name: readName(name), hint, secretHash } });
  return key;
}

/** Revokes an API key, from the next request on; returns what was done. Throws an OperatorError for an unknown key. */
export async function revokeUserKey(database: Database, key: string): Promise<string> {
  const id = readId(key);
  const revoked = await database.query<{ id: string }>`
    UPDATE api_keys SET revoked = now() WHERE id = ${id}::uuid AND revoked IS NULL RETURNING id`;
  const found = await database.prisma.apiKey.findUnique({
    where: { id },
    select: { name: true, hint: true, user: { select: { email: true } } },
  });
  if (!found) throw new OperatorError('There is no such key.');
  return printable(`${found.hint} of ${found.user.email} ${revoked.length > 0 ? 'is' : 'was already'} revoked: ${found.name}`);
}

/** Adds an organization with its first owner, an active user. Throws an OperatorError for an invalid value. */
export async function addOrganization(
  database: Database,
  { name, currency, owner }: { name: string; currency: string; owner: string },
): Promise<Provisioned> {
  if (!/^[A-Z]{3}$/.test(currency)) throw new OperatorError(`${currency} is not a currency code: three capital letters, such as EUR.`);
  const { id: userId } = await findActiveUser(database, owner);
  return database.prisma.organization.create({
    data: { name: readName(name), currency, members: { create: { userId, role: 'owner' } } },
    select: { id: true },
  });
}

export async function addProject(database: Database, { name, organization }: { name: string; organization: string }): Promise<Provisioned> {
  const organizationId = await findOrganization(database, organization);
  return database.prisma.project.create({ data: { name: readName(name), organizationId }, select: { id: true } });
}

interface MembershipRequest {
  readonly email: string;
  readonly organization: string;
  /** Without it, the role is one in the organization. */
  readonly project?: string;
  /** Whether the organization may be left without an owner. */
  readonly force?: boolean;
}

/**
 * Sets the role of a user in an organization, or in one of its projects; for a project, the user also becomes a member of the
 * organization if they are not. Returns what was done, as a sentence. Throws an OperatorError for an invalid value, and for another
 * role of the last owner.
 */
export async function addMember(
  database: Database,
  { email, organization, project, role, force = false }: MembershipRequest & { readonly role: string },
): Promise<string> {
  const { id: userId } = await findActiveUser(database, email);
  const organizationId = await findOrganization(database, organization);
  if (project === undefined) {
    const newRole = readRole(OrganizationRole, role);
    await database.transact(async (query, within) => {
      await lockOrganization(query, organizationId);
      if (newRole !== 'owner' && !force) await keepOwner(within, { organizationId, userId, email });
      await query`
        INSERT INTO organization_members (organization_id, user_id, role)
        VALUES (${organizationId}::uuid, ${userId}::uuid, ${newRole}::organization_role)
        ON CONFLICT (organization_id, user_id) DO UPDATE SET role = excluded.role`;
    });
    return `${email} is ${newRole} of the organization.`;
  }
  const newRole = readRole(ProjectRole, role);
  const projectId = await findProject(database, organizationId, project);
  await database.transact(async (query) => {
    await lockOrganization(query, organizationId);
    await query`
      INSERT INTO organization_members (organization_id, user_id, role) VALUES (${organizationId}::uuid, ${userId}::uuid, 'member')
      ON CONFLICT (organization_id, user_id) DO NOTHING`;
    await query`
      INSERT INTO project_members (project_id, user_id, role) VALUES (${projectId}::uuid, ${userId}::uuid, ${newRole}::project_role)
      ON CONFLICT (project_id, user_id) DO UPDATE SET role = excluded.role`;
  });
  return `${email} is ${newRole} of the project.`;
}

/**
 * Takes the role in a project from a user, or the membership of an organization with all roles in its projects. Returns what was
 * done, as a sentence. Throws an OperatorError for an invalid value, for a user without that role, and for the last owner.
 */
export async function removeMember(
  database: Database,
  { email, organization, project, force = false }: MembershipRequest,
): Promise<string> {
  const { id: userId } = await findUser(database, email);
  const organizationId = await findOrganization(database, organization);
  if (project !== undefined) return removeProjectMember(database, { email, userId, organizationId, project });
  const isRemoved = await database.transact(async (query, within) => {
    await lockOrganization(query, organizationId);
    if (!force) await keepOwner(within, { organizationId, userId, email });
    // Otherwise they would have these roles again with the next membership.
    await query`
      DELETE FROM project_members USING projects
      WHERE projects.id = project_members.project_id AND projects.organization_id = ${organizationId}::uuid
        AND project_members.user_id = ${userId}::uuid`;
    const rows = await query<{ role: OrganizationRole }>`
      DELETE FROM organization_members WHERE organization_id = ${organizationId}::uuid AND user_id = ${userId}::uuid RETURNING role`;
    return rows.length > 0;
  });
  if (!isRemoved) throw new OperatorError(`${email} is not a member of the organization.`);
  return `${email} is no longer a member of the organization.`;
}

async function removeProjectMember(
  database: Database,
  { email, userId, organizationId, project }: { email: string; userId: string; organizationId: string; project: string },
): Promise<string> {
  const projectId = await findProject(database, organizationId, project);
  const { count } = await database.prisma.projectMember.deleteMany({ where: { projectId, userId } });
  const key = { organizationId_userId: { organizationId, userId } };
  const { role = 'member' } = (await database.prisma.organizationMember.findUnique({ where: key, select: { role: true } })) ?? {};
  const still = role === 'member' ? '' : ` As ${role} of the organization they are admin of all its projects.`;
  if (count === 0) throw new OperatorError(`${email} has no role of their own in the project.${still}`);
  return `${email} no longer has a role of their own in the project.${still}`;
}

/**
 * Changes of an organization's members take turns: of two owners who are removed at the same time, each would be the other's remaining
 * owner, and a role in a project that is given during a removal would outlast the membership.
 */
async function lockOrganization(query: Query, organizationId: string): Promise<void> {
  await query`SELECT FROM organizations WHERE id = ${organizationId}::uuid FOR NO KEY UPDATE`;
}

/**
 * Throws an OperatorError if the user is the last owner of the organization, which must be locked. Disabled users do not count as
 * others.
 */
async function keepOwner(
  { query }: SqlClient,
  { organizationId, userId, email }: { organizationId: string; userId: string; email: string },
): Promise<void> {
  const owners = await query<{ userId: string; disabledAt: Date | null }>`
    SELECT users.id AS "userId", users.disabled_at AS "disabledAt" FROM organization_members
    JOIN users ON users.id = organization_members.user_id
    WHERE organization_members.organization_id = ${organizationId}::uuid AND organization_members.role = 'owner'`;
  const isOwner = owners.some((owner) => owner.userId === userId);
  const hasOther = owners.some((owner) => owner.userId !== userId && owner.disabledAt === null);
  if (isOwner && !hasOther)
    throw new OperatorError(`${email} is the last owner of the organization: add another owner first, or use --force.`);
}

/** Throws an OperatorError for an unknown or disabled user. */
export async function findActiveUser(database: Database, email: string): Promise<Provisioned> {
  const user = await database.prisma.user.findUnique({ where: { email }, select: { id: true, disabledAt: true } });
  if (!user || user.disabledAt) throw new OperatorError(`There is no active user ${email}.`);
  return { id: user.id };
}

/** Throws an OperatorError for an unknown user. */
export async function findUser(database: Database, email: string): Promise<Provisioned> {
  const user = await database.prisma.user.findUnique({ where: { email }, select: { id: true } });
  if (!user) throw new OperatorError(`There is no user ${email}.`);
  return user;
}

/** Throws an OperatorError for an unknown organization. */
export async function findOrganization(database: Database, text: string): Promise<string> {
  const id = readId(text);
  if (!(await database.prisma.organization.findUnique({ where: { id }, select: { id: true } }))) {
    throw new OperatorError('There is no such organization.');
  }
  return id;
}

/** Throws an OperatorError for a project that the organization does not have. */
export async function findProject(database: Database, organizationId: string, text: string): Promise<string> {
  const id = readId(text);
  if (!(await database.prisma.project.findFirst({ where: { id, organizationId }, select: { id: true } })))
    throw new OperatorError('The organization has no such project.');
  return id;
}

function readName(name: string): string {
  if (name.trim() === '') throw new OperatorError('The name is empty.');
  const problem = textProblem(name) ?? lengthProblem(name, MAX_NAME_LENGTH);
  if (problem) throw new OperatorError(`The name cannot be used: ${problem}`);
  return name;
}

function readRole<Role extends string>(roles: Readonly<Record<string, Role>>, text: string): Role {
  const role = Object.values(roles).find((known) => known === text);
  if (!role) throw new OperatorError(`${text} is not a role. Use one of: ${Object.values(roles).join(', ')}.`);
  return role;
}
