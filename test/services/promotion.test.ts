import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Cluster, openCluster } from '../support/cluster.ts';
import { openCrowd, type Sending } from '../support/crowd.ts';
import { checkHistory, type Entry } from '../support/history.ts';
import { openFleet } from '../support/replicas.ts';
import { execute } from '../support/sql.ts';
import { openStandby, type Standby } from '../support/standby.ts';
import { openSubscriber } from '../support/subscribers.ts';
import { drive, isGood } from '../support/traffic.ts';

let primary: Cluster;
let standby: Standby;
beforeAll(async () => {
  primary = await openCluster();
  standby = await openStandby(primary);
  await execute(primary.url, "ALTER SYSTEM SET synchronous_standby_names = '*'");
  await execute(primary.url, 'SELECT pg_reload_conf()');
});
afterAll(async () => {
  await standby?.close();
  await primary?.close();
});

const mutation = 'mutation ($input: PublishNotificationInput!) { publishNotification(input: $input) { notification { id sequence } } }';

it('the promotion of a synchronous standby loses no acknowledged write, and feeds continue over their open sockets', async () => {
  const fleet = await openFleet({ count: 1, databaseUrl: primary.url, redisUrl: null });
  const { demo, replicas } = fleet;
  const [replica] = replicas;
  if (!replica) throw new Error('no replica');
  const crowd = openCrowd(replica.baseUrl, '127.0.0.1', 8);
  try {
    const from = demo.notification_ids.length;
    const subscribers = (['plain', 'graphql'] as const).map((client) =>
      openSubscriber({ name: client, client, baseUrl: replica.baseUrl, demo, projectId: demo.project_id, as: 'owner', from }),
    );
    await expect.poll(() => subscribers.map(({ timesReady }) => timesReady)).toEqual([1, 1]);
    const headers = { authorization: `Bearer ${demo.users.owner.token}`, 'content-type': 'application/json' };
    const publication = (index: number): Sending => {
      const ids = { organizationId: demo.organization_id, projectId: demo.project_id };
      const variables = { input: { ...ids, kind: 'test.promotion', severity: 'info', title: String(index) } };
      return { method: 'POST', path: '/graphql', headers, body: JSON.stringify({ query: mutation, variables }) };
    };
    const writing = drive(crowd, 20, publication);
    const countGood = () => writing.outcomes.filter(isGood).length;
    await expect.poll(countGood).toBeGreaterThan(10);

    await primary.stop('immediate');
    await standby.promote();
    replica.database.retarget(Number(new URL(standby.url).port));
    const goodBefore = countGood();
    await expect.poll(countGood).toBeGreaterThan(goodBefore + 10);
    await writing.stop();

    const log = (await execute(
      standby.url,
      `SELECT sequence::int AS sequence, id::text AS id FROM notifications WHERE project_id = '${demo.project_id}' ORDER BY sequence`,
    )) as unknown as Entry[];
    const acknowledged = writing.outcomes.filter(isGood).map(({ text }) => JSON.parse(text).data.publishNotification.notification as Entry);
    expect(log).toEqual(expect.arrayContaining(acknowledged));
    expect(writing.outcomes.filter((outcome) => !isGood(outcome) && outcome.code !== 'service_unavailable')).toEqual([]);
    await expect.poll(() => subscribers.map(({ received }) => received.at(-1)?.sequence)).toEqual([log.length, log.length]);
    for (const { name, received, problems, timesReady, end } of subscribers) {
      expect([name, checkHistory({ committed: log, from, received }), problems, timesReady]).toEqual([name, [], [], 1]);
      end();
    }
    await expect.poll(() => replica.isReady()).toBe(true);
  } finally {
    crowd.close();
    await fleet.close();
  }
});
