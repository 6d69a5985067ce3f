import fc from 'fast-check';
import { expect, it } from 'vitest';
import { checkHistory, type Entry } from '../support/history.ts';

const logOf = (length: number): Entry[] => Array.from({ length }, (_, index) => ({ sequence: index + 1, id: `id-${index + 1}` }));
const cases = fc.record({ length: fc.integer({ min: 3, max: 60 }), from: fc.nat(20), at: fc.nat(1000) }).map(({ length, from, at }) => {
  const committed = logOf(length);
  const start = Math.min(from, length - 2);
  const received = committed.slice(start);
  return { committed, from: start, received, at: at % (received.length - 1) };
});

it('reports no problem in a correct history', () => {
  fc.assert(
    fc.property(cases, (history) => {
      expect(checkHistory(history)).toEqual([]);
    }),
  );
});

it('reports a dropped notification', () => {
  fc.assert(
    fc.property(cases, ({ received, at, ...history }) => {
      expect(checkHistory({ ...history, received: received.toSpliced(at, 1) })).toEqual([`lost: ${received[at]?.sequence}`]);
    }),
  );
});

it('reports a duplicate notification', () => {
  fc.assert(
    fc.property(cases, ({ received, at, ...history }) => {
      const again = received[at] as Entry;
      expect(checkHistory({ ...history, received: received.toSpliced(at, 0, again) })).toEqual([`doubled: ${again.sequence}`]);
    }),
  );
});

it('reports two swapped notifications', () => {
  fc.assert(
    fc.property(cases, ({ received, at, ...history }) => {
      const [first, second] = received.slice(at, at + 2) as [Entry, Entry];
      const problems = checkHistory({ ...history, received: received.toSpliced(at, 2, second, first) });
      expect(problems).toEqual([`out of order: ${first.sequence} after ${second.sequence}`]);
    }),
  );
});

it('reports a notification of another log', () => {
  fc.assert(
    fc.property(cases, ({ received, at, ...history }) => {
      const own = received[at] as Entry;
      const problems = checkHistory({ ...history, received: received.toSpliced(at, 0, { sequence: own.sequence, id: 'of another' }) });
      expect(problems).toContain(`foreign: ${own.sequence} of another`);
    }),
  );
});
