import { setImmediate as nextImmediate, setTimeout as sleep } from 'node:timers/promises';
import pLimit from 'p-limit';
import { expect, it } from 'vitest';
import { MemoryBudget } from '../../src/kernel/memorybudget.ts';
import { Hub } from '../../src/notifications/hub.ts';
import { Throttle } from '../../src/notifications/throttle.ts';

it('the pause of a busy project is bounded, however often others broadcast', async () => {
  const throttle = new Throttle();
  let isOver = false;
  const others = (async () => {
    for (; !isOver; await sleep(40)) throttle.recordTime(15);
  })();
  let announced = 0;
  const announcing = setInterval(() => (announced += 1), 5);
  throttle.recordTime(15);
  let isDone = false;
  const waiting = throttle.wait(() => announced).then(() => (isDone = true));
  await Promise.race([waiting, sleep(3_000)]);
  expect(isDone).toBe(true);
  isOver = true;
  clearInterval(announcing);
  await others;
});

/** A database with one entry in the log, which is found with the second query. */
function openLog() {
  const answers = [[], [{ sequence: 1, id: 'one', bytes: 10, hasNext: false, isContinued: true }]];
  return { query: async () => answers.shift() ?? [] };
}

it('slow subscribers of several projects leave time to other work, like those of one', async () => {
  const throttle = new Throttle();
  const [projects, subscribers, slowMs] = [5, 20, 3];
  let notified = 0;
  for (let index = 0; index < projects; index += 1) {
    const hub = new Hub({
      database: openLog() as never,
      projectId: String(index),
      throttle,
      windows: new MemoryBudget(2 ** 20),
      singleReads: new MemoryBudget(2 ** 20),
      limitRefreshes: pLimit(1),
      onFailure: (failure) => expect(failure).toBeUndefined(),
      onReplaced: () => {},
      onEmpty: () => {},
    });
    await hub.open();
    const notify = () => {
      for (const startedAt = performance.now(); performance.now() - startedAt < slowMs; );
      notified += 1;
    };
    for (let follower = 0; follower < subscribers; follower += 1) hub.follow('user', { notify, end: () => {}, goBack: () => {} });
    hub.requestBatch();
  }
  let most = 0;
  for (let last = 0; notified < projects * subscribers; last = notified) {
    await nextImmediate();
    most = Math.max(most, notified - last);
  }
  expect(most).toBeLessThanOrEqual(2);
});

it('a broadcast waits for one slow subscriber of each other broadcast at most', async () => {
  const throttle = new Throttle();
  let slow = 0;
  let isOver = false;
  const others = [3, 5].map(async (slowMs) => {
    for (; !isOver; await throttle.rest()) {
      for (const startedAt = performance.now(); performance.now() - startedAt < slowMs; );
      slow += 1;
      throttle.beginRest(slowMs);
    }
  });
  const waits: number[] = [];
  for (let count = 0; count < 30; count += 1) {
    await sleep(Math.random() * 8);
    const before = slow;
    await throttle.rest();
    waits.push(slow - before);
  }
  isOver = true;
  await Promise.all(others);
  expect(Math.max(...waits)).toBeLessThanOrEqual(2);
});
