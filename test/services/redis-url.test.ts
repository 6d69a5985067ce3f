import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { startApp } from '../support/app.ts';
import { findLowPort } from '../support/ports.ts';
import { openRedis, type RedisServer } from '../support/redis.ts';

let redis: RedisServer;
beforeAll(async () => {
  redis = await openRedis();
});
afterAll(() => redis.close());

const readRedis = async (app: Awaited<ReturnType<typeof startApp>>) =>
  (await app.ask('GET', '/health/ready', { as: null })).json.checks.redis;

it('a database that Redis does not have is an outage, and no other is used for it', async () => {
  const app = await startApp({ REDIS_URL: `${redis.url}/99`, REDIS_PREFIX: 'elsewhere' });
  await expect.poll(() => readRedis(app)).toBe('down');
  expect((await app.ask('GET', '/v1/nothing', { as: null })).status).toBe(401);
  expect(await redis.run('KEYS', '*')).toEqual([]);
  await expect.poll(() => app.logLines.join('')).toContain('DB index is out of range');
  await app.close();
});

it('a database that Redis has is used', async () => {
  const app = await startApp({ REDIS_URL: `${redis.url}/9`, REDIS_PREFIX: 'here' });
  await expect.poll(() => readRedis(app)).toBe('up');
  await app.ask('GET', '/v1/nothing', { as: null });
  expect((await redis.run('-n', '9', 'KEYS', 'here:*')).filter((key) => !key.startsWith('here:probe'))).toHaveLength(1);
  await app.close();
});

it('a primary that has become a replica is an outage, until it or another one takes writes', async () => {
  const app = await startApp({ REDIS_URL: redis.url, REDIS_PREFIX: 'role', RATE_LIMIT_ANONYMOUS: '10000' });
  await expect.poll(() => readRedis(app)).toBe('up');
  const connections = async () =>
    Number((await redis.run('INFO', 'stats')).find((line) => line.startsWith('total_connections'))?.split(':')[1]);
  await redis.run('REPLICAOF', '127.0.0.1', '1');
  const before = await connections();
  // Its name may lead to another server by now: the process connects anew.
  await expect
    .poll(async () => {
      expect((await app.ask('GET', '/v1/nothing', { as: null })).status).toBe(401);
      return [await readRedis(app), (await connections()) > before + 3];
    })
    .toEqual(['down', true]);
  await expect.poll(() => app.logLines.join('')).toContain("READONLY You can't write against a read only replica");
  await redis.run('REPLICAOF', 'NO', 'ONE');
  await expect.poll(() => readRedis(app)).toBe('up');
  await app.close();
});

it('a node of a Redis Cluster is an outage, though it answers for some keys, with one line in the log', async () => {
  // By default the nodes would talk by a port that is 10,000 higher, which may be in use.
  const busPorts = [await findLowPort(), await findLowPort()];
  const nodes = await Promise.all(busPorts.map((port) => openRedis({ 'cluster-enabled': 'yes', 'cluster-port': String(port) })));
  const [first, second] = nodes as [RedisServer, RedisServer];
  onTestFinished(async () => void (await Promise.all(nodes.map((node) => node.close()))));
  await first.run('CLUSTER', 'ADDSLOTSRANGE', '0', '8191');
  await second.run('CLUSTER', 'ADDSLOTSRANGE', '8192', '16383');
  await first.run('CLUSTER', 'MEET', second.host, String(second.port), String(busPorts[1]));
  const isWhole = async () =>
    (await Promise.all(nodes.map((node) => node.run('CLUSTER', 'INFO')))).every((lines) => lines.join().includes('cluster_state:ok'));
  await expect.poll(isWhole, { timeout: 20_000 }).toBe(true);
  for (const node of nodes) {
    // The first node has the slot of one of these keys, the second that of the other.
    for (const prefix of ['portico', 'cluster']) {
      const app = await startApp({ REDIS_URL: node.url, REDIS_PREFIX: prefix });
      await expect.poll(() => readRedis(app)).toBe('down');
      for (let count = 0; count < 20; count += 1) expect((await app.ask('GET', '/v1/nothing', { as: null })).status).toBe(401);
      // A second is enough for several probes.
      await sleep(1_000);
      expect(await readRedis(app)).toBe('down');
      const lines = app.logLines.map((line) => JSON.parse(line)).filter(({ msg }) => msg.startsWith('a dependency is'));
      // On a busy machine an earlier probe may have failed for its deadline.
      const said = lines.filter(({ err }) =>
        /^REDIS_URL leads to one node of a Redis Cluster, which is not supported: MOVED /.test(err?.message),
      );
      expect(said).toMatchObject([{ dependency: 'redis' }]);
      await app.close();
    }
  }
});

it('a Redis that ends is an outage, with a closed connection in the log', async () => {
  const ending = await openRedis();
  const app = await startApp({ REDIS_URL: ending.url, REDIS_PREFIX: 'ending' });
  await expect.poll(() => readRedis(app)).toBe('up');
  await ending.close();
  await expect.poll(() => readRedis(app)).toBe('down');
  const told = app.logLines.map((line) => JSON.parse(line)).find(({ msg }) => msg === 'a dependency is away');
  expect(told).toMatchObject({ dependency: 'redis', err: { message: 'the connection was closed' } });
  await app.close();
});

/** The rights that the guide gives to the user of Redis. */
const guided = () => {
  const guide = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8');
  const [, rights = ''] = /^ *ACL SETUSER portico on >… (.*)$/m.exec(guide) ?? [];
  return rights.split(' ');
};

const withoutRights = [
  { name: 'eval', kill: null },
  { name: 'incrby', kill: null },
  { name: 'subscribe', kill: 'pubsub' },
  { name: 'publish', kill: 'normal' },
] as const;

it.each(withoutRights)('the rights of the guide suffice; without $name Redis is down until it is granted', async ({ name, kill }) => {
  const setUser = (...rights: string[]) => redis.run('ACL', 'SETUSER', 'portico', ...rights);
  await setUser('reset', 'on', '>secret', ...guided());
  const url = redis.url.replace('redis://', 'redis://portico:secret@');
  const app = await startApp({ REDIS_URL: url, REDIS_PREFIX: 'portico', RATE_LIMIT_ANONYMOUS: '100000' });
  const check = async () => {
    expect((await app.ask('GET', '/v1/nothing', { as: null })).status).toBe(401);
    return readRedis(app);
  };
  await expect.poll(check).toBe('up');
  expect(app.logLines.join('')).not.toContain('NOPERM');
  await setUser(`-${name}`, ...(name === 'eval' ? ['-evalsha'] : []));
  if (kill) await redis.run('CLIENT', 'KILL', 'TYPE', kill);
  await expect.poll(check).toBe('down');
  // It is away also when both connections are open again.
  await expect.poll(async () => (await redis.run('CLIENT', 'LIST')).filter((line) => line.includes('user=portico')).length).toBe(2);
  expect(await check()).toBe('down');
  const lines = app.logLines.map((line) => JSON.parse(line));
  expect(lines.filter(({ level }) => level === 'error')).toEqual([]);
  // A connection that was closed is what is noticed first; what keeps Redis away is told when it is known.
  const causes = () => app.logLines.map((line) => JSON.parse(line)).filter(({ msg }) => msg.startsWith('a dependency is away'));
  await expect.poll(() => causes().at(-1).err.message).toMatch(/no permissions|NOPERM|can't run this command/);
  expect(causes().length).toBeLessThanOrEqual(2);
  await setUser(`+${name}`, '+evalsha');
  await expect.poll(check).toBe('up');
  await app.close();
});

it('a password that Redis refuses is in no line of the log', async () => {
  await redis.run('CONFIG', 'SET', 'requirepass', 'right-password');
  const app = await startApp({ REDIS_URL: redis.url.replace('redis://', 'redis://:wrong-password@') });
  await expect.poll(() => readRedis(app)).toBe('down');
  await expect.poll(() => app.logLines.join('')).toContain('WRONGPASS');
  expect(app.logLines.join('')).not.toContain('wrong-password');
  await app.close();
});
