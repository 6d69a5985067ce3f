// The least possible server: node:http, one prepared statement per request, and a response that the database serializes.
import { createHash, randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { isUuid, listen, notFound, openPool, Refusal, spend, verify } from './access.mjs';
import { floor } from './statements.mjs';

const pool = openPool();
const TICKET_SECONDS = 30;

/** @param {import('node:http').IncomingMessage} request @returns {Promise<any>} */
async function readBody(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  const text = Buffer.concat(parts).toString();
  return text ? JSON.parse(text) : {};
}

/** @param {{name: string, text: string}} statement @param {unknown[]} values */
async function ask(statement, values) {
  const { rows } = await pool.query({ ...statement, values });
  if (!rows[0]) throw notFound();
  return rows[0];
}

/** @typedef {{ids: string[], rest: string[], userId: string, expires: Date, request: import('node:http').IncomingMessage}} Call */

/** @param {Call} call */
async function createTicket({ ids, userId, expires, request }) {
  const { target, instance_id = null, session_id = null } = await readBody(request);
  if (target !== 'notifications' && target !== 'console') throw new Refusal(400, 'invalid_request', 'target');
  const ticket = randomBytes(32).toString('base64url');
  const hash = createHash('sha256').update(ticket).digest();
  await ask(floor.ticket, [...ids, userId, hash, target, instance_id, session_id, expires]);
  const project = `/v1/organizations/${ids[0]}/projects/${ids[1]}`;
  const path = target === 'console' ? `${project}/compute/instances/${instance_id}/console/ws` : `${project}/notifications/ws`;
  return { status: 201, text: JSON.stringify({ ticket, path, expires_in: TICKET_SECONDS }) };
}

/** @param {Call} call */
async function updateDashboard({ ids, rest, userId, request }) {
  const { name, description = '', widgets = [], is_default = false, is_public = false } = await readBody(request);
  if (typeof name !== 'string' || name === '') throw new Refusal(400, 'invalid_request', 'name');
  const version = /^"(\d+)"$/.exec(request.headers['if-match'] ?? '')?.[1] ?? null;
  if (is_default) await pool.query({ ...floor.clearDefault, values: [...ids, userId, rest[0]] });
  const values = [...ids, userId, rest[0], name, description, JSON.stringify(widgets), is_default, is_public, version];
  const row = await ask(floor.dashboard, values);
  return { status: 200, text: row.response, etag: `"${row.version}"` };
}

/** @param {Call} call */
async function readTrial({ ids, rest, userId }) {
  return { status: 200, text: (await ask(floor.backupTrial, [...ids, userId, rest[0]])).response };
}

/** @param {Call} call */
async function readOverview({ ids, userId }) {
  return { status: 200, text: (await ask(floor.overview, [...ids, userId])).response };
}

/** @param {Call} call */
async function markRead({ ids, userId, request }) {
  const { notification_ids } = await readBody(request);
  return { status: 200, text: (await ask(floor.markRead, [...ids, userId, notification_ids?.length ? notification_ids : null])).response };
}

/** @type {Array<[string, RegExp, (call: Call) => Promise<{status: number, text: string, etag?: string}>]>} */
const routes = [
  ['POST', /^\/websocket-tickets$/, createTicket],
  ['PUT', /^\/monitoring\/dashboards\/([^/]+)$/, updateDashboard],
  ['GET', /^\/compute\/instances\/([^/]+)\/backup-trial$/, readTrial],
  ['GET', /^\/compute\/overview$/, readOverview],
  ['POST', /^\/notifications\/read$/, markRead],
];

/** @param {import('node:http').IncomingMessage} request @param {import('node:http').ServerResponse} response */
async function answer(request, response) {
  const { userId, expires } = await verify(request.headers.authorization);
  for (const [name, value] of Object.entries(await spend(userId))) response.setHeader(name, value);
  const [, organization = '', project = '', path = ''] =
    /^\/v1\/organizations\/([^/]+)\/projects\/([^/]+)(\/.*)$/.exec(request.url ?? '') ?? [];
  for (const [method, pattern, serve] of routes) {
    const match = request.method === method && pattern.exec(path);
    if (!match) continue;
    if (![organization, project, ...match.slice(1)].every(isUuid)) break;
    const { status, text, etag } = await serve({ ids: [organization, project], rest: match.slice(1), userId, expires, request });
    const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text), ...(etag && { ETag: etag }) };
    response.writeHead(status, headers).end(text);
    return;
  }
  throw notFound();
}

const server = createServer((request, response) => {
  answer(request, response).catch((failure) => {
    if (!(failure instanceof Refusal)) console.error(failure);
    const { status, code, message } =
      failure instanceof Refusal ? failure : { status: 500, code: 'internal_error', message: 'Internal error.' };
    response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify({ detail: message, code, error: message }));
  });
});
listen(server);
