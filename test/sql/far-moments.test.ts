import { afterAll, beforeAll, expect, test } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { pickCases } from '../support/cases.ts';
import { withoutLinks } from '../support/links.ts';
import { sendInDemo } from '../support/matrix.ts';
import { graphqlOperations, routeOperations, variantsOf } from '../support/operations.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_USER: '1000000' });
});
afterAll(() => app.close());

/** The moments that a response shows, and that decide nothing. */
const columns: Readonly<Record<string, readonly string[]>> = {
  users: ['created'],
  organizations: ['created'],
  projects: ['created'],
  api_keys: ['created', 'last_used'],
  instances: ['created', 'modified', 'cancellation_at'],
  tasks: ['created', 'started', 'finished'],
  volumes: ['created'],
  snapshots: ['created'],
  backups: ['created'],
  vpcs: ['created'],
  ssh_keys: ['created'],
  dashboards: ['created', 'modified'],
  backup_trials: ['created', 'started_at', 'ends_at'],
  notifications: ['created'],
};

/** As another program could, whatever the triggers say. */
async function storeEverywhere(moment: string): Promise<void> {
  const updates = Object.entries(columns).map(
    ([table, names]) => `UPDATE ${table} SET ${names.map((name) => `${name} = '${moment}'`).join(', ')};`,
  );
  await app.app.database.prisma.$executeRawUnsafe(`DO $$ BEGIN SET LOCAL session_replication_role = replica; ${updates.join(' ')} END $$`);
}

test.each([
  ['infinity', '9999-12-31T23:59:59.999Z'],
  ['12000-01-01', '9999-12-31T23:59:59.999Z'],
  ['0044-03-15 12:00:00+00 BC', '0001-01-01T00:00:00.000Z'],
  ['-infinity', '0001-01-01T00:00:00.000Z'],
])('every read answers where every moment is %s', async (moment, shown) => {
  await storeEverywhere(moment);
  const reads = [...routeOperations(), ...graphqlOperations()].filter(({ isMutation }) => !isMutation);
  const texts: string[] = [];
  // Filters and orders read the same columns in the same way, whatever is in them; only these compare moments.
  const isOfMoments = (label: string) => /created|attention/.test(label);
  for (const operation of reads) {
    const variants = variantsOf(operation);
    const picked = pickCases(variants);
    const further = moment === 'infinity' ? variants.filter((one) => picked.includes(one) || isOfMoments(one.label)) : [];
    for (const { label, values } of variants.filter((one) => one.label === 'base' || further.includes(one))) {
      // What the items of a list lead to is read once.
      const sent = label === 'base' || operation.route ? operation : withoutLinks(operation);
      texts.push((await sendInDemo(app, 'owner', sent, values)).text);
    }
  }
  const found = new Set(texts.join().match(/"[+-]?\d{4,}-\d\d-\d\dT[^"]*"/g));
  expect(found).toContain(`"${shown}"`);
  for (const text of found) expect(text).toMatch(/^"\d{4}-/);
  const count = '{ totalCount nodes { region } }';
  const query = `query ($id: ID!, $region: Name) {
    project(id: $id) { instances ${count} filtered: instances(first: 100, filter: { region: $region }) ${count} }
  }`;
  const list = async (region: string | null) => (await app.graphql(query, { id: app.demo.project_id, region })).json.data.project;
  const { filtered } = await list((await list(null)).instances.nodes[0].region);
  expect(filtered.totalCount).toBeGreaterThan(1);
  expect(filtered.nodes).toHaveLength(filtered.totalCount);
  expect(app.logLines.filter((line) => JSON.parse(line).level === 'error')).toEqual([]);
});
