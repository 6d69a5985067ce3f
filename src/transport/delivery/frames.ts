/** The first byte of a text message in one frame. */
const FINAL_TEXT = 0x81;
/** The longest payloads whose length is encoded in the second byte, and in two more bytes; longer ones need eight more. */
const MAX_SHORT = 125;
const MAX_MEDIUM = 0xffff;

/** The message around each event's text: a head with the client's id of the subscription, and a tail. */
export interface Envelope {
  head(id: string): string;
  readonly tail: string;
}

/** Consecutive frames that are written together. */
interface FrameRun {
  readonly texts: readonly Buffer[];
  readonly envelope: Envelope;
  id: string;
  bytes: Buffer;
  readonly headSize: number;
  /** The offsets at which the heads begin. */
  readonly headOffsets: readonly number[];
  /** Whether a stream still has to write these bytes, so that they must not change. */
  isHeld: boolean;
}

/** The frames of the last write. A broadcast sends the same texts to many sockets: each reuses these frames with its own id. */
let last: FrameRun | null = null;

/**
 * Texts as WebSocket frames. A server's frames are not masked (RFC 6455, §5.1), so many sockets can share the same bytes.
 * The bytes are valid until the next call, unless the caller holds them: it must when its stream buffers them.
 */
export function frameTexts(texts: readonly Buffer[], envelope: Envelope, id: string): Buffer {
  if (last?.envelope !== envelope || !areSame(last.texts, texts)) last = makeRun(texts, envelope, id);
  else if (last.id !== id) last = changeId(last, id);
  return last.bytes;
}

/** Keeps the bytes of the last call unchanged. */
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
  const envelopeSize = headSize + Buffer.byteLength(tail);
  let size = 0;
  for (const text of texts) size += headerSize(envelopeSize + text.length) + envelopeSize + text.length;
  const bytes = Buffer.allocUnsafe(size);
  const headOffsets: number[] = [];
  let offset = 0;
  for (const text of texts) {
    offset = writeHeader(bytes, offset, envelopeSize + text.length);
    headOffsets.push(offset);
    offset += bytes.write(head, offset);
    offset += text.copy(bytes, offset);
    offset += bytes.write(tail, offset);
  }
  return { texts, envelope, id, bytes, headSize, headOffsets, isHeld: false };
}

/** Writes another id into the frames; an id of another length needs new frames. */
function changeId(run: FrameRun, id: string): FrameRun {
  const head = run.envelope.head(id);
  if (Buffer.byteLength(head) !== run.headSize) return makeRun(run.texts, run.envelope, id);
  if (run.isHeld) run.bytes = Buffer.from(run.bytes);
  // The head is encoded once: copying its bytes into the other frames takes a third of the time.
  const [first = 0] = run.headOffsets;
  run.bytes.write(head, first);
  for (let index = 1; index < run.headOffsets.length; index += 1)
    run.bytes.copyWithin(run.headOffsets[index] as number, first, first + run.headSize);
  run.isHeld = false;
  run.id = id;
  return run;
}

function headerSize(length: number): number {
  if (length <= MAX_SHORT) return 2;
  return length <= MAX_MEDIUM ? 4 : 10;
}

/** Writes the header of a frame. Returns the offset after it. */
function writeHeader(bytes: Buffer, offset: number, length: number): number {
  bytes[offset] = FINAL_TEXT;
  if (length <= MAX_SHORT) {
    bytes[offset + 1] = length;
    return offset + 2;
  }
  if (length <= MAX_MEDIUM) {
    bytes[offset + 1] = MAX_SHORT + 1;
    return bytes.writeUInt16BE(length, offset + 2);
  }
  bytes[offset + 1] = MAX_SHORT + 2;
  return bytes.writeBigUInt64BE(BigInt(length), offset + 2);
}
