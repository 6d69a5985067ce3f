import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { copyTemplate } from '../support/app.ts';
import { type Crowd, openCrowd } from '../support/crowd.ts';
import { type FeedSocket, openSocket } from '../support/feed.ts';
import { openRedis, type RedisServer } from '../support/redis.ts';
import { type Fleet, openFleet } from '../support/replicas.ts';
import { execute } from '../support/sql.ts';
import { drive, type Outcome } from '../support/traffic.ts';

const REFUSED_WITHIN_MS = 1_000;
const CLOSED_WITHIN_MS = 5_000;
const SOCKETS_PER_REPLICA = 10;

let databaseUrl: string;
let redis: RedisServer;
let fleet: Fleet;
let crowds: Crowd[];
beforeAll(async () => {
  databaseUrl = await copyTemplate();
  redis = await openRedis();
  fleet = await openFleet({ count: 2, databaseUrl, redisUrl: redis.url, env: { LOG_LEVEL: 'error' } });
  crowds = fleet.replicas.map(({ baseUrl }) => openCrowd(baseUrl, '127.0.0.1', 20));
});
afterAll(async () => {
  for (const crowd of crowds ?? []) crowd.close();
  await fleet?.close();
  await redis?.close();
});

/** A user of the demo's organization with a role in its main project, a session token and an API key. */
interface Person {
  readonly id: string;
  readonly token: string;
  readonly key: string;
  readonly keyId: string;
}

async function graphqlAs(credential: string, query: string, variables?: object) {
  const headers = { authorization: `Bearer ${credential}`, 'content-type': 'application/json' };
  const { text } = await (crowds[0] as Crowd).send({
    method: 'POST',
    path: '/graphql',
    headers,
    body: JSON.stringify({ query, variables }),
  });
  const { data, errors } = JSON.parse(text);
  if (errors) throw new Error(text);
  return data;
}

async function findPerson(role: 'admin' | 'member' | 'viewer'): Promise<Person> {
  const { id, token = '' } = fleet.demo.users[role];
  const mutation = 'mutation { createApiKey(input: { name: "to be revoked" }) { key apiKey { id } } }';
  const { createApiKey } = await graphqlAs(token, mutation);
  return { id, token, key: createApiKey.key, keyId: createApiKey.apiKey.id };
}

/** Follows the main project on a plain-JSON socket or with the GraphQL subscription. */
function openFeed(baseUrl: string, credential: string, isGraphql: boolean): FeedSocket & { ready: Promise<unknown> } {
  const { demo, projectPath } = fleet;
  const headers = { authorization: `Bearer ${credential}` };
  if (!isGraphql) {
    const feed = openSocket({ baseUrl }, `${projectPath}/notifications/ws`, { headers });
    return { ...feed, ready: feed.until(({ type }) => type === 'ready') };
  }
  const feed = openSocket({ baseUrl }, '/graphql', { protocol: 'graphql-transport-ws', headers });
  const query = `subscription { notificationFeed(organizationId: "${demo.organization_id}", projectId: "${demo.project_id}") { __typename } }`;
  feed.socket.on('open', () => feed.socket.send('{"type":"connection_init"}'));
  const ready = feed
    .until(({ type }) => type === 'connection_ack')
    .then(() => feed.socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload: { query } })))
    .then(() => feed.until(({ type }) => type === 'next'));
  return { ...feed, ready };
}

const sql = (statement: string) => execute(databaseUrl, statement);

const cases: ReadonlyArray<{
  readonly name: string;
  readonly role: 'admin' | 'member' | 'viewer';
  readonly by: 'token' | 'key';
  readonly status: number;
  readonly revoke: (person: Person) => Promise<unknown>;
}> = [
  {
    name: 'a key that its user revokes',
    role: 'viewer',
    by: 'key',
    status: 401,
    revoke: ({ token, keyId }) =>
      graphqlAs(token, 'mutation ($id: ID!) { revokeApiKey(input: { id: $id }) { apiKey { id } } }', { id: keyId }),
  },
  {
    name: 'a member who is removed from the project',
    role: 'viewer',
    by: 'token',
    status: 404,
    revoke: ({ id }) => sql(`DELETE FROM project_members WHERE user_id = '${id}' AND project_id = '${fleet.demo.project_id}'`),
  },
  {
    name: 'an admin who is removed from the organization',
    role: 'admin',
    by: 'token',
    status: 404,
    revoke: ({ id }) => sql(`DELETE FROM organization_members WHERE user_id = '${id}'`),
  },
  {
    name: 'a key that expires',
    role: 'member',
    by: 'key',
    status: 401,
    revoke: ({ keyId }) => sql(`UPDATE api_keys SET expires = now() WHERE id = '${keyId}'`),
  },
  {
    name: 'a user who is disabled',
    role: 'member',
    by: 'token',
    status: 401,
    revoke: ({ id }) => sql(`UPDATE users SET disabled_at = now() WHERE id = '${id}'`),
  },
];

it.each(cases)('$name is refused by every replica within 1 s, and has no socket left after 5 s', async (one) => {
  const person = await findPerson(one.role);
  const credential = person[one.by];
  const feeds = fleet.replicas.flatMap(({ baseUrl }) =>
    Array.from({ length: SOCKETS_PER_REPLICA }, (_, index) => openFeed(baseUrl, credential, index % 2 === 0)),
  );
  await Promise.all(feeds.map(({ ready }) => ready));
  const sending = { path: `${fleet.projectPath}/notifications?page_size=1`, headers: { authorization: `Bearer ${credential}` } };
  const traffic = crowds.map((crowd) => drive(crowd, 40, () => sending));
  await sleep(500);

  await one.revoke(person);
  const revoked = performance.now();
  const closes = await Promise.race([
    Promise.all(feeds.map(async ({ closed }) => ({ ...(await closed), afterMs: performance.now() - revoked }))),
    sleep(CLOSED_WITHIN_MS + 1_000, null),
  ]);
  await sleep(Math.max(0, 1_500 - (performance.now() - revoked)));
  await Promise.all(traffic.map(({ stop }) => stop()));

  for (const { outcomes } of traffic) {
    const before = outcomes.filter(({ at, took }) => at + took < revoked - 100);
    const after = outcomes.filter(({ at }) => at > revoked + REFUSED_WITHIN_MS);
    expect(tally(before)).toEqual({ 200: before.length });
    expect(tally(after)).toEqual({ [one.status]: after.length });
    expect(Math.min(before.length, after.length)).toBeGreaterThan(5);
  }
  const lastAdmitted = Math.max(
    0,
    ...traffic.flatMap(({ outcomes }) => outcomes.filter(({ status }) => status === 200).map(({ at }) => at - revoked)),
  );
  expect(closes).not.toBeNull();
  expect(new Set(closes?.map(({ code, reason }) => `${code} ${reason}`))).toEqual(new Set(['4403 access_lost']));
  const lastClosed = Math.max(...(closes ?? []).map(({ afterMs }) => afterMs));
  console.log(`${one.name}: last admitted ${Math.round(lastAdmitted)} ms after, last socket closed ${Math.round(lastClosed)} ms after`);
  expect(lastClosed).toBeLessThan(CLOSED_WITHIN_MS);
});

function tally(outcomes: readonly Outcome[]): Record<number, number> {
  const counts: Record<number, number> = {};
  for (const { status } of outcomes) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}
