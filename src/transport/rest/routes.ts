import { projectPath } from '../../graph/socketpaths.ts';
import type { Route } from './route.ts';

const dashboards = `${projectPath}/monitoring/dashboards`;

/** §2.3. `etag` is moved from the body to the header. */
const dashboard = `
  etag: version id name organization: organizationId created_by: createdById created modified
  description project: projectId widgets is_default: isDefault is_public: isPublic`;

/** §2.7; `withLinks` adds `next` and `previous`. */
const page = (item: string) => `count page page_size: pageSize total_pages: totalPages results { ${item} }`;

/** §2.2 as a selection. */
export const notification = `
  id sequence kind severity title body resource_type: resourceType resource_id: resourceId data created read`;

const instance = `
  id name status plan region vcpu ram_mb: ramMb storage_gb: storageGb hypervisor throttled daily_backup: dailyBackup
  cancellation_at: cancellationAt created modified`;

/**
 * The v1 contract, as GraphQL operations: variables have the names of v1's request fields, aliases those of its response
 * fields. This table is the contract: nothing else maps names. The alias `answer` marks what the response is made of; it is part of
 * the stored responses of idempotency keys, which a replica of another release may have written.
 */
export const routes: readonly Route[] = [
  {
    // §4.1
    method: 'post',
    path: `${projectPath}/websocket-tickets`,
    status: 201,
    isSecret: true,
    tag: 'Projects',
    summary: 'Issue a WebSocket ticket',
    faults: ['session_required', 'permission_denied', 'conflict', 'idempotency_key_reused'],
    operation: `mutation create_websocket_ticket(
      $organization_id: ID!, $project_id: ID!, $target: TicketTarget!, $instance_id: UUID, $session_id: UUID,
      $idempotency_key: IdempotencyKey
    ) {
      answer: createWebsocketTicket(input: {
        organizationId: $organization_id, projectId: $project_id, target: $target, instanceId: $instance_id, sessionId: $session_id,
        idempotencyKey: $idempotency_key
      }) { ticket path expires_in: expiresIn }
    }`,
    response: (data) => data.answer,
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
    response: (data) => data.project.answer,
  },
  {
    method: 'post',
    path: dashboards,
    status: 201,
    tag: 'Projects',
    summary: 'Create a monitoring dashboard',
    faults: ['permission_denied', 'conflict', 'idempotency_key_reused'],
    operation: `mutation create_dashboard(
      $organization_id: ID!, $project_id: ID!, $name: Name!, $description: Text! = "", $widgets: JSON,
      $is_default: Boolean! = false, $is_public: Boolean! = false, $idempotency_key: IdempotencyKey
    ) {
      create: createDashboard(input: {
        organizationId: $organization_id, projectId: $project_id, name: $name, description: $description,
        widgets: $widgets, isDefault: $is_default, isPublic: $is_public, idempotencyKey: $idempotency_key
      }) { answer: dashboard { ${dashboard} } }
    }`,
    response: (data) => data.create.answer,
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
    response: (data) => data.project.answer,
  },
  {
    // §4.2
    method: 'put',
    path: `${dashboards}/:dashboard_id`,
    status: 200,
    tag: 'Projects',
    summary: 'Update a monitoring dashboard',
    faults: ['permission_denied', 'conflict', 'idempotency_key_reused'],
    operation: `mutation update_dashboard(
      $organization_id: ID!, $project_id: ID!, $dashboard_id: ID!, $name: Name!, $description: Text! = "", $widgets: JSON,
      $is_default: Boolean! = false, $is_public: Boolean! = false, $project: UUID, $if_match: Int,
      $idempotency_key: IdempotencyKey
    ) {
      update: updateDashboard(input: {
        organizationId: $organization_id, projectId: $project_id, id: $dashboard_id, name: $name, description: $description,
        widgets: $widgets, isDefault: $is_default, isPublic: $is_public, project: $project, expectedVersion: $if_match,
        idempotencyKey: $idempotency_key
      }) { answer: dashboard { ${dashboard} } }
    }`,
    response: (data) => data.update.answer,
  },
  {
    method: 'delete',
    path: `${dashboards}/:dashboard_id`,
    status: 204,
    tag: 'Projects',
    summary: 'Delete a monitoring dashboard',
    faults: ['permission_denied', 'conflict', 'idempotency_key_reused'],
    operation: `mutation delete_dashboard(
      $organization_id: ID!, $project_id: ID!, $dashboard_id: ID!, $if_match: Int, $idempotency_key: IdempotencyKey
    ) {
      deleteDashboard(input: {
        organizationId: $organization_id, projectId: $project_id, id: $dashboard_id, expectedVersion: $if_match,
        idempotencyKey: $idempotency_key
      }) { deletedId }
    }`,
    response: () => null,
  },
  {
    method: 'get',
    path: `${projectPath}/compute/instances`,
    status: 200,
    tag: 'Compute',
    summary: 'List instances',
    operation: `query list_instances(
      $organization_id: ID!, $project_id: ID!, $page: Int! = 1, $page_size: Int! = 20, $status: InstanceStatus
    ) {
      project(organizationId: $organization_id, id: $project_id) {
        answer: instancePage(page: $page, pageSize: $page_size, status: $status) { ${page(instance)} }
      }
    }`,
    response: (data) => data.project.answer,
  },
  {
    method: 'get',
    path: `${projectPath}/compute/instances/:instance_id`,
    status: 200,
    tag: 'Compute',
    summary: 'Get an instance',
    operation: `query get_instance($organization_id: ID!, $project_id: ID!, $instance_id: ID!) {
      project(organizationId: $organization_id, id: $project_id) { answer: instance(id: $instance_id) { ${instance} } }
    }`,
    response: (data) => data.project.answer,
  },
  {
    // §4.3
    method: 'get',
    path: `${projectPath}/compute/instances/:instance_id/backup-trial`,
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
    response: (data) => data.project.instance.answer,
  },
  {
    method: 'get',
    path: `${projectPath}/compute/tasks`,
    status: 200,
    tag: 'Compute',
    summary: 'List tasks',
    operation: `query list_tasks(
      $organization_id: ID!, $project_id: ID!, $page: Int! = 1, $page_size: Int! = 20, $status: TaskStatus
    ) {
      project(organizationId: $organization_id, id: $project_id) {
        answer: taskPage(page: $page, pageSize: $page_size, status: $status) {
          ${page('id instance: instanceId kind status error created started finished')}
        }
      }
    }`,
    response: (data) => data.project.answer,
  },
  {
    // §4.4
    method: 'get',
    path: `${projectPath}/compute/overview`,
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
    response: (data) => [data.project.answer],
  },
  {
    method: 'get',
    path: `${projectPath}/notifications`,
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
    response: (data) => data.project.answer,
  },
  {
    // §4.5
    method: 'post',
    path: `${projectPath}/notifications/read`,
    status: 200,
    tag: 'Projects',
    summary: 'Mark notifications as read',
    faults: ['conflict', 'idempotency_key_reused'],
    operation: `mutation mark_notifications_read(
      $organization_id: ID!, $project_id: ID!, $notification_ids: [UUID!], $idempotency_key: IdempotencyKey
    ) {
      answer: markNotificationsRead(input: {
        organizationId: $organization_id, projectId: $project_id, notificationIds: $notification_ids,
        idempotencyKey: $idempotency_key
      }) { marked unread_count: unreadCount }
    }`,
    response: (data) => data.answer,
  },
  {
    method: 'get',
    path: '/v1/organizations',
    status: 200,
    tag: 'Organizations',
    summary: 'List organizations',
    operation: `query list_organizations($page: Int! = 1, $page_size: Int! = 20) {
      viewer { answer: organizationPage(page: $page, pageSize: $page_size) { ${page('id name currency role created')} } }
    }`,
    response: (data) => data.viewer.answer,
  },
  {
    method: 'get',
    path: '/v1/organizations/:organization_id/projects',
    status: 200,
    tag: 'Projects',
    summary: 'List projects',
    operation: `query list_projects($organization_id: ID!, $page: Int! = 1, $page_size: Int! = 20) {
      organization(id: $organization_id) {
        answer: projectPage(page: $page, pageSize: $page_size) { ${page('id name organization: organizationId role created')} }
      }
    }`,
    response: (data) => data.organization.answer,
  },
];

/** v1's names of types that have another name in the schema (§2.1, §2.2); all other types keep their names. */
export const schemaNames: Readonly<Record<string, string>> = {
  CreateWebsocketTicketRequest: 'WebSocketTicketRequest',
  CreateWebsocketTicketPayload: 'WebSocketTicket',
  MarkNotificationsReadPayload: 'MarkNotificationsReadResult',
};
