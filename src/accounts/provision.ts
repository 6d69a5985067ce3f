import { generateKey } from '../access/apikey.ts';
import { Prisma } from '../generated/prisma/client.ts';
import { OrganizationRole, ProjectRole } from '../generated/prisma/enums.ts';
import { lengthProblem, textProblem } from '../kernel/text.ts';
import type { Database } from '../platform/database.ts';
import { OperatorError } from '../platform/operatorerror.ts';
import { readId } from '../platform/operatorinput.ts';

const MAX_NAME_LENGTH = 255;

interface Provisioned {
  readonly id: string;
}

/**
 * Adds a user without any membership. An `id` must be the one that the identity provider has for them. Throws an OperatorError
 * for an invalid value, and for an e-mail address or id that is taken.
 */
export async function addUser(database: Database, { email, name, id }: { email: string; name: string; id?: string }): Promise<Provisioned> {
  if (!/^[^\s@]+@[^\s@]+$/.test(email)) throw new OperatorError(`${email} is no e-mail address.`);
  const data = { email, name: readName(name), ...(id !== undefined && { id: readId(id) }) };
  return database.user.create({ data, select: { id: true } }).catch((failure: unknown) => {
    const isTaken = failure instanceof Prisma.PrismaClientKnownRequestError && failure.code === 'P2002';
    throw isTaken ? new OperatorError('There is a user with this e-mail address or id already.') : failure;
  });
}

/** Makes an API key of an active user and returns it; it is stored only as a hash. Throws an OperatorError for an invalid name. */
export async function addApiKey(database: Database, { email, name }: { email: string; name: string }): Promise<string> {
  const { id: userId } = await findActiveUser(database, email);
  const { key, secretHash, hint } = generateKey();
  await database.apiKey.create({ data: { userId, name: readName(name), hint, secretHash } });
  return key;
}

/** Adds an organization with its first owner, an active user. Throws an OperatorError for an invalid value. */
export async function addOrganization(
  database: Database,
  { name, currency, owner }: { name: string; currency: string; owner: string },
): Promise<Provisioned> {
  if (!/^[A-Z]{3}$/.test(currency)) throw new OperatorError(`${currency} is no currency: three capital letters, such as EUR.`);
  const { id: userId } = await findActiveUser(database, owner);
  return database.organization.create({
    data: { name: readName(name), currency, members: { create: { userId, role: 'owner' } } },
    select: { id: true },
  });
}

export async function addProject(database: Database, { name, organization }: { name: string; organization: string }): Promise<Provisioned> {
  const organizationId = await findOrganization(database, organization);
  return database.project.create({ data: { name: readName(name), organizationId }, select: { id: true } });
}

interface RoleAssignment {
  readonly email: string;
  readonly organization: string;
  /** Without it, the role is one in the organization. */
  readonly project?: string;
  readonly role: string;
}

/**
 * Sets the role of a user in an organization, or in one of its projects; for a project, the user also becomes a member of the
 * organization if they are not. Returns what was done, as a sentence. Throws an OperatorError for an invalid value.
 */
export async function addMember(database: Database, { email, organization, project, role }: RoleAssignment): Promise<string> {
  const { id: userId } = await findActiveUser(database, email);
  const organizationId = await findOrganization(database, organization);
  if (project === undefined) {
    const newRole = readRole(OrganizationRole, role);
    const key = { organizationId_userId: { organizationId, userId } };
    await database.organizationMember.upsert({ where: key, create: { organizationId, userId, role: newRole }, update: { role: newRole } });
    return `${email} is ${newRole} of the organization.`;
  }
  const newRole = readRole(ProjectRole, role);
  const projectId = readId(project);
  if (!(await database.project.findFirst({ where: { id: projectId, organizationId }, select: { id: true } }))) {
    throw new OperatorError('The organization has no such project.');
  }
  await database.$transaction([
    database.organizationMember.createMany({ data: [{ organizationId, userId, role: 'member' }], skipDuplicates: true }),
    database.projectMember.upsert({
      where: { projectId_userId: { projectId, userId } },
      create: { projectId, userId, role: newRole },
      update: { role: newRole },
    }),
  ]);
  return `${email} is ${newRole} of the project.`;
}

/** Throws an OperatorError for an unknown or disabled user. */
export async function findActiveUser(database: Database, email: string): Promise<Provisioned> {
  const user = await database.user.findUnique({ where: { email }, select: { id: true, disabledAt: true } });
  if (!user || user.disabledAt) throw new OperatorError(`There is no active user ${email}.`);
  return { id: user.id };
}

async function findOrganization(database: Database, text: string): Promise<string> {
  const id = readId(text);
  if (!(await database.organization.findUnique({ where: { id }, select: { id: true } }))) {
    throw new OperatorError('There is no such organization.');
  }
  return id;
}

function readName(name: string): string {
  const problem = name.trim() === '' ? 'The name is empty.' : describeProblem(textProblem(name) ?? lengthProblem(name, MAX_NAME_LENGTH));
  if (problem) throw new OperatorError(problem);
  return name;
}

const describeProblem = (problem: string | null) => problem && `The name cannot be used: ${problem}`;

function readRole<Role extends string>(roles: Readonly<Record<string, Role>>, text: string): Role {
  const role = Object.values(roles).find((known) => known === text);
  if (!role) throw new OperatorError(`${text} is no role: one of ${Object.values(roles).join(', ')}.`);
  return role;
}
