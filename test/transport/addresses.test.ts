import { describe, expect, it, onTestFinished, test } from 'vitest';
import { createClientAddresses, normalizeAddress } from '../../src/transport/http/addresses.ts';
import { startApp } from '../support/app.ts';
import { openServer } from '../support/server.ts';

describe('a client address is charged as', () => {
  it.each([
    ['192.0.2.7', '192.0.2.7'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['::ffff:c000:207', '192.0.2.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8:1:2::', '2001:db8:1:2::/64'],
    ['2001:DB8:0001:0002:ffff::1', '2001:db8:1:2::/64'],
    ['2001:db8:1:3::1', '2001:db8:1:3::/64'],
    ['::1', '0:0:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['192.0.2.7:4711', '192.0.2.7'],
    ['[2001:db8:1:2::9]:4711', '2001:db8:1:2::/64'],
    ['[2001:db8:1:2::9]', '2001:db8:1:2::/64'],
    ['[fe80::1%eth0]:4711', 'fe80:0:0:0::/64'],
    ['[fe80::1%eth0]', 'fe80:0:0:0::/64'],
    ['not an address', 'unknown'],
  ])('%s → %s', (given, charged) => {
    expect(normalizeAddress(given)).toBe(charged);
  });
});

/** Starts an app behind proxies; returns what it answers a client with the given X-Forwarded-For who has no credential. */
async function openBehind(proxies: string, limit: number) {
  const app = await startApp({ TRUST_PROXY: proxies, RATE_LIMIT_ANONYMOUS: String(limit), REDIS_URL: '' });
  const statusFor = async (addresses: string) =>
    (await app.ask('GET', '/v1/x', { as: null, headers: { 'x-forwarded-for': addresses } })).status;
  onTestFinished(() => app.close());
  return statusFor;
}

test('behind a trusted proxy, all of a network of 64 bits share one budget, and another has its own', async () => {
  const statusFor = await openBehind('loopback', 2);
  expect(await statusFor('9.9.9.9, 2001:db8:1:2::1')).toBe(401);
  expect(await statusFor('9.9.9.9, 2001:db8:1:2:ffff::2')).toBe(401);
  expect(await statusFor('9.9.9.9, 2001:db8:1:2:3::3')).toBe(429);
  expect(await statusFor('9.9.9.9, 2001:db8:1:3::1')).toBe(401);
  expect(await statusFor('9.9.9.9, ::ffff:192.0.2.7')).toBe(401);
  expect(await statusFor('9.9.9.9, 192.0.2.7')).toBe(401);
  expect(await statusFor('9.9.9.9, ::ffff:192.0.2.7')).toBe(429);
});

test('behind a chain of trusted proxies, the client is charged, also where each proxy adds the port of its peer', async () => {
  const statusFor = await openBehind('loopback, 10.0.0.0/8, fd00::/8', 1);
  expect(await statusFor('192.0.2.1, 10.0.0.7')).toBe(401);
  expect(await statusFor('192.0.2.2:4711, 10.0.0.7:4712')).toBe(401);
  expect(await statusFor('192.0.2.3:4711, 10.0.0.7:4713')).toBe(401);
  expect(await statusFor('[2001:db8:1:2::1]:4711, [fd00::7]:4712')).toBe(401);
  expect(await statusFor('[2001:db8:1:3::1], [fd00::7]')).toBe(401);
  expect(await statusFor('192.0.2.3:4714, 10.0.0.8:4715')).toBe(429);
});

test('a proxy that is not trusted is named in the log, once', async () => {
  const app = await startApp({ TRUST_PROXY: '192.0.2.1', REDIS_URL: '' });
  onTestFinished(() => app.close());
  const warnings = () => app.logLines.filter((line) => line.includes('TRUST_PROXY')).map((line) => JSON.parse(line));
  await app.ask('GET', '/v1/x');
  expect(warnings()).toEqual([]);
  for (const address of ['203.0.113.1', '203.0.113.2'])
    await app.ask('GET', '/v1/x', { as: null, headers: { 'x-forwarded-for': address } });
  expect(warnings()).toMatchObject([{ level: 'warn', address: '127.0.0.1' }]);
});

test.each([
  ['75 seconds', []],
  ['longer than proxies keep it behind one', ['loopback']],
])('an idle connection is kept for %s', async (_time, trustedProxies) => {
  const { baseUrl, close } = await openServer({ handler: (_request, response) => response.end(), trustedProxies });
  try {
    const { headers } = await fetch(baseUrl);
    expect(headers.get('keep-alive')).toBe(`timeout=${trustedProxies.length > 0 ? 620 : 75}`);
  } finally {
    await close();
  }
});

test('the header of a proxy is read once for each request, however often its client address is read', () => {
  let reads = 0;
  const headers = {
    get 'x-forwarded-for'() {
      reads += 1;
      return '192.0.2.9';
    },
  };
  const { of } = createClientAddresses(['loopback']);
  const request = { socket: { remoteAddress: '127.0.0.1' }, connection: { remoteAddress: '127.0.0.1' }, headers } as never;
  for (let time = 0; time < 3; time += 1) expect(of(request)).toBe('192.0.2.9');
  expect(reads).toBe(1);
});
