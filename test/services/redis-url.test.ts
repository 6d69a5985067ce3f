import { afterAll, beforeAll, expect, it } from 'vitest';
import { startApp } from '../support/app.ts';
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
  expect(app.logLines.join('')).toContain('DB index is out of range');
  await app.close();
});

it('a database that it has is used', async () => {
  const app = await startApp({ REDIS_URL: `${redis.url}/9`, REDIS_PREFIX: 'here' });
  await expect.poll(() => readRedis(app)).toBe('up');
  await app.ask('GET', '/v1/nothing', { as: null });
  expect((await redis.run('-n', '9', 'KEYS', 'here:*')).filter((key) => key !== 'here:probe')).toHaveLength(1);
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
  await redis.run('REPLICAOF', 'NO', 'ONE');
  await expect.poll(() => readRedis(app)).toBe('up');
  await app.close();
});

it('a Redis that ends is away, and the log says that the connection was closed', async () => {
  const ending = await openRedis();
  const app = await startApp({ REDIS_URL: ending.url, REDIS_PREFIX: 'ending' });
  await expect.poll(() => readRedis(app)).toBe('up');
  await ending.close();
  await expect.poll(() => readRedis(app)).toBe('down');
  const told = app.logLines.map((line) => JSON.parse(line)).find(({ msg }) => msg === 'a dependency is away');
  expect(told).toMatchObject({ dependency: 'redis', err: { message: 'the connection was closed' } });
  await app.close();
});

it('a password that Redis refuses is in no line of the log', async () => {
  await redis.run('CONFIG', 'SET', 'requirepass', 'right-password');
  const app = await startApp({ REDIS_URL: redis.url.replace('redis://', 'redis://:wrong-password@') });
  await expect.poll(() => readRedis(app)).toBe('down');
  expect(app.logLines.join('')).toContain('WRONGPASS');
  expect(app.logLines.join('')).not.toContain('wrong-password');
  await app.close();
});
