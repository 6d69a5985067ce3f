import { expect, it } from 'vitest';
import { FairLimit } from '../../src/kernel/fairlimit.ts';
import { findMapOf } from '../support/maps.ts';

const settle = () => new Promise((resolve) => setImmediate(resolve));

/** Tasks that record their name when they begin, and end one by one. */
function recordTasks(max: number) {
  const limit = new FairLimit(max);
  const begun: string[] = [];
  const ends: Array<() => void> = [];
  const run = (owner: string, name = owner) =>
    limit.run(owner, () => {
      begun.push(name);
      return new Promise<string>((resolve) => ends.push(() => resolve(name)));
    });
  const endNext = async () => {
    ends.shift()?.();
    await settle();
  };
  return { limit, begun, run, endNext };
}

it('an owner’s task waits for the owner’s own tasks, and for one of each other owner', async () => {
  const { begun, run, endNext } = recordTasks(1);
  const tasks = [...Array.from({ length: 5 }, (_, index) => run('many', `many ${index + 1}`)), run('one'), run('two'), run('one', 'one 2')];
  await settle();
  for (let ended = 0; ended < tasks.length; ended += 1) await endNext();
  expect(begun).toEqual(['many 1', 'one', 'two', 'many 2', 'one 2', 'many 3', 'many 4', 'many 5']);
  expect(await Promise.all(tasks)).toContain('one 2');
});

it('one owner has half of the places, and others the rest', async () => {
  const { limit, begun, run, endNext } = recordTasks(4);
  for (let index = 1; index <= 8; index += 1) void run('many', String(index));
  for (let index = 1; index <= 3; index += 1) void run(`other ${index}`);
  await settle();
  expect(begun).toEqual(['1', '2', 'other 1', 'other 2']);
  expect(limit.waiting).toBe(7);
  for (let ended = 0; ended < 2; ended += 1) await endNext();
  expect(begun.slice(4)).toEqual(['other 3', '3']);
  expect(limit.waiting).toBe(5);
});

it('one owner has half of an odd number of places, rounded up', async () => {
  const { begun, run } = recordTasks(3);
  for (let index = 1; index <= 4; index += 1) void run('many', String(index));
  void run('other');
  await settle();
  expect(begun).toEqual(['1', '2', 'other']);
});

it('a task that fails makes room for the next, also of the same owner', async () => {
  const limit = new FairLimit(1);
  const failing = limit.run('one', () => Promise.reject(new Error('no')));
  const next = limit.run('one', async () => 'next');
  await expect(failing).rejects.toThrow('no');
  expect(await next).toBe('next');
  expect(await limit.run('one', async () => 'again')).toBe('again');
});

it('an owner is forgotten with the last of their tasks', async () => {
  const { run, endNext } = recordTasks(1);
  const owners = findMapOf('somebody', () => void run('somebody'));
  void run('somebody');
  await settle();
  await endNext();
  expect([...owners.keys()]).toEqual(['somebody']);
  await endNext();
  expect([...owners.keys()]).toEqual([]);
});
