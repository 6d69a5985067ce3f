// Four reads by GraphQL over HTTP, under the project that was checked once.
import { compare } from './compare.mjs';
import { idOf } from './fill.mjs';
import { pairOf } from './rest.mjs';
import { startAll } from './servers.mjs';
import { comparison } from './table.mjs';

const pageInfo = 'pageInfo { hasNextPage endCursor }';

/** What hangs under the project. Lists are of 20, which is everybody's default too. */
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
};

const names = /** @type {const} */ ({
  overview: 'compute overview',
  notifications: '20 notifications',
  dashboards: '20 dashboards',
  instances: '20 instances with backup trial',
});

const COUNT = 9_984;
/** Those that have more than a page of dashboards; the figures are the same for every list, so all lists are of these. */
const hasManyDashboards = (/** @type {number} */ project) => project % 10 === 0;
const pairs = Array.from({ length: COUNT * 20 }, (_, index) => pairOf(index))
  .filter(({ project }) => hasManyDashboards(project))
  .slice(0, COUNT);

/** @param {keyof typeof selections} read @param {(user: number) => Promise<string>} tokenOf */
function requestsOf(read, tokenOf) {
  const query = `query Read($organizationId: ID!, $id: ID!) { project(organizationId: $organizationId, id: $id) { ${selections[read]} } }`;
  return Promise.all(
    pairs.map(async ({ user, organization, project }) => ({
      method: 'POST',
      path: '/graphql',
      headers: { authorization: `Bearer ${await tokenOf(user)}`, 'content-type': 'application/json' },
      body: JSON.stringify({ query, variables: { organizationId: idOf('organization', organization), id: idOf('project', project) } }),
    })),
  );
}

/** @param {import('./main.mjs').Bench} bench @returns {Promise<import('./main.mjs').Section>} */
export async function measureGraphql({ databaseUrl, key, ...options }) {
  const peers = ['mercurius', 'apollo'];
  const servers = await startAll(['portico', ...peers], { databaseUrl, key });
  try {
    const operations = await Promise.all(
      Object.entries(names).map(async ([read, name]) => {
        const made = await requestsOf(/** @type {keyof typeof selections} */ (read), key.tokenOf);
        return { name, requestsOf: async () => made, comparable };
      }),
    );
    const rows = await compare(operations, servers, { databaseUrl, ...options });
    const cpu = (/** @type {string} */ operation, /** @type {string} */ server) =>
      rows.find((row) => row.operation === operation && row.server === server)?.figures.cpuMicros ?? Number.NaN;
    const bounds = { mercurius: 1, apollo: 0.5, postgraphile: 0.7 };
    const claims = operations.flatMap(({ name }) =>
      peers.map((peer) => ({
        what: `GraphQL, ${name}: CPU against ${peer}`,
        figure: cpu(name, 'portico') / cpu(name, peer),
        bound: bounds[/** @type {keyof typeof bounds} */ (peer)],
      })),
    );
    return { title: 'GraphQL over HTTP', text: comparison(rows), claims };
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
  }
}

/** Cursors are everybody's own. @param {any} answer */
function comparable({ data, errors }) {
  if (errors) throw new Error(JSON.stringify(errors));
  return JSON.parse(JSON.stringify(data), (name, value) => (name === 'endCursor' ? typeof value : value));
}
