import { createHash } from 'node:crypto';

/** A fixed moment: an id that told when the demo was filled in would differ from machine to machine. */
const EPOCH_MS = Date.UTC(2026, 0, 1);

/**
 * Name → the id of that thing in the demo, shaped like a UUIDv7: the same on every machine, so that examples work when
 * pasted. Ids sort by `ordinal` (seconds after the fixed moment), as those of real rows sort by creation; all else is
 * the SHA-256 of the name.
 */
export function demoId(name: string, ordinal = 0): string {
  const bytes = createHash('sha256').update(name).digest();
  bytes.writeUIntBE(EPOCH_MS + ordinal * 1000, 0, 6);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x70, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes.toString('hex', 0, 16).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
