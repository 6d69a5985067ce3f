import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { FixedWindowCounters } from '../../src/access/fixedwindow.ts';
import { startApp, type TestApp } from '../support/app.ts';
import { stopClock } from '../support/clock.ts';
import { type Crowd, openCrowd, type Sending } from '../support/crowd.ts';

let portico: TestApp;
let crowd: Crowd;
beforeAll(async () => {
  // The test controls the clock, and Redis has its own.
  portico = await startApp({ REDIS_URL: '' });
  crowd = openCrowd(portico.baseUrl, '127.0.1.5');
});
afterAll(async () => {
  crowd.close();
  await portico.close();
});
afterEach(() => void vi.useRealTimers());

const typename: Sending = {
  method: 'POST',
  path: '/graphql',
  headers: { 'content-type': 'application/json' },
  body: '{"query":"{ __typename }"}',
};

describe('the system clock', () => {
  test('may be set: a window ends when its time has passed, and not before', async () => {
    const setClock = stopClock();
    await crowd.sendAll(Array.from({ length: 60 }, () => typename));
    const jump = (hours: number) => vi.setSystemTime(Date.now() + hours * 3_600_000);
    for (const [hours, later, seconds] of [
      [-2, 10_000, 50],
      [5, 20_000, 40],
    ] as const) {
      jump(hours);
      setClock(later);
      const refused = await crowd.send(typename);
      expect([refused.status, refused.headers['retry-after'], refused.headers.ratelimit]).toEqual([
        429,
        String(seconds),
        `"anonymous";r=0;t=${seconds}`,
      ]);
    }
    jump(-4);
    setClock(60_000);
    expect((await crowd.send(typename)).headers.ratelimit).toBe('"anonymous";r=59;t=60');
  });
});

describe('FixedWindowCounters', () => {
  test('are bounded for any number of keys, and keep no timers', () => {
    const before = process.getActiveResourcesInfo().length;
    const windows = new FixedWindowCounters(60, 1_000);
    const counts = new Set<number>();
    for (let index = 0; index < 100_000; index += 1) counts.add(windows.count(`address ${index}`).count);
    expect([...counts]).toEqual([1]);
    expect(windows.size).toBeLessThanOrEqual(1_000);
    expect(process.getActiveResourcesInfo().length).toBeLessThanOrEqual(before);
  });

  test('keep the window of a key when earlier windows are dropped', () => {
    const setClock = stopClock();
    const windows = new FixedWindowCounters(60);
    windows.count('early');
    setClock(59_000);
    windows.count('late');
    setClock(61_000);
    expect([windows.count('early'), windows.count('late')]).toEqual([
      { count: 1, msLeft: 60_000 },
      { count: 2, msLeft: 58_000 },
    ]);
  });

  test('begin the window of a key with its first count, and do not move its end', () => {
    const setClock = stopClock();
    const windows = new FixedWindowCounters(60);
    const counts: number[] = [];
    for (let second = 0; second < 300; second += 7) {
      setClock(second * 1_000);
      windows.count('another');
      const { count, msLeft } = windows.count('one');
      counts.push(count);
      // At one count each 7 s, every tenth would come 63 s after the first of its window and begins a new one.
      const place = (second / 7) % 9;
      expect([second, count, msLeft]).toEqual([second, place + 1, 60_000 - place * 7_000]);
    }
    expect(counts.length).toBe(43);
    expect(windows.size).toBeLessThanOrEqual(4);
  });
});
