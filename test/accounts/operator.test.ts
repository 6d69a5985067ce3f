import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Session } from '../../src/access/viewer.ts';
import {
  addApiKey,
  addMember,
  addOrganization,
  addProject,
  addUser,
  removeMember,
  revokeUserKey,
  setDisabled,
} from '../../src/accounts/operatorcommands.ts';
import { listAllMembers, listAllOrganizations, listAllProjects, listUserKeys, listUsers } from '../../src/accounts/operatorlists.ts';
import { revokeApiKey } from '../../src/accounts/service.ts';
import { removeEndpoint } from '../../src/consoles/operatorcommands.ts';
import type { Database } from '../../src/platform/database.ts';
import { type Listing, MAX_LISTED } from '../../src/platform/operatoroutput.ts';
import { isPostgres, startApp, type TestApp } from '../support/app.ts';

// What the operator's commands do. Their form: test/slow/commands.test.ts.
let app: TestApp;
let database: Database;
beforeAll(async () => {
  app = await startApp();
  ({ database } = app.app);
});
afterAll(() => app.close());

let count = 0;
/** A new user, whose id sorts behind those of earlier milliseconds; returns the e-mail address. */
async function makeUser(): Promise<string> {
  await sleep(2);
  count += 1;
  const email = `user-${count}@new.example`;
  await addUser(database, { email, name: 'New' });
  return email;
}

/** A new organization with these owners, and a project of it. */
async function makeOrganization(owner: string, ...others: string[]) {
  const { id: organization } = await addOrganization(database, { name: 'New', currency: 'EUR', owner });
  for (const email of others) await addMember(database, { email, organization, role: 'owner' });
  const { id: project } = await addProject(database, { name: 'Shop', organization });
  return { organization, project };
}

const columns = ({ lines }: Listing) => lines.map((line) => line.split('\t'));
const statusOf = async (bearer: string) => (await app.ask('GET', '/v1/organizations', { as: { bearer } })).status;
const noUser = 'There is no user nobody@new.example.';

it('a console of no instance cannot be removed', async () => {
  const absent = '0190a0a0-0000-7000-8000-00000000dead';
  await expect(removeEndpoint(app.app.database, absent)).rejects.toThrow('There is no such instance.');
});

describe('a list', () => {
  it('has a bounded number of lines in order, and continues after the last of them', async () => {
    const users = Array.from({ length: MAX_LISTED + 1 }, (_, index) => ({ email: `many-${index}@new.example`, name: 'Many' }));
    await database.prisma.user.createMany({ data: users });
    const all = (await database.prisma.user.findMany({ select: { id: true } })).map(({ id }) => id).sort();
    const first = await listUsers(database, {});
    expect([first.lines.length, first.next]).toEqual([MAX_LISTED, all[MAX_LISTED - 1]]);
    const rest = await listUsers(database, { after: first.next ?? '' });
    expect(rest.next).toBeNull();
    expect([...columns(first), ...columns(rest)].map(([id]) => id)).toEqual(all);
    await expect(listUsers(database, { after: 'somebody' })).rejects.toThrow('somebody is not a UUID.');
    await expect(listUsers(database, { after: '' })).rejects.toThrow('An empty text is not a UUID.');
  });

  it('has one line for each item, with any name', async () => {
    const { id } = await addUser(database, { email: 'lines@new.example', name: 'a\tb\nc\x1b[2J\u202ed' });
    const before = await database.prisma.user.findFirstOrThrow({
      where: { id: { lt: id } },
      orderBy: { id: 'desc' },
      select: { id: true },
    });
    const { lines } = await listUsers(database, { after: before.id });
    expect(lines).toEqual([`${id}\tlines@new.example\tactive\ta b c [2J d`]);
  });

  it('of organizations and projects has all of them, or those of one organization', async () => {
    const { organization, project } = await makeOrganization(await makeUser());
    const organizations = columns(await listAllOrganizations(database, {}));
    expect(organizations).toContainEqual([app.demo.organization_id, 'EUR', 'Acme Cloud']);
    expect(organizations).toContainEqual([organization, 'EUR', 'New']);
    const projects = columns(await listAllProjects(database, undefined, {}));
    expect(projects).toContainEqual([app.demo.project_id, app.demo.organization_id, 'Production']);
    expect(columns(await listAllProjects(database, organization, {}))).toEqual([[project, organization, 'Shop']]);
    expect(await listAllProjects(database, organization, { after: project })).toEqual({ lines: [], next: null });
    await expect(listAllProjects(database, project, {})).rejects.toThrow('There is no such organization.');
  });

  it('of members has their roles, for a project also those from the organization', async () => {
    const [owner, member, viewer] = [await makeUser(), await makeUser(), await makeUser()];
    const { organization, project } = await makeOrganization(owner);
    await addMember(database, { email: member, organization, role: 'member' });
    await addMember(database, { email: viewer, organization, project, role: 'viewer' });
    await setDisabled(database, viewer, true);
    const disabled = expect.stringMatching(/^disabled \d{4}-/);
    const members = columns(await listAllMembers(database, { organization }));
    expect(members.map(([, ...rest]) => rest)).toEqual([
      [owner, 'active', 'owner'],
      [member, 'active', 'member'],
      [viewer, disabled, 'member'],
    ]);
    expect(columns(await listAllMembers(database, { organization, project })).map(([, ...rest]) => rest)).toEqual([
      [owner, 'active', 'admin, as owner of the organization'],
      [viewer, disabled, 'viewer'],
    ]);
    expect(columns(await listAllMembers(database, { organization, after: members[1]?.[0] ?? '' }))).toEqual([members[2]]);
    const elsewhere = { organization, project: app.demo.project_id };
    await expect(listAllMembers(database, elsewhere)).rejects.toThrow('The organization has no such project.');
  });
});

describe('a user', () => {
  it('loses all access with the next request when disabled, and has it again when enabled', async () => {
    const email = await makeUser();
    const { id } = await database.prisma.user.findUniqueOrThrow({ where: { email } });
    const key = await addApiKey(database, { email, name: 'k' });
    const token = (await app.app.tokens.local?.sign(id, 60)) ?? '';
    const statuses = async () => [await statusOf(key), await statusOf(token)];
    expect(await statuses()).toEqual([200, 200]);
    expect(await setDisabled(database, email, true)).toBe(`${email} is disabled.`);
    expect(await statuses()).toEqual([401, 401]);
    const { disabledAt } = await database.prisma.user.findUniqueOrThrow({ where: { email } });
    expect(await setDisabled(database, email, true)).toBe(`${email} was already disabled.`);
    expect((await database.prisma.user.findUniqueOrThrow({ where: { email } })).disabledAt).toEqual(disabledAt);
    expect(await setDisabled(database, email, false)).toBe(`${email} is active.`);
    expect(await statuses()).toEqual([200, 200]);
    expect(await setDisabled(database, email, false)).toBe(`${email} was already active.`);
    await expect(setDisabled(database, 'nobody@new.example', true)).rejects.toThrow(noUser);
  });
});

describe('a key', () => {
  it('is listed without its secret, also of a disabled user, and is refused once it is revoked', async () => {
    const email = await makeUser();
    const keys = [await addApiKey(database, { email, name: 'first' }), await addApiKey(database, { email, name: 'second' })];
    expect(await statusOf(keys[0] ?? '')).toBe(200);
    await expect.poll(async () => (await listUserKeys(database, email, {})).lines[1]).toContain('last used');
    await setDisabled(database, email, true);
    const listed = await listUserKeys(database, email, {});
    const hints = keys.map((key) => `${key.slice(0, 15)}…`);
    const [[secondId = ''], [firstId = '']] = columns(listed) as [string[], string[]];
    expect(columns(listed)).toEqual([
      [secondId, hints[1], 'valid', 'never used', 'second'],
      [firstId, hints[0], 'valid', expect.stringMatching(/^last used \d{4}-/), 'first'],
    ]);
    for (const key of keys) expect(listed.lines.join()).not.toContain(key.slice(0, 20));
    expect(columns(await listUserKeys(database, email, { after: secondId }))).toEqual([columns(listed)[1]]);
    await setDisabled(database, email, false);
    expect(await revokeUserKey(database, firstId)).toBe(`${hints[0]} of ${email} is revoked: first`);
    expect([await statusOf(keys[0] ?? ''), await statusOf(keys[1] ?? '')]).toEqual([401, 200]);
    expect(await revokeUserKey(database, firstId)).toBe(`${hints[0]} of ${email} was already revoked: first`);
    await database.prisma.apiKey.update({ where: { id: secondId }, data: { expires: new Date(0) } });
    const states = columns(await listUserKeys(database, email, {})).map(([, , state]) => state);
    expect(states).toEqual(['expired 1970-01-01T00:00:00.000Z', expect.stringMatching(/^revoked \d{4}-/)]);
    await expect(revokeUserKey(database, app.demo.project_id)).rejects.toThrow('There is no such key.');
    await expect(listUserKeys(database, 'nobody@new.example', {})).rejects.toThrow(noUser);
  });
});

it.runIf(isPostgres)('the moments of revoked keys and disabled users are those of PostgreSQL’s clock', async () => {
  const email = await makeUser();
  const session = { userId: (await database.prisma.user.findUniqueOrThrow({ where: { email } })).id } as Session;
  await addApiKey(database, { email, name: 'by the operator' });
  await addApiKey(database, { email, name: 'by the user' });
  const keys = await database.prisma.apiKey.findMany({ where: { user: { email } }, orderBy: { name: 'asc' } });
  const [first = '', second = ''] = keys.map(({ id }) => id);
  const from = new Date();
  vi.useFakeTimers({ toFake: ['Date'], now: 0 });
  try {
    await revokeUserKey(database, first);
    await revokeApiKey(database, session, second);
    await setDisabled(database, email, true);
  } finally {
    vi.useRealTimers();
  }
  const { disabledAt, apiKeys } = await database.prisma.user.findUniqueOrThrow({ where: { email }, include: { apiKeys: true } });
  for (const moment of [disabledAt, ...apiKeys.map(({ revoked }) => revoked)])
    expect(moment?.getTime()).toBeGreaterThan(from.getTime() - 60_000);
});

describe('a member', () => {
  it('is removed from a project, and from an organization with the roles in its projects', async () => {
    const [owner, email] = [await makeUser(), await makeUser()];
    const { organization, project } = await makeOrganization(owner);
    const other = await makeOrganization(owner);
    await addMember(database, { email, ...other, role: 'viewer' });
    const key = await addApiKey(database, { email, name: 'k' });
    const look = async (of = { organization, project }) =>
      (await app.ask('GET', `/v1/organizations/${of.organization}/projects/${of.project}/compute/overview`, { as: { bearer: key } }))
        .status;
    await addMember(database, { email, organization, project, role: 'admin' });
    expect(await look()).toBe(200);
    expect(await removeMember(database, { email, organization, project })).toBe(
      `${email} no longer has a role of their own in the project.`,
    );
    expect(await look()).toBe(404);
    await expect(removeMember(database, { email, organization, project })).rejects.toThrow(
      `${email} has no role of their own in the project.`,
    );
    await addMember(database, { email, organization, project, role: 'admin' });
    expect(await removeMember(database, { email, organization })).toBe(`${email} is no longer a member of the organization.`);
    expect(await look()).toBe(404);
    await addMember(database, { email, organization, role: 'member' });
    expect([await look(), await look(other)]).toEqual([404, 200]);
    await setDisabled(database, email, true);
    await removeMember(database, { email, organization });
    await expect(removeMember(database, { email, organization })).rejects.toThrow(`${email} is not a member of the organization.`);
    await expect(removeMember(database, { email: owner, organization, project })).rejects.toThrow(
      `${owner} has no role of their own in the project. As owner of the organization they are admin of all its projects.`,
    );
  });

  it('that is the last owner is neither removed nor given another role, unless forced', async () => {
    const [first, second] = [await makeUser(), await makeUser()];
    const { organization } = await makeOrganization(first, second);
    const roles = async () => columns(await listAllMembers(database, { organization })).map(([, email, , role]) => [email, role]);
    const last = `${first} is the last owner of the organization: add another owner first, or use --force.`;
    const changes = [
      () => removeMember(database, { email: first, organization }),
      () => addMember(database, { email: first, organization, role: 'admin' }),
    ];
    const refuse = async () => {
      const before = await roles();
      for (const change of changes) await expect(change()).rejects.toThrow(last);
      expect(await roles()).toEqual(before);
    };
    await setDisabled(database, second, true);
    await refuse();
    await setDisabled(database, second, false);
    expect(await addMember(database, { email: second, organization, role: 'admin' })).toBe(`${second} is admin of the organization.`);
    await refuse();
    expect(await addMember(database, { email: first, organization, role: 'owner' })).toBe(`${first} is owner of the organization.`);
    await addMember(database, { email: first, organization, role: 'member', force: true });
    expect(await roles()).toEqual([
      [first, 'member'],
      [second, 'admin'],
    ]);
    // An organization without an owner can be given one, and its other members are not the last owner.
    await addMember(database, { email: first, organization, role: 'owner' });
    await removeMember(database, { email: second, organization });
    await removeMember(database, { email: first, organization, force: true });
    expect(await roles()).toEqual([]);
  });

  it('stays as the last owner when two owners are removed concurrently', async () => {
    const owners = [await makeUser(), await makeUser()] as const;
    const { organization } = await makeOrganization(...owners);
    const results = await Promise.allSettled(owners.map((email) => removeMember(database, { email, organization })));
    expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect((await listAllMembers(database, { organization })).lines).toHaveLength(1);
  });
});
