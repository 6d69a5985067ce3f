import type { Socket } from 'node:net';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Pace } from '../../src/notifications/pace.ts';
import { type Envelope, frameTexts, holdFrames } from '../../src/transport/websocket/frames.ts';
import { startApp, type TestApp } from '../support/app.ts';
import { openSocket } from '../support/feed.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_USER: '100000000', LOG_LEVEL: 'error' });
});
afterAll(() => app.close());

const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

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

it('frames what each socket is told, whether or not the one before has written its frames', () => {
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
    { numRuns: 500 },
  );
});

it('gives those who are told the same the same bytes', () => {
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

it('tells at once what comes singly, and waits no longer than a moment where nothing more comes', async () => {
  const [single, next]: [number[], number[]] = [[], []];
  // The fastest counts: at another time the machine may be busy.
  for (let round = 0; round < 10; round += 1) {
    const pace = new Pace();
    single.push(await timed(() => pace.takeTurn(() => round)));
    pace.spend(100);
    next.push(await timed(() => pace.takeTurn(() => round)));
  }
  expect(Math.min(...single)).toBeLessThan(5);
  expect(Math.min(...next)).toBeLessThan(150);
});

it('lets other work go on before it tells of a burst, but not for long', async () => {
  const pace = new Pace();
  let news = 0;
  const countNews = () => {
    news += 1;
    return news;
  };
  pace.spend(5);
  const short = await timed(() => pace.takeTurn(countNews));
  pace.spend(10_000);
  const long = await timed(() => pace.takeTurn(countNews));
  // Nineteen times as long as the telling took, and a quarter of a second at most.
  expect(short).toBeGreaterThan(80);
  expect(long).toBeGreaterThan(200);
  expect(long).toBeLessThan(1_000);
});

interface Told {
  readonly id: string;
  readonly sequences: number[];
  readonly transport: Socket;
  readonly end: () => void;
}

/** Subscribes by an id of its own; what comes under another is told as the number -1. */
async function subscribe(id: string): Promise<Told> {
  const { organization_id, project_id, users } = app.demo;
  const { socket, until } = openSocket(app, '/graphql', {
    protocol: 'graphql-transport-ws',
    headers: { authorization: `Bearer ${users.owner.token}` },
  });
  const query = `subscription { notificationFeed(organizationId: "${organization_id}", projectId: "${project_id}") {
    __typename ... on NotificationAdded { sequence notification { body } } } }`;
  socket.on('open', () => socket.send('{"type":"connection_init"}'));
  await until(({ type }) => type === 'connection_ack');
  socket.send(JSON.stringify({ id, type: 'subscribe', payload: { query } }));
  await until(({ type }) => type === 'next');
  const sequences: number[] = [];
  socket.removeAllListeners('message');
  socket.on('message', (data) => {
    const frame = JSON.parse(String(data));
    sequences.push(frame.id === id ? frame.payload.data.notificationFeed.sequence : -1);
  });
  return { id, sequences, transport: (socket as unknown as { _socket: Socket })._socket, end: () => socket.terminate() };
}

it('tells each socket all, under its own id, while others do not read', { timeout: 120_000 }, async () => {
  const all: Told[] = [];
  for (const id of ['aaaa', 'bbbb', 'cccc', 'dddd', 'a-longer-id', 'bbbb']) all.push(await subscribe(id));
  const sleepers = all.filter((_told, index) => index % 2 === 1);
  for (const { transport } of sleepers) transport.pause();
  const [{ last } = { last: 0 }] = await app.app.database.$queryRaw<Array<{ last: number }>>`
    SELECT last_sequence::int AS last FROM notification_logs WHERE project_id = ${app.demo.project_id}::uuid`;
  const count = 2_000;
  for (let done = 0; done < count; done += 100) {
    await app.app.database.$executeRaw`INSERT INTO notifications (project_id, kind, severity, title, body)
      SELECT ${app.demo.project_id}::uuid, 'test.load', 'info', 'load', repeat('x', 8000) FROM generate_series(1, 100)`;
  }
  const expected = Array.from({ length: count }, (_, index) => last + 1 + index);
  const untilAll = async (some: readonly Told[]) => {
    while (some.some(({ sequences }) => sequences.length < count)) await sleep(50);
  };
  await untilAll(all.filter((told) => !sleepers.includes(told)));
  // More than the kernel holds for somebody: their feeds had to wait.
  expect(sleepers.every(({ sequences }) => sequences.length < count)).toBe(true);
  for (const { transport } of sleepers) transport.resume();
  await untilAll(all);
  for (const { sequences, end } of all) {
    expect(sequences).toEqual(expected);
    end();
  }
});
