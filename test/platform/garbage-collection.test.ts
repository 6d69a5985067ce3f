import { expect, it } from 'vitest';
import { collectGarbage } from '../../src/platform/garbage.ts';

it('collects what nothing holds, also many times in a row, and while it is under way', async () => {
  const gone = new WeakRef({ text: 'x' });
  const held = { text: 'y' };
  const kept = new WeakRef(held);
  await Promise.all([collectGarbage(), collectGarbage()]);
  for (let time = 0; time < 5; time += 1) await collectGarbage();
  expect([gone.deref(), kept.deref()]).toEqual([undefined, held]);
});
