import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { countJobFailures, scheduleJob } from '../../src/platform/jobs.ts';
import { createLogger } from '../../src/platform/logger.ts';

it('a job that fails at every run continues, is counted, and is logged once a minute', async () => {
  const lines: string[] = [];
  let runs = 0;
  const fail = async () => {
    runs += 1;
    throw new Error('it is away');
  };
  const stop = scheduleJob('look', 5, fail, createLogger('info', { write: (line) => void lines.push(line) }));
  expect(countJobFailures()).toMatchObject({ look: 0 });
  await expect.poll(() => runs).toBeGreaterThan(5);
  await stop();
  // The run that was ending when it stopped is none.
  expect(countJobFailures().look).toBeGreaterThanOrEqual(runs - 1);
  expect(lines.map((line) => JSON.parse(line))).toEqual([expect.objectContaining({ job: 'look', msg: 'a job failed' })]);
  const count = runs;
  await sleep(20);
  expect(runs).toBe(count);
});
