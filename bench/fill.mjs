// The data of the measurements, inserted by set-based statements. At scale 1: 1,000 projects with 1,000,000 instances and 3,000,000
// tasks, of which the first project has 300,000 and 900,000; 1,000,000 notifications in the first project and 30 in every
// other; 10,000 dashboards. The second project is the small one: 300 instances, 10 notifications. The third has had 100,000
// tasks more within a day.
//
// Triggers and foreign keys are off, and indexes are created at the end: row by row it would take an hour. The rows that the
// triggers maintain are written the same way here, or (the counters) by the triggers themselves.

export const PROJECTS = 1_000;
export const ORGANIZATIONS = 100;
export const USERS = 1_000;

/** The large tables, whose indexes are created after their rows. */
const large = ['instances', 'tasks', 'backup_trials', 'notifications'];

/** Ids consist of a table's letter and an ascending number, so that every script can compute them. */
const letters = {
  organization: 'a0',
  user: 'a1',
  project: 'a2',
  instance: 'a3',
  task: 'a4',
  dashboard: 'a5',
  notification: 'a6',
  trial: 'a7',
};

/** @param {keyof typeof letters} kind @param {number} n */
export function idOf(kind, n) {
  const digits = n.toString(16).padStart(12, '0');
  return `0190${letters[kind]}00-0000-7000-8000-${digits}`;
}

const id = (/** @type {keyof typeof letters} */ kind, /** @type {string} */ n) =>
  `('0190${letters[kind]}00-0000-7000-8000-' || lpad(to_hex(${n}), 12, '0'))::uuid`;

/** @param {number} scale */
export function sizesOf(scale) {
  const of = (/** @type {number} */ n) => Math.max(1, Math.round(n * scale));
  const instances = of(1_000_000);
  const big = of(300_000);
  const small = of(300);
  return {
    instances,
    big,
    small,
    tasksEach: 3,
    tasksOfDay: of(100_000),
    notifications: of(1_000_000),
    notificationsElse: 30,
    notificationsSmall: 10,
  };
}

/** @param {number} scale @returns {Array<[string, string]>} what is done, and by which statement */
export function fillSteps(scale) {
  const size = sizesOf(scale);
  // The first instances are of the big project, the next of the small one, and the others go round.
  const projectOf = (/** @type {string} */ n) =>
    `CASE WHEN ${n} <= ${size.big} THEN 1 WHEN ${n} <= ${size.big + size.small} THEN 2 ELSE 3 + ${n} % ${PROJECTS - 2} END`;
  return [
    [
      'people',
      `INSERT INTO organizations (id, name) SELECT ${id('organization', 'n')}, 'Organization ' || n FROM generate_series(1, ${ORGANIZATIONS}) AS n;
       INSERT INTO users (id, email, name)
         SELECT ${id('user', 'n')}, 'user-' || n || '@bench.example', 'User ' || n FROM generate_series(1, ${USERS}) AS n;
       -- Ten projects to an organization; its ten users reach them all, and everybody reaches the first organization.
       INSERT INTO projects (id, organization_id, name)
         SELECT ${id('project', 'n')}, ${id('organization', `1 + (n - 1) / ${PROJECTS / ORGANIZATIONS}`)}, 'Project ' || n
         FROM generate_series(1, ${PROJECTS}) AS n;
       INSERT INTO notification_logs (project_id) SELECT id FROM projects;
       INSERT INTO organization_members (organization_id, user_id, role)
         SELECT ${id('organization', `1 + (n - 1) / ${USERS / ORGANIZATIONS}`)}, ${id('user', 'n')}, 'member'::organization_role FROM generate_series(1, ${USERS}) AS n
         UNION SELECT ${id('organization', '1')}, ${id('user', 'n')}, 'member'::organization_role FROM generate_series(1, ${USERS}) AS n;
       INSERT INTO project_members (project_id, user_id, role)
         SELECT project.id, member.user_id, 'admin'::project_role FROM projects AS project JOIN organization_members AS member USING (organization_id)`,
    ],
    [
      'billing',
      `INSERT INTO backup_options (plan, monthly_price, currency, trial_days)
         VALUES ('bench-s', 2, 'EUR', 14), ('bench-m', 4, 'EUR', 14), ('bench-l', 8, 'EUR', 30);
       INSERT INTO backup_option_prices (plan, cycle, price)
         SELECT plan, cycle, monthly_price * months FROM backup_options, (VALUES ('monthly', 1), ('yearly', 12)) AS sold (cycle, months);
       INSERT INTO billing_clients (id, organization_id, name)
         SELECT n, ${id('organization', 'n')}, 'Client ' || n FROM generate_series(1, ${ORGANIZATIONS}) AS n;
       INSERT INTO billing_services (id, client_id, cycle)
         SELECT n, 1 + n % ${ORGANIZATIONS}, (ARRAY['monthly', 'monthly', 'yearly', 'quarterly'])[1 + n % 4] FROM generate_series(1, 10000) AS n`,
    ],
    [
      'instances',
      `INSERT INTO instances (id, project_id, name, status, plan, region, vcpu, ram_mb, storage_gb, hypervisor, throttled, daily_backup,
           cancellation_at, billing_service_id, created, modified)
         SELECT ${id('instance', 'n')}, ${id('project', projectOf('n'))}, 'instance-' || n,
           (ARRAY['active', 'active', 'active', 'active', 'active', 'active', 'stopped', 'active', 'active', 'deleted'])[1 + n % 10]::instance_status,
           (ARRAY['bench-s', 'bench-m', 'bench-l', 'bench-gpu'])[1 + n % 4], (ARRAY['eu-central-1', 'eu-north-1', 'us-east-1'])[1 + n % 3],
           1 + n % 8, 1024 * (1 + n % 16), 20 * (1 + n % 10), CASE WHEN n % 500 <> 1 THEN 'hv-' || n % 400 END, n % 500 = 2, n % 20 = 3,
           CASE WHEN n % 1000 = 4 THEN now() + '10 days' END, CASE WHEN n % 50 <> 5 THEN 1 + n % 10000 END, now() - '400 days'::interval, now()
         FROM generate_series(1, ${size.instances}) AS n`,
    ],
    [
      'resources',
      ['volumes', 'snapshots', 'backups']
        .map(
          (table) => `INSERT INTO ${table} (project_id, name, size_gb)
             SELECT project.id, '${table}-' || n, 10 + n FROM projects AS project, generate_series(1, ${Math.max(1, Math.round(50 * scale))}) AS n;`,
        )
        .join('\n') +
        `INSERT INTO vpcs (project_id, name, cidr) SELECT id, 'vpc', '10.0.0.0/16' FROM projects;
         INSERT INTO ssh_keys (project_id, name, public_key, fingerprint) SELECT id, 'key', 'ssh-ed25519 AAAA', 'SHA256:AAAA' FROM projects`,
    ],
    [
      // Every instance had three tasks within a year. One in a hundred failed, one in ten thousand hangs.
      'tasks',
      `INSERT INTO tasks (id, project_id, instance_id, kind, status, created, started, finished)
         SELECT ${id('task', 'n')}, ${id('project', projectOf('instance'))}, ${id('instance', 'instance')},
           (ARRAY['start', 'stop', 'resize', 'rebuild'])[1 + n % 4],
           (CASE WHEN n % 10000 = 7 THEN 'running' WHEN n % 100 = 8 THEN 'failed' WHEN n % 100 = 9 THEN 'cancelled' ELSE 'succeeded' END)::task_status,
           moment, moment, CASE WHEN n % 10000 <> 7 THEN moment + '1 minute' END
         FROM generate_series(1, ${size.instances * size.tasksEach}) AS n
         CROSS JOIN LATERAL (
           SELECT 1 + (n - 1) / ${size.tasksEach} AS instance, now() - '365 days'::interval * ((n::bigint * 7919) % 1000003 / 1000003.0) AS moment) AS task`,
    ],
    [
      'tasks of a day',
      `INSERT INTO tasks (id, project_id, kind, status, created, started, finished)
         SELECT ${id('task', `${size.instances * size.tasksEach} + n`)}, ${id('project', '3')}, 'start',
           (CASE WHEN n % 1000 = 7 THEN 'running' WHEN n % 20 = 8 THEN 'failed' WHEN n % 100 = 9 THEN 'cancelled' ELSE 'succeeded' END)::task_status,
           moment, moment, CASE WHEN n % 1000 <> 7 THEN moment + '1 minute' END
         FROM generate_series(1, ${size.tasksOfDay}) AS n
         CROSS JOIN LATERAL (SELECT now() - '1 day'::interval * (n / ${size.tasksOfDay}.0) AS moment) AS task`,
    ],
    [
      'backup trials',
      `INSERT INTO backup_trials (id, instance_id, instance_name, legacy_service_id, status, source, cycle, monthly_price, cycle_price,
           started_at, ends_at, created)
         SELECT ${id('trial', 'n')}, ${id('instance', 'n * 4')}, 'instance-' || n * 4, n, CASE WHEN n % 10 = 0 THEN 'active' ELSE 'expired' END,
           'panel', 'monthly', 4, 4, now() - '40 days'::interval, now() - '26 days'::interval, now() - '40 days'::interval
         FROM generate_series(1, ${Math.floor(size.instances / 4)}) AS n`,
    ],
    [
      // The oldest instances of all but the first two projects have one volume, two or three: thirty or more of each project.
      'volumes of instances',
      `INSERT INTO volumes (project_id, instance_id, name, size_gb)
         SELECT project_id, id, 'volume-' || n, 10 * n
         FROM instances, LATERAL generate_series(1, 1 + ('x' || right(id::text, 4))::bit(16)::int % 3) AS n
         WHERE id > ${id('instance', String(size.big + size.small))} AND id <= ${id('instance', String(size.big + size.small + 30 * PROJECTS))}`,
    ],
    [
      // Fifty-five in every tenth project, so that there are lists of more than a page; five in the others.
      'dashboards',
      `INSERT INTO dashboards (id, project_id, created_by, name, description, widgets, is_public)
         SELECT ${id('dashboard', 'project * 100 + n')}, ${id('project', 'project')},
           ${id('user', `1 + 10 * ((project - 1) / 10) + n % 10`)}, 'Dashboard ' || n, 'Made for the bench',
           '[{"type":"chart","metric":"cpu","size":[4,2]},{"type":"table","columns":["name","status"],"rows":20}]', n % 2 = 0
         FROM generate_series(1, ${PROJECTS}) AS project,
           LATERAL generate_series(0, CASE WHEN project % 10 = 0 THEN 54 ELSE 4 END) AS n`,
    ],
    [
      // Numbered as the trigger would have.
      'notifications',
      `INSERT INTO notifications (id, project_id, sequence, kind, severity, title, body, resource_type, data, created)
         SELECT ${id('notification', 'project::bigint * 10000000 + n')}, ${id('project', 'project')}, n, 'instance.' || (ARRAY['started', 'stopped', 'suspended', 'failed'])[1 + n % 4],
           (ARRAY['info', 'info', 'warning', 'critical'])[1 + n % 4]::severity, 'Something happened to instance ' || n,
           'A sentence or two that say what it was, and what can be done.', 'instance', '{"attempt":1}',
           now() - '1 second'::interval * (${size.notifications} - n)
         FROM generate_series(1, ${PROJECTS}) AS project,
           LATERAL generate_series(1, CASE project WHEN 1 THEN ${size.notifications} WHEN 2 THEN ${size.notificationsSmall} ELSE ${size.notificationsElse} END) AS n;
       UPDATE notification_logs AS log SET last_sequence = added.last
         FROM (SELECT project_id, max(sequence) AS last FROM notifications GROUP BY project_id) AS added WHERE log.project_id = added.project_id`,
    ],
  ];
}

/**
 * Fills an empty, migrated database. The connection must be a superuser's: others cannot turn triggers off.
 * @param {import('pg').Client} client @param {{scale: number, say?: (line: string) => void}} options
 */
export async function fill(client, { scale, say = () => {} }) {
  await client.query(
    `SET session_replication_role = replica; SET synchronous_commit = off; SET maintenance_work_mem = '512MB'; SET work_mem = '256MB'`,
  );
  const { rows: counting } = await client.query(`
    SELECT tgrelid::regclass::text AS table FROM pg_trigger WHERE tgname = 'count_inserted' AND NOT tgisinternal`);
  for (const { table } of counting) await client.query(`ALTER TABLE ${table} ENABLE ALWAYS TRIGGER count_inserted`);
  const { rows: indexes } = await client.query(
    `SELECT indexrelid::regclass::text AS name, pg_get_indexdef(indexrelid) AS definition FROM pg_index
     WHERE indrelid = ANY ($1::regclass[]) AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)`,
    [large],
  );
  for (const { name } of indexes) await client.query(`DROP INDEX ${name}`);
  const steps = [...fillSteps(scale), ...indexes.map(({ name, definition }) => [name, definition])];
  for (const [name, sql] of steps) {
    const began = performance.now();
    await client.query(sql);
    const seconds = (performance.now() - began) / 1000;
    if (seconds > 1) say(`  ${name}: ${seconds.toFixed(1)} s`);
  }
  for (const { table } of counting) await client.query(`ALTER TABLE ${table} ENABLE TRIGGER count_inserted`);
  await client.query('RESET session_replication_role');
  await client.query('VACUUM (ANALYZE)');
}
