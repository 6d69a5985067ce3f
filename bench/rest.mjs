// The five operations of v1: the requests, and the parts of a response that are compared.
import { bothCpu, compare, nodeCpu, pacedP99, ratio, throughput } from './compare.mjs';
import { idOf, ORGANIZATIONS, PROJECTS, sizesOf, USERS } from './fill.mjs';
import { startAll } from './servers.mjs';
import { comparison } from './table.mjs';

const PROJECTS_EACH = PROJECTS / ORGANIZATIONS;
const USERS_EACH = USERS / ORGANIZATIONS;
/** The number of different requests: enough that within one measurement hardly any is sent twice. */
const COUNT = 9_984;

const numbers = Array.from({ length: COUNT }, (_, index) => index);
const organizationOf = (/** @type {number} */ project) => 1 + Math.floor((project - 1) / PROJECTS_EACH);
const pathOf = (/** @type {number} */ project) =>
  `/v1/organizations/${idOf('organization', organizationOf(project))}/projects/${idOf('project', project)}`;

/** A user and one of their projects; each index gives another pair. @param {number} index */
export function pairOf(index) {
  const user = 1 + (index % USERS);
  const organization = 1 + Math.floor((user - 1) / USERS_EACH);
  const project = PROJECTS_EACH * (organization - 1) + 1 + (Math.floor(index / USERS) % PROJECTS_EACH);
  return { user, organization, project };
}

/**
 * @typedef {object} Operation
 * @property {string} name
 * @property {(tokenOf: (user: number) => Promise<string>) => Promise<import('./load.mjs').Request[]>} requests
 * @property {(body: any) => unknown} comparable the part of a response that must be the same for every peer
 */

/** @param {number} scale @returns {Operation[]} */
export function restOperations(scale) {
  const size = sizesOf(scale);
  const make =
    (/** @type {string} */ method, /** @type {(index: number) => {user: number, path: string, body?: unknown}} */ describe) =>
    async (/** @type {(user: number) => Promise<string>} */ tokenOf) =>
      Promise.all(
        numbers.map(async (index) => {
          const { user, path, body } = describe(index);
          const headers = {
            authorization: `Bearer ${await tokenOf(user)}`,
            ...(body !== undefined && { 'content-type': 'application/json' }),
          };
          return { method, path, headers, ...(body !== undefined && { body: JSON.stringify(body) }) };
        }),
      );
  return [
    {
      name: 'create_websocket_ticket',
      requests: make('POST', (index) => {
        const { user, project } = pairOf(index);
        return { user, path: `${pathOf(project)}/websocket-tickets`, body: { target: 'notifications' } };
      }),
      comparable: ({ ticket, ...body }) => ({ ...body, ticket: ticket.length }),
    },
    {
      name: 'update dashboard',
      // Every project has five dashboards, made by the first five users of its organization.
      requests: make('PUT', (index) => {
        const project = 1 + (Math.floor(index / 5) % PROJECTS);
        const number = index % 5;
        const user = 1 + USERS_EACH * (organizationOf(project) - 1) + number;
        const widgets = [
          { type: 'chart', metric: 'cpu', size: [4, 2] },
          { type: 'table', columns: ['name', 'status'], rows: 20 },
        ];
        const body = { name: `Dashboard ${index}`, description: 'Changed by the bench', widgets, is_public: index % 2 === 0 };
        return { user, path: `${pathOf(project)}/monitoring/dashboards/${idOf('dashboard', project * 100 + number)}`, body };
      }),
      comparable: ({ modified, ...body }) => ({ ...body, modified: Number.isNaN(Date.parse(modified)) }),
    },
    {
      name: 'backup trial state',
      requests: make('GET', (index) => {
        const first = size.big + size.small + 1;
        const instance = first + Math.floor((index * (size.instances - first)) / COUNT);
        const project = 3 + (instance % (PROJECTS - 2));
        const user = 1 + USERS_EACH * (organizationOf(project) - 1) + (index % USERS_EACH);
        return { user, path: `${pathOf(project)}/compute/instances/${idOf('instance', instance)}/backup-trial` };
      }),
      comparable: (body) => body,
    },
    {
      name: 'compute overview',
      requests: make('GET', (index) => {
        const { user, project } = pairOf(index);
        return { user, path: `${pathOf(project)}/compute/overview` };
      }),
      comparable: (body) => body,
    },
    {
      name: 'mark notifications as read',
      requests: make('POST', (index) => {
        const { user, project } = pairOf(index);
        const ids = [1, 2, 3].map((number) => idOf('notification', project * 10_000_000 + number + (index % 7)));
        return { user, path: `${pathOf(project)}/notifications/read`, body: { notification_ids: ids } };
      }),
      comparable: (body) => body,
    },
  ];
}

/** Compares Portico with hand-written servers and with the least possible one. @param {import('./main.mjs').Bench} bench @returns {Promise<import('./main.mjs').Section>} */
export async function measureRest({ databaseUrl, scale, key, ...options }) {
  const servers = await startAll(['portico', 'floor', 'express-pg', 'express-prisma'], { databaseUrl, key });
  try {
    const operations = await Promise.all(
      restOperations(scale).map(async ({ requests, ...operation }) => {
        const made = await requests(key.tokenOf);
        return { ...operation, requestsOf: async () => made };
      }),
    );
    const atFixedRate = ['portico', 'floor', 'express-pg'];
    const rows = await compare(operations, servers, { databaseUrl, key, ...options, atFixedRate });
    const byHand = { server: 'express-pg', words: 'hand-written Express + pg' };
    const floor = { server: 'floor', words: 'the floor' };
    const claims = operations.flatMap(({ name }) =>
      [
        { of: nodeCpu, words: 'Node’s CPU', peer: byHand, bound: 1 },
        { of: nodeCpu, words: 'Node’s CPU', peer: floor, bound: 1.8 },
        { of: bothCpu, words: 'CPU of Node and PostgreSQL', peer: byHand, bound: 0.6 },
        { of: bothCpu, words: 'CPU of Node and PostgreSQL', peer: floor, bound: 0.95 },
        { of: throughput, words: 'requests/s', peer: floor, bound: 1, atLeast: true },
        { of: pacedP99, words: 'p99 at a fixed rate', peer: floor, bound: 1.3 },
      ].map(({ of, words, peer, ...bound }) => ({
        what: `v1, ${name}: ${words} against ${peer.words}`,
        figure: ratio(rows, name, peer.server, of),
        ...bound,
      })),
    );
    return { title: 'v1 REST', text: comparison(rows), claims };
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
  }
}
