import { randomUUID } from 'node:crypto';
import { getNamedType, isObjectType } from 'graphql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { schema } from '../../src/schema.ts';
import { isPostgres, startApp, type TestApp } from '../support/app.ts';
import { makeDashboard } from '../support/fixtures.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp();
  for (let turn = 0; turn < 5; turn += 1) await makeDashboard(app, app.demo.project_id, { name: `More ${turn}` });
  await app.app.database.prisma.apiKey.createMany({
    data: Array.from({ length: 6 }, (_, index) => ({
      userId: app.demo.users.owner.id,
      name: `Key ${index}`,
      hint: '',
      secretHash: Uint8Array.from([index]),
    })),
  });
  await fillInstance();
});
afterAll(() => app.close());

interface Args {
  readonly first?: number | null;
  readonly last?: number | null;
  readonly after?: string | null;
  readonly before?: string | null;
}

interface PageInfo {
  readonly hasNextPage: boolean;
  readonly hasPreviousPage: boolean;
  readonly startCursor: string | null;
  readonly endCursor: string | null;
}

type Item = { readonly id: string } | { readonly user: { readonly id: string } };

interface Connection {
  readonly edges: ReadonlyArray<{ readonly cursor: string; readonly node: Item }>;
  readonly nodes: readonly Item[];
  readonly pageInfo: PageInfo;
}

/** Gives one instance five of everything that an instance has a list of. */
async function fillInstance(): Promise<void> {
  const { database } = app.app;
  const { project_id: projectId, instances, users } = app.demo;
  const instanceId = instances.eligible;
  const { id: userId, email: userEmail } = users.owner;
  const five = <Row>(make: (index: number) => Row) => Array.from({ length: 5 }, (_, index) => make(index));
  const resources = five((index) => ({ projectId, instanceId, name: `Part ${index}`, sizeGb: 1 }));
  await database.prisma.volume.createMany({ data: resources });
  await database.prisma.snapshot.createMany({ data: resources });
  await database.prisma.backup.createMany({ data: resources });
  await database.prisma.task.createMany({ data: five(() => ({ projectId, instanceId, kind: 'test', status: 'succeeded' })) });
  const sessions = five(() => ({ id: randomUUID(), owner: randomUUID(), projectId, instanceId, instanceName: 'web', userId, userEmail }));
  await database.prisma.consoleSession.createMany({ data: sessions.map((session) => ({ ...session, kind: 'serial' })) });
  await database.query`
    INSERT INTO notifications (project_id, kind, severity, title, resource_type, resource_id)
    SELECT ${projectId}::uuid, 'test', 'info', 'About it', 'instance', ${instanceId} FROM generate_series(1, 5)`;
}

/** The types that have lists, each by its id. */
const roots: Readonly<Record<string, () => string>> = {
  Project: () => app.demo.project_id,
  Organization: () => app.demo.organization_id,
  Viewer: () => app.demo.users.owner.id,
  Instance: () => app.demo.instances.eligible,
};

/** A list up to its arguments, the type that has it, and what tells one of its items from another. */
interface List {
  readonly root: string;
  readonly field: string;
  readonly item: string;
}

/** Every connection of the schema. */
const connections = Object.values(schema.getTypeMap()).flatMap((type) =>
  isObjectType(type)
    ? Object.values(type.getFields()).flatMap((field): List[] => {
        const [, item] = /^(\w+)Connection$/.exec(getNamedType(field.type).name) ?? [];
        return item ? [{ root: type.name, field: `${field.name}(`, item: item.endsWith('Member') ? 'user { id }' : 'id' }] : [];
      })
    : [],
);

const lists: Readonly<Record<string, List>> = Object.fromEntries(
  [
    ...connections,
    { root: 'Project', field: 'instances(filter: {status: active}, ', item: 'id' },
    { root: 'Project', field: 'notifications(filter: {unread: false, severity: info}, ', item: 'id' },
  ].map((list) => [`${list.root}.${list.field}`, list]),
);

async function send(name: string, args: Args) {
  const { root, field, item } = lists[name] as List;
  const document = `query ($id: ID!, $first: Int, $last: Int, $after: String, $before: String) {
    root: node(id: $id) {
      ... on ${root} {
        answer: ${field}first: $first, last: $last, after: $after, before: $before) {
          edges { cursor node { ${item} } } nodes { ${item} } pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
        }
      }
    }
  }`;
  return app.graphql(document, { id: roots[root]?.(), ...args });
}

async function read(list: string, args: Args): Promise<Connection> {
  const response = await send(list, args);
  expect(response.json.errors).toBeUndefined();
  const connection: Connection = response.json.data.root.answer;
  expect(connection.nodes).toEqual(connection.edges.map(({ node }) => node));
  expect(connection.pageInfo.startCursor).toBe(connection.edges.at(0)?.cursor ?? null);
  expect(connection.pageInfo.endCursor).toBe(connection.edges.at(-1)?.cursor ?? null);
  return connection;
}

/** The whole list, by pages of a hundred. */
async function readAll(list: string, after: string | null = null): Promise<Connection['edges']> {
  const { edges, pageInfo } = await read(list, { first: 100, after });
  return pageInfo.hasNextPage ? [...edges, ...(await readAll(list, pageInfo.endCursor))] : edges;
}

const idsOf = (edges: Connection['edges']) => edges.map(({ node }) => ('id' in node ? node.id : node.user.id));

/** The ids of the project's notifications, the newest first. */
async function listNotificationIds(): Promise<string[]> {
  const rows = await app.app.database.query<{ id: string }>`
    SELECT id FROM notifications WHERE project_id = ${app.demo.project_id}::uuid ORDER BY sequence DESC`;
  return rows.map(({ id }) => id);
}

it('has a path to each type with a list', () => {
  expect(new Set(connections.map(({ root }) => root))).toEqual(new Set(Object.keys(roots)));
  expect(connections.length).toBeGreaterThan(20);
});

for (const list of Object.keys(lists)) {
  describe(list, () => {
    it('lists the same items forwards and backwards, for any page size', async () => {
      const whole = await readAll(list);
      expect(whole.length).toBeGreaterThan(0);
      expect(new Set(whole.map(({ cursor }) => cursor)).size).toBe(whole.length);
      // On PGlite a walk of a few pages, and one whose page has just the whole list.
      const few = [Math.max(2, Math.ceil(whole.length / 4)), whole.length];
      for (const size of isPostgres ? [1, 3, 7].filter((size) => whole.length / size < 25) : few) {
        const forwards: string[] = [];
        for (let after: string | null = null, isLast = false; !isLast; ) {
          const page: Connection = await read(list, { first: size, after });
          expect(page.pageInfo.hasPreviousPage).toBe(after !== null);
          forwards.push(...idsOf(page.edges));
          expect(forwards.length, `forwards by ${size}: ${forwards.slice(-4)}`).toBeLessThanOrEqual(whole.length);
          isLast = !page.pageInfo.hasNextPage;
          after = page.pageInfo.endCursor;
        }
        const backwards: string[] = [];
        for (let before: string | null = null, isFirst = false; !isFirst; ) {
          const page: Connection = await read(list, { last: size, before });
          expect(page.pageInfo.hasNextPage).toBe(before !== null);
          backwards.unshift(...idsOf(page.edges));
          expect(backwards.length, `backwards by ${size}: ${backwards.slice(0, 4)}`).toBeLessThanOrEqual(whole.length);
          isFirst = !page.pageInfo.hasPreviousPage;
          before = page.pageInfo.startCursor;
        }
        expect(forwards, `forwards by ${size}`).toEqual(idsOf(whole));
        expect(backwards, `backwards by ${size}`).toEqual(idsOf(whole));
      }
    });

    it('refuses malformed cursors and negative sizes, all at once, as field errors', async () => {
      const malformed = ['Not a valid cursor.'];
      const negative = ['Ensure this value is greater than or equal to 0.'];
      for (const cursor of ['', 'x', '¿?', 'MTI=', 'MTIz'.repeat(501)]) {
        const { json } = await send(list, { after: cursor, before: cursor, first: -1, last: -1 });
        expect(json.errors, cursor).toHaveLength(1);
        expect(json.errors[0].extensions).toEqual({
          code: 'validation_failed',
          fields: { first: negative, last: negative, after: malformed, before: malformed },
        });
      }
    });

    it('refuses cursors of another list', async () => {
      const malformed = ['Not a valid cursor.'];
      for (const cursor of ['bnVsbA', Buffer.from('12 ').toString('base64url')]) {
        const { json } = await send(list, { after: cursor, before: cursor });
        expect(json.errors, cursor).toHaveLength(1);
        expect(json.errors[0].extensions).toEqual({ code: 'validation_failed', fields: { after: malformed, before: malformed } });
      }
    });
  });
}

describe('the convention', () => {
  const list = 'Project.tasks(';
  let whole: Connection['edges'];
  beforeAll(async () => {
    whole = await readAll(list);
  });
  const cursor = (index: number) => whole.at(index)?.cursor;
  const slice = async (args: Args) => {
    const { edges, pageInfo } = await read(list, args);
    return { ids: idsOf(edges), ...pageInfo };
  };
  const part = (from: number, to: number) => idsOf(whole.slice(from, to));

  it('has pages of twenty by default, and of a hundred at most', async () => {
    expect((await slice({})).ids).toEqual(part(0, 20));
    expect((await slice({ before: cursor(30) })).ids).toEqual(part(10, 30));
    expect((await read('Project.notifications(', { first: 1000 })).edges).toHaveLength(100);
    expect((await read('Project.notifications(', { last: 1000 })).edges).toHaveLength(100);
  });

  it('opens a window between two cursors', async () => {
    const [after, before] = [cursor(4), cursor(9)];
    expect(await slice({ after, before, first: 100 })).toMatchObject({ ids: part(5, 9), hasNextPage: false, hasPreviousPage: true });
    expect(await slice({ after, before, first: 2 })).toMatchObject({ ids: part(5, 7), hasNextPage: true, hasPreviousPage: true });
    expect(await slice({ after, before, last: 3 })).toMatchObject({ ids: part(6, 9), hasNextPage: true, hasPreviousPage: true });
    expect((await slice({ after: before, before: after, first: 5 })).ids).toEqual([]);
  });

  it('has `first` cut before `last` does', async () => {
    expect(await slice({ first: 6, last: 2 })).toMatchObject({ ids: part(4, 6), hasNextPage: true, hasPreviousPage: true });
    expect(await slice({ first: 2, last: 6 })).toMatchObject({ ids: part(0, 2), hasNextPage: true, hasPreviousPage: false });
    expect(await slice({ first: 3, last: 1, after: cursor(0), before: cursor(3) })).toMatchObject({
      ids: part(2, 3),
      hasPreviousPage: true,
    });
  });

  it('has empty pages, which show whether there is more', async () => {
    const nothing = { ids: [], startCursor: null, endCursor: null };
    expect(await slice({ first: 0 })).toEqual({ ...nothing, hasNextPage: true, hasPreviousPage: false });
    expect(await slice({ last: 0 })).toEqual({ ...nothing, hasNextPage: false, hasPreviousPage: true });
    expect(await slice({ first: 5, last: 0 })).toEqual({ ...nothing, hasNextPage: true, hasPreviousPage: true });
    expect(await slice({ first: 5, after: cursor(-1) })).toEqual({ ...nothing, hasNextPage: false, hasPreviousPage: true });
  });

  it('gives an empty list no cursors', async () => {
    const response = await app.graphql(
      `query ($o: ID!, $p: ID!) { project(organizationId: $o, id: $p) {
        instances { ...page } tasks { ...page } notifications { ...page } dashboards { ...page }
      } }`.replace(/(\w+) \{ \.\.\.page \}/g, '$1 { edges { cursor } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } }'),
      { o: app.demo.organization_id, p: app.demo.empty_project_id },
    );
    const empty = { edges: [], pageInfo: { hasNextPage: false, hasPreviousPage: false, startCursor: null, endCursor: null } };
    expect(response.json).toEqual({ data: { project: { instances: empty, tasks: empty, notifications: empty, dashboards: empty } } });
  });

  it('takes a cursor of a deleted item for its place in the list', async () => {
    const ends = whole.slice(0, 3);
    const [before, gone = '', after] = idsOf(ends);
    await app.app.database.prisma.task.delete({ where: { id: gone } });
    expect((await slice({ first: 1, after: ends[1]?.cursor })).ids).toEqual([after]);
    expect((await slice({ last: 1, before: ends[1]?.cursor })).ids).toEqual([before]);
  });

  it('takes a sequence beyond the log for a place before the newest', async () => {
    const after = Buffer.from('9999999999').toString('base64url');
    const { edges, pageInfo } = await read('Project.notifications(', { first: 1, after });
    expect([...idsOf(edges), pageInfo.hasNextPage]).toEqual([(await listNotificationIds())[0], true]);
  });
});

describe('the order and the filters', () => {
  it('instances are listed the oldest first, deleted ones only by their status', async () => {
    const rows = await app.app.database.prisma.instance.findMany({ where: { projectId: app.demo.project_id }, orderBy: { id: 'asc' } });
    expect(idsOf(await readAll('Project.instances('))).toEqual(rows.filter(({ status }) => status !== 'deleted').map(({ id }) => id));
    expect(idsOf(await readAll('Project.instances(filter: {status: active}, '))).toEqual(
      rows.filter(({ status }) => status === 'active').map(({ id }) => id),
    );
    const document = `query ($o: ID!, $p: ID!, $filter: InstanceFilter) {
      project(organizationId: $o, id: $p) { instances(first: 100, filter: $filter) { nodes { id } } }
    }`;
    const filtered = async (filter: object) => {
      const response = await app.graphql(document, { o: app.demo.organization_id, p: app.demo.project_id, filter });
      return response.json.data.project.instances.nodes.map(({ id }: { id: string }) => id);
    };
    const named = (wanted: string) => rows.filter(({ status }) => status === wanted).map(({ id }) => id);
    for (const status of ['deleted', 'stopped', 'error', 'provisioning']) expect(await filtered({ status }), status).toEqual(named(status));
    const both = rows.filter(({ status, throttled }) => status === 'error' && throttled).map(({ id }) => id);
    expect(await filtered({ status: 'error', attention: 'throttled' })).toEqual(both);
    expect(both).toHaveLength(1);
    expect(await filtered({ status: 'deleted', attention: 'throttled' })).toEqual([]);
    expect(await filtered({ status: null, attention: null })).toHaveLength(51);
  });

  it('notifications, tasks and keys are listed the newest first', async () => {
    expect(idsOf(await readAll('Project.notifications('))).toEqual(await listNotificationIds());
    for (const list of ['Project.tasks(', 'Viewer.apiKeys(']) {
      const ids = idsOf(await readAll(list));
      expect(ids, list).toEqual([...ids].sort().reverse());
    }
  });
});
