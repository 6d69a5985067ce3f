import { afterAll, beforeAll, expect, it } from 'vitest';
import WebSocket from 'ws';
import { copyTemplate } from '../support/app.ts';
import { countCases } from '../support/cases.ts';
import { type Crowd, openCrowd, type Reply, type Sending } from '../support/crowd.ts';
import { openRedis, type RedisServer } from '../support/redis.ts';
import { type Fleet, openFleet } from '../support/replicas.ts';

const TICKETS = countCases(1_000, 'TICKETS');
const TRIES = 20;

let redis: RedisServer;
let fleet: Fleet;
let crowds: Crowd[];
beforeAll(async () => {
  redis = await openRedis();
  const env = { LOG_LEVEL: 'error', RATE_LIMIT_USER: '5000', RATE_LIMIT_ANONYMOUS: '60' };
  fleet = await openFleet({ count: 2, databaseUrl: await copyTemplate(), redisUrl: redis.url, env });
  crowds = fleet.replicas.map(({ baseUrl }) => openCrowd(baseUrl, '127.0.7.1', 32));
});
afterAll(async () => {
  for (const crowd of crowds ?? []) crowd.close();
  await fleet?.close();
  await redis?.close();
});

/** Sends all requests concurrently, alternating between the replicas. */
async function sendToBoth(count: number, kinds: readonly Sending[]): Promise<Reply[]> {
  return Promise.all(
    Array.from({ length: count }, (_, index) => (crowds[index % 2] as Crowd).send(kinds[Math.floor(index / 2) % kinds.length] as Sending)),
  );
}

const leftOf = ({ headers }: Reply) => Number(/;r=(\d+);/.exec(String(headers.ratelimit))?.[1]);

/** Checks that exactly `limit` replies were admitted, each for a different unit of the budget, and that the others say when to retry. */
function expectExactly(limit: number, windowSeconds: number, replies: readonly Reply[]): void {
  const admitted = replies.filter(({ status }) => status !== 429);
  const refused = replies.filter(({ status }) => status === 429);
  expect([admitted.length, refused.length]).toEqual([limit, replies.length - limit]);
  expect(admitted.map(leftOf).sort((a, b) => a - b)).toEqual(Array.from({ length: limit }, (_, index) => index));
  for (const { headers } of refused) {
    expect(Number(headers['retry-after'])).toBeGreaterThan(windowSeconds - 60);
    expect(Number(headers['retry-after'])).toBeLessThanOrEqual(windowSeconds);
  }
}

it('exactly 5,000 of 6,000 requests of one user are admitted, over 64 connections to two replicas', async () => {
  const { token, api_key } = fleet.demo.users.member;
  const json = { 'content-type': 'application/json' };
  const kinds: Sending[] = [
    { path: '/v1/nothing', headers: { authorization: `Bearer ${token}` } },
    { path: '/v1/nothing', headers: { authorization: `Bearer ${api_key}` } },
    { method: 'POST', path: '/graphql', headers: { ...json, authorization: `Bearer ${token}` }, body: '{"query":"{ __typename }"}' },
  ];
  const replies = await sendToBoth(6_000, kinds);
  expect(crowds.map((crowd) => crowd.countConnections())).toEqual([32, 32]);
  expectExactly(5_000, 3_600, replies);
  expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200, 404, 429]));
});

it('exactly 60 of 200 anonymous requests from one address to two replicas are admitted', async () => {
  const kinds: Sending[] = [{ path: '/v1/nothing' }, { path: '/v1/nothing', headers: { authorization: 'Bearer mistyped' } }];
  // All requests fall into one window, which begins with the first.
  expectExactly(60, 60, await sendToBoth(200, kinds));
});

it('a spent budget survives a restart of the replicas', async () => {
  const headers = { authorization: `Bearer ${fleet.demo.users.outsider.token}` };
  const [first] = await sendToBoth(1, [{ path: '/v1/nothing', headers }]);
  expect(leftOf(first as Reply)).toBe(4_999);
  for (const replica of fleet.replicas) {
    await replica.kill();
    await replica.start();
  }
  const [second] = await sendToBoth(1, [{ path: '/v1/nothing', headers }]);
  expect(leftOf(second as Reply)).toBe(4_998);
});

/** The outcome of an upgrade with a ticket: the type of the first frame, or the close of the socket. */
function redeem(baseUrl: string, path: string, ticket: string, localAddress: string): Promise<string> {
  const socket = new WebSocket(`${baseUrl.replace('http', 'ws')}${path}?ticket=${ticket}`, { localAddress });
  return new Promise<string>((resolve) => {
    socket.on('error', (failure) => resolve(failure.message));
    socket.once('message', (frame) => resolve(JSON.parse(String(frame)).type));
    socket.once('close', (code, reason) => resolve(`${code} ${reason}`));
  }).finally(() => socket.terminate());
}

it(`each of ${TICKETS} tickets opens one socket, of ${TRIES} upgrades at once over two replicas`, { timeout: 240_000 }, async () => {
  const { demo, projectPath, replicas } = fleet;
  const headers = { authorization: `Bearer ${demo.users.owner.token}`, 'content-type': 'application/json' };
  const counts: Record<string, number> = {};
  const problems: string[] = [];
  let next = 0;
  const lane = async () => {
    while (next < TICKETS) {
      const number = next++;
      const sending = { method: 'POST', path: `${projectPath}/websocket-tickets`, headers, body: '{"target":"notifications"}' };
      const { path, ticket } = JSON.parse((await (crowds[number % 2] as Crowd).send(sending)).text);
      // A failed attempt costs its address one of sixty, so each ticket is tried from its own address.
      const address = `127.9.${Math.floor(number / 250)}.${(number % 250) + 1}`;
      const outcomes = await Promise.all(
        Array.from({ length: TRIES }, (_, index) => redeem(replicas[index % 2]?.baseUrl ?? '', path, ticket, address)),
      );
      for (const outcome of outcomes) counts[outcome] = (counts[outcome] ?? 0) + 1;
      if (outcomes.filter((outcome) => outcome === 'ready').length !== 1) problems.push(`ticket ${number}: ${outcomes}`);
    }
  };
  await Promise.all(Array.from({ length: 4 }, lane));
  expect(problems).toEqual([]);
  expect(counts).toEqual({ ready: TICKETS, '4401 ticket_used': TICKETS * (TRIES - 1) });
});
