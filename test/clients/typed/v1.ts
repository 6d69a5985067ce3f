import createClient from 'openapi-fetch';
import type { components, paths } from '../generated/v1.ts';

interface Home {
  readonly baseUrl: string;
  readonly token: string;
  readonly organization_id: string;
  readonly project_id: string;
  readonly instance_id: string;
}

type Schemas = components['schemas'];

/** A program as a client of v1 would write it: every operation, typed by the published document alone. */
export async function callEveryOperation({ baseUrl, token, instance_id, ...place }: Home) {
  const client = createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${token}` } });
  const project = '/v1/organizations/{organization_id}/projects/{project_id}';
  const dashboards = `${project}/monitoring/dashboards` as const;
  const path = place;

  const created = await client.POST(dashboards, { params: { path }, body: { name: 'Typed', widgets: [{ type: 'note' }] } });
  const { data: dashboard } = created;
  if (!dashboard) throw new Error(describe(created.error));
  const one = { ...path, dashboard_id: dashboard.id };
  const read = await client.GET(`${dashboards}/{dashboard_id}`, { params: { path: one } });
  const etag = read.response.headers.get('etag') ?? '';
  const updated = await client.PUT(`${dashboards}/{dashboard_id}`, {
    params: { path: one, header: { 'If-Match': etag } },
    body: { name: 'Typed again', project: path.project_id, is_public: true },
  });
  const stale = await client.PUT(`${dashboards}/{dashboard_id}`, {
    params: { path: one, header: { 'If-Match': etag } },
    body: { name: 'Too late' },
  });
  const listed = await client.GET(dashboards, { params: { path, query: { page: 1, page_size: 100 } } });
  const deleted = await client.DELETE(`${dashboards}/{dashboard_id}`, { params: { path: one } });

  const notifications = await client.GET(`${project}/notifications`, {
    params: { path, query: { page_size: 5, unread: true, severity: 'critical' } },
  });
  const unread: readonly Schemas['Notification'][] = notifications.data?.results ?? [];
  const marked = await client.POST(`${project}/notifications/read`, {
    params: { path },
    body: { notification_ids: unread.map(({ id }) => id) },
  });
  const organizations = await client.GET('/v1/organizations');
  const projects = await client.GET('/v1/organizations/{organization_id}/projects', {
    params: { path: { organization_id: path.organization_id }, query: { page_size: 100 } },
  });
  const instances = await client.GET(`${project}/compute/instances`, { params: { path, query: { status: 'suspended' } } });
  const instance = await client.GET(`${project}/compute/instances/{instance_id}`, { params: { path: { ...path, instance_id } } });
  const tasks = await client.GET(`${project}/compute/tasks`, { params: { path, query: { status: 'failed', page_size: 1 } } });
  const overview = await client.GET(`${project}/compute/overview`, { params: { path } });
  const trial = await client.GET(`${project}/compute/instances/{instance_id}/backup-trial`, { params: { path: { ...path, instance_id } } });
  const ticket = await client.POST(`${project}/websocket-tickets`, { params: { path }, body: { target: 'console', instance_id } });

  return {
    calls: {
      create_dashboard: created,
      get_dashboard: read,
      update_dashboard: updated,
      list_dashboards: listed,
      delete_dashboard: deleted,
      list_notifications: notifications,
      mark_notifications_read: marked,
      compute_overview: overview,
      list_organizations: organizations,
      list_projects: projects,
      list_instances: instances,
      get_instance: instance,
      list_tasks: tasks,
      backup_trial_state: trial,
      create_websocket_ticket: ticket,
    },
    facts: {
      names: [dashboard.name, updated.data?.name],
      listed: listed.data?.results.some(({ id }) => id === dashboard.id),
      marked: [unread.length, marked.data?.marked],
      instances: overview.data?.map(({ instances_total, attention }) => instances_total - attention.instances_suspended),
      found: [
        organizations.data?.results.map(({ id, role }) => [id === path.organization_id, role]),
        projects.data?.results.some(({ id }) => id === path.project_id),
        instances.data?.results.every(({ status }) => status === 'suspended'),
        instance.data?.id === instance_id,
        tasks.data?.results.map(({ status }) => status),
      ],
      reason: trial.data?.reason,
      expiresIn: ticket.data?.expires_in,
      stale: stale.error && 'code' in stale.error ? describe(stale.error) : null,
    },
  };
}

/** Every refusal that the document knows, told apart by its code. */
function describe(error: Schemas['Conflict'] | Schemas['NotFound'] | Schemas['RateLimited'] | object | undefined): string {
  if (!error || !('code' in error)) return 'some fields are not valid';
  switch (error.code) {
    case 'conflict':
      return `it is at version ${error.context.version}`;
    case 'rate_limited':
      return `wait for ${error.context.retry_after_seconds} s`;
    default:
      return error.detail;
  }
}
