import { organization, project, users } from '../../demo/people.ts';
import type { TestApp } from './app.ts';
import { connectTo } from './sql.ts';

/**
 * Adds most rows to one place: 3,000 projects and 5,000 members to the demo's organization, most of them in its main project, which has
 * nearly all instances, tasks, notifications, single reads (of the member) and console sessions (of one instance); beside it are 2,000
 * organizations with 10,000 projects and a few of each in every one, of which the member is in 2,000. Statistics are up to date afterwards; counters are not.
 */
export async function loadSkewed({ app, databaseUrl, demo }: TestApp): Promise<void> {
  const client = databaseUrl ? await connectTo(databaseUrl) : null;
  const run = async (sql: string, ...values: unknown[]): Promise<void> => {
    await (client ? client.query(sql, values) : app.database.prisma.$executeRawUnsafe(sql, ...values));
  };
  // Triggers would number, count and check each row.
  await run("SET session_replication_role = 'replica'");
  await run(`INSERT INTO users (email, name) SELECT 'skew-' || n || '@many.example', 'User' FROM generate_series(1, 5000) AS n`);
  await run(`INSERT INTO organizations (name) SELECT 'Skew ' || n FROM generate_series(1, 2000) AS n`);
  await run(
    `INSERT INTO projects (organization_id, name)
     SELECT id, 'Project ' || n FROM organizations, generate_series(1, 5) AS n WHERE organizations.name LIKE 'Skew %'
     UNION ALL SELECT $1::uuid, 'Project ' || n FROM generate_series(1, 3000) AS n`,
    organization.id,
  );
  await run(
    `INSERT INTO organization_members (organization_id, user_id, role)
     SELECT $1::uuid, id, 'member'::organization_role FROM users WHERE email LIKE 'skew-%'
     UNION ALL SELECT id, $2::uuid, 'member' FROM organizations WHERE name LIKE 'Skew %'`,
    organization.id,
    users.member.id,
  );
  await run(
    `INSERT INTO project_members (project_id, user_id, role)
     SELECT $1::uuid, id, 'viewer'::project_role FROM users WHERE email LIKE 'skew-%'
     UNION ALL (SELECT project.id, $2::uuid, 'viewer' FROM projects AS project JOIN organizations ON organizations.id = organization_id
       WHERE organizations.name LIKE 'Skew %' AND project.name = 'Project 1')
     UNION ALL (SELECT id, $2::uuid, 'viewer' FROM projects WHERE organization_id = $3::uuid AND name LIKE 'Project 1__')`,
    project.id,
    users.member.id,
    organization.id,
  );
  await run(
    `INSERT INTO instances (project_id, name, status, plan, region, vcpu, ram_mb, storage_gb)
     SELECT $1::uuid, 'instance-' || n, 'active', 'vps-m', 'eu-central-1', 1, 1024, 10 FROM generate_series(1, 20000) AS n`,
    project.id,
  );
  await run(
    `INSERT INTO tasks (project_id, kind, status) SELECT $1::uuid, 'test', 'succeeded' FROM generate_series(1, 40000) AS n`,
    project.id,
  );
  await run(
    `INSERT INTO notifications (project_id, sequence, kind, severity, title)
     SELECT project_id, last_sequence + n, 'test', 'info', 'Title' FROM notification_logs, generate_series(1, 40000) AS n WHERE project_id = $1::uuid`,
    project.id,
  );
  await run('UPDATE notification_logs SET last_sequence = last_sequence + 40000 WHERE project_id = $1::uuid', project.id);
  await run(
    'INSERT INTO notification_states (project_id, user_id) VALUES ($1::uuid, $2::uuid) ON CONFLICT DO NOTHING',
    project.id,
    users.member.id,
  );
  // Every second one, so that no watermark takes their place.
  await run(
    `INSERT INTO notification_reads (project_id, user_id, sequence, version)
     SELECT project_id, $2::uuid, last_sequence - 2 * n, 1 FROM notification_logs, generate_series(1, 15000) AS n WHERE project_id = $1::uuid
     ON CONFLICT DO NOTHING`,
    project.id,
    users.member.id,
  );
  await run(
    `INSERT INTO console_sessions (id, project_id, instance_id, instance_name, user_id, user_email, kind, owner, ended, end_reason)
     SELECT uuid_v7(), $1::uuid, $2::uuid, 'x', id, 'x', 'serial', uuid_v7(), now(), 'idle' FROM users, generate_series(1, 5) AS n`,
    project.id,
    demo.instances.eligible,
  );
  // A few of each in every other project.
  await run(
    `INSERT INTO instances (project_id, name, status, plan, region, vcpu, ram_mb, storage_gb)
     SELECT id, 'instance', (ARRAY['active', 'stopped', 'suspended'])[1 + n % 3]::instance_status, 'vps-s', 'eu-west-1', 1, 1024, 10
     FROM projects, generate_series(1, 2) AS n WHERE projects.name LIKE 'Project %'`,
  );
  await run(
    `INSERT INTO tasks (project_id, kind, status)
     SELECT id, 'test', (ARRAY['succeeded', 'cancelled'])[n]::task_status FROM projects, generate_series(1, 2) AS n WHERE projects.name LIKE 'Project %'`,
  );
  await run(
    `INSERT INTO notifications (project_id, sequence, kind, severity, title)
     SELECT id, n, 'test', 'info', 'Title' FROM projects, generate_series(1, 2) AS n WHERE projects.name LIKE 'Project %'`,
  );
  await run(
    `INSERT INTO console_sessions (id, project_id, instance_id, instance_name, user_id, user_email, kind, owner, ended, end_reason)
     SELECT uuid_v7(), project_id, id, name, $1::uuid, 'x', 'serial', uuid_v7(), now(), 'idle' FROM instances WHERE name = 'instance'`,
    users.admin.id,
  );
  await run("SET session_replication_role = 'origin'");
  await run('ANALYZE');
  await client?.end();
}
