import type { GraphQLResolveInfo } from 'graphql';
import pLimit, { type LimitFunction } from 'p-limit';
import { expect, it } from 'vitest';
import { ResponseBudget } from '../../src/graph/responsebudget.ts';

const MAX_BYTES = 8 * 2 ** 20;
const SMALL_BYTES = 256 * 1024;
const path = { prev: undefined, key: 'list', typename: 'Query' } as GraphQLResolveInfo['path'];

const openBudget = (runInSlot: LimitFunction) => new ResponseBudget({ maxBytes: MAX_BYTES, runInSlot, admitAfter: async () => {} });

/** A page of `count` rows of 100,000 bytes; `asked` records the bytes left at each read. */
const pageOf = (count: number, asked: number[]) => async (bytesLeft: number) => {
  asked.push(bytesLeft);
  await new Promise((resolve) => setImmediate(resolve));
  return Array.from({ length: count }, () => ({ bytes: 100_000 }));
};

it('a small page is read at once while another response reads a large one', async () => {
  const largeResponseSlots = pLimit(1);

  const [large, small] = [openBudget(largeResponseSlots), openBudget(largeResponseSlots)];
  const asked: number[] = [];
  await large.read(path, pageOf(50, []));
  expect(await small.read(path, pageOf(2, asked))).toHaveLength(2);
  expect(asked).toEqual([SMALL_BYTES]);
  large.close();
});

it('a large page is read when the large response before it has been closed', async () => {
  const largeResponseSlots = pLimit(1);
  const budgets = Array.from({ length: 5 }, () => openBudget(largeResponseSlots));
  const done: number[] = [];
  const reading = budgets.map((budget, index) => budget.read(path, pageOf(50, [])).then(() => done.push(index)));
  for (const [index, budget] of budgets.entries()) {
    await reading[index];
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(done).toEqual(budgets.slice(0, index + 1).map((_, position) => position));
    budget.close();
  }
  expect(largeResponseSlots.pendingCount).toBe(0);
});

it('a response keeps its turn for all its lists, and reads each of them at most twice', async () => {
  const largeResponseSlots = pLimit(1);
  const budget = openBudget(largeResponseSlots);
  const asked: number[] = [];
  await budget.read(path, pageOf(2, asked));
  await budget.read(path, pageOf(20, asked));
  await budget.read(path, pageOf(20, asked));
  expect(asked).toEqual([SMALL_BYTES, SMALL_BYTES - 200_000, MAX_BYTES - 200_000, MAX_BYTES - 2_200_000]);
  expect(largeResponseSlots.activeCount).toBe(1);
  budget.close();
  await new Promise((resolve) => setImmediate(resolve));
  expect(largeResponseSlots.activeCount).toBe(0);
});

it('many small lists are a large response too', async () => {
  const largeResponseSlots = pLimit(1);
  const budget = openBudget(largeResponseSlots);
  const asked: number[] = [];
  for (let list = 0; list < 3; list += 1) await budget.read(path, pageOf(1, asked));
  expect(asked).toEqual([SMALL_BYTES, SMALL_BYTES - 100_000, SMALL_BYTES - 200_000, MAX_BYTES - 200_000]);
  expect(largeResponseSlots.activeCount).toBe(1);
  budget.close();
});

it('a list that is too large is refused by its size, without a turn', async () => {
  const largeResponseSlots = pLimit(1);
  const budget = openBudget(largeResponseSlots);
  const asked: number[] = [];
  await expect(budget.read(path, pageOf(100, asked))).rejects.toThrow('The response would take more than 8388608 bytes');
  expect({ asked, active: largeResponseSlots.activeCount }).toEqual({ asked: [SMALL_BYTES], active: 0 });
});

it('a response that is refused later gives its turn back', async () => {
  const largeResponseSlots = pLimit(1);
  const budget = openBudget(largeResponseSlots);
  await budget.read(path, pageOf(50, []));
  await expect(budget.read(path, pageOf(50, []))).rejects.toThrow('The response would take more than 8388608 bytes');
  await expect(budget.read(path, pageOf(1, []))).rejects.toThrow('The response would take more than');
  budget.close();
  await new Promise((resolve) => setImmediate(resolve));
  expect(largeResponseSlots.activeCount).toBe(0);
});

it('a response that closes before its lists have been read takes no turn for them, and reads no more', async () => {
  const largeResponseSlots = pLimit(1);
  const [before, waiting, reading] = Array.from({ length: 3 }, () => openBudget(largeResponseSlots)) as [
    ResponseBudget,
    ResponseBudget,
    ResponseBudget,
  ];
  const asked: number[] = [];
  await before.read(path, pageOf(50, []));
  const lists = [waiting.read(path, pageOf(50, asked)), waiting.read(path, pageOf(50, asked))];
  await new Promise((resolve) => setTimeout(resolve, 20));
  // Each of these responses has a failed field.
  waiting.close();
  lists.push(reading.read(path, pageOf(50, asked)));
  reading.close();
  before.close();
  expect(await Promise.all(lists)).toEqual([[], [], []]);
  expect(asked).toEqual([SMALL_BYTES, SMALL_BYTES]);
  await new Promise((resolve) => setImmediate(resolve));
  expect([largeResponseSlots.activeCount, largeResponseSlots.pendingCount]).toEqual([0, 0]);
});

it('a large response keeps its turn until it is serialized, and other work runs in between', async () => {
  const largeResponseSlots = pLimit(1);
  const budget = openBudget(largeResponseSlots);
  await budget.read(path, pageOf(50, []));
  expect(budget.isLarge).toBe(true);
  let rounds = 0;
  const goAround = () => {
    rounds += 1;
    if (budget.isLarge) setImmediate(goAround);
  };
  setImmediate(goAround);
  const body = { text: 'ä"'.repeat(10) };
  const wording = budget.serialize(body);
  // The pipeline closes the budget right after the execution.
  budget.close();
  expect(budget.isLarge).toBe(true);
  expect(String(await wording)).toBe(JSON.stringify(body));
  expect(budget.isLarge).toBe(false);
  expect(rounds).toBeGreaterThanOrEqual(2);
});

it('a response that cannot be serialized gives its turn back', async () => {
  const largeResponseSlots = pLimit(1);
  const budget = openBudget(largeResponseSlots);
  await budget.read(path, pageOf(50, []));
  await expect(budget.serialize({ count: 1n })).rejects.toThrow(TypeError);
  expect(budget.isLarge).toBe(false);
});

it('a response that has ended gives back the slot that it waited for, also where it may go on no longer', async () => {
  const largeResponseSlots = pLimit(1);
  let release = () => {};
  const holding = largeResponseSlots(() => new Promise<void>((resolve) => (release = resolve)));
  const admitAfter = () => Promise.reject(new Error('the credential was revoked'));
  const budget = new ResponseBudget({ maxBytes: MAX_BYTES, runInSlot: largeResponseSlots, admitAfter });
  const rows = budget.read(path, pageOf(50, []));
  await new Promise((resolve) => setTimeout(resolve, 10));
  budget.stopReading();
  budget.close();
  release();
  await holding;
  expect(await rows).toEqual([]);
  await new Promise((resolve) => setTimeout(resolve, 10));
  expect([largeResponseSlots.activeCount, largeResponseSlots.pendingCount]).toEqual([0, 0]);
});

it('a response that may go on no longer reads no other list', async () => {
  const refused = new Error('the credential was revoked');
  const largeResponseSlots = pLimit(1);
  const budget = new ResponseBudget({ maxBytes: MAX_BYTES, runInSlot: largeResponseSlots, admitAfter: () => Promise.reject(refused) });
  const asked: number[] = [];
  await expect(budget.read(path, pageOf(50, asked))).rejects.toBe(refused);
  await expect(budget.read(path, pageOf(1, asked))).rejects.toBe(refused);
  expect(asked).toHaveLength(1);
  budget.close();
});
