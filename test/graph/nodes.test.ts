import { randomUUID } from 'node:crypto';
import { getNamedType, isInterfaceType, isObjectType } from 'graphql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { listNodeNames } from '../../src/graph/node.ts';
import { schema } from '../../src/schema.ts';
import { countStatements, isPostgres, startApp, startRestingApp, type TestApp, type TestResponse } from '../support/app.ts';
import { selectAll } from '../support/operations.ts';
import { addRows } from '../support/rows.ts';
import { type Caller, findSecrets, prepareWorld, readRows, visibility, type World } from '../support/tenancy.ts';

/** The tables whose rows are nodes, by type. A user is `Viewer` to themselves, and `Colleague` to others. */
const tables: Readonly<Record<string, string>> = {
  ApiKey: 'api_keys',
  Backup: 'backups',
  BackupTrial: 'backup_trials',
  ConsoleSession: 'console_sessions',
  Dashboard: 'dashboards',
  Instance: 'instances',
  Notification: 'notifications',
  Organization: 'organizations',
  Project: 'projects',
  Snapshot: 'snapshots',
  SshKey: 'ssh_keys',
  Task: 'tasks',
  User: 'users',
  Volume: 'volumes',
  Vpc: 'vpcs',
};

let app: TestApp;
let world: World;

beforeAll(async () => {
  app = await startRestingApp({ RATE_LIMIT_ANONYMOUS: '1000000', RATE_LIMIT_USER: '1000000' });
  world = await prepareWorld(app);
  for (const userId of Object.values(world.userIds)) {
    await world.query(
      `INSERT INTO api_keys (user_id, name, hint, secret_hash) VALUES ($1::uuid, $2, 'hint', sha256(convert_to($2, 'UTF8')))`,
      userId,
      `a key of ${userId}`,
    );
  }
});

afterAll(() => app.close());

const everything = `query ($ids: [ID!]!) { nodes(ids: $ids) ${selectAll(schema.getQueryType()?.getFields().nodes?.type ?? fail())} }`;

function fail(): never {
  throw new Error('the schema has no nodes');
}

/** The types whose objects belong to a project. */
const typesInProject = Object.keys(tables).filter((name) => {
  const type = schema.getType(name);
  return isObjectType(type) && 'project' in type.getFields();
});

interface Row {
  readonly type: string;
  readonly id: string;
  readonly owner: string;
  readonly isVisible: boolean;
}

/** Every row that is a node, and whether the caller may see it. */
async function listRows(caller: Caller): Promise<Row[]> {
  const userId = caller.user && world.userIds[caller.user];
  const isVisible = visibility(world, caller, userId);
  const types = new Map(Object.entries(tables).map(([type, table]) => [table, type]));
  const rows = await readRows(world);
  return rows.flatMap((row) => {
    const type = types.get(row.table);
    if (!type) return [];
    const id = String(row.content.id);
    const seen = isVisible(row) && (type !== 'ApiKey' || caller.isSession);
    return [{ id, owner: row.owner, isVisible: seen, type: type !== 'User' ? type : id === userId ? 'Viewer' : 'Colleague' }];
  });
}

test('every type whose table has a project has a link to it', async () => {
  const found = await world.query(`SELECT DISTINCT table_name::text AS name FROM information_schema.columns AS one
    WHERE table_schema = 'public' AND column_name IN ('project_id', 'instance_id')`);
  const names = new Set(found.map(({ name }) => String(name)));
  expect(typesInProject).toEqual(Object.keys(tables).filter((type) => names.has(tables[type] ?? '')));
});

const parts = <Item>(items: readonly Item[], size: number) =>
  Array.from({ length: Math.ceil(items.length / size) }, (_, index) => items.slice(index * size, (index + 1) * size));

/** Four of the rows that nothing but their contents tells apart: of one type, one owner, and both visible or not. */
function takeFew(rows: readonly Row[]): Row[] {
  const taken = new Map<string, number>();
  return rows.filter(({ type, owner, isVisible }) => {
    const kind = `${type} ${owner} ${isVisible}`;
    taken.set(kind, (taken.get(kind) ?? 0) + 1);
    return (taken.get(kind) ?? 0) <= 4;
  });
}

const ask = (caller: Caller, query: string, variables: Record<string, unknown>) =>
  app.graphql(query, variables, { as: caller.bearer === null ? null : { bearer: caller.bearer } });

const people = ['outsider', 'viewer', 'member', 'admin', 'owner', 'API key of the member'];

describe.each(people)('%s', (name) => {
  let caller: Caller;
  let rows: Row[];

  beforeAll(async () => {
    caller = world.callers.find((one) => one.name === name) as Caller;
    rows = await listRows(caller);
  });

  test('finds visible nodes by id, and no others', async () => {
    const expected = rows.map(({ id, type, isVisible }) => (isVisible ? { __typename: type, id } : null));
    const found: unknown[] = [];
    for (const part of parts(rows, 100)) {
      const ids = part.map(({ id }) => id);
      const { json } = await ask(caller, 'query ($ids: [ID!]!) { nodes(ids: $ids) { __typename id } }', { ids });
      expect(json.errors).toBeUndefined();
      found.push(...json.data.nodes);
    }
    expect(found).toEqual(expected);
    const types = new Set(rows.flatMap(({ type, isVisible }) => (isVisible ? [type] : [])));
    if (name === 'owner') expect([...types].sort()).toEqual([...new Set(rows.map(({ type }) => type))].sort());
    expect(rows.filter(({ isVisible }) => !isVisible).length).toBeGreaterThan(20);
  });

  test('finds the project of every node that belongs to one', async () => {
    const things = rows.filter(({ type, isVisible }) => isVisible && typesInProject.includes(type));
    // `project` of a notification is nullable, and fields of one name but different types cannot be merged, hence the aliases.
    const links = typesInProject.map((type) => `... on ${type} { ${type}: project { id role } }`);
    const roles = new Map(Object.values(world.places).map(({ projectId, roles: given }) => [projectId, caller.user && given[caller.user]]));
    for (const part of parts(things, 100)) {
      const { json } = await ask(caller, `query ($ids: [ID!]!) { nodes(ids: $ids) { ${links.join(' ')} } }`, {
        ids: part.map(({ id }) => id),
      });
      expect(json.errors).toBeUndefined();
      expect(json.data.nodes).toEqual(part.map(({ type, owner }) => ({ [type]: { id: owner, role: roles.get(owner) } })));
    }
    const seen = new Set(things.map(({ type }) => type));
    if (name === 'owner') expect([...seen].sort()).toEqual(typesInProject);
    expect(things.length).toBeGreaterThan(name === 'outsider' ? 3 : 100);
  });

  test('sees no contents of invisible nodes', async () => {
    const secrets = findSecrets(await readRows(world), visibility(world, caller, caller.user && world.userIds[caller.user]), everything);
    for (const part of parts(isPostgres ? rows : takeFew(rows), 20)) {
      const { text, json } = await ask(caller, everything, { ids: part.map(({ id }) => id) });
      expect(json.errors).toBeUndefined();
      const own = new Set(part.map(({ id }) => id));
      expect(secrets.filter((secret) => !own.has(secret) && text.includes(secret))).toEqual([]);
    }
  });

  test('gets the same bytes for foreign nodes as for absent ones', async () => {
    const look = ({ status, text }: TestResponse) => JSON.stringify([status, text]);
    const absent = look(await ask(caller, 'query ($id: ID!) { node(id: $id) { __typename id } }', { id: randomUUID() }));
    expect(absent).toBe(JSON.stringify([200, '{"data":{"node":null}}']));
    const foreign = rows.filter(({ isVisible }) => !isVisible);
    const ofEachType = [...new Map(foreign.map((row) => [row.type, row])).values()];
    for (const id of [...ofEachType.map((row) => row.id), 'nothing', `{${randomUUID()}}`]) {
      expect(look(await ask(caller, 'query ($id: ID!) { node(id: $id) { __typename id } }', { id }))).toBe(absent);
    }
  });
});

test('foreign nodes take as many statements as absent ones', async () => {
  const viewer = world.callers.find(({ name }) => name === 'viewer') as Caller;
  const { own, sibling, foreign } = world.places;
  const count = async (id: string) =>
    (await countStatements(app, () => ask(viewer, 'query ($id: ID!) { node(id: $id) { id } }', { id }))).statements;
  const ofAbsent = await count(randomUUID());
  const rows = await listRows(viewer);
  const isOutside = ({ type }: Row) => ['ApiKey', 'Colleague', 'Organization', 'Viewer'].includes(type);
  const inProject = [own, sibling, foreign].map(({ projectId }) => rows.filter((row) => row.owner === projectId && !isOutside(row)));
  for (const place of [...inProject, rows.filter(isOutside)]) {
    const hidden = new Map(place.flatMap((row) => (row.isVisible ? [] : [[row.type, row.id] as const])));
    if (place === inProject[0]) expect([...hidden.keys()].sort()).toEqual(['ConsoleSession', 'Dashboard']);
    else expect(hidden.size).toBeGreaterThan(2);
    for (const [type, id] of hidden) expect(await count(id), type).toBe(ofAbsent);
  }
});

test('without a credential, no node is found', async () => {
  for (const id of [randomUUID(), app.demo.project_id, 'x']) {
    for (const [field, query] of [
      ['node', `{ node(id: "${id}") { id } }`],
      ['nodes', `{ nodes(ids: ["${id}"]) { id } }`],
    ] as const) {
      const { json } = await app.graphql(query, {}, { as: null });
      expect(json.errors, query).toMatchObject([{ path: [field], extensions: { code: 'not_authenticated' } }]);
      expect(json.data).toEqual({ [field]: null });
    }
  }
});

test('an id of v1 is valid in `node`, in either case', async () => {
  const board = app.demo.dashboards.public;
  const { json } = await app.ask('GET', `${app.projectPath}/monitoring/dashboards/${board}`);
  const query = 'query ($id: ID!) { node(id: $id) { id ... on Dashboard { name description widgets version } } }';
  const { data } = (await app.graphql(query, { id: board.toUpperCase() })).json;
  expect(data.node).toEqual({
    id: board,
    name: json.name,
    description: json.description,
    widgets: json.widgets,
    version: expect.any(Number),
  });
});

test('`nodes` takes 100 ids at most, and each counts in the cost', async () => {
  const query = 'query ($ids: [ID!]!) { nodes(ids: $ids) { id } }';
  const ids = Array.from({ length: 101 }, () => randomUUID());
  expect((await app.graphql(query, { ids })).json.errors[0].extensions).toMatchObject({
    code: 'validation_failed',
    fields: { ids: ['Ensure this field has no more than 100 items.'] },
  });
  const deep = `query ($ids: [ID!]!) { nodes(ids: $ids) { ... on Project { instances(first: 100) { nodes { id name status plan region created } } } } }`;
  const refusal = (await app.graphql(deep, { ids: ids.slice(1) })).json.errors[0];
  expect(refusal.message).toMatch(/^The document is too large: complexity \d+, at most 50000\.$/);
});

test('heavy fields of nodes are read up to the limit of a response', async () => {
  const small = await startApp({ MAX_ANSWER_BYTES: '65536' });
  try {
    const { project_id: projectId, users } = small.demo;
    const data = { projectId, createdById: users.owner.id, name: 'Large', description: 'x'.repeat(9_000) };
    const ids: string[] = [];
    for (let count = 0; count < 8; count += 1) ids.push((await small.app.database.prisma.dashboard.create({ data })).id);
    const read = (field: string) => small.graphql(`query ($ids: [ID!]!) { nodes(ids: $ids) { ... on Dashboard { ${field} } } }`, { ids });
    expect((await read('name')).json.data.nodes).toHaveLength(8);
    expect((await read('description')).json.errors[0].message).toMatch(/^The response would take more than 65536 bytes/);
  } finally {
    await small.close();
  }
});

test('a hundred nodes take as many statements as one, of each type and of all', async () => {
  await addRows(app);
  const owner = world.callers.find(({ name }) => name === 'owner') as Caller;
  const count = async (ids: readonly string[]) => {
    const { response, statements } = await countStatements(app, () => ask(owner, everything, { ids }));
    expect(response.json.errors).toBeUndefined();
    expect(response.json.data.nodes.filter(Boolean)).toHaveLength(ids.length);
    return statements;
  };
  const own = await world.query('SELECT id::text FROM projects WHERE organization_id = $1::uuid', app.demo.organization_id);
  const reached = new Set(own.map(({ id }) => id));
  for (const [type, table] of Object.entries(tables)) {
    const where = ['users', 'organizations', 'projects', 'api_keys', 'backup_trials'].includes(table) ? '' : 'WHERE project_id = $1::uuid';
    const rows = await world.query(
      `SELECT to_jsonb(t) AS row FROM "${table}" AS t ${where} ORDER BY id DESC LIMIT 400`,
      ...(where ? [app.demo.project_id] : []),
    );
    const contents = rows.map(({ row }) => row as Record<string, string>);
    const usable = contents.filter(({ id, user_id }) =>
      table === 'projects' ? reached.has(id) : table !== 'api_keys' || user_id === world.userIds.owner,
    );
    const ids = table === 'users' ? Object.values(world.userIds).slice(0, 4) : usable.slice(0, 18).map(({ id }) => String(id));
    expect(ids.length, type).toBeGreaterThan(2);
    expect(await count(ids), type).toBe(await count(ids.slice(0, 1)));
  }
});

test('an instance that has moved to another project is no longer that of a console session in the first', async () => {
  const { project_id: projectId, empty_project_id: emptyProjectId } = app.demo;
  const [instance] = await world.query('SELECT id FROM instances WHERE project_id = $1::uuid ORDER BY id LIMIT 1', projectId);
  const id = String(instance?.id);
  const session = randomUUID();
  await world.query(
    `INSERT INTO console_sessions (id, project_id, instance_id, instance_name, user_id, user_email, kind, owner, ended, end_reason)
    VALUES ($1::uuid, $2::uuid, $3::uuid, 'moved', $4::uuid, 'owner@acme.example', 'serial', $1::uuid, now(), 'ended')`,
    session,
    projectId,
    id,
    app.demo.users.owner.id,
  );
  const readInstance = async () => {
    const document = 'query ($id: ID!) { node(id: $id) { ... on ConsoleSession { instance { id } } } }';
    return (await app.graphql(document, { id: session })).json.data.node;
  };
  expect(await readInstance()).toEqual({ instance: { id } });
  await world.query('UPDATE instances SET project_id = $2::uuid WHERE id = $1::uuid', id, emptyProjectId);
  expect(await readInstance()).toEqual({ instance: null });
  await world.query('UPDATE instances SET project_id = $2::uuid WHERE id = $1::uuid', id, projectId);
  await world.query('DELETE FROM console_sessions WHERE id = $1::uuid', session);
});

describe('the schema', () => {
  test('has an id in every node, and a node for every type with an id', () => {
    const things = Object.values(schema.getTypeMap()).filter(
      (type) => isObjectType(type) && getNamedType(type.getFields().id?.type)?.name === 'ID',
    );
    const nodes = schema.getPossibleTypes(schema.getType('Node') as never);
    expect(nodes.map(({ name }) => name).sort()).toEqual(things.map(({ name }) => name).sort());
    expect(nodes.length).toBeGreaterThan(9);
  });

  test('has a loader for every node', () => {
    const named = listNodeNames().flatMap((name) => {
      const type = schema.getType(name);
      return isInterfaceType(type) ? schema.getPossibleTypes(type).map((kind) => kind.name) : [name];
    });
    expect(named.sort()).toEqual(
      schema
        .getPossibleTypes(schema.getType('Node') as never)
        .map(({ name }) => name)
        .sort(),
    );
    expect([...listNodeNames()].sort()).toEqual(Object.keys(tables).sort());
  });
});

test('the lists of the viewer are read once for each set of arguments, wherever the document has the viewer', async () => {
  const { owner } = app.demo.users;
  const lists = (count: number) =>
    Array.from(
      { length: count },
      (_, index) =>
        `o${index}: organizations(first: 1) { totalCount nodes { name } } p${index}: organizationPage { count } k${index}: apiKeys { totalCount }`,
    ).join(' ');
  const count = async (ids: readonly string[], aliases: number) => {
    const query = `query ($ids: [ID!]!) { nodes(ids: $ids) { ... on Viewer { ${lists(aliases)} } } }`;
    const { response, statements } = await countStatements(app, () => app.graphql(query, { ids }, { as: 'owner' }));
    expect(response.json.errors).toBeUndefined();
    expect(response.json.data.nodes).toHaveLength(ids.length);
    expect(response.json.data.nodes.at(-1)).toEqual(response.json.data.nodes[0]);
    return statements;
  };
  expect(await count(Array(30).fill(owner.id), 10)).toBe(await count([owner.id], 1));
});
