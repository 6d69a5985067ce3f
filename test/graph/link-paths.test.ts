import { getNamedType, getNullableType, isCompositeType, isInterfaceType, isListType, isObjectType, isRequiredArgument } from 'graphql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { users } from '../../demo/people.ts';
import { schema } from '../../src/schema.ts';
import { countStatements, isPostgres, startRestingApp, type TestApp } from '../support/app.ts';
import { pickCases } from '../support/cases.ts';
import { explain, recordStatements, type Statement } from '../support/plans.ts';

/** A field that leads from one object to others. */
interface Link {
  readonly name: string;
  readonly target: string;
  /** Writes the field with its page size and the selection for each object. */
  readonly text: (size: number, selection: string) => string;
}

/** The fields for the pages of v1, which lead to nothing that other fields do not lead to. */
const pages = /Page$/;

/** The links of a type that need no arguments, through lists and through objects without an id. */
function linksOf(typeName: string): Link[] {
  const type = schema.getType(typeName);
  if (!isObjectType(type) && !isInterfaceType(type)) return [];
  return Object.values(type.getFields()).flatMap((field) => {
    const target = getNamedType(field.type);
    if (!isCompositeType(target) || !('getFields' in target) || field.args.some(isRequiredArgument) || pages.test(field.name)) return [];
    const sized = field.args.some(({ name }) => name === 'first');
    const write = (size: number, selection: string) => `${field.name}${sized ? `(first: ${size})` : ''} ${selection}`;
    if (sized) {
      const nodes = target.getFields().nodes;
      const item = nodes && getNamedType(nodes.type).name;
      const text = (size: number, selection: string) => write(size, `{ totalCount nodes ${selection} }`);
      return item ? [{ name: field.name, target: item, text }] : [];
    }
    if (isListType(getNullableType(field.type))) return [];
    return [{ name: field.name, target: target.name, text: write }];
  });
}

const leaf = (typeName: string) => {
  const type = schema.getType(typeName);
  return (isObjectType(type) || isInterfaceType(type)) && 'id' in type.getFields() ? '{ __typename id }' : '{ __typename }';
};

/** All paths of up to three links from a type; the first link requests `size` objects. */
function listWays(from: string): Array<{ name: string; links: number; document: (size: number) => string }> {
  return linksOf(from).flatMap((first) => {
    const seconds = linksOf(first.target);
    const alone = { name: first.name, links: 1, document: (size: number) => first.text(size, leaf(first.target)) };
    const deeper = seconds.flatMap((second) => {
      const thirds = linksOf(second.target).map((third) => third.text(1, leaf(third.target)));
      const pair = {
        name: `${first.name}.${second.name}`,
        links: 2,
        document: (size: number) => first.text(size, `{ ${second.text(2, leaf(second.target))} }`),
      };
      const triples = linksOf(second.target).map((third, index) => ({
        name: `${first.name}.${second.name}.${third.name}`,
        links: 3,
        document: (size: number) => first.text(size, `{ ${second.text(2, `{ ${thirds[index]} }`)} }`),
      }));
      return [pair, ...triples];
    });
    return [alone, ...deeper];
  });
}

const MANY = isPostgres ? 60 : 30;

let app: TestApp;
let organizationId: string;
let projectId: string;
let recorded: Statement[];

beforeAll(async () => {
  app = await startRestingApp({ RATE_LIMIT_USER: '1000000', RATE_LIMIT_ANONYMOUS: '1000000' });
  recorded = recordStatements(app);
  const { database } = app.app;
  const run = (sql: string, ...values: unknown[]) => database.prisma.$executeRawUnsafe(sql, ...values);
  ({ id: organizationId } = await database.prisma.organization.create({ data: { name: 'Walked' } }));
  await run(
    `INSERT INTO organization_members (organization_id, user_id, role) VALUES ($1::uuid, $2::uuid, 'owner')`,
    organizationId,
    users.owner.id,
  );
  await run(
    `INSERT INTO projects (organization_id, name) SELECT $1::uuid, 'Project ' || n FROM generate_series(1, ${MANY}) AS n`,
    organizationId,
  );
  ({ id: projectId } = await database.prisma.project.findFirstOrThrow({ where: { organizationId }, orderBy: { id: 'asc' } }));
  // The first project has `MANY` rows of everything and the others one; every row has all possible links.
  const things = `projects AS project CROSS JOIN LATERAL generate_series(1, CASE WHEN id = '${projectId}' THEN ${MANY} ELSE 1 END) AS n
    WHERE organization_id = '${organizationId}'`;
  await run(
    `INSERT INTO instances (project_id, name, status, plan, region, vcpu, ram_mb, storage_gb)
     SELECT id, 'instance-' || n, 'active', 'vps-m', 'eu-central-1', 1, 1024, 10 FROM ${things}`,
  );
  const instances = `instances AS instance JOIN projects AS project ON project.id = instance.project_id AND project.organization_id = '${organizationId}'
    CROSS JOIN generate_series(1, 3) AS n`;
  for (const table of ['volumes', 'snapshots', 'backups'])
    await run(
      `INSERT INTO ${table} (project_id, instance_id, name, size_gb) SELECT instance.project_id, instance.id, '${table} ' || n, n FROM ${instances}`,
    );
  await run(
    `INSERT INTO tasks (project_id, instance_id, kind, status) SELECT instance.project_id, instance.id, 'test', 'running' FROM ${instances}`,
  );
  await run(
    `INSERT INTO backup_trials (instance_id, instance_name, status, source, cycle, monthly_price, cycle_price)
     SELECT instance.id, instance.name, 'expired', 'panel', 'monthly', 4, 4 FROM ${instances}`,
  );
  await run(
    `INSERT INTO console_sessions (id, project_id, instance_id, instance_name, user_id, user_email, kind, owner, ended, end_reason)
     SELECT uuid_v7(), instance.project_id, instance.id, instance.name, $1::uuid, 'x', 'serial', uuid_v7(), now(), 'idle' FROM ${instances}`,
    users.owner.id,
  );
  await run(
    `INSERT INTO notifications (project_id, kind, severity, title, resource_type, resource_id)
     SELECT instance.project_id, 'test', 'info', 'Title', 'instance', instance.id::text FROM ${instances}`,
  );
  await run(`INSERT INTO vpcs (project_id, name, cidr) SELECT id, 'Network ' || n, '10.0.0.0/24' FROM ${things}`);
  await run(
    `INSERT INTO ssh_keys (project_id, name, public_key, fingerprint) SELECT id, 'Key ' || n, 'ssh-ed25519 x', 'SHA256:x' FROM ${things}`,
  );
  await run(`INSERT INTO dashboards (project_id, created_by, name) SELECT id, $1::uuid, 'Dashboard ' || n FROM ${things}`, users.owner.id);
  await run(`INSERT INTO users (email, name) SELECT 'walker-' || n || '@walk.example', 'Walker' FROM generate_series(1, ${MANY}) AS n`);
  const walkers = `users WHERE email LIKE '%@walk.example'`;
  await run(
    `INSERT INTO organization_members (organization_id, user_id, role) SELECT $1::uuid, id, 'member' FROM ${walkers}`,
    organizationId,
  );
  await run(`INSERT INTO project_members (project_id, user_id, role) SELECT $1::uuid, id, 'viewer' FROM ${walkers}`, projectId);
  await run('ANALYZE');
});

afterAll(() => app.close());

async function count(document: string): Promise<{ statements: number; data: unknown }> {
  // The second request for a document takes one statement less, because its project is looked up together with the user.
  await app.graphql(document, {}, { as: null });
  const { response, statements } = await countStatements(app, () => app.graphql(document));
  expect(response.json.errors, document).toBeUndefined();
  return { statements, data: response.json.data };
}

const roots = {
  Project: (selection: string) => `{ project(id: "${projectId}") { ${selection} } }`,
  Organization: (selection: string) => `{ organization(id: "${organizationId}") { ${selection} } }`,
};

describe.each(Object.keys(roots) as Array<keyof typeof roots>)('from %s', (root) => {
  const ways = listWays(root);

  // Paths of three links extend paths of two, so only a selection of them is run.
  const [short, long] = [ways.filter(({ links }) => links < 3), ways.filter(({ links }) => links === 3)];

  test.each([...short, ...pickCases(long)])('$name takes as many statements for many things as for two', async ({ document }) => {
    const few = await count(roots[root](document(2)));
    const many = await count(roots[root](document(MANY)));
    expect(many.statements).toBe(few.statements);
    expect(JSON.stringify(many.data).length).toBeGreaterThanOrEqual(JSON.stringify(few.data).length);
  });

  test('the paths of links are those of the schema', () => {
    expect(ways.length).toBeGreaterThan(root === 'Project' ? 90 : 20);
    const names = ways.map(({ name }) => name);
    const known = {
      Project: [
        'instances.tasks.instance',
        'notifications.resource',
        'dashboards.createdBy',
        'consoleSessions.user',
        'volumes.instance.snapshots',
        'tasks.project.organization',
        'notifications.project.vpcs',
      ],
      Organization: ['projects.instances.tasks', 'members.user', 'projects.members.user', 'projects.notifications.resource'],
    };
    for (const name of known[root]) expect(names).toContain(name);
  });
});

test('a link reads no more rows of a parent than it returns, however many there are', async () => {
  const { database } = app.app;
  const instance = await database.prisma.instance.findFirstOrThrow({ where: { projectId }, orderBy: { id: 'asc' } });
  const run = (sql: string) => database.prisma.$executeRawUnsafe(sql, projectId, instance.id);
  const count = isPostgres ? 5_000 : 2_500;
  for (const table of ['volumes', 'snapshots', 'backups'])
    await run(
      `INSERT INTO ${table} (project_id, instance_id, name, size_gb) SELECT $1::uuid, $2::uuid, 'one of many', 1 FROM generate_series(1, ${count})`,
    );
  await run(
    `INSERT INTO tasks (project_id, instance_id, kind, status) SELECT $1::uuid, $2::uuid, 'test', 'running' FROM generate_series(1, ${count})`,
  );
  await database.prisma.$executeRawUnsafe('ANALYZE');
  const lists = ['tasks', 'volumes', 'snapshots', 'backups'];
  const ordered = ['by_created: tasks(first: 3, orderBy: { field: created })', 'by_name: volumes(last: 3, orderBy: { field: name })'];
  const page = [...lists.flatMap((name) => [`${name}(first: 3)`, `last_${name}: ${name}(last: 3)`]), ...ordered]
    .map((list) => `${list} { nodes { id } }`)
    .join(' ');
  recorded.length = 0;
  const { json } = await app.graphql(`{ project(id: "${projectId}") { ${page} instances(first: 20) { nodes { ${page} } } } }`);
  expect(json.errors).toBeUndefined();
  expect(json.data.project.instances.nodes).toHaveLength(20);
  const read: string[] = [];
  for (const statement of recorded.slice()) {
    const { readings } = await explain(app, statement);
    // Three rows for each of 20 parents, and one more that shows whether a next page exists.
    for (const { table, rows } of readings) if (lists.includes(table) && rows > 20 * 4) read.push(`${rows} of ${table}: ${statement.sql}`);
  }
  expect(recorded.length).toBeGreaterThan(20);
  expect(read).toEqual([]);
});

test('five nested lists are answered, and a deeper document is refused', async () => {
  const list = (name: string, inner: string) => `${name}(first: 1) { edges { node { ${inner} } } }`;
  const lists = (inner: string) =>
    list('organizations', list('projects', list('instances', list('tasks', `instance { ${list('volumes', inner)} }`))));
  const deepest = await app.graphql(`{ viewer { ${lists('instance { name }')} } }`);
  expect(deepest.json.errors).toBeUndefined();
  const { json } = await app.graphql(`{ viewer { ${lists('instance { tasks { nodes { instance { name } } } }')} } }`);
  expect(json.errors).toEqual([{ message: 'The document is too large: depth 22, at most 20.', extensions: { code: 'invalid_request' } }]);
});
