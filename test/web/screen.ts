import type { Socket } from 'node:net';

export const WIDTH = 320;
export const HEIGHT = 200;
const NAME = Buffer.from('The screen of a test');

/** What comes from a viewer before its messages: its version, the kind of security, whether it shares. */
const BEGINNING = [12, 1, 1] as const;
/** Messages of the viewer by their first byte: how long they are. */
const lengths: Readonly<Record<number, { readonly head: number; readonly of: (message: Buffer) => number }>> = {
  0: { head: 20, of: () => 20 },
  2: { head: 4, of: (message) => 4 + 4 * message.readUInt16BE(2) },
  3: { head: 10, of: () => 10 },
  4: { head: 8, of: () => 8 },
  5: { head: 6, of: () => 6 },
  6: { head: 8, of: (message) => 8 + Math.abs(message.readInt32BE(4)) },
};
const UPDATE_REQUEST = 3;
const KEY = 4;

/** A machine that shows one picture by RFB 3.8 and is told keys. `onKey` has their symbols as they go down. */
export function serveScreen(line: Socket, onKey: (symbol: number) => void): void {
  let bytes = Buffer.alloc(0);
  let step = 0;
  let isShown = false;
  line.write('RFB 003.008\n');
  const begin = () => {
    if (step === 0) line.write(Buffer.from([1, 1]));
    if (step === 1) line.write(Buffer.alloc(4));
    if (step === 2) line.write(describe());
    step += 1;
  };
  const take = (message: Buffer) => {
    if (message[0] === KEY && message[1] === 1) onKey(message.readUInt32BE(4));
    if (message[0] !== UPDATE_REQUEST || isShown) return;
    isShown = true;
    line.write(picture());
  };
  line.on('data', (more) => {
    bytes = Buffer.concat([bytes, more as Buffer]);
    for (;;) {
      const length = BEGINNING[step] ?? measure(bytes);
      if (bytes.length < length) return;
      const message = bytes.subarray(0, length);
      bytes = bytes.subarray(length);
      if (step < BEGINNING.length) begin();
      else take(message);
    }
  });
}

/** How long the first message is; more than there is, where that is not known yet. */
function measure(bytes: Buffer): number {
  const [type] = bytes;
  if (type === undefined) return 1;
  const kind = lengths[type];
  if (!kind) throw new Error(`a viewer sent a message of type ${type}`);
  return bytes.length < kind.head ? kind.head : kind.of(bytes);
}

/** The size, 32 bits for a pixel (red, green, blue), and the name. */
function describe(): Buffer {
  const head = Buffer.alloc(24);
  head.writeUInt16BE(WIDTH, 0);
  head.writeUInt16BE(HEIGHT, 2);
  head.set([32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 0, 8, 16], 4);
  head.writeUInt32BE(NAME.length, 20);
  return Buffer.concat([head, NAME]);
}

/** All of it, as it is: one colour from the left to the right. */
function picture(): Buffer {
  const head = Buffer.alloc(16);
  head.writeUInt16BE(1, 2);
  head.writeUInt16BE(WIDTH, 8);
  head.writeUInt16BE(HEIGHT, 10);
  const pixels = Buffer.alloc(WIDTH * HEIGHT * 4);
  for (let index = 0; index < WIDTH * HEIGHT; index += 1)
    pixels.set([Math.floor(((index % WIDTH) * 255) / WIDTH), 160, 80, 255], index * 4);
  return Buffer.concat([head, pixels]);
}
