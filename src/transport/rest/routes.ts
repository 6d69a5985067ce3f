import type { Route } from './route.ts';
import type { Stream } from './stream.ts';

const project = '/v1/organizations/:organization_id/projects/:project_id';
const dashboards = `${project}/monitoring/dashboards`;

/** §2.3. `etag` leaves the body and becomes the header. */
const dashboard = `
  etag: version id name organization: organizationId created_by: createdById created modified
  description project: projectId widgets is_default: isDefault is_public: isPublic`;

/** §2.7; the binder adds `next` and `previous`. */
const page = (item: string) => `count page page_size: pageSize total_pages: totalPages results { ${item} }`;

const notification = `
  id sequence kind severity title body resource_type: resourceType resource_id: resourceId data created read`;

/**
 * The v1 contract, as GraphQL operations: variables are named after v1's request fields, aliases after its response
 * fields. What is read off here is the contract; nothing else maps names.
 */
export const routes: readonly Route[] = [
  {
    // §4.1
    method: 'post',
    path: `${project}/websocket-tickets`,
    status: 201,
    isSecret: true,
    tag: 'Projects',
    summary: 'Issue a WebSocket ticket',
    refuses: ['session_required', 'permission_denied'],
    operation: `mutation create_websocket_ticket(
      $organization_id: ID!, $project_id: ID!, $target: TicketTarget!, $instance_id: UUID, $session_id: UUID
    ) {
      answer: createWebsocketTicket(input: {
        organizationId: $organization_id, projectId: $project_id, target: $target, instanceId: $instance_id, sessionId: $session_id
      }) { ticket path expires_in: expiresIn }
    }`,
    answer: (data) => data.answer,
  },
  {
    method: 'get',
    path: dashboards,
    status: 200,
    tag: 'Projects',
    summary: 'List monitoring dashboards',
    operation: `query list_dashboards($organization_id: ID!, $project_id: ID!, $page: Int! = 1, $page_size: Int! = 20) {
      project(organizationId: $organization_id, id: $project_id) {
        answer: dashboardPage(page: $page, pageSize: $page_size) { ${page(dashboard.replace('etag: version', ''))} }
      }
    }`,
    answer: (data) => data.project.answer,
  },
  {
    method: 'post',
    path: dashboards,
    status: 201,
    tag: 'Projects',
    summary: 'Create a monitoring dashboard',
    refuses: ['permission_denied'],
    operation: `mutation create_dashboard(
      $organization_id: ID!, $project_id: ID!, $name: Name!, $description: Text! = "", $widgets: JSON,
      $is_default: Boolean! = false, $is_public: Boolean! = false
    ) {
      create: createDashboard(input: {
        organizationId: $organization_id, projectId: $project_id, name: $name, description: $description,
        widgets: $widgets, isDefault: $is_default, isPublic: $is_public
      }) { answer: dashboard { ${dashboard} } }
    }`,
    answer: (data) => data.create.answer,
  },
  {
    method: 'get',
    path: `${dashboards}/:dashboard_id`,
    status: 200,
    tag: 'Projects',
    summary: 'Get a monitoring dashboard',
    operation: `query get_dashboard($organization_id: ID!, $project_id: ID!, $dashboard_id: ID!) {
      project(organizationId: $organization_id, id: $project_id) { answer: dashboard(id: $dashboard_id) { ${dashboard} } }
    }`,
    answer: (data) => data.project.answer,
  },
  {
    // §4.2
    method: 'put',
    path: `${dashboards}/:dashboard_id`,
    status: 200,
    tag: 'Projects',
    summary: 'Update a monitoring dashboard',
    refuses: ['permission_denied', 'conflict'],
    operation: `mutation update_dashboard(
      $organization_id: ID!, $project_id: ID!, $dashboard_id: ID!, $name: Name!, $description: Text! = "", $widgets: JSON,
      $is_default: Boolean! = false, $is_public: Boolean! = false, $project: UUID, $if_match: Int
    ) {
      update: updateDashboard(input: {
        organizationId: $organization_id, projectId: $project_id, id: $dashboard_id, name: $name, description: $description,
        widgets: $widgets, isDefault: $is_default, isPublic: $is_public, project: $project, expectedVersion: $if_match
      }) { answer: dashboard { ${dashboard} } }
    }`,
    answer: (data) => data.update.answer,
  },
  {
    method: 'delete',
    path: `${dashboards}/:dashboard_id`,
    status: 204,
    tag: 'Projects',
    summary: 'Delete a monitoring dashboard',
    refuses: ['permission_denied', 'conflict'],
    operation: `mutation delete_dashboard($organization_id: ID!, $project_id: ID!, $dashboard_id: ID!, $if_match: Int) {
      deleteDashboard(input: {
        organizationId: $organization_id, projectId: $project_id, id: $dashboard_id, expectedVersion: $if_match
      }) { deletedId }
    }`,
    answer: () => null,
  },
  {
    // §4.3
    method: 'get',
    path: `${project}/compute/instances/:instance_id/backup-trial`,
    status: 200,
    tag: 'Compute',
    summary: 'Backup trial state and eligibility for an instance',
    operation: `query backup_trial_state($organization_id: ID!, $project_id: ID!, $instance_id: ID!) {
      project(organizationId: $organization_id, id: $project_id) {
        instance(id: $instance_id) {
          answer: backupTrial {
            trial {
              id instance: instanceId instance_name: instanceName legacy_service_id: legacyServiceId
              legacy_order_id: legacyOrderId legacy_invoice_id: legacyInvoiceId status source trial cycle
              monthly_price: monthlyPrice cycle_price: cyclePrice credited started_at: startedAt ends_at: endsAt
              reminded_at: remindedAt resolved_at: resolvedAt failure_reason: failureReason created
            }
            eligible reason monthly_price: monthlyPrice currency trial_days: trialDays
          }
        }
      }
    }`,
    answer: (data) => data.project.instance.answer,
  },
  {
    // §4.4
    method: 'get',
    path: `${project}/compute/overview`,
    status: 200,
    tag: 'Compute',
    summary: 'Compute overview',
    operation: `query compute_overview($organization_id: ID!, $project_id: ID!) {
      project(organizationId: $organization_id, id: $project_id) {
        answer: computeOverview {
          attention {
            instances_without_hypervisor: instancesWithoutHypervisor instances_suspended: instancesSuspended
            instances_throttled: instancesThrottled cancellations_scheduled: cancellationsScheduled
            tasks_failed_24h: tasksFailed24h tasks_stuck: tasksStuck
          }
          instances_by_status: instancesByStatus { status count }
          instances_total: instancesTotal
          resources_allocated: resourcesAllocated { vcpu ram_mb: ramMb ram_gb: ramGb storage_gb: storageGb }
          resources_count: resourcesCount { volumes vpcs ssh_keys: sshKeys snapshots backups storage_gb: storageGb }
          tasks_by_status: tasksByStatus { status count }
          tasks_recent_count: tasksRecentCount
        }
      }
    }`,
    answer: (data) => [data.project.answer],
  },
  {
    method: 'get',
    path: `${project}/notifications`,
    status: 200,
    tag: 'Projects',
    summary: 'List notifications',
    operation: `query list_notifications(
      $organization_id: ID!, $project_id: ID!, $page: Int! = 1, $page_size: Int! = 20, $unread: Boolean, $severity: Severity, $kind: Text
    ) {
      project(organizationId: $organization_id, id: $project_id) {
        answer: notificationPage(page: $page, pageSize: $page_size, filter: { unread: $unread, severity: $severity, kind: $kind }) {
          ${page(notification)}
        }
      }
    }`,
    answer: (data) => data.project.answer,
  },
  {
    // §4.5
    method: 'post',
    path: `${project}/notifications/read`,
    status: 200,
    tag: 'Projects',
    summary: 'Mark notifications as read',
    operation: `mutation mark_notifications_read($organization_id: ID!, $project_id: ID!, $notification_ids: [UUID!]) {
      answer: markNotificationsRead(input: {
        organizationId: $organization_id, projectId: $project_id, notificationIds: $notification_ids
      }) { marked unread_count: unreadCount }
    }`,
    answer: (data) => data.answer,
  },
];

/** v1's names of what the schema calls otherwise (§2.1, §2.2); all else keeps its name. */
export const schemaNames: Readonly<Record<string, string>> = {
  CreateWebsocketTicketRequest: 'WebSocketTicketRequest',
  CreateWebsocketTicketPayload: 'WebSocketTicket',
  MarkNotificationsReadPayload: 'MarkNotificationsReadResult',
};

/** The console of an instance (§6): no events, which a document could describe, but bytes. */
export const consolePath = `${project}/compute/instances/:instance_id/console/ws`;

/** The plain-JSON sockets (§6): each event of the subscription is one frame. */
export const streams: readonly Stream[] = [
  {
    path: `${project}/notifications/ws`,
    operation: `subscription notification_feed($organization_id: ID!, $project_id: ID!, $after: Int) {
      event: notificationFeed(organizationId: $organization_id, projectId: $project_id, after: $after) {
        ... on FeedReady { type sequence read_through: readThrough unread_count: unreadCount }
        ... on NotificationAdded { type sequence notification { ${notification} } }
        ... on NotificationsRead { type read_through: readThrough notification_ids: notificationIds unread_count: unreadCount }
        ... on FeedGap { type from to }
      }
    }`,
    event: (data) => data.event,
  },
];
