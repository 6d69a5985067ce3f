import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { coalesceCalls } from '../../src/kernel/coalesce.ts';

it('never runs twice at once, and settles each call with a run that began after it', async () => {
  let [running, most, begun] = [0, 0, 0];
  const call = coalesceCalls(async () => {
    begun += 1;
    running += 1;
    most = Math.max(most, running);
    await sleep(1);
    running -= 1;
    if (begun % 3 === 0) throw new Error('a run that fails');
  });
  const caller = async () => {
    for (let time = 0; time < 50; time += 1) {
      const before = begun;
      // A run that this call waits for begins now or later.
      const settled = call().catch(() => {});
      await settled;
      expect(begun).toBeGreaterThan(before);
      if (time % 7 === 0) await sleep(time % 3);
    }
  };
  await Promise.all(Array.from({ length: 5 }, caller));
  expect(most).toBe(1);
});
