import { expect, it } from 'vitest';
import type { LogEntry } from '../../src/notifications/entries.ts';
import { BATCH, Window } from '../../src/notifications/window.ts';

it('keeps a window of the newest entries that is bounded in entries and in bytes', () => {
  const batchOf = (first: number, count: number, bytes: number) => ({
    entries: Array.from({ length: count }, (_, index) => ({ sequence: first + index, bytes }) as LogEntry),
    bytes: count * bytes,
    hasMore: false,
    isContinued: true,
  });
  const window = new Window();
  for (let first = 1; first < 1_000; first += 10) window.add(batchOf(first, 10, 500));
  expect(window.isFull).toBe(true);
  expect(window.bytes).toBe(256 * 500);
  expect([window.lacks(743), window.lacks(744)]).toEqual([true, false]);
  expect([window.isRecent(871), window.isRecent(872)]).toEqual([false, true]);
  expect(window.entryAfter(999)?.sequence).toBe(1_000);
  for (let first = 1_001; first < 1_100; first += 1) window.add(batchOf(first, 1, 100_000));
  expect(window.bytes).toBeLessThanOrEqual(2 * BATCH.maxBytes);
  expect([window.lacks(1_088), window.lacks(1_089)]).toEqual([true, false]);
  expect([window.isRecent(1_093), window.isRecent(1_094)]).toEqual([false, true]);
  // A single one that is larger is all that there is; and after a gap the window begins anew.
  window.add(batchOf(1_100, 1, 5_000_000));
  expect([window.bytes, window.lacks(1_098), window.lacks(1_099)]).toEqual([5_000_000, true, false]);
  window.add(batchOf(2_000, 2, 500));
  expect([window.bytes, window.lacks(1_998), window.lacks(1_999)]).toEqual([1_000, true, false]);
});

it('is full with a mebibyte, however few entries that is', () => {
  const entriesOf = (bytes: number) => ({ entries: [{ sequence: 1, bytes } as LogEntry], bytes, hasMore: false, isContinued: true });
  const isFull = (bytes: number) => {
    const window = new Window();
    window.add(entriesOf(bytes));
    return window.isFull;
  };
  expect([2 ** 20 - 1, 2 ** 20].map(isFull)).toEqual([false, true]);
});
