// The statements of the hand-written peers. Each is prepared once per connection, by its name.

export const user = { name: 'user', text: 'SELECT id, disabled_at FROM users WHERE id = $1' };

export const access = {
  name: 'access',
  text: `SELECT member.role AS organization_role, project_member.role AS project_role, project.organization_id, organization.currency
    FROM projects AS project
    JOIN organizations AS organization ON organization.id = project.organization_id
    JOIN organization_members AS member ON member.organization_id = project.organization_id AND member.user_id = $3
    LEFT JOIN project_members AS project_member ON project_member.project_id = project.id AND project_member.user_id = $3
    WHERE project.id = $2 AND project.organization_id = $1`,
};

export const insertTicket = {
  name: 'insert ticket',
  text: `INSERT INTO websocket_tickets (ticket_hash, target, project_id, user_id, instance_id, session_id, created, expires, session_expires)
    VALUES ($1, $2, $3, $4, $5, $6, now(), now() + interval '30 seconds', $7)`,
};

export const instance = { name: 'instance', text: 'SELECT id FROM instances WHERE id = $1 AND project_id = $2' };

export const dashboard = {
  name: 'dashboard',
  text: `SELECT id, created_by FROM dashboards WHERE id = $1 AND project_id = $2 AND ($3 OR is_public OR created_by = $4)`,
};

export const clearDefault = {
  name: 'clear default',
  text: 'UPDATE dashboards SET is_default = false, version = version + 1, modified = now() WHERE project_id = $1 AND is_default AND id <> $2',
};

export const updateDashboard = {
  name: 'update dashboard',
  text: `UPDATE dashboards SET name = $3, description = $4, widgets = $5, is_default = $6, is_public = $7, version = version + 1, modified = now()
    WHERE id = $1 AND project_id = $2 AND ($8::int IS NULL OR version = $8)
    RETURNING id, name, created_by, created, modified, description, project_id AS project, widgets, is_default, is_public, version`,
};

/** The trial facts of one instance or of many. */
export const trialFacts = {
  name: 'trial facts',
  text: `SELECT instance.id, instance.status, instance.daily_backup,
      EXISTS (SELECT FROM backup_trials WHERE instance_id = instance.id AND status IN ('pending', 'active')) AS has_open_trial,
      service.id IS NOT NULL AS has_service, service.client_id IS NOT NULL AS has_client,
      option.plan IS NOT NULL AS has_option, price.plan IS NOT NULL AS is_cycle_sold,
      coalesce(option.monthly_price, 0)::numeric(12, 2)::text AS monthly_price, option.currency, coalesce(option.trial_days, 0) AS trial_days
    FROM instances AS instance
    LEFT JOIN billing_services AS service ON service.id = instance.billing_service_id
    LEFT JOIN backup_options AS option ON option.plan = instance.plan
    LEFT JOIN backup_option_prices AS price ON price.plan = option.plan AND price.cycle = service.cycle
    WHERE instance.id = ANY ($1) AND instance.project_id = $2`,
};

export const latestTrials = {
  name: 'latest trials',
  text: `SELECT trial.id, trial.instance_id AS instance, trial.instance_name, trial.legacy_service_id, trial.legacy_order_id, trial.legacy_invoice_id,
      trial.status, trial.source, trial.trial, trial.cycle, trial.monthly_price, trial.cycle_price, trial.credited, trial.started_at,
      trial.ends_at, trial.reminded_at, trial.resolved_at, trial.failure_reason, trial.created
    FROM unnest($1::uuid[]) AS wanted (id)
    CROSS JOIN LATERAL (SELECT * FROM backup_trials WHERE instance_id = wanted.id ORDER BY created DESC, id DESC LIMIT 1) AS trial`,
};

/** The figures of the overview, as one JSON value with v1's field names. `$1` is the project. */
const overviewFigures = `
  WITH by_status AS (
    SELECT status, sum(instances) AS instances, sum(vcpu) AS vcpu, sum(ram_mb) AS ram_mb, sum(storage_gb) AS storage_gb,
      sum(without_hypervisor) AS without_hypervisor, sum(throttled) AS throttled
    FROM instance_counters WHERE project_id = $1 AND status <> 'deleted' GROUP BY status HAVING sum(instances) <> 0
  ), instances_all AS (
    SELECT coalesce(json_agg(json_build_object('status', status, 'count', instances) ORDER BY status::text COLLATE "C"), '[]') AS list,
      coalesce(sum(instances), 0) AS total, coalesce(sum(vcpu), 0) AS vcpu, coalesce(sum(ram_mb), 0) AS ram_mb,
      coalesce(sum(storage_gb), 0) AS storage_gb, coalesce(sum(without_hypervisor), 0) AS without_hypervisor,
      coalesce(sum(throttled), 0) AS throttled, coalesce(sum(instances) FILTER (WHERE status = 'suspended'), 0) AS suspended
    FROM by_status
  ), resources_all AS (
    SELECT coalesce(sum(resources) FILTER (WHERE kind = 'volumes'), 0) AS volumes, coalesce(sum(resources) FILTER (WHERE kind = 'vpcs'), 0) AS vpcs,
      coalesce(sum(resources) FILTER (WHERE kind = 'ssh_keys'), 0) AS ssh_keys, coalesce(sum(resources) FILTER (WHERE kind = 'snapshots'), 0) AS snapshots,
      coalesce(sum(resources) FILTER (WHERE kind = 'backups'), 0) AS backups, coalesce(sum(storage_gb) FILTER (WHERE kind = 'volumes'), 0) AS storage_gb
    FROM resource_counters WHERE project_id = $1
  ), recent AS (
    SELECT coalesce(json_agg(json_build_object('status', status, 'count', tasks) ORDER BY status::text COLLATE "C"), '[]') AS list,
      coalesce(sum(tasks), 0) AS total
    FROM (
      SELECT status, count(*) AS tasks FROM tasks WHERE project_id = $1 AND created >= now() - interval '24 hours' GROUP BY status
    ) AS tasks_recent
  )
  SELECT json_build_array(json_build_object(
    'attention', json_build_object(
      'instances_without_hypervisor', without_hypervisor, 'instances_suspended', suspended, 'instances_throttled', throttled,
      'cancellations_scheduled', (SELECT count(*) FROM instances WHERE project_id = $1 AND cancellation_at > now() AND status <> 'deleted'),
      'tasks_failed_24h', (
        SELECT count(*) FROM tasks WHERE project_id = $1 AND status = 'failed' AND finished >= now() - interval '24 hours'),
      'tasks_stuck', (
        SELECT count(*) FROM tasks WHERE project_id = $1 AND status IN ('pending', 'running') AND created < now() - interval '1 hour')),
    'instances_by_status', instances_all.list, 'instances_total', instances_all.total,
    'resources_allocated', json_build_object('vcpu', vcpu, 'ram_mb', ram_mb, 'ram_gb', floor(ram_mb / 1024), 'storage_gb', instances_all.storage_gb),
    'resources_count', json_build_object('volumes', volumes, 'vpcs', vpcs, 'ssh_keys', ssh_keys, 'snapshots', snapshots, 'backups', backups,
      'storage_gb', resources_all.storage_gb),
    'tasks_by_status', recent.list, 'tasks_recent_count', recent.total)) AS response
  FROM instances_all, resources_all, recent`;

export const overview = { name: 'overview', text: overviewFigures };

export const markRead = { name: 'mark read', text: 'SELECT marked, unread_count FROM mark_notifications_read($1, $2, $3, NULL)' };

export const notifications = {
  name: 'notifications',
  text: `SELECT notification.id, notification.sequence, notification.kind, notification.severity, notification.title, notification.body,
      notification.resource_type AS "resourceType", notification.resource_id AS "resourceId", notification.data, notification.created,
      notification.sequence <= coalesce(state.read_through, 0) OR single.sequence IS NOT NULL AS read
    FROM notifications AS notification
    LEFT JOIN notification_states AS state ON state.project_id = notification.project_id AND state.user_id = $2
    LEFT JOIN notification_reads AS single
      ON single.project_id = notification.project_id AND single.user_id = $2 AND single.sequence = notification.sequence
    WHERE notification.project_id = $1 AND ($3::bigint IS NULL OR notification.sequence < $3)
    ORDER BY notification.sequence DESC LIMIT $4`,
};

export const dashboards = {
  name: 'dashboards',
  text: `SELECT id, name, description, widgets, is_default AS "isDefault", is_public AS "isPublic", version, created, modified, created_by AS "createdById"
    FROM dashboards WHERE project_id = $1 AND ($2 OR is_public OR created_by = $3) AND ($4::uuid IS NULL OR id > $4) ORDER BY id LIMIT $5`,
};

export const instances = {
  name: 'instances',
  text: `SELECT id, project_id AS "projectId", name, status, plan, region, vcpu, ram_mb AS "ramMb", storage_gb AS "storageGb", hypervisor, created
    FROM instances WHERE project_id = $1 AND status <> 'deleted' AND ($2::uuid IS NULL OR id > $2) ORDER BY id LIMIT $3`,
};

// ── The floor: one statement per request, which checks the access and builds the response ───────────────────────────

/** The user and their role: one row, or none. */
const allowed = `
  allowed AS MATERIALIZED (
    SELECT users.id AS user_id, project.id AS project_id, project.organization_id, organization.currency,
      CASE WHEN member.role <> 'member' THEN 'admin' ELSE project_member.role END AS role
    FROM users
    JOIN projects AS project ON project.id = $2 AND project.organization_id = $1
    JOIN organizations AS organization ON organization.id = project.organization_id
    JOIN organization_members AS member ON member.organization_id = project.organization_id AND member.user_id = users.id
    LEFT JOIN project_members AS project_member ON project_member.project_id = project.id AND project_member.user_id = users.id
    WHERE users.id = $3 AND users.disabled_at IS NULL AND (member.role <> 'member' OR project_member.role IS NOT NULL)
  )`;

const iso = (/** @type {string} */ column) => `to_char(${column}, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

/** The columns of a dashboard after what the floor adds to each statement: organization, project and user are $1 to $3. */
export const floor = {
  ticket: {
    name: 'ticket',
    text: `WITH ${allowed}
      INSERT INTO websocket_tickets (ticket_hash, target, project_id, user_id, instance_id, session_id, created, expires, session_expires)
      SELECT $4, $5, project_id, user_id, $6, $7, now(), now() + interval '30 seconds', $8 FROM allowed
      WHERE $6::uuid IS NULL OR EXISTS (SELECT FROM instances WHERE id = $6 AND project_id = allowed.project_id)
      RETURNING true AS response`,
  },
  dashboard: {
    name: 'dashboard',
    text: `WITH ${allowed}
      UPDATE dashboards AS dashboard SET name = $5, description = $6, widgets = $7, is_default = $8, is_public = $9,
        version = version + 1, modified = now()
      FROM allowed
      WHERE dashboard.id = $4 AND dashboard.project_id = allowed.project_id
        AND (allowed.role = 'admin' OR allowed.role = 'member' AND dashboard.created_by = allowed.user_id)
        AND ($10::int IS NULL OR dashboard.version = $10)
      RETURNING dashboard.version, json_build_object('id', dashboard.id, 'name', name, 'organization', allowed.organization_id,
        'created_by', created_by, 'created', ${iso('created')}, 'modified', ${iso('modified')}, 'description', description,
        'project', dashboard.project_id, 'widgets', widgets, 'is_default', is_default, 'is_public', is_public)::text AS response`,
  },
  /** The only second statement: a new default dashboard replaces the old one. */
  clearDefault: {
    name: 'clear default',
    text: `WITH ${allowed}
      UPDATE dashboards AS old SET is_default = false, version = old.version + 1, modified = now()
      FROM allowed JOIN dashboards AS dashboard ON dashboard.id = $4 AND dashboard.project_id = allowed.project_id
      WHERE old.project_id = allowed.project_id AND old.is_default AND old.id <> $4
        AND (allowed.role = 'admin' OR allowed.role = 'member' AND dashboard.created_by = allowed.user_id)`,
  },
  backupTrial: {
    name: 'backup trial',
    text: `WITH ${allowed}
      SELECT json_build_object('trial', trial.body, 'eligible', reason IS NULL, 'reason', coalesce(reason, ''),
        'monthly_price', coalesce(option.monthly_price, 0)::numeric(12, 2)::text, 'currency', coalesce(option.currency, allowed.currency),
        'trial_days', coalesce(option.trial_days, 0))::text AS response
      FROM allowed
      JOIN instances AS instance ON instance.id = $4 AND instance.project_id = allowed.project_id
      LEFT JOIN billing_services AS service ON service.id = instance.billing_service_id
      LEFT JOIN backup_options AS option ON option.plan = instance.plan
      LEFT JOIN backup_option_prices AS price ON price.plan = option.plan AND price.cycle = service.cycle
      LEFT JOIN LATERAL (
        SELECT json_build_object('id', id, 'instance', instance_id, 'instance_name', instance_name, 'legacy_service_id', legacy_service_id,
          'legacy_order_id', legacy_order_id, 'legacy_invoice_id', legacy_invoice_id, 'status', status, 'source', source, 'trial', trial,
          'cycle', cycle, 'monthly_price', monthly_price::text, 'cycle_price', cycle_price::text, 'credited', credited::text,
          'started_at', ${iso('started_at')}, 'ends_at', ${iso('ends_at')}, 'reminded_at', ${iso('reminded_at')},
          'resolved_at', ${iso('resolved_at')}, 'failure_reason', failure_reason, 'created', ${iso('created')}) AS body
        FROM backup_trials WHERE instance_id = instance.id ORDER BY created DESC, id DESC LIMIT 1
      ) AS trial ON true
      CROSS JOIN LATERAL (
        SELECT EXISTS (SELECT FROM backup_trials WHERE instance_id = instance.id AND status IN ('pending', 'active')) AS is_open
      ) AS trials
      CROSS JOIN LATERAL (
        SELECT CASE WHEN instance.status <> 'active' THEN 'instance_not_active'
          WHEN instance.daily_backup AND NOT is_open THEN 'backup_already_enabled'
          WHEN service.id IS NULL THEN 'missing_billing_service'
          WHEN service.client_id IS NULL THEN 'missing_billing_client'
          WHEN is_open THEN 'trial_already_open'
          WHEN option.plan IS NULL THEN 'backup_option_unavailable'
          WHEN price.plan IS NULL THEN 'unsupported_billing_cycle' END AS reason
      ) AS judged`,
  },
  overview: {
    name: 'overview',
    text: `WITH ${allowed}
      SELECT figures.response::text AS response FROM allowed CROSS JOIN LATERAL (${overviewFigures.replaceAll('$1', 'allowed.project_id')}) AS figures`,
  },
  markRead: {
    name: 'mark read',
    text: `WITH ${allowed}
      SELECT json_build_object('marked', result.marked, 'unread_count', result.unread_count)::text AS response
      FROM allowed CROSS JOIN LATERAL mark_notifications_read(allowed.project_id, allowed.user_id, $4, NULL) AS result`,
  },
};
