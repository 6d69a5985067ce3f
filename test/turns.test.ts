import { setImmediate as nextImmediate } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { runInNextIteration } from '../src/kernel/iteration.ts';
import { Turns } from '../src/kernel/turns.ts';

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

it('an owner has one turn at a time, and others have theirs in between', async () => {
  const turns = new Turns();
  const seen: string[] = [];
  const take = (owner: string, name: string) => turns.take(owner).then(() => void seen.push(name));
  const many = ['a', 'b', 'c'].map((name) => take('many', name));
  await take('one', 'one');
  expect(seen).toEqual(['a', 'one']);
  await take('another', 'another');
  await Promise.all(many);
  expect(seen).toEqual(['a', 'one', 'another', 'b', 'c']);
});

it('a turn that took long is followed by a pause as long', async () => {
  const turns = new Turns();
  await turns.take('one');
  const startedAt = performance.now();
  while (performance.now() - startedAt < 50);
  await turns.take('one');
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(95);
});
