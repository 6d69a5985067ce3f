import { afterAll, beforeAll, expect, it } from 'vitest';
import { startRestingApp, type TestApp } from '../support/app.ts';
import { makeProject } from '../support/fixtures.ts';
import { explain, recordStatements } from '../support/plans.ts';
import { openConnection } from '../support/sql.ts';

const lists = ['tasks', 'volumes', 'snapshots', 'backups'];

let app: TestApp;
beforeAll(async () => {
  app = await startRestingApp();
  const { project_id: projectId, instances } = app.demo;
  const connection = await openConnection(app);
  for (const table of lists) {
    const [columns, values] =
      table === 'tasks'
        ? [
            'kind, status, created, finished',
            `'made', (ARRAY['failed', 'running'])[1 + number % 2]::task_status, now() - interval '2 h', now()`,
          ]
        : ['name, size_gb', `'made', 1`];
    await connection.run(
      `INSERT INTO ${table} (project_id, instance_id, ${columns}) SELECT $1::uuid, $2::uuid, ${values} FROM generate_series(1, 12000) AS number`,
      [projectId, instances.eligible],
    );
    await connection.run(`VACUUM ANALYZE ${table}`, []);
  }
  await connection.run(
    `INSERT INTO instances (project_id, name, status, plan, region, vcpu, ram_mb, storage_gb)
     SELECT $1::uuid, 'made', 'active', 'vps-m', 'eu-central-1', 1, 1024, 10 FROM generate_series(1, 12000)`,
    [projectId],
  );
  await connection.run('VACUUM ANALYZE instances', []);
  await connection.run(
    `INSERT INTO console_sessions (id, project_id, instance_id, instance_name, user_id, user_email, kind, ended, end_reason, owner)
     SELECT uuid_v7(), $1::uuid, $2::uuid, 'made', $3::uuid, 'x', 'serial', now(), 'ended', uuid_v7() FROM generate_series(1, 12000)`,
    [projectId, instances.eligible, app.demo.users.owner.id],
  );
  await connection.run('VACUUM ANALYZE console_sessions', []);
  for (const [table, columns, values] of [
    ['vpcs', 'name, cidr', `'made', '10.0.0.0/24'`],
    ['ssh_keys', 'name, fingerprint, public_key', `'made', number::text, 'ssh-ed25519 AAAA'`],
    ['dashboards', 'created_by, name, widgets', `'${app.demo.users.owner.id}', 'made', '{}'`],
  ]) {
    await connection.run(
      `INSERT INTO ${table} (project_id, ${columns}) SELECT $1::uuid, ${values} FROM generate_series(1, 12000) AS number`,
      [projectId],
    );
    await connection.run(`VACUUM ANALYZE ${table}`, []);
  }
  await connection.run(`INSERT INTO projects (organization_id, name) SELECT $1::uuid, 'made' FROM generate_series(1, 12000)`, [
    app.demo.organization_id,
  ]);
  await connection.run('VACUUM ANALYZE projects', []);
  await connection.close();
});
afterAll(() => app.close());

/** The most rows of a table that a statement for a query reads. */
async function countMostRead(table: string, query: string, as: 'owner' | 'member' = 'owner'): Promise<number> {
  const recorded = recordStatements(app);
  const { json } = await app.graphql(query, {}, { as: { bearer: app.demo.users[as].api_key } });
  expect(json.errors).toBeUndefined();
  const read: number[] = [];
  for (const statement of recorded.slice()) {
    const { withAnyValues } = await explain(app, statement);
    read.push(withAnyValues.find((reading) => reading.table === table)?.rows ?? 0);
  }
  return Math.max(...read);
}

it.each([...lists, 'consoleSessions'])('the %s of one instance are not read for the other instances', async (list) => {
  const { organization_id: organizationId, project_id: projectId } = app.demo;
  const query = `{ project(organizationId: "${organizationId}", id: "${projectId}") { instances(first: 40) { nodes { ${list}(first: 1) { nodes { id } } } } } }`;
  const read = await countMostRead(list === 'consoleSessions' ? 'console_sessions' : list, query);
  expect(read).toBeGreaterThan(0);
  expect(read).toBeLessThan(300);
});

it('the consoleOccupied of an instance is read without its ended sessions', async () => {
  const { organization_id: organizationId, project_id: projectId } = app.demo;
  const query = `{ project(organizationId: "${organizationId}", id: "${projectId}") { instances(first: 40) { nodes { consoleOccupied } } } }`;
  expect(await countMostRead('console_sessions', query)).toBeLessThan(300);
});

it.each<[list: string, filter: string]>([
  ['instances', ''],
  ['instances', 'status: active'],
  ['instances', 'attention: without_hypervisor'],
  ...[...lists, 'consoleSessions', 'vpcs', 'sshKeys', 'dashboards'].map((list): [string, string] => [list, '']),
  ['tasks', 'status: failed'],
  ['tasks', 'attention: failed_24h'],
  ['tasks', 'attention: stuck'],
])('the %s of one project are not read for the other projects, with the filter { %s }', async (list, filter) => {
  const id = await makeProject(app);
  const asked = filter && `(filter: { ${filter} })`;
  const query = `{ project(organizationId: "${app.demo.organization_id}", id: "${id}") { ${list}${asked} { nodes { id } } } }`;
  expect(
    await countMostRead(
      list.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      query,
    ),
  ).toBeLessThan(300);
});

it('the projects of one organization are not read for a member of a few of them, nor for another organization', async () => {
  const projects = (id: string) => `{ organization(id: "${id}") { projects { nodes { id } } } }`;
  expect(await countMostRead('projects', projects(app.demo.organization_id), 'member')).toBeLessThan(300);
  const { id } = await app.app.database.prisma.organization.create({ data: { name: 'Small' } });
  await app.app.database.prisma.organizationMember.create({ data: { organizationId: id, userId: app.demo.users.owner.id, role: 'owner' } });
  await app.app.database.prisma.project.create({ data: { name: 'Only', organizationId: id } });
  expect(await countMostRead('projects', projects(id))).toBeLessThan(300);
});
