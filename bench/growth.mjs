// Whether an operation's time grows with the data: the same request on much and on little data, alternating, one at a time.
import { Agent, request as httpRequest } from 'node:http';
import { query } from './database.mjs';
import { idOf, sizesOf } from './fill.mjs';
import { median } from './load.mjs';
import { start } from './servers.mjs';
import { short, table } from './table.mjs';

const organization = idOf('organization', 1);
const [big, small, busy] = [idOf('project', 1), idOf('project', 2), idOf('project', 3)];
const WARMUPS = 100;
/** The number of users: each marks all as read once. */
const REPEATS = 300;

/** @param {import('./main.mjs').Bench} bench @returns {Promise<import('./main.mjs').Section>} */
export async function measureGrowth({ databaseUrl, scale, key, say }) {
  const size = sizesOf(scale);
  const server = await start('portico', { databaseUrl, key });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  /** @param {number} user @param {string} method @param {string} path @param {unknown} [body] @returns {Promise<{ms: number, body: any}>} */
  const time = async (user, method, path, body) => {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const headers = {
      authorization: `Bearer ${await key.tokenOf(user)}`,
      ...(text !== undefined && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
    };
    const began = performance.now();
    return new Promise((resolve, reject) => {
      const sent = httpRequest(server.baseUrl + path, { method, headers, agent }, (response) => {
        let received = '';
        response.setEncoding('utf8');
        response.on('data', (part) => {
          received += part;
        });
        response.on('end', () => {
          const ms = performance.now() - began;
          const parsed = JSON.parse(received);
          if (response.statusCode !== 200 || parsed.errors) reject(new Error(`${path}: ${response.statusCode} ${received.slice(0, 500)}`));
          else resolve({ ms, body: parsed });
        });
      });
      sent.on('error', reject);
      sent.end(text);
    });
  };
  const rest =
    (/** @type {string} */ method, /** @type {string} */ project, /** @type {string} */ path, /** @type {unknown} */ body) =>
    (/** @type {number} */ user) =>
      time(user, method, `/v1/organizations/${organization}/projects/${project}/${path}`, body);
  const graphql = (/** @type {string} */ project, /** @type {string} */ selection) => {
    const document = `query Read($organizationId: ID!, $id: ID!) { project(organizationId: $organizationId, id: $id) { ${selection} } }`;
    const body = { query: document, variables: { organizationId: organization, id: project } };
    return async (/** @type {number} */ user) => {
      const { ms, body: result } = await time(user, 'POST', '/graphql', body);
      return { ms, body: result.data.project };
    };
  };
  const page = (/** @type {string} */ after) =>
    graphql(
      big,
      `notifications(first: 20${after}) { nodes { id sequence kind severity title body data created read } pageInfo { hasNextPage endCursor } }`,
    );
  const deep = Math.round(size.notifications * 0.9);
  const cursor = Buffer.from(String(size.notifications - deep + 1)).toString('base64url');
  const firstOf = (/** @type {any} */ body) => body.notifications.nodes[0].sequence;

  const comparisons = [
    {
      what: 'compute overview',
      much: { label: `${size.big.toLocaleString('en')} instances`, ask: rest('GET', big, 'compute/overview', undefined) },
      little: { label: `${size.small.toLocaleString('en')} instances`, ask: rest('GET', small, 'compute/overview', undefined) },
      check: (/** @type {any} */ much, /** @type {any} */ little) => much[0].instances_total > little[0].instances_total,
    },
    {
      what: 'compute overview',
      much: { label: `${size.tasksOfDay.toLocaleString('en')} tasks of a day`, ask: rest('GET', busy, 'compute/overview', undefined) },
      little: { label: 'a few', ask: rest('GET', small, 'compute/overview', undefined) },
      check: (/** @type {any} */ much, /** @type {any} */ little) => much[0].tasks_recent_count > 100 * little[0].tasks_recent_count,
    },
    {
      what: 'unread count',
      much: { label: `${size.notifications.toLocaleString('en')} unread`, ask: graphql(big, 'unreadNotificationCount') },
      little: { label: `${size.notificationsSmall} unread`, ask: graphql(small, 'unreadNotificationCount') },
      check: (/** @type {any} */ much, /** @type {any} */ little) =>
        much.unreadNotificationCount === size.notifications && little.unreadNotificationCount === size.notificationsSmall,
    },
    {
      what: 'notification list',
      much: { label: `behind a cursor ${deep.toLocaleString('en')} deep`, ask: page(`, after: "${cursor}"`) },
      little: { label: 'first page', ask: page('') },
      check: (/** @type {any} */ much, /** @type {any} */ little) =>
        firstOf(much) === size.notifications - deep && firstOf(little) === size.notifications,
    },
    {
      what: 'mark all as read',
      much: { label: `${size.notifications.toLocaleString('en')} unread`, ask: rest('POST', big, 'notifications/read', {}) },
      little: { label: `${size.notificationsSmall} unread`, ask: rest('POST', small, 'notifications/read', {}) },
      check: (/** @type {any} */ much, /** @type {any} */ little) =>
        much.marked === size.notifications && little.marked === size.notificationsSmall,
    },
  ];
  try {
    await query(databaseUrl, 'TRUNCATE notification_reads, notification_states');
    const rows = [];
    for (const { what, much, little, check } of comparisons) {
      const times = { much: /** @type {number[]} */ ([]), little: /** @type {number[]} */ ([]) };
      for (let index = 0; index < WARMUPS + REPEATS; index += 1) {
        const user = 1 + index;
        // Alternates which one is first.
        const [first, second] = index % 2 === 0 ? [much, little] : [little, much];
        const results = [await first.ask(user), await second.ask(user)];
        const [ofMuch, ofLittle] = index % 2 === 0 ? results : results.reverse();
        if (!ofMuch || !ofLittle || !check(ofMuch.body, ofLittle.body))
          throw new Error(`${what}: ${JSON.stringify([ofMuch?.body, ofLittle?.body])}`);
        if (index < WARMUPS) continue;
        times.much.push(ofMuch.ms);
        times.little.push(ofLittle.ms);
      }
      const figures = { much: median(times.much), little: median(times.little) };
      rows.push({ what, much: much.label, little: little.label, figures, ratio: figures.much / figures.little });
      say(`  ${what}: ${figures.much.toFixed(2)} ms against ${figures.little.toFixed(2)} ms`);
    }
    return {
      title: 'Growth with the data',
      text: table(
        ['operation', 'on', 'p50 ms', 'on', 'p50 ms', 'ratio'],
        rows.map(({ what, much, little, figures, ratio }) => [
          what,
          much,
          short(figures.much),
          little,
          short(figures.little),
          short(ratio),
        ]),
      ),
      claims: rows.map(({ what, much, little, ratio }) => ({ what: `${what}: ${much} against ${little}, p50`, figure: ratio, bound: 1.3 })),
    };
  } finally {
    agent.destroy();
    await server.stop();
    await query(databaseUrl, 'TRUNCATE notification_reads, notification_states');
  }
}
