import { randomBytes } from 'node:crypto';

const canonical = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/**
 * The UUID in lower case, or null. Accepts only the canonical spelling, in either case: PostgreSQL accepts braces and missing
 * hyphens too, and then one resource would have many addresses.
 */
export function parseUuid(text: unknown): string | null {
  return typeof text === 'string' && canonical.test(text) ? text.toLowerCase() : null;
}

/** A new UUIDv7, which sorts by its time: for a row whose id must be known before it is written. */
export function makeUuid(): string {
  const bytes = randomBytes(16);
  bytes.writeUIntBE(Date.now(), 0, 6);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x70, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
