import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { organization, project } from '../../demo/people.ts';
import { startRestingApp, type TestApp } from '../support/app.ts';

// What a document names several times is read together. Each part is to be what it is alone.
let app: TestApp;
let other: string;
beforeAll(async () => {
  app = await startRestingApp({ RATE_LIMIT_USER: '1000000' });
  const { database } = app.app;
  ({ id: other } = await database.prisma.project.create({ data: { name: 'Other', organizationId: organization.id } }));
  await database.prisma.$executeRawUnsafe(
    `INSERT INTO dashboards (project_id, created_by, name, description, widgets, is_public)
    SELECT $1::uuid, $2::uuid, 'Other ' || number, '', '[]', number % 2 = 0 FROM generate_series(1, 6) AS number`,
    other,
    app.demo.users.owner.id,
  );
  await database.prisma.$executeRawUnsafe(
    `INSERT INTO notifications (project_id, kind, severity, title) SELECT $1::uuid, 'test', 'info', 'Other ' || number FROM generate_series(1, 5) AS number`,
    other,
  );
  await database.prisma.projectMember.create({ data: { projectId: other, userId: app.demo.users.viewer.id, role: 'viewer' } });
});
afterAll(() => app.close());

async function ask(document: string, as: 'owner' | 'viewer' = 'owner') {
  const { json } = await app.graphql(document, {}, { as });
  expect(json.errors).toBeUndefined();
  return json.data;
}

const inProject = [
  'dashboards(first: 3) { totalCount nodes { id project { id } } }',
  'dashboards(first: 3, orderBy: { field: name, direction: desc }) { totalCount nodes { id project { id } } }',
  'notifications(first: 3) { totalCount nodes { id title project { id } } }',
  'notifications(first: 3, filter: { unread: true }) { totalCount nodes { id body project { id } } }',
  'notificationPage(page: 2, pageSize: 2) { count page pageSize totalPages results { id title read project { id } } }',
  'notificationPage(pageSize: 3, filter: { severity: info, kind: "test" }) { count totalPages results { id body data } }',
  'notificationPage(pageSize: 2, filter: { unread: true }) { count results { id title } }',
  'dashboardPage(page: 2, pageSize: 1) { count page pageSize totalPages results { id name widgets project { id } } }',
  'instances(first: 3) { totalCount nodes { id project { id } } }',
  'tasks(first: 3) { totalCount nodes { id } }',
  'volumes(first: 3) { totalCount nodes { id } }',
  'members(first: 3) { totalCount nodes { role user { id } } }',
  'consoleSessions(first: 3) { totalCount nodes { id } }',
  'unreadNotificationCount computeOverview { instancesTotal }',
];

test('a mutation does not rely on the access that one before it in the document had', async () => {
  const { database } = app.app;
  const { member } = app.demo.users;
  const where = { projectId_userId: { projectId: project.id, userId: member.id } };
  await database.prisma.$executeRawUnsafe(`CREATE FUNCTION lose_access() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    DELETE FROM project_members WHERE project_id = NEW.project_id AND user_id = NEW.created_by; RETURN NEW; END $$`);
  await database.prisma.$executeRawUnsafe(
    'CREATE TRIGGER lose_access AFTER INSERT ON dashboards FOR EACH ROW EXECUTE FUNCTION lose_access()',
  );
  const create = (name: string) =>
    `${name}: createDashboard(input: { organizationId: "${organization.id}", projectId: "${project.id}", name: "${name}", widgets: [] }) { dashboard { name } }`;
  try {
    const { json } = await app.graphql(`mutation { ${create('first')} ${create('second')} }`, {}, { as: 'member' });
    expect(json.data).toEqual({ first: { dashboard: { name: 'first' } }, second: null });
    expect(json.errors.map(({ extensions: { code } }: { extensions: { code: string } }) => code)).toEqual(['not_found']);
  } finally {
    await database.prisma.$executeRawUnsafe('DROP FUNCTION lose_access CASCADE');
    await database.prisma.dashboard.deleteMany({ where: { name: 'first' } });
    await database.prisma.projectMember.upsert({ where, create: { projectId: project.id, userId: member.id, role: 'member' }, update: {} });
  }
});

describe.each(inProject)('%s', (fields) => {
  test.each(['owner', 'viewer'] as const)('of two projects in one document, by the %s', async (as) => {
    const alone = async (id: string) => (await ask(`{ project(id: "${id}") { ${fields} } }`, as)).project;
    const [one, two] = [await alone(project.id), await alone(other)];
    for (const [a, b] of [
      [project.id, other],
      [other, project.id],
    ]) {
      const document = `{ a: project(id: "${a}") { ${fields} } b: project(id: "${b}") { ${fields} } }`;
      // A document that is known has its first project looked up before it is executed.
      for (let time = 0; time < 2; time += 1) {
        const together = await ask(document, as);
        expect([together.a, together.b]).toEqual(a === project.id ? [one, two] : [two, one]);
      }
    }
    const { nodes } = await ask(`{ nodes(ids: ["${project.id}", "${other}"]) { ... on Project { ${fields} } } }`, as);
    expect(nodes).toEqual([one, two]);
  });
});

test('a page that exists in one of two projects is returned, and not_found for the other', async () => {
  for (const page of [
    'notificationPage(page: 4, pageSize: 2) { results { id } }',
    'dashboardPage(page: 3, pageSize: 2) { results { id } }',
  ]) {
    const { json } = await app.graphql(`{ nodes(ids: ["${project.id}", "${other}"]) { ... on Project { id list: ${page} } } }`);
    const alone = await Promise.all([project.id, other].map((id) => app.graphql(`{ project(id: "${id}") { id list: ${page} } }`)));
    const isThere = alone.map((one) => one.json.errors === undefined);
    expect(isThere.sort()).toEqual([false, true]);
    expect(json.errors.map(({ extensions: { code } }: { extensions: { code: string } }) => code)).toEqual(['not_found']);
    const found = alone.map((one) => one.json.data?.project).find(Boolean);
    expect(JSON.stringify(json.data?.nodes)).toContain(JSON.stringify(found));
  }
});

test('an empty kind is not a condition, for one project as for several, and in v1', async () => {
  const counted = async (fields: string) => (await ask(`{ project(id: "${other}") { ${fields} } }`)).project;
  const all = await counted('notifications(first: 3) { totalCount nodes { id } } notificationPage(pageSize: 3) { count results { id } }');
  const fields =
    'notifications(first: 3, filter: { kind: "" }) { totalCount nodes { id } } notificationPage(pageSize: 3, filter: { kind: "" }) { count results { id } }';
  expect(await counted(fields)).toEqual(all);
  const { nodes } = await ask(`{ nodes(ids: ["${project.id}", "${other}"]) { ... on Project { ${fields} } } }`);
  expect(nodes[1]).toEqual(all);
  const { json } = await app.ask('GET', `/v1/organizations/${organization.id}/projects/${other}/notifications?kind=`);
  expect(json.count).toBe(all.notificationPage.count);
});

test('a project with an empty organization id is null next to one without organization id', async () => {
  const [given, empty] = [`a: project(id: "${other}") { id }`, `b: project(organizationId: "", id: "${other}") { id }`];
  for (const document of [`{ ${given} ${empty} }`, `{ ${empty} ${given} }`]) {
    const { json } = await app.graphql(document);
    expect(json.data).toEqual({ a: { id: other }, b: null });
  }
});

test('members of an organization and of its projects', async () => {
  const members = 'members(first: 5) { totalCount nodes { role user { id } } }';
  const { organization: wholly } = await ask(`{ organization(id: "${organization.id}") { ${members} } }`);
  const { project: only } = await ask(`{ project(id: "${other}") { ${members} } }`);
  expect(only.members.totalCount).toBeGreaterThan(0);
  const down = await ask(`{ organization(id: "${organization.id}") { ${members} projects(first: 50) { nodes { id ${members} } } } }`);
  expect(down.organization.members).toEqual(wholly.members);
  expect(down.organization.projects.nodes).toContainEqual({ id: other, ...only });
  const up = await ask(`{ project(id: "${other}") { ${members} organization { ${members} } } }`);
  expect(up.project).toEqual({ ...only, organization: wholly });
});

test('a second mutation of a document returns its own changes', async () => {
  const ids = (await ask(`{ project(id: "${other}") { notifications(first: 2) { nodes { id } } } }`)).project.notifications.nodes;
  const mark = (name: string, { id }: { id: string }) =>
    `${name}: markNotificationsRead(input: { organizationId: "${organization.id}", projectId: "${other}", notificationIds: ["${id}"] }) { project { unreadNotificationCount } }`;
  const response = await ask(`mutation { ${mark('a', ids[0])} ${mark('b', ids[1])} }`);
  const counts = [response.a, response.b].map((marked) => marked.project.unreadNotificationCount);
  expect(counts).toEqual([4, 3]);
});

describe('a failed field', () => {
  /** A list that fails at once: the cursor is one of another order. */
  async function openFailing(): Promise<string> {
    const byId = `{ project(id: "${project.id}") { instances(first: 1) { pageInfo { endCursor } } } }`;
    const { endCursor } = (await ask(byId)).project.instances.pageInfo;
    return `failing: instances(after: "${endCursor}", orderBy: { field: name }) { totalCount }`;
  }

  test('ends its operation: its siblings load nothing more', async () => {
    const beside = 'instances(first: 2) { nodes { name tasks(first: 2) { nodes { id instance { name } } } } }';
    const document = `{ project(id: "${project.id}") { ${await openFailing()} ${beside} } }`;
    app.statements.length = 0;
    const { json } = await app.graphql(document);
    expect([json.data, json.errors.length]).toEqual([{ project: null }, 1]);
    await sleep(300);
    expect(app.statements.filter((sql) => sql.includes('tasks'))).toEqual([]);
  });

  test('of a mutation leaves no outdated data to the next one', async () => {
    const [first, second] = (
      await ask(`{ project(id: "${project.id}") { notifications(first: 2, filter: { unread: true }) { nodes { id } } } }`)
    ).project.notifications.nodes;
    const mark = ({ id }: { id: string }) =>
      `markNotificationsRead(input: { organizationId: "${organization.id}", projectId: "${project.id}", notificationIds: ["${id}"] })`;
    const loading = `project { ${await openFailing()} organization { projects(first: 5) { nodes { unreadNotificationCount } } } }`;
    const { json } = await app.graphql(
      `mutation { a: ${mark(first)} { ${loading} } b: ${mark(second)} { unreadCount project { unreadNotificationCount } } }`,
    );
    expect([json.data.a, json.errors.length]).toEqual([null, 1]);
    expect(json.data.b.project.unreadNotificationCount).toBe(json.data.b.unreadCount);
  });
});

test('notification ids take precedence over a sequence, and are returned', async () => {
  const [first] = (await ask(`{ project(id: "${other}") { notifications(last: 1) { nodes { id } } } }`)).project.notifications.nodes;
  const input = `{ organizationId: "${organization.id}", projectId: "${other}", notificationIds: ["${first.id}"], throughSequence: 5 }`;
  const { markNotificationsRead } = await ask(`mutation { markNotificationsRead(input: ${input}) { marked notifications { id read } } }`);
  expect(markNotificationsRead).toEqual({ marked: 1, notifications: [{ id: first.id, read: true }] });
});
