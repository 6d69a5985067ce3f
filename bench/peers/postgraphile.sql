-- The functions that PostGraphile makes its fields of, as its documentation has it for whatever is not a plain column. They
-- are in the bench's database alone. The viewer is a setting of the transaction.

CREATE OR REPLACE FUNCTION viewer_id() RETURNS uuid LANGUAGE sql STABLE AS $$
  SELECT current_setting('jwt.claims.user_id')::uuid
$$;

CREATE OR REPLACE FUNCTION open_project(organization_id uuid, project_id uuid) RETURNS projects LANGUAGE sql STABLE AS $$
  SELECT project.* FROM users
  JOIN projects AS project ON project.id = open_project.project_id AND project.organization_id = open_project.organization_id
  JOIN organization_members AS member ON member.organization_id = project.organization_id AND member.user_id = users.id
  LEFT JOIN project_members AS project_member ON project_member.project_id = project.id AND project_member.user_id = users.id
  WHERE users.id = viewer_id() AND users.disabled_at IS NULL AND (member.role <> 'member' OR project_member.role IS NOT NULL)
$$;

CREATE OR REPLACE FUNCTION projects_log_entries(project projects) RETURNS SETOF notifications LANGUAGE sql STABLE AS $$
  SELECT * FROM notifications WHERE project_id = project.id ORDER BY sequence DESC
$$;

CREATE OR REPLACE FUNCTION notifications_read(notification notifications) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT notification.sequence <= coalesce((
      SELECT read_through FROM notification_states WHERE project_id = notification.project_id AND user_id = viewer_id()), 0)
    OR EXISTS (
      SELECT FROM notification_reads
      WHERE project_id = notification.project_id AND user_id = viewer_id() AND sequence = notification.sequence)
$$;

CREATE OR REPLACE FUNCTION projects_visible_dashboards(project projects) RETURNS SETOF dashboards LANGUAGE sql STABLE AS $$
  SELECT * FROM dashboards
  WHERE project_id = project.id AND (is_public OR created_by = viewer_id()
    OR (SELECT role FROM project_members WHERE project_id = project.id AND user_id = viewer_id()) = 'admin'
    OR (SELECT role FROM organization_members WHERE organization_id = project.organization_id AND user_id = viewer_id()) <> 'member')
  ORDER BY id
$$;

CREATE OR REPLACE FUNCTION projects_present_instances(project projects) RETURNS SETOF instances LANGUAGE sql STABLE AS $$
  SELECT * FROM instances WHERE project_id = project.id AND status <> 'deleted' ORDER BY id
$$;

-- A volume outlives its instance, so that no constraint tells of the relation.
COMMENT ON TABLE volumes IS E'@foreignKey (instance_id) references instances (id)';

CREATE OR REPLACE FUNCTION instances_backup_trial(instance instances) RETURNS json LANGUAGE sql STABLE AS $$
  SELECT json_build_object('eligible', reason IS NULL, 'reason', coalesce(reason, ''),
    'monthlyPrice', coalesce(option.monthly_price, 0)::numeric(12, 2)::text,
    'currency', coalesce(option.currency, organization.currency), 'trialDays', coalesce(option.trial_days, 0),
    'trial', (
      SELECT json_build_object('id', id, 'status', status, 'source', source, 'cycle', cycle, 'monthlyPrice', monthly_price::text,
        'startedAt', started_at, 'endsAt', ends_at, 'created', created)
      FROM backup_trials WHERE instance_id = instance.id ORDER BY created DESC, id DESC LIMIT 1))
  FROM projects AS project
  JOIN organizations AS organization ON organization.id = project.organization_id
  LEFT JOIN billing_services AS service ON service.id = instance.billing_service_id
  LEFT JOIN backup_options AS option ON option.plan = instance.plan
  LEFT JOIN backup_option_prices AS price ON price.plan = option.plan AND price.cycle = service.cycle
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
  ) AS judged
  WHERE project.id = instance.project_id
$$;
