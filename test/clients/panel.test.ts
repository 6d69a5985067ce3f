import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildSchema, getIntrospectionQuery, type IntrospectionQuery } from 'graphql';
import { fetchQuery } from 'relay-runtime';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, type MockInstance, vi } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { addRows } from '../support/rows.ts';
import { openApollo } from './panel/apollo.ts';
import { type Panel, type PanelData, type PanelOptions, panelQuery, type ShownNotification, showPanel } from './panel/panel.ts';
import { openEnvironment, openRelay, readArtifact } from './panel/relay.ts';
import { openUrql } from './panel/urql.ts';
import { checkout, commandOf, folder, run } from './tools.ts';

const work = join(folder, 'generated/panel');
const sources = join(work, 'sources');
const artifacts = join(work, 'artifacts');
const schema = buildSchema(readFileSync(join(checkout, 'schema.graphql'), 'utf8'));
const nodeTypes = schema.getImplementations(schema.getType('Node') as never).objects.map(({ name }) => name);

let app: TestApp;
let introspection: IntrospectionQuery;
let options: PanelOptions;
let warnings: MockInstance[];

beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_USER: '1000000' });
  introspection = (await app.graphql(getIntrospectionQuery(), {}, { as: null })).json.data;
  options = {
    url: `${app.baseUrl}/graphql`,
    socketUrl: `${app.baseUrl.replace('http', 'ws')}/graphql`,
    token: app.demo.users.owner.token ?? '',
    organizationId: app.demo.organization_id,
    projectId: app.demo.project_id,
  };
  await compileRelay();
});
afterAll(() => app.close());

beforeEach(() => {
  warnings = [vi.spyOn(console, 'warn'), vi.spyOn(console, 'error')];
});
afterEach(() => {
  const said = warnings.flatMap(({ mock }) => mock.calls);
  for (const spy of warnings) spy.mockRestore();
  expect(said).toEqual([]);
});

/** The documents of the panel, and one for each type that can be refetched. */
async function compileRelay(): Promise<void> {
  rmSync(work, { recursive: true, force: true });
  for (const path of [sources, artifacts]) mkdirSync(path, { recursive: true });
  writeFileSync(join(sources, 'Panel.ts'), readFileSync(join(folder, 'panel/relay/Panel.ts')));
  const fragments = nodeTypes.map(
    (type) => `export const f${type} = graphql\`
  fragment Refetch_f${type} on ${type} @refetchable(queryName: "Refetch${type}Query") { __typename id }
\`;`,
  );
  writeFileSync(join(sources, 'Refetch.ts'), [`import { graphql } from 'relay-runtime';`, ...fragments].join('\n'));
  const config = join(work, 'relay.config.json');
  const settings = { src: sources, schema: join(checkout, 'schema.graphql'), language: 'typescript', artifactDirectory: artifacts };
  writeFileSync(config, JSON.stringify({ ...settings, eagerEsModules: true }));
  const { code, out, err } = await run(process.execPath, [commandOf('relay-compiler'), '--noWatchman', config], {}, checkout);
  expect(code, out + err).toBe(0);
}

const openings: ReadonlyArray<readonly [string, () => Panel | Promise<Panel>]> = [
  ['Apollo Client', () => openApollo(options, introspection)],
  ['urql', () => openUrql(options, introspection)],
  ['Relay', () => openRelay(options, artifacts)],
];

/** What the server says now, asked without a cache. */
const readPanel = async () => showPanel((await app.graphql(panelQuery)).json.data as PanelData);

/** All of them, in parts of a hundred. */
async function readNotifications(after: string | null = null): Promise<ShownNotification[]> {
  const query = `query ($id: ID!, $after: String) { project(id: $id) { notifications(first: 100, after: $after) {
    nodes { id sequence title read } pageInfo { hasNextPage endCursor } } } }`;
  const { json } = await app.graphql(query, { id: options.projectId, after });
  const { nodes, pageInfo } = json.data.project.notifications;
  return pageInfo.hasNextPage ? [...nodes, ...(await readNotifications(pageInfo.endCursor))] : nodes;
}

async function publish(title: string): Promise<void> {
  const { organizationId, projectId } = options;
  const { json } = await app.graphql(
    'mutation ($input: PublishNotificationInput!) { publishNotification(input: $input) { notification { id } } }',
    { input: { organizationId, projectId, kind: 'test', severity: 'info', title } },
    { as: 'admin' },
  );
  expect(json.errors).toBeUndefined();
}

/** By v1, as another client of the same user does it; without ids, all of them. */
async function markElsewhere(ids: readonly string[]): Promise<void> {
  const { status } = await app.ask('POST', `${app.projectPath}/notifications/read`, { body: { notification_ids: ids } });
  expect(status).toBe(200);
}

/** Checks until it holds: what a client shows and what the server says change at different moments. */
const eventually = (check: () => Promise<void>) => vi.waitFor(check, { timeout: 60_000 });

describe.each(openings)('the panel in %s', (client, open) => {
  let panel: Panel;
  beforeEach(async () => {
    panel = await open();
  });
  afterEach(() => panel.close());

  it('shows organizations, projects, instances, trials, tasks and the instance of each task', async () => {
    await panel.load();
    const shown = panel.shown();
    expect(shown).toEqual(await readPanel());
    const projects = shown.organizations.flatMap((organization) => organization.projects);
    const instances = projects.flatMap((project) => project.instances);
    expect(instances.length).toBeGreaterThan(5);
    expect(instances.some(({ trial }) => trial !== null)).toBe(true);
    expect(instances.some(({ name, tasks }) => tasks.some(({ instance }) => instance === name))).toBe(true);
  });

  it('shows a refetched node at all of its places', async () => {
    await panel.load();
    const [instance] = panel
      .shown()
      .organizations.flatMap(({ projects }) => projects)
      .flatMap(({ instances }) => instances)
      .filter(({ tasks }) => tasks.some((task) => task.instance !== null));
    const name = `renamed by ${client}`;
    await app.app.database.prisma.instance.update({ where: { id: instance?.id ?? '' }, data: { name } });
    await panel.refetchInstance(instance?.id ?? '');
    expect(panel.shown()).toEqual(await readPanel());
    expect(JSON.stringify(panel.shown()).split(name).length).toBeGreaterThan(2);
  });

  it.each(['first', 'last'] as const)('goes through the notifications from the %s', async (from) => {
    const all = await readNotifications();
    const direction = from === 'first' ? 'next' : 'previous';
    await panel.openNotifications(from, 7);
    for (let parts = 1; panel.notifications()[from === 'first' ? 'hasNextPage' : 'hasPreviousPage']; parts += 1) {
      expect(parts).toBeLessThan(all.length);
      const { items } = panel.notifications();
      expect(items).toEqual(from === 'first' ? all.slice(0, parts * 7) : all.slice(-parts * 7));
      await panel.loadMore(direction, 7);
    }
    expect(panel.notifications().items).toEqual(all);
  });

  it('counts and shows marked notifications as read, without another request', async () => {
    await panel.load();
    for (const title of ['one', 'two', 'three']) await publish(title);
    await panel.load();
    await panel.openNotifications('first', 5);
    const [newest, , third] = panel.notifications().items;
    await panel.mark([newest?.id ?? '', third?.id ?? '']);
    expect(
      panel
        .notifications()
        .items.map(({ read }) => read)
        .slice(0, 3),
    ).toEqual([true, false, true]);
    expect(panel.shown()).toEqual(await readPanel());
    expect(panel.notifications().items).toEqual((await readNotifications()).slice(0, 5));
  });

  it('follows the feed: shows notifications and reads of other clients, with the right count', async () => {
    await panel.load();
    await panel.openNotifications('first', 5);
    const leave = await panel.follow();
    for (const title of ['first live', 'second live', 'third live']) await publish(`${title} in ${client}`);
    await eventually(async () => expect(panel.notifications().items).toEqual((await readNotifications()).slice(0, 8)));
    await eventually(async () => expect(panel.shown()).toEqual(await readPanel()));
    const [, second] = panel.notifications().items;
    await markElsewhere([second?.id ?? '']);
    await eventually(async () => expect(panel.notifications().items).toEqual((await readNotifications()).slice(0, 8)));
    await eventually(async () => expect(panel.shown()).toEqual(await readPanel()));
    await markElsewhere([]);
    await eventually(async () => expect(panel.shown()).toEqual(await readPanel()));
    await expect.poll(() => panel.notifications().items.every(({ read }) => read)).toBe(true);
    leave();
  });
});

/** Where the rows of a type are, as far as the owner of the demo may know of them. */
const tables: Readonly<Record<string, string>> = {
  ApiKey: 'api_keys WHERE user_id = $1',
  Backup: 'backups WHERE project_id = $2',
  BackupTrial: 'backup_trials WHERE instance_id IN (SELECT id FROM instances WHERE project_id = $2)',
  Colleague: 'users WHERE id IN (SELECT user_id FROM project_members WHERE project_id = $2 AND user_id <> $1)',
  ConsoleSession: 'console_sessions WHERE project_id = $2',
  Dashboard: 'dashboards WHERE project_id = $2',
  Instance: 'instances WHERE project_id = $2',
  Notification: 'notifications WHERE project_id = $2',
  Organization: 'organizations WHERE id = (SELECT organization_id FROM projects WHERE id = $2)',
  Project: 'projects WHERE id = $2',
  Snapshot: 'snapshots WHERE project_id = $2',
  SshKey: 'ssh_keys WHERE project_id = $2',
  Task: 'tasks WHERE project_id = $2',
  Viewer: 'users WHERE id = $1',
  Volume: 'volumes WHERE project_id = $2',
  Vpc: 'vpcs WHERE project_id = $2',
};

describe('Relay refetches', () => {
  beforeAll(() => addRows(app));

  it.each(nodeTypes)('a %s by its id', async (type) => {
    const values = [app.demo.users.owner.id, options.projectId].map((id) => `'${id}'::uuid`);
    const where = tables[type]?.replace(/\$(\d)/g, (_, place) => values[Number(place) - 1] ?? '');
    const [row] = await app.app.database.prisma.$queryRawUnsafe<Array<{ id: string }>>(`SELECT id FROM ${where} LIMIT 1`);
    const id = row?.id ?? '';
    const { environment, close } = openEnvironment(options);
    await fetchQuery(environment, await readArtifact(artifacts, `Refetch${type}Query`), { id }).toPromise();
    close();
    expect(environment.getStore().getSource().get(id)).toMatchObject({ __typename: type, id });
  });
});
