/** The first byte of a text message in one frame. */
const FINAL_TEXT = 0x81;
/** The longest payloads whose length takes one byte, and two more; the length of others takes eight more. */
const MAX_SHORT = 125;
const MAX_MEDIUM = 0xffff;

/** The message around each event's text: a head, with the client's id of the subscription, and a tail. */
export interface Envelope {
  head(id: string): string;
  readonly tail: string;
}

/** Consecutive frames that go as one write. */
interface FrameRun {
  readonly texts: readonly Buffer[];
  readonly envelope: Envelope;
  id: string;
  bytes: Buffer;
  readonly headSize: number;
  /** The positions at which the heads begin. */
  readonly headsAt: readonly number[];
  /** Whether a stream still has to write these bytes: then they must not change. */
  isHeld: boolean;
}

/** The frames of the last write. A broadcast sends the same texts to one socket after another, which reuses the frames with its own id. */
let last: FrameRun | null = null;

/**
 * Texts as WebSocket frames. A server's frames are not masked (RFC 6455, §5.1), so many sockets can share the same bytes.
 * The bytes are valid until the next call: a caller whose stream does not write them at once must hold them.
 */
export function frameTexts(texts: readonly Buffer[], envelope: Envelope, id: string): Buffer {
  if (last?.envelope !== envelope || !areSame(last.texts, texts)) last = makeRun(texts, envelope, id);
  else if (last.id !== id) last = changeId(last, id);
  return last.bytes;
}

/** Keeps the frames of the last call as they are. */
export function holdFrames(): void {
  if (last) last.isHeld = true;
}

function areSame(some: readonly Buffer[], others: readonly Buffer[]): boolean {
  return some.length === others.length && some.every((text, index) => text === others[index]);
}

function makeRun(texts: readonly Buffer[], envelope: Envelope, id: string): FrameRun {
  const { tail } = envelope;
  const head = envelope.head(id);
  const headSize = Buffer.byteLength(head);
  const around = headSize + Buffer.byteLength(tail);
  let size = 0;
  for (const text of texts) size += sizeOfHeader(around + text.length) + around + text.length;
  const bytes = Buffer.allocUnsafe(size);
  const headsAt: number[] = [];
  let at = 0;
  for (const text of texts) {
    at = writeHeader(bytes, at, around + text.length);
    headsAt.push(at);
    at += bytes.write(head, at);
    at += text.copy(bytes, at);
    at += bytes.write(tail, at);
  }
  return { texts, envelope, id, bytes, headSize, headsAt, isHeld: false };
}

/** Writes another id into the frames; where it has another length, the frames are made anew. */
function changeId(run: FrameRun, id: string): FrameRun {
  const head = run.envelope.head(id);
  if (Buffer.byteLength(head) !== run.headSize) return makeRun(run.texts, run.envelope, id);
  if (run.isHeld) run.bytes = Buffer.from(run.bytes);
  // The head is encoded once: copying its bytes to the other frames takes a third of the time.
  const [first = 0] = run.headsAt;
  run.bytes.write(head, first);
  for (let index = 1; index < run.headsAt.length; index += 1)
    run.bytes.copyWithin(run.headsAt[index] as number, first, first + run.headSize);
  run.isHeld = false;
  run.id = id;
  return run;
}

function sizeOfHeader(length: number): number {
  if (length <= MAX_SHORT) return 2;
  return length <= MAX_MEDIUM ? 4 : 10;
}

function writeHeader(bytes: Buffer, at: number, length: number): number {
  bytes[at] = FINAL_TEXT;
  if (length <= MAX_SHORT) {
    bytes[at + 1] = length;
    return at + 2;
  }
  if (length <= MAX_MEDIUM) {
    bytes[at + 1] = MAX_SHORT + 1;
    return bytes.writeUInt16BE(length, at + 2);
  }
  bytes[at + 1] = MAX_SHORT + 2;
  return bytes.writeBigUInt64BE(BigInt(length), at + 2);
}
