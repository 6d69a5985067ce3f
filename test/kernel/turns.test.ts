import { setImmediate as nextImmediate, setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { Source } from '../../src/graph/source.ts';
import { runInNextIteration } from '../../src/kernel/iteration.ts';
import { Turns } from '../../src/kernel/turns.ts';
import { Delivery } from '../../src/transport/delivery/delivery.ts';

it('one piece runs in each iteration of the event loop, with its microtasks', async () => {
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

it('a piece that is added by another runs after those that were added before', async () => {
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

it('a turn that is requested while another of its owner has begun follows it', async () => {
  const turns = new Turns();
  const seen: string[] = [];
  const take = (name: string) => turns.take('one').then(() => void seen.push(name));
  void take('a');
  await take('b');
  const last = take('c');
  for (let step = 0; step < 10; step += 1) await Promise.resolve();
  expect(seen).toEqual(['a', 'b']);
  await last;
  expect(seen).toEqual(['a', 'b', 'c']);
});

it('a turn that took long is followed by a pause as long', async () => {
  const turns = new Turns();
  await turns.take('one');
  const startedAt = performance.now();
  while (performance.now() - startedAt < 50);
  await turns.take('one');
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(95);
});

/** A source that has one event. */
class OneEvent extends Source {
  readonly events = [{}];

  constructor(readonly turnKey: string) {
    super();
  }

  override read(): object | null {
    return this.events.pop() ?? null;
  }
}

/** Runs tasks, and records which of them were done each time that the event loop has gone around. */
async function recordRounds(tasks: Readonly<Record<string, () => Promise<unknown>>>): Promise<string[]> {
  const rounds: string[] = [];
  let done = '';
  const running = Object.entries(tasks).map(([name, run]) => run().then(() => (done += name)));
  for (let left = running.length, round = 0; left > 0 && round < 10_000; left -= done.length, round += 1) {
    done = '';
    await nextImmediate();
    if (done) rounds.push(done);
  }
  return rounds;
}

it('a stream whose fetch fails is rejected rather than waiting', async () => {
  class Failing extends OneEvent {
    override read(): null {
      return null;
    }
    override get needsFetch(): boolean {
      return true;
    }
    override async fetch(): Promise<void> {
      throw new Error('a mistake');
    }
  }
  await expect(new Failing('one').next()).rejects.toThrow('a mistake');
});

it('the streams of a user get their events one after another, concurrently with those of others', async () => {
  const next = (owner: string) => () => new OneEvent(owner).next();
  expect(await recordRounds({ a: next('many'), b: next('many'), c: next('many'), d: next('one') })).toEqual(['ad', 'b', 'c']);
});

it.each([
  { isSlow: true, rounds: ['a', 'b', 'c'] },
  { isSlow: false, rounds: ['abc'] },
])('the sockets of a user get events that are rendered slowly one after another: $isSlow', async ({ isSlow, rounds }) => {
  const connection = { isOpen: true, hasPendingBytes: false, write: () => true, afterWriting: () => {} };
  const renderer = { lastTookMs: isSlow ? 2 : 0.1, render: () => Buffer.from('{}') };
  const envelope = { head: () => '', tail: '' };
  const write = async () => {
    const source = new OneEvent('sockets');
    const delivery = new Delivery(connection as never, source, renderer as never, { envelope: envelope as never, onEnd: null });
    delivery.onReadable();
    await sleep(20);
    source.events.push({});
    return () => delivery.writeNext();
  };
  const [a, b, c] = [await write(), await write(), await write()] as const;
  expect(await recordRounds({ a, b, c })).toEqual(rounds);
});

it('a slow delivery does not run within the notification of its subscriber, and a write of many events is bounded in time', async () => {
  const source = new OneEvent('sockets');
  let rendered = 0;
  const renderer = {
    lastTookMs: 0.4,
    render() {
      rendered += 1;
      return Buffer.from('{}');
    },
  };
  const waiting: Array<() => void> = [];
  const connection = {
    isOpen: true,
    hasPendingBytes: false,
    writeQueue: null,
    write: () => true,
    afterWriting: (callback: () => void) => waiting.push(callback),
  };
  const envelope = { head: () => '', tail: '' };
  const delivery = new Delivery(connection as never, source, renderer as never, { envelope: envelope as never, onEnd: null });
  for (let index = 0; index < 100; index += 1) source.events.push({});
  delivery.onReadable();
  expect(rendered).toBe(3);
  expect(waiting).toHaveLength(1);
  for (const deadline = Date.now() + 20_000; rendered < 101 && Date.now() < deadline; await sleep(1)) waiting.pop()?.();
  expect(rendered).toBe(101);
  for (const until = Date.now() + 100; Date.now() < until; await sleep(1)) waiting.pop()?.();
  source.events.push({});
  delivery.onReadable();
  expect([rendered, waiting.length]).toEqual([101, 1]);
});
