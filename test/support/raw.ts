import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';

/** A WebSocket that sends only what a test tells it to: it does not answer pings or, above all, close frames. */
export interface RawSocket {
  /** The received text frames, parsed. */
  // biome-ignore lint/suspicious/noExplicitAny: messages of every shape
  readonly messages: any[];
  /** Resolves with the code and reason of the server's close frame. */
  readonly refused: Promise<{ code: number; reason: string }>;
  /** Resolves when the TCP connection has ended. */
  readonly gone: Promise<void>;
  /** Sends the messages in one write. */
  say(...messages: unknown[]): void;
  /** Sends a message, and the head of another frame, in one write. */
  sayWithHead(message: unknown): void;
  /** Sends a part of a text message: its first, its last, or one between. */
  sayPart(text: string, part: { readonly isFirst: boolean; readonly isLast: boolean }): void;
  /** Resolves when a message satisfies the predicate; rejects if the connection ends first. */
  // biome-ignore lint/suspicious/noExplicitAny: messages of every shape
  until(isIt: (message: any) => boolean): Promise<void>;
  /** Stops reading. */
  pause(): void;
  destroy(): void;
}

const [CONTINUATION, TEXT, CLOSE] = [0, 1, 8];

/** Opens a raw WebSocket and waits for the server's response to the upgrade. */
export async function openRawSocket(
  baseUrl: string,
  path: string,
  { protocol, headers = {} }: { protocol?: string; headers?: Record<string, string> } = {},
): Promise<RawSocket> {
  const { hostname, port } = new URL(baseUrl);
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  const messages: unknown[] = [];
  const waiting = new Set<() => void>();
  let received = Buffer.alloc(0);
  let isOpen = false;
  let open = () => {};
  let refuse = (_close: { code: number; reason: string }) => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const refused = new Promise<{ code: number; reason: string }>((resolve) => {
    refuse = resolve;
  });
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    if (!isOpen) {
      const end = received.indexOf('\r\n\r\n');
      if (end < 0) return;
      received = received.subarray(end + 4);
      isOpen = true;
      open();
    }
    for (let frame = readFrame(received); frame; frame = readFrame(received)) {
      received = received.subarray(frame.size);
      if (frame.opcode === TEXT) messages.push(JSON.parse(String(frame.payload)));
      if (frame.opcode === CLOSE) refuse({ code: frame.payload.readUInt16BE(0), reason: String(frame.payload.subarray(2)) });
    }
    for (const check of waiting) check();
  });
  socket.on('error', () => {});
  const gone = new Promise<void>((resolve) => void socket.once('end', resolve).once('close', () => resolve()));
  socket.write(
    [
      `GET ${path} HTTP/1.1`,
      `Host: ${hostname}:${port}`,
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      `Sec-WebSocket-Key: ${randomBytes(16).toString('base64')}`,
      ...(protocol ? [`Sec-WebSocket-Protocol: ${protocol}`] : []),
      ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
      '\r\n',
    ].join('\r\n'),
  );
  await opened;
  return {
    messages,
    refused,
    gone,
    say: (...all) => void socket.write(Buffer.concat(all.map((message) => makeFrame(Buffer.from(JSON.stringify(message)))))),
    sayWithHead: (message) => {
      const head = makeFrame(Buffer.alloc(100)).subarray(0, 6);
      socket.write(Buffer.concat([makeFrame(Buffer.from(JSON.stringify(message))), head]));
    },
    sayPart: (text, { isFirst, isLast }) => {
      const frame = makeFrame(Buffer.from(text));
      frame[0] = (isFirst ? TEXT : CONTINUATION) | (isLast ? 0x80 : 0);
      socket.write(frame);
    },
    until: (isIt) =>
      new Promise((resolve, reject) => {
        const check = () => {
          if (messages.some(isIt)) resolve();
        };
        waiting.add(check);
        check();
        gone.then(() => reject(new Error('the connection went before it came')));
      }),
    pause: () => void socket.pause(),
    destroy: () => socket.destroy(),
  };
}

/** Reads the first frame of the bytes, which a server sends unmasked; null if it is incomplete. */
function readFrame(bytes: Buffer): { opcode: number; payload: Buffer; size: number } | null {
  if (bytes.length < 2) return null;
  const short = Number(bytes[1]) & 127;
  const head = short < 126 ? 2 : short === 126 ? 4 : 10;
  if (bytes.length < head) return null;
  const length = short < 126 ? short : short === 126 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2));
  if (bytes.length < head + length) return null;
  return { opcode: Number(bytes[0]) & 15, payload: bytes.subarray(head, head + length), size: head + length };
}

/** Writes a text frame with a mask of zeros, which leaves the payload unchanged. */
function makeFrame(payload: Buffer): Buffer {
  const head =
    payload.length < 126
      ? Buffer.from([0x80 | TEXT, 0x80 | payload.length])
      : Buffer.from([0x80 | TEXT, 0x80 | 126, payload.length >> 8, payload.length & 255]);
  return Buffer.concat([head, Buffer.alloc(4), payload]);
}
