import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createLogger } from '../../src/platform/logger.ts';
import { OutageLog } from '../../src/platform/outagelog.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
afterEach(() => void vi.useRealTimers());

function openLog() {
  const messages: string[] = [];
  const write = (line: string) => void messages.push(JSON.parse(line).msg);
  return { outage: new OutageLog('redis', createLogger('info', { write })), messages };
}

const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
const denied = new Error("NOPERM User has no permissions to run the 'get' command");

it('has a line for a cause that takes the place of another, at its second failure in a row', () => {
  const { outage, messages } = openLog();
  for (const failure of [refused, denied, refused, denied, denied, denied]) outage.recordFailure(failure);
  expect(messages).toEqual(['a dependency is away', 'a dependency is away by another cause']);
  outage.recordReply();
  outage.recordFailure(denied);
  expect(messages.slice(2)).toEqual(['a dependency is back', 'a dependency is away']);
});

it('has a line a minute for each of two causes that take turns for hours', () => {
  const { outage, messages } = openLog();
  for (let second = 0; second < 3_600; second += 1) {
    for (const failure of [refused, refused, denied, denied]) outage.recordFailure(failure);
    vi.advanceTimersByTime(1_000);
  }
  expect(messages.length).toBeGreaterThan(60);
  expect(messages.length).toBeLessThanOrEqual(120);
});
