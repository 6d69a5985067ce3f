import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { Breaker } from '../../src/platform/breaker.ts';
import { createLogger } from '../../src/platform/logger.ts';

it('probes again only once the probe before has ended, however late', async () => {
  const replies: Array<(reply: 'answered') => void> = [];
  const probe = () => new Promise((resolve) => replies.push(resolve));
  const breaker = new Breaker({ name: 'slow', probe, deadlineMs: 5, intervalMs: 1, log: createLogger('silent') });
  breaker.startProbing();
  await expect.poll(() => breaker.isOpen).toBe(true);
  await sleep(100);
  expect(replies).toHaveLength(1);
  replies[0]?.('answered');
  await expect.poll(() => replies.length).toBeGreaterThan(1);
  breaker.stop();
  for (const reply of replies) reply('answered');
});
