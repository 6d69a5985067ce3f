import { describe, expect, it, test } from 'vitest';
import { normalizeAddress } from '../src/transport/http/addresses.ts';
import { startApp } from './support/app.ts';

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
    ['not an address', 'unknown'],
  ])('%s → %s', (given, charged) => {
    expect(normalizeAddress(given)).toBe(charged);
  });
});

test('behind a trusted proxy, all of a network of 64 bits share one budget, and another has its own', async () => {
  const app = await startApp({ TRUST_PROXY: 'loopback', RATE_LIMIT_ANONYMOUS: '2', REDIS_URL: '' });
  const statusFor = async (address: string) =>
    (await app.ask('GET', '/v1/x', { as: null, headers: { 'x-forwarded-for': `9.9.9.9, ${address}` } })).status;
  try {
    expect(await statusFor('2001:db8:1:2::1')).toBe(401);
    expect(await statusFor('2001:db8:1:2:ffff::2')).toBe(401);
    expect(await statusFor('2001:db8:1:2:3::3')).toBe(429);
    expect(await statusFor('2001:db8:1:3::1')).toBe(401);
    expect(await statusFor('::ffff:192.0.2.7')).toBe(401);
    expect(await statusFor('192.0.2.7')).toBe(401);
    expect(await statusFor('::ffff:192.0.2.7')).toBe(429);
  } finally {
    await app.close();
  }
});
