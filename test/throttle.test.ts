import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { Throttle } from '../src/notifications/throttle.ts';

it('lets a busy project go on after its longest pause, however often others broadcast', async () => {
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
