// Reads by GraphQL over HTTP, below one authorized project: four of single fields, and one along relations.
import { readFileSync } from 'node:fs';
import { bothCpu, compare, nodeCpu, ratio } from './compare.mjs';
import { query } from './database.mjs';
import { idOf } from './fill.mjs';
import { overview } from './peers/statements.mjs';
import { pairOf } from './rest.mjs';
import { newerNode, start, startAll } from './servers.mjs';
import { comparison } from './table.mjs';

const pageInfo = 'pageInfo { hasNextPage endCursor }';

/** Selections below the project. Lists have 20 items, which is every server's default. */
const selections = {
  overview: `computeOverview {
    attention {
      instancesWithoutHypervisor instancesSuspended instancesThrottled cancellationsScheduled tasksFailed24h tasksStuck
    }
    instancesByStatus { status count } instancesTotal resourcesAllocated { vcpu ramMb ramGb storageGb }
    resourcesCount { volumes vpcs sshKeys snapshots backups storageGb } tasksByStatus { status count } tasksRecentCount
  }`,
  notifications: `notifications(first: 20) {
    nodes { id sequence kind severity title body resourceType resourceId data created read } ${pageInfo}
  }`,
  dashboards: `dashboards(first: 20) {
    nodes { id name description widgets isDefault isPublic version created modified createdById } ${pageInfo}
  }`,
  instances: `instances(first: 20) {
    nodes {
      id name status plan region vcpu ramMb storageGb hypervisor created
      backupTrial {
        eligible reason monthlyPrice currency trialDays trial { id status source cycle monthlyPrice startedAt endsAt created }
      }
    } ${pageInfo}
  }`,
  relations: `instances(first: 20) {
    nodes {
      id name status plan region vcpu ramMb storageGb hypervisor created
      tasks(first: 3) { nodes { id kind status created started finished } }
      volumes(first: 20) { nodes { id name sizeGb created } }
      backupTrial {
        eligible reason monthlyPrice currency trialDays trial { id status source cycle monthlyPrice startedAt endsAt created }
      }
    } ${pageInfo}
  }`,
};

/** The same for PostGraphile, whose schema is derived from the database. */
const ofDatabase = {
  overview: 'computeOverview',
  notifications: `notifications: logEntries(first: 20) {
    nodes { id: rowId sequence kind severity title body resourceType resourceId data created read } ${pageInfo}
  }`,
  dashboards: `dashboards: visibleDashboards(first: 20) {
    nodes { id: rowId name description widgets isDefault isPublic version created modified createdById: createdBy } ${pageInfo}
  }`,
  instances: `instances: presentInstances(first: 20) {
    nodes { id: rowId name status plan region vcpu ramMb storageGb hypervisor created backupTrial } ${pageInfo}
  }`,
  relations: `instances: presentInstances(first: 20) {
    nodes {
      id: rowId name status plan region vcpu ramMb storageGb hypervisor created
      tasks: tasksByInstanceId(first: 3, orderBy: PRIMARY_KEY_DESC) { nodes { id: rowId kind status created started finished } }
      volumes: volumesByInstanceId(first: 20) { nodes { id: rowId name sizeGb created } }
      backupTrial
    } ${pageInfo}
  }`,
};

const names = /** @type {const} */ ({
  overview: 'compute overview',
  notifications: '20 notifications',
  dashboards: '20 dashboards',
  instances: '20 instances with backup trial',
  relations: '20 instances, each with three tasks, its volumes and its trial',
});
/** PostGraphile needs a newer Node.js than the others: it is compared with Portico on that version. */
const newer = 'portico on Node.js 24';

/**
 * Which peers are compared with Portico; the bounds of Portico's CPU relative to theirs: of Node.js, of Node.js and PostgreSQL, and
 * of Node.js on the newer version; and which servers get requests at a fixed rate.
 */
const groups = {
  lists: {
    node: { mercurius: 1, apollo: 0.5 },
    both: { mercurius: 0.8 },
    newer: { postgraphile: 0.7 },
    atFixedRate: ['portico', 'mercurius', 'apollo'],
  },
  relations: { node: { 'apollo-prisma': 0.6 }, both: {}, newer: { postgraphile: 1.5 }, atFixedRate: [] },
};

const COUNT = 9_984;
/** Projects with more than a page of dashboards. All lists use these projects, as the other figures are the same in every project. */
const hasManyDashboards = (/** @type {number} */ project) => project % 10 === 0;
const pairs = Array.from({ length: COUNT * 20 }, (_, index) => pairOf(index))
  .filter(({ project }) => hasManyDashboards(project))
  .slice(0, COUNT);

/** @param {keyof typeof selections} read */
const documentOf = (read) =>
  `query Read($organizationId: ID!, $id: ID!) { project(organizationId: $organizationId, id: $id) { ${selections[read]} } }`;

/** @param {keyof typeof selections} read */
const documentOfDatabase = (read) =>
  `query Read($organizationId: UUID!, $id: UUID!) { project: openProject(organizationId: $organizationId, projectId: $id) { ${ofDatabase[read]} } }`;

/** @param {string} document @param {(user: number) => Promise<string>} tokenOf */
function requestsOf(document, tokenOf) {
  return Promise.all(
    pairs.map(async ({ user, organization, project }) => ({
      method: 'POST',
      path: '/graphql',
      headers: { authorization: `Bearer ${await tokenOf(user)}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        query: document,
        variables: { organizationId: idOf('organization', organization), id: idOf('project', project) },
      }),
    })),
  );
}

/** The reads as requests to Portico. */
export const graphqlOperations = () =>
  Object.entries(names).map(([name, title]) => ({
    name: `GraphQL, ${title}`,
    requests: (/** @type {(user: number) => Promise<string>} */ tokenOf) =>
      requestsOf(documentOf(/** @type {keyof typeof selections} */ (name)), tokenOf),
  }));

/** @param {import('./main.mjs').Bench} bench @returns {Promise<import('./main.mjs').Section>} */
export async function measureGraphql({ databaseUrl, key, ...options }) {
  await query(databaseUrl, readFileSync(new URL('peers/postgraphile.sql', import.meta.url), 'utf8'));
  const figures = overview.text.replaceAll('$1', 'project.id');
  await query(
    databaseUrl,
    `CREATE OR REPLACE FUNCTION projects_compute_overview(project projects) RETURNS json LANGUAGE sql STABLE AS $$ ${figures} $$`,
  );
  const servers = await startAll(['portico', 'mercurius', 'apollo', 'apollo-prisma'], { databaseUrl, key });
  try {
    const node = newerNode();
    servers.push(await start('postgraphile', { databaseUrl, key, node }));
    servers.push(await start('portico', { label: newer, databaseUrl, key, node }));
    const operations = await Promise.all(
      Object.entries(names).map(async ([name, title]) => {
        const read = /** @type {keyof typeof selections} */ (name);
        const ours = await requestsOf(documentOf(read), key.tokenOf);
        const theirs = await requestsOf(documentOfDatabase(read), key.tokenOf);
        const requests = async (/** @type {string} */ server) => (server === 'postgraphile' ? theirs : ours);
        return { name: title, requestsOf: requests, comparable, group: read === 'relations' ? groups.relations : groups.lists };
      }),
    );
    /** @type {import('./compare.mjs').Row[]} */
    const rows = [];
    for (const group of Object.values(groups)) {
      const measured = operations.filter((operation) => operation.group === group);
      const beside = servers.filter(({ name }) => name === 'portico' || name === newer || name in group.node || name in group.newer);
      rows.push(...(await compare(measured, beside, { databaseUrl, key, ...options, atFixedRate: group.atFixedRate })));
    }
    const claims = operations.flatMap(({ name, group }) => [
      ...Object.entries(group.node).map(([peer, bound]) => ({
        what: `GraphQL, ${name}: Node’s CPU against ${peer}`,
        figure: ratio(rows, name, peer, nodeCpu),
        bound,
      })),
      ...Object.entries(group.both).map(([peer, bound]) => ({
        what: `GraphQL, ${name}: CPU of Node and PostgreSQL against ${peer}`,
        figure: ratio(rows, name, peer, bothCpu),
        bound,
      })),
      ...Object.entries(group.newer).map(([peer, bound]) => ({
        what: `GraphQL, ${name}: Node’s CPU against ${peer}, both on Node.js 24`,
        figure: ratio(rows, name, peer, nodeCpu, newer),
        bound,
      })),
    ]);
    return { title: 'GraphQL over HTTP', text: comparison(rows), claims };
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
  }
}

/**
 * A response without the differences in form. Cursors are opaque, and PostGraphile follows the database: snake_case within
 * JSON, enums in capitals, 64-bit numbers as strings, times with an offset. The values must be the same.
 * @param {any} response
 */
function comparable({ data, errors }) {
  if (errors) throw new Error(JSON.stringify(errors));
  return canonical(data);
}

/** @param {any} value @param {string} [name] @returns {any} */
function canonical(value, name) {
  if (name === 'endCursor') return typeof value;
  if (name === 'computeOverview' && Array.isArray(value)) return canonical(value[0]);
  if (Array.isArray(value)) return value.map((item) => canonical(item));
  if (typeof value === 'object' && value !== null) {
    const camel = (/** @type {string} */ key) => key.replace(/_(\w)/g, (_, letter) => letter.toUpperCase());
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [camel(key), canonical(item, camel(key))]));
  }
  if (typeof value !== 'string') return value;
  if (/^\d{4}-\d\d-\d\dT/.test(value)) return new Date(value).toISOString();
  if (/^[A-Z_]+$/.test(value)) return value.toLowerCase();
  return /^\d{1,15}$/.test(value) ? Number(value) : value;
}
