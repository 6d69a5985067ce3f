import { isMatcher } from './exact.ts';

/** The ids that v1's paths are filled with. */
export interface Place {
  readonly organization_id: string;
  readonly project_id: string;
  readonly instance_id: string;
  readonly dashboard_id: string;
}

type Fields = Readonly<Record<string, unknown>>;

/** The input of a case, named as v1 names it. */
export interface Call {
  readonly place: Place;
  readonly input: Fields;
  /** The expected version of a dashboard: `If-Match` in v1, `expectedVersion` in GraphQL. */
  readonly version: number | undefined;
}

/** One operation of v1 and the GraphQL document that does the same. */
export interface Operation {
  readonly method: 'get' | 'post' | 'put' | 'delete';
  readonly path: string;
  readonly document: string;
  variables(call: Call): Fields;
  /** The GraphQL data equivalent to a v1 body. */
  data(body: unknown, call: Call & { readonly etag: number | undefined }): unknown;
}

const project = '/v1/organizations/:organization_id/projects/:project_id';
const dashboards = `${project}/monitoring/dashboards`;

/** Converts keys from snake_case to camelCase recursively; the client's own JSON (`widgets`, `data`) stays unchanged. */
export function camelize(value: unknown, names: Readonly<Record<string, string>> = {}): unknown {
  if (typeof value !== 'object' || value === null || isMatcher(value)) return value;
  if (Array.isArray(value)) return value.map((item) => camelize(item, names));
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [
      names[key] ?? key.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase()),
      key === 'widgets' || key === 'data' ? item : camelize(item, names),
    ]),
  );
}

const dashboardNames = { organization: 'organizationId', created_by: 'createdById', project: 'projectId' };
const dashboardFields = 'id name organizationId createdById created modified description projectId widgets isDefault isPublic';
const notificationFields = 'id sequence kind severity title body resourceType resourceId data created read';
const instanceFields = 'id name status plan region vcpu ramMb storageGb hypervisor throttled dailyBackup cancellationAt created modified';
const trialFields = `id instanceId instanceName legacyServiceId legacyOrderId legacyInvoiceId status source trial cycle monthlyPrice
  cyclePrice credited startedAt endsAt remindedAt resolvedAt failureReason created`;

function query(declarations: string, selection: string): string {
  return `query ($organizationId: ID!, $projectId: ID!, ${declarations}) {
    project(organizationId: $organizationId, id: $projectId) { ${selection} }
  }`;
}

function mutation(field: string, selection: string): string {
  const type = `${field.charAt(0).toUpperCase()}${field.slice(1)}Input`;
  return `mutation ($input: ${type}!) { answer: ${field}(input: $input) { ${selection} } }`;
}

const located = ({ place }: Call) => ({ organizationId: place.organization_id, projectId: place.project_id });
const asVariables = (call: Call) => ({ ...located(call), ...(camelize(call.input) as Fields) });
const asInput = (call: Call) => ({ input: asVariables(call) });
const asDashboardInput = (call: Call) => ({
  input: { ...asVariables(call), id: call.place.dashboard_id, ...(call.version !== undefined && { expectedVersion: call.version }) },
});
const withVersion = (body: unknown, { etag }: { etag: number | undefined }) => ({
  ...(camelize(body, dashboardNames) as Fields),
  version: etag,
});

/** Removes the links to other pages, which only REST has. */
function withoutLinks(body: unknown, names?: Readonly<Record<string, string>>) {
  const { next: _next, previous: _previous, ...envelope } = body as Fields;
  return { project: { answer: camelize(envelope, names) } };
}

/** Written independently of the table of routes, because the tests compare the two. */
export const operations = {
  create_websocket_ticket: {
    method: 'post',
    path: `${project}/websocket-tickets`,
    document: mutation('createWebsocketTicket', 'ticket path expiresIn'),
    variables: asInput,
    data: (body) => ({ answer: camelize(body) }),
  },
  list_dashboards: {
    method: 'get',
    path: dashboards,
    document: query(
      '$page: Int! = 1, $pageSize: Int! = 20',
      `answer: dashboardPage(page: $page, pageSize: $pageSize) { count page pageSize totalPages results { ${dashboardFields} } }`,
    ),
    variables: asVariables,
    data: (body) => withoutLinks(body, dashboardNames),
  },
  create_dashboard: {
    method: 'post',
    path: dashboards,
    document: mutation('createDashboard', `dashboard { ${dashboardFields} version }`),
    variables: asInput,
    data: (body, call) => ({ answer: { dashboard: withVersion(body, call) } }),
  },
  get_dashboard: {
    method: 'get',
    path: `${dashboards}/:dashboard_id`,
    document: query('$id: ID!', `answer: dashboard(id: $id) { ${dashboardFields} version }`),
    variables: (call) => ({ ...located(call), id: call.place.dashboard_id }),
    data: (body, call) => ({ project: { answer: withVersion(body, call) } }),
  },
  update_dashboard: {
    method: 'put',
    path: `${dashboards}/:dashboard_id`,
    document: mutation('updateDashboard', `dashboard { ${dashboardFields} version }`),
    variables: asDashboardInput,
    data: (body, call) => ({ answer: { dashboard: withVersion(body, call) } }),
  },
  delete_dashboard: {
    method: 'delete',
    path: `${dashboards}/:dashboard_id`,
    document: mutation('deleteDashboard', 'deletedId'),
    variables: asDashboardInput,
    data: (_body, { place }) => ({ answer: { deletedId: place.dashboard_id } }),
  },
  list_instances: {
    method: 'get',
    path: `${project}/compute/instances`,
    document: query(
      '$page: Int! = 1, $pageSize: Int! = 20, $status: InstanceStatus',
      `answer: instancePage(page: $page, pageSize: $pageSize, status: $status) {
        count page pageSize totalPages results { ${instanceFields} }
      }`,
    ),
    variables: asVariables,
    data: (body) => withoutLinks(body),
  },
  get_instance: {
    method: 'get',
    path: `${project}/compute/instances/:instance_id`,
    document: query('$id: ID!', `answer: instance(id: $id) { ${instanceFields} }`),
    variables: (call) => ({ ...located(call), id: call.place.instance_id }),
    data: (body) => ({ project: { answer: camelize(body) } }),
  },
  backup_trial_state: {
    method: 'get',
    path: `${project}/compute/instances/:instance_id/backup-trial`,
    document: query(
      '$id: ID!',
      `instance(id: $id) { answer: backupTrial { trial { ${trialFields} } eligible reason monthlyPrice currency trialDays } }`,
    ),
    variables: (call) => ({ ...located(call), id: call.place.instance_id }),
    data: (body) => ({ project: { instance: { answer: camelize(body, { instance: 'instanceId' }) } } }),
  },
  list_tasks: {
    method: 'get',
    path: `${project}/compute/tasks`,
    document: query(
      '$page: Int! = 1, $pageSize: Int! = 20, $status: TaskStatus',
      `answer: taskPage(page: $page, pageSize: $pageSize, status: $status) {
        count page pageSize totalPages results { id instanceId kind status error created started finished }
      }`,
    ),
    variables: asVariables,
    data: (body) => withoutLinks(body, { instance: 'instanceId' }),
  },
  compute_overview: {
    method: 'get',
    path: `${project}/compute/overview`,
    document: query(
      '',
      `answer: computeOverview {
        attention {
          instancesWithoutHypervisor instancesSuspended instancesThrottled cancellationsScheduled tasksFailed24h tasksStuck
        }
        instancesByStatus { status count } instancesTotal resourcesAllocated { vcpu ramMb ramGb storageGb }
        resourcesCount { volumes vpcs sshKeys snapshots backups storageGb } tasksByStatus { status count } tasksRecentCount
      }`,
    ),
    variables: located,
    data: (body) => ({ project: { answer: camelize((body as unknown[])[0]) } }),
  },
  list_notifications: {
    method: 'get',
    path: `${project}/notifications`,
    document: query(
      '$page: Int! = 1, $pageSize: Int! = 20, $filter: NotificationFilter',
      `answer: notificationPage(page: $page, pageSize: $pageSize, filter: $filter) {
        count page pageSize totalPages results { ${notificationFields} }
      }`,
    ),
    variables: ({ input: { page, page_size, ...filter }, ...call }) => asVariables({ ...call, input: { page, page_size, filter } }),
    data: (body) => withoutLinks(body),
  },
  mark_notifications_read: {
    method: 'post',
    path: `${project}/notifications/read`,
    document: mutation('markNotificationsRead', 'marked unreadCount'),
    variables: asInput,
    data: (body) => ({ answer: camelize(body) }),
  },
  list_organizations: {
    method: 'get',
    path: '/v1/organizations',
    document: `query ($page: Int! = 1, $pageSize: Int! = 20) {
      viewer { answer: organizationPage(page: $page, pageSize: $pageSize) {
        count page pageSize totalPages results { id name currency role created }
      } }
    }`,
    variables: ({ input }) => camelize(input) as Fields,
    data: (body) => ({ viewer: withoutLinks(body).project }),
  },
  list_projects: {
    method: 'get',
    path: '/v1/organizations/:organization_id/projects',
    document: `query ($organizationId: ID!, $page: Int! = 1, $pageSize: Int! = 20) {
      organization(id: $organizationId) { answer: projectPage(page: $page, pageSize: $pageSize) {
        count page pageSize totalPages results { id name organizationId role created }
      } }
    }`,
    variables: ({ place, input }) => ({ organizationId: place.organization_id, ...(camelize(input) as Fields) }),
    data: (body) => ({ organization: withoutLinks(body, { organization: 'organizationId' }).project }),
  },
} as const satisfies Record<string, Operation>;

export type OperationName = keyof typeof operations;

/** Whether `viewer` is null: GraphQL's equivalent of v1's 401 for a request without a credential. */
export function isAnonymous(data: unknown): boolean {
  return (data as Fields | null | undefined)?.viewer === null;
}
