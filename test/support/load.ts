import { emptyProject, organization, project, users } from '../../demo/people.ts';
import type { TestApp } from './app.ts';
import { execute } from './sql.ts';

/**
 * Fills the database like one in use: 200 projects with 20,000 instances, 40,000 tasks, 40,000 trials and 20,000
 * notifications, of which the demo's main project has more than the others. Statistics are up to date afterwards.
 */
export async function loadMany({ app, databaseUrl }: TestApp): Promise<void> {
  // A statement of many rows may take longer than the pool allows.
  const run = (sql: string, ...values: unknown[]): Promise<unknown> =>
    databaseUrl ? execute(databaseUrl, sql, values) : app.database.prisma.$executeRawUnsafe(sql, ...values);
  await run(
    `INSERT INTO projects (organization_id, name) SELECT $1::uuid, 'Project ' || n FROM generate_series(1, 199) AS n`,
    organization.id,
  );
  // One row per item of a project: `usual` items for each project, and three times as many for the main one.
  const items = (usual: number) =>
    `(SELECT id AS project_id FROM projects WHERE organization_id = '${organization.id}' AND id <> '${emptyProject.id}') AS project
     CROSS JOIN LATERAL generate_series(1, CASE WHEN project_id = '${project.id}' THEN ${usual * 3} ELSE ${usual} END) AS n`;
  await run(
    `INSERT INTO instances (project_id, name, status, plan, region, vcpu, ram_mb, storage_gb, hypervisor, throttled, cancellation_at)
     SELECT project_id, 'instance-' || n, (ARRAY['active', 'active', 'stopped', 'suspended', 'deleted'])[1 + n % 5]::instance_status,
       'vps-m', 'eu-central-1', 1, 1024, 10, CASE WHEN n % 20 <> 1 THEN 'hv' END, n % 20 = 2, CASE WHEN n % 20 = 3 THEN now() + '3 days' END
     FROM ${items(100)}`,
  );
  await run(
    `INSERT INTO tasks (project_id, kind, status, created, finished)
     SELECT project_id, 'test',
       (CASE WHEN n < 6 THEN 'failed' WHEN n < 11 THEN 'pending' WHEN n % 50 = 0 THEN 'cancelled' ELSE 'succeeded' END)::task_status,
       now() - n * interval '3 hours', now() - n * interval '3 hours'
     FROM ${items(200)}`,
  );
  await run(
    `INSERT INTO notifications (project_id, kind, severity, title)
     SELECT project_id, 'kind-' || n % 5, (ARRAY['info', 'warning', 'critical'])[1 + n % 3]::severity, 'Title' FROM ${items(100)}`,
  );
  await run(
    `INSERT INTO dashboards (project_id, created_by, name, is_public)
     SELECT project_id, $1::uuid, 'Dashboard', n % 2 = 0 FROM ${items(20)}`,
    users.owner.id,
  );
  await run(
    `INSERT INTO backup_trials (instance_id, instance_name, status, source, cycle, monthly_price, cycle_price, created)
     SELECT id, name, 'expired', 'panel', 'monthly', 4, 4, now() - n * interval '30 days' FROM instances, generate_series(1, 2) AS n`,
  );
  await run(
    `INSERT INTO console_sessions (id, project_id, instance_id, instance_name, user_id, user_email, kind, owner, ended, end_reason)
     SELECT uuid_v7(), project_id, id, name, CASE WHEN n % 2 = 0 THEN $1::uuid ELSE $2::uuid END, 'x', 'serial', uuid_v7(), now(), 'idle'
     FROM instances, generate_series(1, 2) AS n`,
    users.owner.id,
    users.member.id,
  );
  await loadPeople(run);
  await run('ANALYZE');
}

/** Adds 200 viewers of the main project, each with API keys, tickets and read notifications. */
async function loadPeople(run: (sql: string, ...values: unknown[]) => Promise<unknown>): Promise<void> {
  await run(`INSERT INTO users (email, name) SELECT 'user-' || n || '@many.example', 'User' FROM generate_series(1, 200) AS n`);
  const people = `(SELECT id AS user_id FROM users WHERE email LIKE '%@many.example') AS person`;
  await run(
    `INSERT INTO organization_members (organization_id, user_id, role) SELECT $1::uuid, user_id, 'member' FROM ${people}`,
    organization.id,
  );
  await run(`INSERT INTO project_members (project_id, user_id, role) SELECT $1::uuid, user_id, 'viewer' FROM ${people}`, project.id);
  await run(
    `INSERT INTO api_keys (user_id, name, hint, secret_hash)
     SELECT user_id, 'Key', 'hint', sha256(convert_to(user_id::text || n, 'UTF8')) FROM ${people}, generate_series(1, 50) AS n`,
  );
  await run(
    `INSERT INTO websocket_tickets (ticket_hash, target, project_id, user_id, created, expires, session_expires)
     SELECT sha256(convert_to(user_id::text || n, 'UTF8')), 'notifications', $1::uuid, user_id, now(), now() + '30 s', now() + '1 day'
     FROM ${people}, generate_series(1, 50) AS n`,
    project.id,
  );
  await run(
    `INSERT INTO kept_answers (user_id, key_hash, request_hash, content)
     SELECT user_id, sha256(convert_to(n::text, 'UTF8')), '', '' FROM ${people}, generate_series(1, 50) AS n`,
  );
  await run('ANALYZE');
  await run(
    `SELECT mark_notifications_read($1::uuid, user_id, (
       SELECT array_agg(id) FROM notifications WHERE project_id = $1::uuid AND sequence % 10 = 5), NULL) FROM ${people}`,
    project.id,
  );
}
