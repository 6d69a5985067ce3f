import { organization, project, users } from '../../demo/people.ts';
import type { TestApp } from './app.ts';

/** Adds more than a hundred rows to every list of the demo's main project and of its owner. */
export async function addRows({ app }: TestApp): Promise<void> {
  const run = (sql: string, ...values: unknown[]) => app.database.prisma.$executeRawUnsafe(sql, ...values);
  const numbers = 'FROM generate_series(1, 120) AS number';
  for (const status of ['active', 'stopped']) {
    await run(
      `INSERT INTO instances (project_id, name, status, plan, region, vcpu, ram_mb, storage_gb)
       SELECT $1::uuid, '${status}-' || number, '${status}', 'vps-m', 'eu-central-1', 1, 1024, 10 ${numbers}`,
      project.id,
    );
  }
  await run(
    `INSERT INTO backup_trials (instance_id, instance_name, status, source, cycle, monthly_price, cycle_price)
     SELECT id, name, 'expired', 'panel', 'monthly', 4, 4 FROM instances WHERE project_id = $1::uuid`,
    project.id,
  );
  await run(
    `INSERT INTO console_sessions (id, project_id, instance_id, instance_name, user_id, user_email, kind, owner, ended, end_reason)
     SELECT uuid_v7(), project_id, id, name, $2::uuid, $3, 'serial', uuid_v7(), now(), 'idle' FROM instances WHERE project_id = $1::uuid`,
    project.id,
    users.owner.id,
    users.owner.email,
  );
  await run(`INSERT INTO tasks (project_id, kind, status) SELECT $1::uuid, 'test', 'running' ${numbers}`, project.id);
  await run(
    `INSERT INTO notifications (project_id, kind, severity, title) SELECT $1::uuid, 'test', 'info', 'Title ' || number ${numbers}`,
    project.id,
  );
  await run(
    `INSERT INTO dashboards (project_id, created_by, name) SELECT $1::uuid, $2::uuid, 'Dashboard ' || number ${numbers}`,
    project.id,
    users.owner.id,
  );
  await run(
    `INSERT INTO api_keys (user_id, name, hint, secret_hash)
     SELECT $1::uuid, 'Key ' || number, 'hint', sha256(convert_to(number::text, 'UTF8')) ${numbers}`,
    users.owner.id,
  );
  await run(
    `WITH made AS (INSERT INTO organizations (name) SELECT 'Organization ' || number ${numbers} RETURNING id),
       joined AS (INSERT INTO organization_members (organization_id, user_id, role) SELECT id, $1::uuid, 'owner' FROM made)
     INSERT INTO projects (organization_id, name) SELECT id, 'Project ' || number FROM made, generate_series(1, 3) AS number`,
    users.owner.id,
  );
  await run(`INSERT INTO projects (organization_id, name) SELECT $1::uuid, 'Project ' || number ${numbers}`, organization.id);
}
