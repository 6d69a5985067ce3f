import fc from 'fast-check';
import { expect, it } from 'vitest';
import { Throttle } from '../../src/notifications/throttle.ts';
import { type Envelope, frameTexts, holdFrames } from '../../src/transport/delivery/frames.ts';
import { countCases } from '../support/cases.ts';

/** The messages in a server's frames, which are not masked. */
function readFrames(bytes: Buffer): string[] {
  const messages: string[] = [];
  for (let at = 0; at < bytes.length; ) {
    if (bytes[at] !== 0x81) throw new Error(`no whole text message: ${bytes[at]}`);
    const short = bytes[at + 1] ?? 0;
    const start = at + (short < 126 ? 2 : short === 126 ? 4 : 10);
    const length = short < 126 ? short : short === 126 ? bytes.readUInt16BE(at + 2) : Number(bytes.readBigUInt64BE(at + 2));
    at = start + length;
    if (at > bytes.length) throw new Error('a frame is cut off');
    messages.push(bytes.toString('utf8', start, at));
  }
  return messages;
}

it('each socket’s texts are framed, whether or not the socket before has written its frames', () => {
  const envelopes: Envelope[] = [
    { head: (id) => `{"id":${JSON.stringify(id)},"payload":`, tail: '}' },
    { head: () => '', tail: '' },
  ];
  const texts = ['{"data":1}', '"é"', `"${'a'.repeat(110)}"`, `"${'b'.repeat(70_000)}"`].map((text) => Buffer.from(text));
  // Few of each, so that one is often told what the one before was told.
  const told = fc.record({
    envelope: fc.constantFrom(...envelopes),
    id: fc.constantFrom('a', 'b', 'é', 'a longer one', '"\\'),
    texts: fc.constantFrom([0], [0, 1], [0, 1], [2, 3], [3]),
    isHeld: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(told, { minLength: 1, maxLength: 30 }), (sockets) => {
      const written = sockets.map(({ envelope, id, texts: picked, isHeld }) => {
        const chosen = picked.map((index) => texts[index] as Buffer);
        const frames = frameTexts(chosen, envelope, id);
        if (isHeld) holdFrames();
        const expected = chosen.map((text) => `${envelope.head(id)}${text}${envelope.tail}`);
        return { expected, frames: isHeld ? frames : Buffer.from(frames) };
      });
      for (const { expected, frames } of written) expect(readFrames(frames)).toEqual(expected);
    }),
    { numRuns: countCases(500) },
  );
});

it('sockets with the same texts and envelope share the same bytes', () => {
  const envelope: Envelope = { head: () => '', tail: '' };
  const texts = [Buffer.from('{}')];
  const first = frameTexts(texts, envelope, '');
  holdFrames();
  expect(frameTexts([...texts], envelope, '')).toBe(first);
});

const timed = async (work: () => Promise<void>) => {
  const began = performance.now();
  await work();
  return performance.now() - began;
};

it('a single wake-up is not delayed, and one after a batch that finds no new entries waits for a moment only', async () => {
  const [single, next]: [number[], number[]] = [[], []];
  // The fastest counts: at another time the machine may be busy.
  for (let round = 0; round < 10; round += 1) {
    const throttle = new Throttle();
    single.push(await timed(() => throttle.wait(() => round)));
    throttle.recordTime(100);
    next.push(await timed(() => throttle.wait(() => round)));
  }
  expect(Math.min(...single)).toBeLessThan(5);
  expect(Math.min(...next)).toBeLessThan(150);
});

it('a burst waits in proportion to its delivery time, and a quarter of a second at most', async () => {
  const throttle = new Throttle();
  let news = 0;
  const countNews = () => {
    news += 1;
    return news;
  };
  throttle.recordTime(5);
  const short = await timed(() => throttle.wait(countNews));
  const long: number[] = [];
  for (let round = 0; round < 3; round += 1) {
    throttle.recordTime(10_000);
    long.push(await timed(() => throttle.wait(countNews)));
  }
  // Nineteen times as long as the telling took, and a quarter of a second at most.
  expect(short).toBeGreaterThan(80);
  expect(Math.min(...long)).toBeGreaterThan(200);
  expect(Math.min(...long)).toBeLessThan(1_000);
});
