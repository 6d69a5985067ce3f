import { setImmediate as nextImmediate } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { runInNextIteration } from '../src/kernel/iteration.ts';

it('one piece runs each time that the event loop goes around, with all that follows from it', async () => {
  const seen: string[] = [];
  const pieceOf = (name: string) => () => {
    seen.push(name);
    void Promise.resolve().then(() => seen.push(`${name} done`));
  };
  for (const name of ['a', 'b', 'c']) runInNextIteration(pieceOf(name));
  for (let round = 0; round < 4; round += 1) {
    await nextImmediate();
    seen.push('|');
  }
  expect(seen.join(' ')).toBe('a a done | b b done | c c done | |');
});

it('a piece that asks for another waits for it behind those who came before', async () => {
  const seen: string[] = [];
  runInNextIteration(() => {
    seen.push('first');
    runInNextIteration(() => seen.push('again'));
  });
  runInNextIteration(() => seen.push('second'));
  while (seen.length < 3) await nextImmediate();
  runInNextIteration(() => seen.push('later'));
  await nextImmediate();
  await nextImmediate();
  expect(seen).toEqual(['first', 'second', 'again', 'later']);
});
