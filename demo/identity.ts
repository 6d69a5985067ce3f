import { createHash } from 'node:crypto';

/** A fixed time: ids with the time at which the demo was created would differ between machines. */
const EPOCH_MS = Date.UTC(2026, 0, 1);

/**
 * The id of a demo row by its name, in the form of a UUIDv7: the same on every machine, so that pasted examples work. Ids
 * sort by `ordinal` (seconds after the fixed time), as those of real rows sort by creation; the remaining bits are from the
 * SHA-256 of the name.
 */
export function demoId(name: string, ordinal = 0): string {
  const bytes = createHash('sha256').update(name).digest();
  bytes.writeUIntBE(EPOCH_MS + ordinal * 1000, 0, 6);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x70, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes.toString('hex', 0, 16).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
