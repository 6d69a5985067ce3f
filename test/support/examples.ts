import { createHash } from 'node:crypto';
import { trialExamples } from '../../demo/backups.ts';
import { dashboards } from '../../demo/dashboards.ts';
import { demoId } from '../../demo/identity.ts';
import { notificationIds } from '../../demo/notifications.ts';
import { organization, project } from '../../demo/people.ts';
import type { Examples, OperationExample } from '../../reference/openapi.ts';
import { Fault } from '../../src/kernel/fault.ts';
import { toFault } from '../../src/platform/errors.ts';
import { restBody } from '../../src/transport/http/faults.ts';
import type { TestApp, TestResponse } from './app.ts';
import { type OperationName, operations } from './contract.ts';
import { openPlainFeed } from './feed.ts';
import { seededAt } from './fixtures.ts';

/** The times of the examples are relative to this moment, as those of the demo are relative to the moment of its seeding. */
const EXAMPLE_TIME = Date.parse('2026-06-01T12:00:00.000Z');

const place = { organization_id: organization.id, project_id: project.id };
const paging = { page: 1, page_size: 2 };
const dashboard = { ...place, dashboard_id: dashboards.public };

/** The example requests of the documentation, ordered so that each finds the demo in the state that it needs. */
const requests: Readonly<Record<OperationName, Omit<OperationExample, 'response' | 'etag'>>> = {
  list_organizations: { parameters: paging },
  list_projects: { parameters: { organization_id: organization.id, ...paging } },
  list_dashboards: { parameters: { ...place, ...paging } },
  get_dashboard: { parameters: dashboard },
  list_instances: { parameters: { ...place, ...paging, status: 'suspended' } },
  get_instance: { parameters: { ...place, instance_id: trialExamples.trial_already_open } },
  backup_trial_state: { parameters: { ...place, instance_id: trialExamples.trial_already_open } },
  list_tasks: { parameters: { ...place, ...paging, status: 'failed' } },
  compute_overview: { parameters: place },
  list_notifications: { parameters: { ...place, ...paging, unread: true, severity: 'critical', kind: 'backup.failed' } },
  create_websocket_ticket: { parameters: place, body: { target: 'notifications' } },
  mark_notifications_read: { parameters: place, body: { notification_ids: notificationIds.slice(-2) } },
  update_dashboard: {
    parameters: { ...dashboard, 'If-Match': '*' },
    body: {
      name: 'Traffic',
      description: 'Requests of the web tier, by status.',
      project: project.id,
      widgets: [{ type: 'timeseries', title: 'Requests per second', query: { metric: 'http.requests', group_by: ['status'] } }],
      is_default: false,
      is_public: true,
    },
  },
  create_dashboard: {
    parameters: place,
    body: {
      name: 'Databases',
      description: '',
      widgets: [{ type: 'gauge', title: 'Disk', query: { metric: 'disk.used' } }],
      is_default: false,
      is_public: true,
    },
  },
  delete_dashboard: { parameters: { ...dashboard, 'If-Match': '*' } },
};

/** Fixed replacements for values that are random in each run. */
const fixedValues: Partial<Record<OperationName, object>> = {
  create_websocket_ticket: { ticket: createHash('sha256').update('ticket').digest('base64url') },
  create_dashboard: { id: demoId('dashboard/databases', 4) },
};

/** Sends every example to the demo and returns the responses, with values that vary between runs replaced by fixed ones. */
export async function recordExamples(app: TestApp): Promise<Examples> {
  const began = Date.now();
  const made = (await seededAt(app)).getTime();
  const normalize = (value: unknown) => normalizeValue(value, (time) => EXAMPLE_TIME + (time >= began ? 0 : time - made));
  const recorded: Record<string, OperationExample> = {};
  for (const [name, request] of Object.entries(requests)) {
    const { status, json, headers } = await sendExample(app, name as OperationName, request);
    if (status >= 300) throw new Error(`${name}: ${status} ${JSON.stringify(json)}`);
    const { etag } = headers;
    const response = normalize({ ...json, ...fixedValues[name as OperationName] });
    recorded[name] = {
      ...request,
      ...(json !== undefined && { response: Array.isArray(json) ? normalize(json) : response }),
      ...(etag && { etag: String(etag) }),
    };
  }
  return {
    operations: recorded,
    refusals: normalize(await recordRefusals(app)) as Examples['refusals'],
    events: await recordEvents(app, normalize),
  };
}

function sendExample(app: TestApp, name: OperationName, { parameters, body }: Omit<OperationExample, 'response'>): Promise<TestResponse> {
  const { method, path } = operations[name];
  const target = path.replace(/:(\w+)/g, (_, parameter: string) => String(parameters[parameter]));
  const ifMatch = parameters['If-Match'];
  const inQuery = Object.entries(parameters).filter(([parameter]) => parameter !== 'If-Match' && !path.includes(`:${parameter}`));
  const query = new URLSearchParams(inQuery.map(([parameter, value]) => [parameter, String(value)])).toString();
  const headers = ifMatch === undefined ? {} : { 'if-match': String(ifMatch) };
  return app.ask(method.toUpperCase(), query ? `${target}?${query}` : target, { headers, body });
}

/** One refusal of each kind; those for an outage and an internal error are constructed, not provoked. */
async function recordRefusals(app: TestApp): Promise<Examples['refusals']> {
  const path = `${app.projectPath}/monitoring/dashboards`;
  const json = async (response: Promise<TestResponse>) => (await response).json;
  const board = `${path}/${dashboards.default}`;
  return {
    invalid_request: await json(app.ask('POST', path, { body: '{' })),
    validation_failed: await json(app.ask('POST', path, { body: { is_public: 'perhaps' } })),
    not_authenticated: await json(app.ask('GET', path, { as: null })),
    permission_denied: await json(app.ask('POST', path, { as: 'viewer', body: { name: 'Mine' } })),
    session_required: await json(
      app.ask('POST', `${app.projectPath}/websocket-tickets`, {
        as: { bearer: app.demo.users.owner.api_key },
        body: { target: 'notifications' },
      }),
    ),
    not_found: await json(app.ask('GET', `${path}/${demoId('nothing')}`)),
    conflict: await json(app.ask('PUT', board, { headers: { 'if-match': '"3"' }, body: { name: 'Operations' } })),
    idempotency_key_reused: await reuseKey(app, board),
    rate_limited: await exhaust(app, path),
    internal_error: restBody(toFault(new Error('a mistake of ours'))),
    service_unavailable: restBody(Fault.tryLater('an outage')),
  };
}

/** Uses a version that the dashboard does not have, so that neither request changes it. */
async function reuseKey(app: TestApp, board: string): Promise<unknown> {
  const headers = { 'if-match': '"3"', 'idempotency-key': '8e03978e-40d5-43dd-bc93-6894a57f9324' };
  await app.ask('PUT', board, { headers, body: { name: 'Operations' } });
  return (await app.ask('PUT', board, { headers, body: { name: 'Traffic' } })).json;
}

async function exhaust(app: TestApp, path: string): Promise<unknown> {
  for (;;) {
    const { status, json } = await app.ask('GET', path, { as: null });
    if (status === 429) return { ...json, context: { ...json.context, retry_after_seconds: 30 } };
  }
}

/** One event of each kind. */
async function recordEvents(app: TestApp, normalize: (value: unknown) => unknown): Promise<Examples['events']> {
  const feed = openPlainFeed(app, { after: notificationIds.length - 1 });
  await feed.until(({ type }) => type === 'ready');
  await app.ask('POST', `${app.projectPath}/notifications/read`, { body: { notification_ids: [notificationIds[119]] } });
  await feed.until(({ type }) => type === 'read');
  const ahead = openPlainFeed(app, { after: notificationIds.length + 5 });
  await ahead.until(({ type }) => type === 'gap');
  const events = [...feed.frames, ...ahead.frames.filter(({ type }) => type === 'gap')];
  for (const { socket } of [feed, ahead]) socket.terminate();
  return { notification_feed: normalize(events) as unknown[] };
}

function normalizeValue(value: unknown, mapTime: (time: number) => number): unknown {
  if (Array.isArray(value)) return value.map((item) => normalizeValue(item, mapTime));
  if (typeof value === 'string' && /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value)) return new Date(mapTime(Date.parse(value))).toISOString();
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, normalizeValue(item, mapTime)]));
}
