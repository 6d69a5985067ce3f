// The five operations as one would write them by hand with Express and Prisma's client.
import { createHash, randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { PrismaPg } from '@prisma/adapter-pg';
import express from 'express';
import helmet from 'helmet';
import { z } from 'zod';
import { isUuid, listen, notFound, Refusal, reasonOf, requireRole, roleOf, spend, verify } from './access.mjs';

const { DATABASE_URL, DATABASE_POOL, PRISMA_CLIENT = '' } = process.env;
// The client generated from Portico's own schema.
const { Prisma, PrismaClient } = await import(PRISMA_CLIENT);
const prisma = new PrismaClient({
  adapter: new PrismaPg({ connectionString: DATABASE_URL, max: Number(DATABASE_POOL), options: '-c timezone=UTC' }),
});
const TICKET_SECONDS = 30;
const HOUR_MS = 3_600_000;

const ticketBody = z.object({
  target: z.enum(['notifications', 'console']),
  instance_id: z.uuid().optional(),
  session_id: z.uuid().optional(),
});
const dashboardBody = z.object({
  name: z.string().min(1).max(255),
  description: z.string().default(''),
  widgets: z.json().default([]),
  is_default: z.boolean().default(false),
  is_public: z.boolean().default(false),
});
const readBody = z.object({ notification_ids: z.array(z.uuid()).max(200).optional() });

/** @type {express.RequestHandler} */
async function authenticate(request, response, next) {
  const { userId, expires } = await verify(request.headers.authorization);
  const user = await prisma.user.findUnique({ where: { id: userId } });
  if (!user || user.disabledAt) throw new Refusal(401, 'not_authenticated', 'The credential is not valid.');
  response.set(await spend(userId));
  response.locals.session = { userId, expires };
  next();
}

/** @type {express.RequestHandler} */
async function openProject(request, response, next) {
  const { organization_id, project_id } = request.params;
  if (!Object.values(request.params).every(isUuid)) throw notFound();
  const { userId } = response.locals.session;
  const found = await prisma.project.findFirst({
    where: { id: project_id, organizationId: organization_id },
    select: {
      organization: { select: { currency: true, members: { where: { userId }, select: { role: true } } } },
      members: { where: { userId }, select: { role: true } },
    },
  });
  const member = found?.organization.members[0];
  const role = roleOf(member && { organization_role: member.role, project_role: found.members[0]?.role ?? null });
  response.locals.project = { organizationId: organization_id, projectId: project_id, role, currency: found.organization.currency };
  next();
}

const project = '/v1/organizations/:organization_id/projects/:project_id';
const app = express();
app.disable('x-powered-by');
app.disable('etag');
app.use(helmet());
app.use('/v1', authenticate, express.json());

app.post(`${project}/websocket-tickets`, openProject, async (request, response) => {
  const { target, instance_id, session_id } = ticketBody.parse(request.body);
  const { organizationId, projectId, role } = response.locals.project;
  const { userId, expires: sessionExpires } = response.locals.session;
  const instanceId = target === 'console' ? instance_id : null;
  if (target === 'console' && !(await prisma.instance.findFirst({ where: { id: instanceId, projectId }, select: { id: true } })))
    throw notFound();
  requireRole(role, target === 'console' ? 'member' : 'viewer');
  const ticket = randomBytes(32).toString('base64url');
  const ticketHash = createHash('sha256').update(ticket).digest();
  const created = new Date();
  const expires = new Date(created.getTime() + TICKET_SECONDS * 1000);
  const data = { ticketHash, target, projectId, userId, instanceId, sessionId: session_id ?? null, created, expires, sessionExpires };
  await prisma.websocketTicket.create({ data, select: { target: true } });
  const base = `/v1/organizations/${organizationId}/projects/${projectId}`;
  const path = instanceId ? `${base}/compute/instances/${instanceId}/console/ws` : `${base}/notifications/ws`;
  response.status(201).set('Cache-Control', 'no-store').json({ ticket, path, expires_in: TICKET_SECONDS });
});

app.put(`${project}/monitoring/dashboards/:dashboard_id`, openProject, async (request, response) => {
  const { name, description, widgets, is_default: isDefault, is_public: isPublic } = dashboardBody.parse(request.body);
  const { organizationId, projectId, role } = response.locals.project;
  const { userId } = response.locals.session;
  const id = request.params.dashboard_id;
  const visible = role === 'admin' ? {} : { OR: [{ isPublic: true }, { createdById: userId }] };
  const before = await prisma.dashboard.findFirst({ where: { id, projectId, ...visible }, select: { createdById: true } });
  if (!before) throw notFound();
  requireRole(role, before.createdById === userId ? 'member' : 'admin');
  const modified = new Date();
  if (isDefault) {
    const data = { isDefault: false, version: { increment: 1 }, modified };
    await prisma.dashboard.updateMany({ where: { projectId, isDefault: true, id: { not: id } }, data });
  }
  const expected = /^"(\d+)"$/.exec(request.headers['if-match'] ?? '')?.[1];
  const json = widgets === null ? Prisma.JsonNull : widgets;
  const data = { name, description, widgets: json, isDefault, isPublic, version: { increment: 1 }, modified };
  const row = await prisma.dashboard
    .update({ where: { id, projectId, ...(expected && { version: Number(expected) }) }, data })
    .catch((/** @type {{code?: string}} */ failure) => {
      throw failure.code === 'P2025' ? new Refusal(409, 'conflict', 'The dashboard has been changed since the expected version.') : failure;
    });
  response.set('ETag', `"${row.version}"`).json({
    id: row.id,
    name: row.name,
    organization: organizationId,
    created_by: row.createdById,
    created: row.created,
    modified: row.modified,
    description: row.description,
    project: row.projectId,
    widgets: row.widgets,
    is_default: row.isDefault,
    is_public: row.isPublic,
  });
});

app.get(`${project}/compute/instances/:instance_id/backup-trial`, openProject, async (request, response) => {
  const { projectId, currency } = response.locals.project;
  const instance = await prisma.instance.findFirst({
    where: { id: request.params.instance_id, projectId },
    select: {
      status: true,
      dailyBackup: true,
      plan: true,
      billingService: { select: { clientId: true, cycle: true } },
      backupTrials: { orderBy: [{ created: 'desc' }, { id: 'desc' }], take: 1 },
      _count: { select: { backupTrials: { where: { status: { in: ['pending', 'active'] } } } } },
    },
  });
  if (!instance) throw notFound();
  const { billingService: service } = instance;
  const option = await prisma.backupOption.findUnique({ where: { plan: instance.plan }, include: { prices: true } });
  const reason = reasonOf({
    status: instance.status,
    daily_backup: instance.dailyBackup,
    has_open_trial: instance._count.backupTrials > 0,
    has_service: service !== null,
    has_client: service !== null && service.clientId !== null,
    has_option: option !== null,
    is_cycle_sold: option?.prices.some((/** @type {{cycle: string}} */ price) => price.cycle === service?.cycle),
  });
  const [trial] = instance.backupTrials;
  response.json({
    trial: trial
      ? {
          id: trial.id,
          instance: trial.instanceId,
          instance_name: trial.instanceName,
          legacy_service_id: trial.legacyServiceId,
          legacy_order_id: trial.legacyOrderId,
          legacy_invoice_id: trial.legacyInvoiceId,
          status: trial.status,
          source: trial.source,
          trial: trial.trial,
          cycle: trial.cycle,
          monthly_price: trial.monthlyPrice.toFixed(2),
          cycle_price: trial.cyclePrice.toFixed(2),
          credited: trial.credited.toFixed(2),
          started_at: trial.startedAt,
          ends_at: trial.endsAt,
          reminded_at: trial.remindedAt,
          resolved_at: trial.resolvedAt,
          failure_reason: trial.failureReason,
          created: trial.created,
        }
      : null,
    eligible: reason === '',
    reason,
    monthly_price: option?.monthlyPrice.toFixed(2) ?? '0.00',
    currency: option?.currency ?? currency,
    trial_days: option?.trialDays ?? 0,
  });
});

app.get(`${project}/compute/overview`, openProject, async (_request, response) => {
  const { projectId } = response.locals.project;
  const now = Date.now();
  const dayAgo = new Date(now - 24 * HOUR_MS);
  const [counters, resources, recent, cancellations, failed, stuck] = await Promise.all([
    prisma.instanceCounter.groupBy({
      by: ['status'],
      where: { projectId, status: { not: 'deleted' } },
      _sum: { instances: true, vcpu: true, ramMb: true, storageGb: true, withoutHypervisor: true, throttled: true },
    }),
    prisma.resourceCounter.groupBy({ by: ['kind'], where: { projectId }, _sum: { resources: true, storageGb: true } }),
    prisma.task.groupBy({ by: ['status'], where: { projectId, created: { gte: dayAgo } }, _count: { _all: true } }),
    prisma.instance.count({ where: { projectId, cancellationAt: { gt: new Date(now) }, status: { not: 'deleted' } } }),
    prisma.task.count({ where: { projectId, status: 'failed', finished: { gte: dayAgo } } }),
    prisma.task.count({ where: { projectId, status: { in: ['pending', 'running'] }, created: { lt: new Date(now - HOUR_MS) } } }),
  ]);
  const rows = counters.map((/** @type {{status: string, _sum: Record<string, bigint>}} */ { status, _sum }) => ({ status, sum: _sum }));
  const total = (/** @type {string} */ name) =>
    rows.reduce((/** @type {number} */ sum, /** @type {{sum: Record<string, bigint>}} */ row) => sum + Number(row.sum[name]), 0);
  const byKind = new Map(resources.map((/** @type {{kind: string, _sum: Record<string, bigint>}} */ { kind, _sum }) => [kind, _sum]));
  const count = (/** @type {string} */ kind) => Number(byKind.get(kind)?.resources ?? 0);
  const byStatus = (/** @type {Array<{status: string, count: number}>} */ list) => list.sort((a, b) => (a.status < b.status ? -1 : 1));
  const tasks = byStatus(
    recent.map((/** @type {{status: string, _count: {_all: number}}} */ { status, _count }) => ({ status, count: _count._all })),
  );
  const instances = byStatus(
    rows.flatMap((/** @type {{status: string, sum: Record<string, bigint>}} */ { status, sum }) =>
      sum.instances ? [{ status, count: Number(sum.instances) }] : [],
    ),
  );
  response.json([
    {
      attention: {
        instances_without_hypervisor: total('withoutHypervisor'),
        instances_suspended: instances.find(({ status }) => status === 'suspended')?.count ?? 0,
        instances_throttled: total('throttled'),
        cancellations_scheduled: cancellations,
        tasks_failed_24h: failed,
        tasks_stuck: stuck,
      },
      instances_by_status: instances,
      instances_total: total('instances'),
      resources_allocated: {
        vcpu: total('vcpu'),
        ram_mb: total('ramMb'),
        ram_gb: Math.floor(total('ramMb') / 1024),
        storage_gb: total('storageGb'),
      },
      resources_count: {
        volumes: count('volumes'),
        vpcs: count('vpcs'),
        ssh_keys: count('ssh_keys'),
        snapshots: count('snapshots'),
        backups: count('backups'),
        storage_gb: Number(byKind.get('volumes')?.storageGb ?? 0),
      },
      tasks_by_status: tasks,
      tasks_recent_count: tasks.reduce((sum, task) => sum + task.count, 0),
    },
  ]);
});

app.post(`${project}/notifications/read`, openProject, async (request, response) => {
  const { notification_ids } = readBody.parse(request.body ?? {});
  const { projectId } = response.locals.project;
  const ids = notification_ids?.length ? notification_ids : null;
  const [row] = await prisma.$queryRaw`
    SELECT marked::int, unread_count::int
    FROM mark_notifications_read(${projectId}::uuid, ${response.locals.session.userId}::uuid, ${ids}::uuid[], NULL)`;
  response.json(row);
});

app.use((/** @type {express.Request} */ _request, /** @type {express.Response} */ _response) => {
  throw notFound();
});

/** @type {express.ErrorRequestHandler} */
function answerFailure(failure, _request, response, _next) {
  if (failure instanceof z.ZodError) {
    response.status(400).json(Object.fromEntries(failure.issues.map(({ path, message }) => [String(path[0]), [message]])));
    return;
  }
  const isRefusal = failure instanceof Refusal;
  if (!isRefusal) console.error(failure);
  const { status, code, message } = isRefusal ? failure : { status: 500, code: 'internal_error', message: 'Internal error.' };
  response.status(status).json({ detail: message, code, error: message });
}
app.use(answerFailure);

listen(createServer(app));
