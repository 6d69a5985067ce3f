import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { countStatements, startRestingApp, type TestApp, type TestResponse } from '../support/app.ts';
import { homeOf } from '../support/doors.ts';
import { send } from '../support/matrix.ts';
import { type Operation, routeOperations, variantsOf } from '../support/operations.ts';
import { addRows } from '../support/rows.ts';

/** The statements before an operation: for the session's user alone, or together with the project that a path or a known document names. */
const SESSION = 1;
const PROJECT = 1;
const PATH = 1;

let app: TestApp;

beforeAll(async () => {
  app = await startRestingApp({ RATE_LIMIT_USER: '1000000', RATE_LIMIT_ANONYMOUS: '1000000' });
  await addRows(app);
});

afterAll(() => app.close());

const count = (request: () => Promise<TestResponse>) => countStatements(app, request);

async function countDocument(document: string, variables: Record<string, unknown>, as: 'owner' | 'member' = 'owner') {
  // A request without a credential executes nothing, but makes the document known.
  await app.graphql(document, variables, { as: null });
  const { response, statements } = await count(() => app.graphql(document, variables, { as }));
  expect(response.json.errors).toBeUndefined();
  return { data: response.json.data, statements };
}

test('every v1 route takes the number of statements that is written down here', async () => {
  const counted: Record<string, number> = {};
  for (const operation of routeOperations()) {
    const dashboardId = await addDashboard(app.demo.project_id);
    const { response, statements } = await count(() => sendRoute(operation, dashboardId));
    expect(response.status, `${operation.name}: ${response.text}`).toBe(operation.route?.status);
    counted[operation.name.replace('/v1/organizations/:organization_id/projects/:project_id', '…')] = statements;
  }
  expect(counted).toEqual({
    'POST …/websocket-tickets': PATH + 2,
    'GET /v1/organizations': SESSION + 2,
    'GET /v1/organizations/:organization_id/projects': SESSION + 3,
    'GET …/monitoring/dashboards': PATH + 2,
    'POST …/monitoring/dashboards': PATH + 1,
    'GET …/monitoring/dashboards/:dashboard_id': PATH + 1,
    'PUT …/monitoring/dashboards/:dashboard_id': PATH + 1,
    'DELETE …/monitoring/dashboards/:dashboard_id': PATH + 1,
    'GET …/compute/instances': PATH + 2,
    'GET …/compute/instances/:instance_id': PATH + 1,
    'GET …/compute/instances/:instance_id/backup-trial': PATH + 2,
    'GET …/compute/tasks': PATH + 3,
    'GET …/compute/overview': PATH + 1,
    'GET …/notifications': PATH + 2,
    'POST …/notifications/read': PATH + 1,
  });
});

/** Sends a route as the admin with valid values for everything it requires; the ticket is for a console. */
async function sendRoute(operation: Operation, dashboardId: string): Promise<TestResponse> {
  const values: Record<string, unknown> = { ...homeOf(app), dashboard_id: dashboardId, target: 'console' };
  const own = Object.fromEntries(operation.variables.filter(({ name }) => name in values).map(({ name }) => [name, values[name]]));
  const admin = { name: 'admin', bearer: app.demo.users.admin.token ?? '', user: 'admin', isSession: true } as const;
  return send(app, { caller: admin, operation, values: { ...variantsOf(operation)[0]?.values, ...own } });
}

async function addDashboard(projectId: string): Promise<string> {
  const data = { projectId, createdById: app.demo.users.owner.id, name: 'Made for a test', isPublic: true };
  return (await app.app.database.prisma.dashboard.create({ data })).id;
}

interface List {
  /** `$n` is the number of items. */
  readonly document: string;
  // biome-ignore lint/suspicious/noExplicitAny: each list is at another place in the response
  readonly items: (data: any) => unknown[];
  readonly statements: number;
}

const inProject = (selection: string) => `query($o: ID!, $p: ID!, $n: Int!) { project(organizationId: $o, id: $p) { ${selection} } }`;
const inViewer = (selection: string) => `query($n: Int!) { viewer { ${selection} } }`;
const everything = '{ nodes { id } edges { cursor node { id } } pageInfo { startCursor endCursor hasNextPage hasPreviousPage } }';
const trial = 'backupTrial { eligible reason blockers monthlyPrice trial { id status } }';

const lists: Readonly<Record<string, List>> = {
  instances: {
    document: inProject(`instances(first: $n) ${everything}`),
    items: (data) => data.project.instances.nodes,
    statements: PROJECT + 1,
  },
  'instances, backwards': {
    document: inProject(`instances(last: $n) ${everything}`),
    items: (data) => data.project.instances.nodes,
    statements: PROJECT + 1,
  },
  tasks: { document: inProject(`tasks(first: $n) ${everything}`), items: (data) => data.project.tasks.nodes, statements: PROJECT + 1 },
  dashboards: {
    document: inProject(`dashboards(first: $n) ${everything}`),
    items: (data) => data.project.dashboards.nodes,
    statements: PROJECT + 1,
  },
  'instances in an order': {
    document: inProject(`instances(first: $n, orderBy: { field: name }) ${everything}`),
    items: (data) => data.project.instances.nodes,
    statements: PROJECT + 1,
  },
  'instances as filters leave them, in an order': {
    // A statement before the list checks whether there are only few items.
    document: inProject(
      `instances(first: $n, filter: { statuses: [active, stopped], namePrefix: "active-" }, orderBy: { field: created }) ${everything}`,
    ),
    items: (data) => data.project.instances.nodes,
    statements: PROJECT + 2,
  },
  'tasks in an order': {
    document: inProject(`tasks(first: $n, orderBy: { field: status, direction: desc }) ${everything}`),
    items: (data) => data.project.tasks.nodes,
    statements: PROJECT + 1,
  },
  'dashboards in an order': {
    document: inProject(`dashboards(first: $n, orderBy: { field: name }) ${everything}`),
    items: (data) => data.project.dashboards.nodes,
    statements: PROJECT + 1,
  },
  'the lists of the projects of an organization, in an order': {
    document: `query($o: ID!, $n: Int!) { organization(id: $o) { projects(first: $n) { nodes { id
      instances(first: 1, orderBy: { field: status }) { totalCount nodes { id } }
      tasks(first: 1, orderBy: { field: created }) { nodes { id } }
      volumes(first: 1, orderBy: { field: name }) { nodes { id } }
      dashboards(first: 1, orderBy: { field: created, direction: desc }) { nodes { id } } } } } }`,
    items: (data) => data.organization.projects.nodes,
    statements: SESSION + 7,
  },
  'the tasks and volumes of instances in orders, and as a filter leaves them': {
    document: inProject(`instances(first: $n) { nodes { id
      tasks(first: 2, orderBy: { field: created }) { totalCount nodes { id } } volumes(first: 2, orderBy: { field: name }) { nodes { id } }
      running: tasks(first: 2, filter: { statuses: [running, failed] }) { totalCount nodes { id } } } }`),
    items: (data) => data.project.instances.nodes,
    statements: PROJECT + 6,
  },
  notifications: {
    document: inProject(`notifications(first: $n) ${everything}`),
    items: (data) => data.project.notifications.nodes,
    statements: PROJECT + 1,
  },
  dashboardPage: {
    document: inProject('dashboardPage(pageSize: $n) { count totalPages results { id name widgets } }'),
    items: (data) => data.project.dashboardPage.results,
    statements: PROJECT + 2,
  },
  'pages of the projects of organizations': {
    document: `query($o: ID!, $n: Int!) { organization(id: $o) { projects(first: $n) { nodes {
      instancePage(pageSize: 2) { count results { id } } taskPage(pageSize: 2) { count results { id } } } } } }`,
    items: (data) => data.organization.projects.nodes,
    statements: SESSION + 6,
  },
  instancePage: {
    document: inProject('instancePage(pageSize: $n, status: active) { count totalPages results { id name } }'),
    items: (data) => data.project.instancePage.results,
    statements: PROJECT + 2,
  },
  taskPage: {
    document: inProject('taskPage(pageSize: $n) { count totalPages results { id kind } }'),
    items: (data) => data.project.taskPage.results,
    statements: PROJECT + 2,
  },
  organizationPage: {
    document: inViewer('organizationPage(pageSize: $n) { count totalPages results { id name } }'),
    items: (data) => data.viewer.organizationPage.results,
    statements: SESSION + 2,
  },
  projectPage: {
    document: 'query($o: ID!, $n: Int!) { organization(id: $o) { projectPage(pageSize: $n) { count results { id role } } } }',
    items: (data) => data.organization.projectPage.results,
    statements: SESSION + 3,
  },
  notificationPage: {
    document: inProject('notificationPage(pageSize: $n) { count totalPages results { id title data read } }'),
    items: (data) => data.project.notificationPage.results,
    statements: PROJECT + 2,
  },
  'unread notificationPage': {
    document: inProject('notificationPage(pageSize: $n, filter: { unread: true }) { count results { id read } }'),
    items: (data) => data.project.notificationPage.results,
    statements: PROJECT + 2,
  },
  'filtered notificationPage': {
    document: inProject('notificationPage(pageSize: $n, filter: { severity: info, kind: "test" }) { count results { id read } }'),
    items: (data) => data.project.notificationPage.results,
    statements: PROJECT + 2,
  },
  'viewer.organizations': {
    document: inViewer(`organizations(first: $n) ${everything}`),
    items: (data) => data.viewer.organizations.nodes,
    statements: SESSION + 1,
  },
  'viewer.apiKeys': {
    document: inViewer(`apiKeys(first: $n) ${everything}`),
    items: (data) => data.viewer.apiKeys.nodes,
    statements: SESSION + 1,
  },
  'organization.projects': {
    document: `query($o: ID!, $n: Int!) { organization(id: $o) { projects(first: $n) ${everything} } }`,
    items: (data) => data.organization.projects.nodes,
    statements: SESSION + 2,
  },
  'a connection under many aliases': {
    document: inProject(`
      instances(first: $n) { nodes { id } } last: instances(last: $n) { nodes { id } }
      active: instances(first: $n, filter: { status: active }) { nodes { id name } }
      lost: instances(first: $n, filter: { attention: without_hypervisor }) { nodes { id } }`),
    items: (data) => data.project.active.nodes,
    statements: PROJECT + 4,
  },
  consoleSessions: {
    document: inProject(`consoleSessions(first: $n) ${everything}`),
    items: (data) => data.project.consoleSessions.nodes,
    statements: PROJECT + 1,
  },
  'the console sessions of instances': {
    document: inProject('instances(first: $n) { nodes { id consoleSessions(first: 2) { nodes { id } } } }'),
    items: (data) => data.project.instances.nodes,
    statements: PROJECT + 2,
  },
  'whether the consoles of instances are occupied, under two aliases': {
    document: inProject('instances(first: $n) { nodes { id consoleOccupied again: consoleOccupied } }'),
    items: (data) => data.project.instances.nodes,
    statements: PROJECT + 2,
  },
  'the trials of instances': {
    document: inProject(`instances(first: $n) { nodes { id ${trial} } }`),
    items: (data) => data.project.instances.nodes,
    statements: PROJECT + 2,
  },
  'the trials of instances, under two aliases and in two forms': {
    document: inProject(`instances(first: $n) { nodes { id ${trial} again: ${trial} } edges { node { ${trial} } } }`),
    items: (data) => data.project.instances.nodes,
    statements: PROJECT + 2,
  },
  'the projects of organizations': {
    document: inViewer('organizations(first: $n) { nodes { id projects(first: 3) { nodes { id } } } }'),
    items: (data) => data.viewer.organizations.nodes,
    statements: SESSION + 2,
  },
  'the projects of organizations, under three aliases': {
    document: inViewer(`organizations(first: $n) { nodes { id
      projects(first: 3) { nodes { id } } one: projects(first: 1) { nodes { name } } last: projects(last: 1) { nodes { name role } } } }`),
    items: (data) => data.viewer.organizations.nodes,
    statements: SESSION + 4,
  },
  'the figures and lists of the projects of an organization': {
    document: `query($o: ID!, $n: Int!) { organization(id: $o) { projects(first: $n) { nodes {
      id name role unreadNotificationCount computeOverview { instancesTotal attention { tasksStuck } }
      instances(first: 1) { nodes { id name } } active: instances(first: 1, filter: { status: active }) { nodes { id } }
      tasks(first: 1) { nodes { id } } consoleSessions(first: 1) { nodes { id } } } } } }`,
    items: (data) => data.organization.projects.nodes,
    statements: SESSION + 8,
  },
  'the whole front page at once': {
    document: `query($o: ID!, $p: ID!, $n: Int!) {
      viewer { name organizations(first: 1) { nodes { id projects(first: 1) { nodes { id } } } } }
      project(organizationId: $o, id: $p) {
        name unreadNotificationCount computeOverview { instancesTotal }
        instances(first: $n) { nodes { id } } tasks(first: $n) { nodes { id } }
        notifications(first: $n) { nodes { id } } dashboards(first: $n) { nodes { id } }
      }
      again: project(organizationId: $o, id: $p) { notifications(first: $n) { nodes { title } } }
    }`,
    items: (data) => data.project.notifications.nodes,
    statements: PROJECT + 8,
  },
};

test.each(Object.entries(lists))('%s: as many statements for 100 rows as for 1', async (_name, { document, items, statements }) => {
  const counted: Record<number, number> = {};
  for (const n of [1, 100]) {
    const { organization_id: o, project_id: p } = app.demo;
    const { data, statements: taken } = await countDocument(document, { o, p, n });
    expect(items(data)).toHaveLength(n);
    counted[n] = taken;
  }
  expect(counted).toEqual({ 1: statements, 100: statements });
});

test('pages of notifications and dashboards of 100 projects take as many statements as those of two', async () => {
  const document = `query($o: ID!, $n: Int!) { organization(id: $o) { projects(first: $n) { nodes {
    notificationPage(pageSize: 2) { count results { id read } } dashboardPage(pageSize: 2) { count results { id widgets } } } } } }`;
  for (const n of [2, 100]) {
    const { data, statements } = await countDocument(document, { o: app.demo.organization_id, n });
    expect(data.organization.projects.nodes).toHaveLength(n);
    expect(statements).toBe(SESSION + 7);
  }
});

test('one dashboard of each of 100 projects takes as many statements as of two', async () => {
  const id = await addDashboard(app.demo.project_id);
  const document = `query($o: ID!, $n: Int!) { organization(id: $o) { projects(first: $n) { nodes { dashboard(id: "${id}") { name } } } } }`;
  const counted: number[] = [];
  for (const n of [2, 100]) {
    const ask = (as: 'owner' | null) => app.graphql(document, { o: app.demo.organization_id, n }, { as });
    await ask(null);
    const { response, statements } = await count(() => ask('owner'));
    expect(response.json.errors).toHaveLength(n - 1);
    counted.push(statements);
  }
  expect(counted).toEqual([SESSION + 3, SESSION + 3]);
  await app.app.database.prisma.dashboard.delete({ where: { id } });
});

test('trials under two connections take one statement for each of them at most', async () => {
  const document = inProject(`
    active: instances(first: $n, filter: { status: active }) { nodes { id ${trial} } }
    stopped: instances(first: $n, filter: { status: stopped }) { nodes { id ${trial} } }`);
  for (const n of [1, 100]) {
    const { organization_id: o, project_id: p } = app.demo;
    const { data, statements } = await countDocument(document, { o, p, n });
    expect(data.project.stopped.nodes).toHaveLength(n);
    // If the connections resolve together, their trials are read in one statement.
    expect(statements).toBeGreaterThanOrEqual(PROJECT + 3);
    expect(statements).toBeLessThanOrEqual(PROJECT + 4);
  }
});

test('marking 200 notifications as read takes as many statements as marking one', async () => {
  const { organization_id: organizationId, project_id: projectId } = app.demo;
  const rows = await app.app.database.prisma.notification.findMany({ where: { projectId }, orderBy: { sequence: 'desc' }, take: 201 });
  const ids = rows.map(({ id }) => id);
  const mark = (input: object) =>
    countDocument(
      'mutation($input: MarkNotificationsReadInput!) { markNotificationsRead(input: $input) { marked } }',
      { input: { organizationId, projectId, ...input } },
      'member',
    );
  const counted = [await mark({ notificationIds: ids.slice(0, 1) }), await mark({ notificationIds: ids.slice(1) }), await mark({})];
  expect(counted.map(({ statements }) => statements)).toEqual([PROJECT + 1, PROJECT + 1, PROJECT + 1]);
  expect(counted[1]?.data.markNotificationsRead.marked).toBeGreaterThan(100);
});

test('publishing 100 notifications takes as many statements as publishing one, and as publishing by itself', async () => {
  const { organization_id: organizationId, project_id: projectId } = app.demo;
  const document = `mutation($input: PublishNotificationsInput!) { publishNotifications(input: $input) { notifications { id sequence data read project { id } } } }`;
  for (const length of [1, 100]) {
    const notifications = Array.from({ length }, (_, index) => ({ kind: 'test', severity: 'info', title: `One of many ${index}` }));
    const { data, statements } = await countDocument(document, { input: { organizationId, projectId, notifications } });
    expect(data.publishNotifications.notifications).toHaveLength(length);
    expect(statements).toBe(PROJECT + 1);
  }
});

test('writing takes as many statements among 100 rows as among none', async () => {
  const { organization_id: organizationId, project_id, empty_project_id } = app.demo;
  const publish = 'mutation($input: PublishNotificationInput!) { publishNotification(input: $input) { notification { sequence } } }';
  const create = 'mutation($input: CreateDashboardInput!) { createDashboard(input: $input) { dashboard { id } } }';
  const update = 'mutation($input: UpdateDashboardInput!) { updateDashboard(input: $input) { dashboard { id } } }';
  const counted: number[][] = [];
  for (const projectId of [empty_project_id, project_id]) {
    const ids = { organizationId, projectId };
    const id = await addDashboard(projectId);
    const steps = [
      await countDocument(publish, { input: { ...ids, kind: 'test', severity: 'info', title: 'One more' } }),
      await countDocument(create, { input: { ...ids, name: 'One more' } }),
      await countDocument(create, { input: { ...ids, name: 'The default', isDefault: true } }),
      await countDocument(update, { input: { ...ids, id, name: 'The default', isDefault: true } }),
    ];
    counted.push(steps.map(({ statements }) => statements));
  }
  // A default is set in a transaction, which locks the project, clears the previous default, writes, and commits.
  const expected = [PROJECT + 1, PROJECT + 1, PROJECT + 4, PROJECT + 4];
  expect(counted).toEqual([expected, expected]);
});

test('each field of a mutation checks the access again, after what the one before it has written', async () => {
  const { organization_id: organizationId, project_id: projectId } = app.demo;
  const publish = 'publishNotification(input: $input) { notification { project { id } } }';
  const document = `mutation($input: PublishNotificationInput!) { first: ${publish} second: ${publish} }`;
  const input = { organizationId, projectId, kind: 'test', severity: 'info', title: 'Two at once' };
  expect((await countDocument(document, { input })).statements).toBe(2 * (PROJECT + 1));
});

test('a project that is foreign costs as much as one that is absent', async () => {
  const { foreign } = app.demo;
  const paths = [`${foreign.organization_id}/projects/${foreign.project_id}`, `${randomUUID()}/projects/${randomUUID()}`];
  for (const path of paths) {
    const { response, statements } = await count(() => app.ask('GET', `/v1/organizations/${path}/compute/overview`));
    expect([response.status, statements]).toEqual([404, PATH]);
  }
});

test('an API key costs a statement more than a session, as its user is found by it, and once a minute another to note its use', async () => {
  const as = { bearer: app.demo.users.owner.api_key };
  const counted: number[] = [];
  for (let turn = 0; turn < 3; turn += 1) {
    counted.push((await count(() => app.ask('GET', `${app.projectPath}/compute/overview`, { as }))).statements);
  }
  expect(counted).toEqual([PATH + 3, PATH + 2, PATH + 2]);
});
