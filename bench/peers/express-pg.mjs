// The five operations as one would write them by hand with Express and pg.
import { createHash, randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import express from 'express';
import helmet from 'helmet';
import { z } from 'zod';
import { isUuid, listen, notFound, openPool, Refusal, reasonOf, requireRole, roleOf, spend, verify } from './access.mjs';
import * as statements from './statements.mjs';

const pool = openPool();
const TICKET_SECONDS = 30;

/** @param {{name: string, text: string}} statement @param {unknown[]} values */
const query = async (statement, values) => (await pool.query({ ...statement, values })).rows;

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
  const [user] = await query(statements.user, [userId]);
  if (!user || user.disabled_at) throw new Refusal(401, 'not_authenticated', 'The credential is not valid.');
  response.set(await spend(userId));
  response.locals.session = { userId, expires };
  next();
}

/** @type {express.RequestHandler} */
async function openProject(request, response, next) {
  const { organization_id, project_id } = request.params;
  if (!Object.values(request.params).every(isUuid)) throw notFound();
  const [row] = await query(statements.access, [organization_id, project_id, response.locals.session.userId]);
  response.locals.project = { organizationId: organization_id, projectId: project_id, role: roleOf(row), currency: row?.currency };
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
  const { userId, expires } = response.locals.session;
  const instanceId = target === 'console' ? instance_id : null;
  if (target === 'console') {
    const [found] = await query(statements.instance, [instanceId, projectId]);
    if (!found) throw notFound();
  }
  requireRole(role, target === 'console' ? 'member' : 'viewer');
  const ticket = randomBytes(32).toString('base64url');
  const hash = createHash('sha256').update(ticket).digest();
  await query(statements.insertTicket, [hash, target, projectId, userId, instanceId, session_id ?? null, expires]);
  const base = `/v1/organizations/${organizationId}/projects/${projectId}`;
  const path = instanceId ? `${base}/compute/instances/${instanceId}/console/ws` : `${base}/notifications/ws`;
  response.status(201).set('Cache-Control', 'no-store').json({ ticket, path, expires_in: TICKET_SECONDS });
});

app.put(`${project}/monitoring/dashboards/:dashboard_id`, openProject, async (request, response) => {
  const { name, description, widgets, is_default, is_public } = dashboardBody.parse(request.body);
  const { organizationId, projectId, role } = response.locals.project;
  const { userId } = response.locals.session;
  const { dashboard_id } = request.params;
  const [before] = await query(statements.dashboard, [dashboard_id, projectId, role === 'admin', userId]);
  if (!before) throw notFound();
  requireRole(role, before.created_by === userId ? 'member' : 'admin');
  if (is_default) await query(statements.clearDefault, [projectId, dashboard_id]);
  const expected = /^"(\d+)"$/.exec(request.headers['if-match'] ?? '')?.[1] ?? null;
  const values = [dashboard_id, projectId, name, description, JSON.stringify(widgets), is_default, is_public, expected];
  const [row] = await query(statements.updateDashboard, values);
  if (!row) throw new Refusal(409, 'conflict', 'The dashboard has been changed since the expected version.');
  const { version, ...dashboard } = row;
  response.set('ETag', `"${version}"`).json({ ...dashboard, organization: organizationId });
});

app.get(`${project}/compute/instances/:instance_id/backup-trial`, openProject, async (request, response) => {
  const { projectId, currency } = response.locals.project;
  const ids = [request.params.instance_id];
  const [[facts], [trial]] = await Promise.all([query(statements.trialFacts, [ids, projectId]), query(statements.latestTrials, [ids])]);
  if (!facts) throw notFound();
  const reason = reasonOf(facts);
  const { monthly_price, trial_days } = facts;
  response.json({ trial: trial ?? null, eligible: reason === '', reason, monthly_price, currency: facts.currency ?? currency, trial_days });
});

app.get(`${project}/compute/overview`, openProject, async (_request, response) => {
  const [row] = await query(statements.overview, [response.locals.project.projectId]);
  response.json(row.response);
});

app.post(`${project}/notifications/read`, openProject, async (request, response) => {
  const { notification_ids } = readBody.parse(request.body ?? {});
  const { projectId } = response.locals.project;
  const ids = notification_ids?.length ? notification_ids : null;
  const [row] = await query(statements.markRead, [projectId, response.locals.session.userId, ids]);
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
