import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { FairLimit } from '../../src/kernel/fairlimit.ts';
import { startApp, type TestApp } from '../support/app.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp();
  const { project_id: projectId, users } = app.demo;
  const widgets = { text: 'x'.repeat(200_000) };
  // A user sees their own dashboards.
  const data = [users.owner, users.member, users.viewer].flatMap(({ id: createdById }) =>
    ['one', 'two'].map((name) => ({ projectId, createdById, name, widgets })),
  );
  await app.app.database.prisma.dashboard.createMany({ data });
});
afterAll(() => app.close());

const codesOf = (errors: Array<{ extensions: { code: string } }>) => errors.map(({ extensions }) => extensions.code);

/** Reads two lists: after the first has waited for the slot, the response has it. */
const readDashboards = (bearer: string) =>
  app.graphql(
    `query ($o: ID!, $p: ID!) {
      a: project(organizationId: $o, id: $p) { dashboards(first: 100) { nodes { widgets } } }
      b: project(organizationId: $o, id: $p) { dashboards(first: 99) { nodes { widgets } } }
    }`,
    { o: app.demo.organization_id, p: app.demo.project_id },
    { as: { bearer } },
  );

/** Lets a large response wait for its slot until `meanwhile` has come to its end, and for more than a second. */
async function readAfter(bearer: string, meanwhile: () => Promise<unknown>) {
  const run = vi.spyOn(FairLimit.prototype, 'run');
  await readDashboards(app.demo.users.owner.api_key);
  const slots = run.mock.contexts.at(-1) as FairLimit;
  let release = () => {};
  const holding = slots.run('another', () => new Promise<void>((resolve) => (release = resolve)));
  run.mockClear();
  const response = readDashboards(bearer);
  await expect.poll(() => run.mock.calls.length).toBe(1);
  run.mockRestore();
  await meanwhile();
  await sleep(1_100);
  release();
  await holding;
  return (await response).json;
}

it('a response that waited for the slot of large ones is read while the access lasts', async () => {
  const { data, errors } = await readAfter(app.demo.users.member.api_key, async () => {});
  expect(errors).toBeUndefined();
  for (const { dashboards } of [data.a, data.b]) expect(dashboards.nodes.length).toBeGreaterThan(2);
});

it('a response that waited for the slot of large ones is not read once the project is lost', async () => {
  const { users, project_id: projectId } = app.demo;
  const { data, errors } = await readAfter(users.member.api_key, () =>
    app.app.database.prisma.projectMember.deleteMany({ where: { projectId, userId: users.member.id } }),
  );
  expect([data.a, data.b]).toEqual([null, null]);
  expect(codesOf(errors)).toEqual(['not_found', 'not_found']);
});

it('a response that waited for the slot of large ones is not read once the credential is revoked', async () => {
  const { id } = app.demo.users.viewer;
  const { data, errors } = await readAfter(app.demo.users.viewer.api_key, () =>
    app.app.database.prisma.user.update({ where: { id }, data: { disabledAt: new Date() } }),
  );
  expect([data.a, data.b]).toEqual([null, null]);
  expect(codesOf(errors)).toEqual(['not_authenticated', 'not_authenticated']);
});
