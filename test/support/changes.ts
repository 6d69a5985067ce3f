import type { Random } from './random.ts';

const statuses = ['provisioning', 'active', 'stopped', 'suspended', 'resizing', 'rebuilding', 'error', 'deleted'];
/** The tables behind `resources_count`, with the column of their size. */
export const resources = { volumes: 'size_gb', snapshots: 'size_gb', backups: 'size_gb', vpcs: null, ssh_keys: null } as const;
export const tables = Object.keys(resources) as Array<keyof typeof resources>;

/** The rows that the statements may change: those of these projects whose name (of tasks: whose kind) begins with `owner`. */
export interface Ground {
  readonly random: Random;
  readonly projects: readonly string[];
  readonly owner: string;
  /** The maximum number of rows that a statement changes. */
  readonly width: number;
  /**
   * Restricts the draw to statements that wait only for locks of counters and lock each counter once, so that none can deadlock:
   * an upsert locks them twice, and assigning an instance to a task waits for a statement that deletes the instance, which in
   * turn waits for the task.
   */
  readonly countsOnce?: boolean;
}

const list = <Item>(count: number, make: () => Item) => Array.from({ length: count }, make);

/** A condition that selects some of the owner's rows, in the order of a salted hash. */
function some(table: string, { owner, random, width }: Ground): string {
  const order = `ORDER BY md5(id::text || '${random.below(1e9)}') LIMIT ${1 + random.below(width)}`;
  return `id IN (SELECT id FROM ${table} WHERE ${table === 'tasks' ? 'kind' : 'name'} LIKE '${owner}-%' ${order})`;
}

/** An expression that selects a project by the hash of the row's id, so that one statement affects several projects. */
function anyProject({ projects, random }: Ground): string {
  const names = projects.map((id) => `'${id}'::uuid`).join(', ');
  return `(ARRAY[${names}])[1 + abs(hashtext(id::text || '${random.below(1e9)}')) % ${projects.length}]`;
}

function instanceValues({ random, projects, owner }: Ground): string {
  const hypervisor = random.chance(0.3) ? 'NULL' : "'hv'";
  const sizes = [random.below(64), random.below(500_000), random.below(10_000)].join(', ');
  return `('${random.uuid()}', '${random.pick(projects)}', '${owner}-i', '${random.pick(statuses)}', 'vps-s', 'eu', ${sizes}, ${hypervisor},
    ${random.chance(0.3)})`;
}

const instanceColumns = '(id, project_id, name, status, plan, region, vcpu, ram_mb, storage_gb, hypervisor, throttled)';

function changeInstances(ground: Ground): string {
  const { random, width, countsOnce } = ground;
  const where = some('instances', ground);
  // Half of the rows exist already, so that one statement both inserts and updates.
  const upsert = () => `INSERT INTO instances ${instanceColumns}
      SELECT CASE WHEN hashtext(id::text) % 2 = 0 THEN id ELSE md5(id::text || '${random.below(1e9)}')::uuid END,
        project_id, name, 'error', plan, region, 1, 2, 3, NULL, true FROM instances WHERE ${where}
      ON CONFLICT (id) DO UPDATE SET status = excluded.status, ram_mb = excluded.ram_mb, hypervisor = excluded.hypervisor`;
  return random.pick([
    () => `INSERT INTO instances ${instanceColumns} VALUES ${list(1 + random.below(width), () => instanceValues(ground)).join(', ')}`,
    () => `UPDATE instances SET status = '${random.pick(statuses)}' WHERE ${where}`,
    () => `UPDATE instances SET vcpu = ${random.below(64)}, ram_mb = ram_mb / 2, storage_gb = storage_gb + 1 WHERE ${where}`,
    () => `UPDATE instances SET hypervisor = CASE WHEN hypervisor IS NULL THEN 'hv' END WHERE ${where}`,
    () => `UPDATE instances SET throttled = NOT throttled, name = name || '-' WHERE ${where}`,
    () => `UPDATE instances SET project_id = ${anyProject(ground)} WHERE ${where}`,
    () => `UPDATE instances SET project_id = ${anyProject(ground)}, status = '${random.pick(statuses)}', vcpu = vcpu + 3 WHERE ${where}`,
    () => `DELETE FROM instances WHERE ${where}`,
    ...(countsOnce ? [] : [upsert]),
  ])();
}

function changeResources(ground: Ground): string {
  const { random, owner, projects, width } = ground;
  const table = random.pick(tables);
  const where = some(table, ground);
  const size = resources[table];
  const rest = { volumes: 'size_gb', snapshots: 'size_gb', backups: 'size_gb', vpcs: 'cidr', ssh_keys: 'public_key, fingerprint' }[table];
  const values = () => (size ? `${random.below(9_000)}` : rest.replace(/\w+/g, "'x'"));
  const row = () => `('${random.uuid()}', '${random.pick(projects)}', '${owner}-r', ${values()})`;
  return random.pick([
    () => `INSERT INTO ${table} (id, project_id, name, ${rest}) VALUES ${list(1 + random.below(width), row).join(', ')}`,
    () => `UPDATE ${table} SET ${size ? `${size} = ${size} / 3 + ${random.below(50)}` : "name = name || '-'"} WHERE ${where}`,
    () => `UPDATE ${table} SET project_id = ${anyProject(ground)} WHERE ${where}`,
    () => `DELETE FROM ${table} WHERE ${where}`,
  ])();
}

/** One random statement that changes instances and resources. */
export const change = (ground: Ground) => (ground.random.chance(0.6) ? changeInstances(ground) : changeResources(ground));

const taskStatuses = ['pending', 'running', 'succeeded', 'failed', 'cancelled'];
/** Ages on both sides of the overview's time windows, away from their boundaries by more than a test takes. */
const ages = ['0 hours', '3 hours', '20 hours', '23 hours 40 minutes', '30 hours'];

/** An expression that selects an instance of the row's project, by the hash of the row's id. */
const anyInstance = (row: string, salt: number) =>
  `(SELECT id FROM instances WHERE project_id = ${row}.project_id ORDER BY md5(id::text || ${row}.id || '${salt}') LIMIT 1)`;

/** One random statement that changes tasks and the instances they belong to. */
export function changeTasks(ground: Ground): string {
  const { random, projects, owner, width, countsOnce } = ground;
  const where = some('tasks', ground);
  const ago = () => `now() - interval '${random.pick(ages)}'`;
  const status = random.pick(taskStatuses);
  return random.pick([
    () => `INSERT INTO tasks (project_id, kind, status, created, finished)
      SELECT '${random.pick(projects)}', '${owner}-t', '${status}', ${ago()}, CASE WHEN '${status}' = 'failed' THEN ${ago()} END
      FROM generate_series(1, ${1 + random.below(width)})`,
    () =>
      `UPDATE tasks SET status = '${status}', finished = CASE WHEN '${status}' IN ('pending', 'running') THEN NULL ELSE ${ago()} END WHERE ${where}`,
    ...(countsOnce ? [] : [() => `UPDATE tasks SET instance_id = ${anyInstance('tasks', random.below(1e9))} WHERE ${where}`]),
    () => `UPDATE tasks SET created = ${ago()} WHERE ${where}`,
    () => `DELETE FROM tasks WHERE ${where}`,
  ])();
}

/** One random statement that changes rows that have counters. */
export const changeCounted = (ground: Ground) => (ground.random.chance(0.3) ? changeTasks(ground) : change(ground));

/** One random statement that changes other columns lists filter or order by: cancellation times, names and the instance of a row. */
export function changeLinks(ground: Ground): string {
  const { random } = ground;
  const stored = random.pick(['volumes', 'snapshots', 'backups']);
  const named = random.pick([...tables, 'instances']);
  return random.pick([
    () => `UPDATE ${stored} SET instance_id = ${anyInstance(stored, random.below(1e9))} WHERE ${some(stored, ground)}`,
    () => `UPDATE ${named} SET name = left(name || '${random.pick(['a', 'B', '~', 'é'])}', 255) WHERE ${some(named, ground)}`,
    () => `UPDATE instances SET cancellation_at = now() ${random.pick(['+', '-'])} interval '3 days' WHERE ${some('instances', ground)}`,
  ])();
}

/** One random statement that publishes notifications, marks some as read by a user, or prunes old ones. */
export function changeNotifications({ random, projects, width }: Ground, userId: string): string {
  const projectId = random.pick(projects);
  const some = `SELECT id FROM notifications WHERE project_id = '${projectId}' ORDER BY md5(id::text || '${random.below(1e9)}') LIMIT ${width}`;
  return random.pick([
    () => `INSERT INTO notifications (project_id, kind, severity, title, created)
      SELECT '${projectId}', 'counted', '${random.pick(['info', 'warning', 'critical'])}', 'Title', now() - interval '${random.pick(['0', '60'])} days'
      FROM generate_series(1, ${1 + random.below(width)})`,
    () => `SELECT marked::int FROM mark_notifications_read('${projectId}', '${userId}', ARRAY(${some}), NULL)`,
    () => `SELECT marked::int FROM mark_notifications_read('${projectId}', '${userId}', NULL,
      (SELECT last_sequence - ${random.below(20)} FROM notification_logs WHERE project_id = '${projectId}'))`,
    () => `SELECT prune_notifications(now() - interval '30 days', ${1 + random.below(width)})::int`,
  ])();
}
