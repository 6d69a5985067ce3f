import { afterAll, beforeAll, expect, it } from 'vitest';
import { type DeskTest, startDesk } from './support.ts';

const MAX_SCRIPT_BYTES = 200 * 1024;
const READY_MS = 1_500;
const SLOWED = 4;

let desk: DeskTest;
beforeAll(async () => {
  desk = await startDesk();
});
afterAll(() => desk?.close());

it('the first load is small, precompressed and cached', async () => {
  const page = await desk.open();
  const scripts = new Map<string, number>();
  const kinds = new Set<string>();
  page.on('response', (response) => {
    if (!/\.js$/.test(new URL(response.url()).pathname)) return;
    const headers = response.headers();
    kinds.add(`${headers['content-encoding']}, ${headers['cache-control']}`);
    scripts.set(response.url(), Number(headers['content-length']));
  });
  await desk.signIn(page, 'owner');
  await page.getByRole('heading', { name: 'Needs attention' }).waitFor();
  await page.locator('.connection[data-state="live"]').waitFor();
  const sum = [...scripts.values()].reduce((total, size) => total + size, 0);
  console.log(`${scripts.size} scripts, ${(sum / 1024).toFixed(1)} KiB compressed`);
  expect([...kinds]).toEqual(['br, public, max-age=31536000, immutable']);
  expect(sum).toBeLessThanOrEqual(MAX_SCRIPT_BYTES);
});

it(`the overview is ready soon, with the CPU slowed ${SLOWED} times`, async () => {
  const page = await desk.open();
  await desk.signIn(page, 'owner');
  const session = await page.context().newCDPSession(page);
  await session.send('Emulation.setCPUThrottlingRate', { rate: SLOWED });
  await session.send('Network.setCacheDisabled', { cacheDisabled: true });
  const times: number[] = [];
  for (let round = 0; round < 3; round += 1) {
    await page.goto(desk.baseUrl + desk.toPage(), { waitUntil: 'commit' });
    await page.getByRole('heading', { name: 'Needs attention' }).waitFor();
    times.push(await page.evaluate(() => performance.now()));
  }
  console.log(`ready after ${times.map((time) => Math.round(time)).join(', ')} ms, ${READY_MS} expected`);
  // A machine that does something else beside takes longer: the order of magnitude is held.
  expect(Math.min(...times)).toBeLessThan(READY_MS * 3);
});
