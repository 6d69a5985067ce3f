import { afterAll, beforeAll, expect, test } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';

let app: TestApp;

beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.close());

const document = `mutation ($input: PatchDashboardInput!) { patchDashboard(input: $input) {
  dashboard { id name description widgets isDefault isPublic version projectId createdBy { __typename id email } project { id name } } } }`;

const place = () => ({ organizationId: app.demo.organization_id, projectId: app.demo.project_id });

async function addDashboard(data: object = {}) {
  const { projectId } = place();
  const content = { name: 'Before', description: 'It stays', widgets: [{ type: 'gauge' }], isPublic: true };
  return app.app.database.prisma.dashboard.create({ data: { projectId, createdById: app.demo.users.member.id, ...content, ...data } });
}

const patch = (input: object, as: 'owner' | 'member' | 'viewer' | 'outsider' = 'member') =>
  app.graphql(document, { input: { ...place(), ...input } }, { as });

test('a patch changes what it is given, and nothing else', async () => {
  const { id } = await addDashboard();
  const { data } = (await patch({ id, name: 'After' })).json;
  const kept = { description: 'It stays', widgets: [{ type: 'gauge' }], isDefault: false, isPublic: true, projectId: place().projectId };
  const { id: userId, email } = app.demo.users.member;
  expect(data.patchDashboard.dashboard).toEqual({
    ...kept,
    id,
    name: 'After',
    version: 2,
    createdBy: { __typename: 'Viewer', id: userId, email },
    project: { id: place().projectId, name: expect.any(String) },
  });
  const changes = [{ description: '' }, { widgets: null }, { widgets: { a: 1 } }, { isPublic: false }, { isDefault: true }];
  let expected: object = { ...kept, name: 'After' };
  for (const change of changes) {
    expected = { ...expected, ...change };
    expect((await patch({ id, ...change })).json.data.patchDashboard.dashboard).toMatchObject(expected);
  }
});

test('an empty patch does not change the version', async () => {
  const { id } = await addDashboard();
  const row = () => app.app.database.prisma.dashboard.findUniqueOrThrow({ where: { id } });
  const before = await row();
  expect((await patch({ id, expectedVersion: 1 })).json.data.patchDashboard.dashboard).toMatchObject({ name: 'Before', version: 1 });
  expect(await row()).toEqual(before);
});

test('null is a value for the widgets alone', async () => {
  const { id } = await addDashboard();
  const nothing = { name: null, description: null, isDefault: null, isPublic: null, project: null };
  const { fields } = (await patch({ id, ...nothing })).json.errors[0].extensions;
  expect(fields).toEqual(Object.fromEntries(Object.keys(nothing).map((name) => [name, ['This field may not be null.']])));
});

test('a version that has passed is a conflict, and the role decides', async () => {
  const { id } = await addDashboard();
  const { id: owners } = await addDashboard({ createdById: app.demo.users.owner.id });
  const codeOf = async (response: ReturnType<typeof patch>) => (await response).json.errors[0].extensions;
  expect(await codeOf(patch({ id, name: 'x', expectedVersion: 7 }))).toEqual({ code: 'conflict', context: { version: 1 } });
  expect(await codeOf(patch({ id: owners, name: 'x' }))).toEqual({ code: 'permission_denied' });
  expect(await codeOf(patch({ id, name: 'x' }, 'viewer'))).toEqual({ code: 'permission_denied' });
  expect(await codeOf(patch({ id, name: 'x' }, 'outsider'))).toEqual({ code: 'not_found' });
});

test('a dashboard that moves is not a default there, unless it is made that', async () => {
  const { organizationId, projectId } = place();
  const project = app.demo.empty_project_id;
  const there = await addDashboard({ projectId: project, isDefault: true });
  const move = async (isDefault?: boolean) => {
    const { id } = await addDashboard({ name: 'Moves' });
    await patch({ id, isDefault: true }, 'owner');
    const input = { organizationId, projectId, id, project, ...(isDefault !== undefined && { isDefault }) };
    return (await patch(input, 'owner')).json.data.patchDashboard.dashboard;
  };
  const isDefault = async () => (await app.app.database.prisma.dashboard.findUniqueOrThrow({ where: { id: there.id } })).isDefault;
  expect(await move()).toMatchObject({ name: 'Moves', isDefault: false, projectId: project, project: { id: project } });
  expect(await isDefault()).toBe(true);
  expect(await move(true)).toMatchObject({ isDefault: true, projectId: project });
  expect(await isDefault()).toBe(false);
});

test('a mark returns the changed notifications, with the project’s count', async () => {
  const { projectId } = place();
  const rows = [];
  for (const title of ['One', 'Two', 'Three'])
    rows.push(await app.app.database.prisma.notification.create({ data: { projectId, kind: 'test', severity: 'info', title } }));
  const [one, two] = rows.map(({ id }) => id);
  const mark = async (input: object) => {
    const query = `mutation ($input: MarkNotificationsReadInput!) { markNotificationsRead(input: $input) {
      marked unreadCount project { id unreadNotificationCount } notifications { id title read } } }`;
    const { json } = await app.graphql(query, { input: { ...place(), ...input } }, { as: 'viewer' });
    expect(json.errors).toBeUndefined();
    return json.data.markNotificationsRead;
  };
  const first = await mark({ notificationIds: [one] });
  expect(first).toMatchObject({ marked: 1, notifications: [{ id: one, title: 'One', read: true }] });
  expect(first.project).toEqual({ id: projectId, unreadNotificationCount: first.unreadCount });
  expect(await mark({ notificationIds: [two, one, two] })).toMatchObject({
    marked: 1,
    notifications: [{ id: two, title: 'Two', read: true }],
  });
  const all = await mark({});
  expect(all).toMatchObject({ unreadCount: 0, project: { unreadNotificationCount: 0 }, notifications: [] });
});
