import { expect, it } from 'vitest';
import { readCosts } from '../bench/scale/calibration.mjs';
import { drawSizes, openRandom, processesOf, usual } from '../bench/scale/provider.mjs';
import { Queue } from '../bench/scale/simulation.mjs';

const group = (count: number, cost: number, entered: number) => ({ count, cost, begun: entered, entered, tries: 0, isLost: false });

it('every cost of the model has a measurement as its source', () => {
  const { sources, ...costs } = readCosts();
  const figures = (value: unknown): number[] =>
    typeof value === 'number' ? [value] : Object.values(value as Record<string, unknown>).flatMap(figures);
  expect(figures(costs).filter((figure) => !Number.isFinite(figure) || figure < 0)).toEqual([]);
  expect(Object.values(sources).filter((source) => source === '')).toEqual([]);
});

it('the sizes of projects are the same for a seed, and add up', () => {
  const assumed = { ...usual, projects: 10_000, sockets: 100_000 };
  const sizes = drawSizes(assumed, openRandom(7));
  expect(drawSizes(assumed, openRandom(7))).toEqual(sizes);
  expect(drawSizes(assumed, openRandom(8))).not.toEqual(sizes);
  const all = sizes.reduce((sum, size) => sum + size, 0);
  expect(Math.abs(all - assumed.sockets)).toBeLessThan(300);
  expect(Number(sizes[0]) / Number(sizes[9])).toBeCloseTo(10, 1);
});

it('a project is on as many processes as random placement gives', () => {
  expect(processesOf(1, 50)).toBeCloseTo(1);
  expect(processesOf(2, 50)).toBeCloseTo(1.98);
  expect(processesOf(100_000, 50)).toBeCloseTo(50);
});

it('a queue serves in order, up to its capacity, and drops what is too late', () => {
  const queue = new Queue();
  queue.push(group(10, 0.1, 0));
  queue.push(group(10, 0.2, 1));
  const served: number[] = [];
  expect(queue.serve(1.4, (_group, count) => served.push(count))).toBeCloseTo(1.4);
  expect(served).toEqual([10, expect.closeTo(2)]);
  expect(queue.work).toBeCloseTo(1.6);
  const late: number[] = [];
  queue.dropBefore(1, (_group, count) => late.push(count));
  expect(late).toEqual([]);
  queue.dropBefore(2, (_group, count) => late.push(count));
  expect(late).toEqual([expect.closeTo(8)]);
  expect(queue.work).toBeCloseTo(0);
  expect(queue.serve(1, () => {})).toBe(0);
});
