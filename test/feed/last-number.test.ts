import { afterAll, beforeAll, expect, it } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { type FeedSocket, openPlainFeed, openSocket, publish } from '../support/feed.ts';
import { sqlState } from '../support/sql.ts';

/** The largest Int of GraphQL. */
const LAST = 2_147_483_647;

let app: TestApp;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.close());

const run = (sql: string) => app.app.database.prisma.$executeRawUnsafe(sql);
const pathOf = (projectId: string) => `/v1/organizations/${app.demo.organization_id}/projects/${projectId}/notifications`;
const openFeed = (projectId: string) =>
  openSocket(app, `${pathOf(projectId)}/ws`, { headers: { authorization: `Bearer ${app.demo.users.owner.token}` } });
const insertInto = (projectId: string) =>
  run(`INSERT INTO notifications (project_id, kind, severity, title) VALUES ('${projectId}', 'test.last', 'info', 'last')`);
const setLast = (projectId: string, last: number) =>
  run(`UPDATE notification_logs SET last_sequence = ${last}, pruned_through = ${last} WHERE project_id = '${projectId}'`);
const isReady = ({ type }: { type: string }) => type === 'ready';

/** Waits until a feed has delivered an entry that another program wrote, also into other logs, which only the poll finds. */
async function expectDelivery(feed: FeedSocket, ...others: string[]) {
  const countDelivered = () => feed.frames.filter((frame) => JSON.stringify(frame).includes('"test.last"')).length;
  const before = countDelivered();
  for (const projectId of [...others, app.demo.project_id]) await insertInto(projectId);
  await expect.poll(countDelivered).toBe(before + 1);
}

it('a log ends with the largest Int of GraphQL, and other logs continue', async () => {
  const { empty_project_id: full, organization_id: organizationId } = app.demo;
  await setLast(full, LAST - 1);
  const [feed, other] = [openFeed(full), openPlainFeed(app)];
  await Promise.all([feed.until(isReady), other.until(isReady)]);
  await expectDelivery(other, full);
  expect((await feed.until(({ type }) => type === 'notification')).sequence).toBe(LAST);

  expect(await insertInto(full).then(() => 'inserted', sqlState)).toBe('2200H');
  const input = { organizationId, projectId: full, kind: 'test.last', severity: 'info', title: 'beyond' };
  const refused = await app.graphql(
    'mutation ($input: PublishNotificationInput!) { publishNotification(input: $input) { notification { sequence } } }',
    { input },
  );
  expect(refused.json.errors[0].extensions).toMatchObject({
    code: 'conflict',
    context: { quota: 'notifications_per_project', limit: LAST },
  });
  expect(await app.ask('GET', pathOf(full))).toMatchObject({ status: 200, json: { count: 1, results: [{ sequence: LAST }] } });
  expect(await app.ask('POST', `${pathOf(full)}/read`, { body: {} })).toMatchObject({ status: 200, json: { marked: 1, unread_count: 0 } });
  expect(await publish(app, 'another log')).toBeGreaterThan(0);
  await expectDelivery(other);
  for (const { socket } of [feed, other]) socket.terminate();
});

it('a log beyond the largest Int does not hold up other logs', async () => {
  const { empty_project_id: beyond, users } = app.demo;
  await setLast(beyond, LAST - 1);
  const [feed, other] = [openFeed(beyond), openPlainFeed(app)];
  await Promise.all([feed.until(isReady), other.until(isReady)]);
  await setLast(beyond, LAST + 9);
  await run(`UPDATE notification_states SET version = ${LAST + 9} WHERE project_id = '${beyond}' AND user_id = '${users.owner.id}'`);
  await expectDelivery(other);
  await expectDelivery(other);
  expect(app.logLines.filter((line) => /22003|out of range/.test(line))).toEqual([]);
  for (const { socket } of [feed, other]) socket.terminate();
});
