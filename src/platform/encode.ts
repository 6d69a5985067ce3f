/** Text, bytes or null, which `pg` sends as they are. */
export type Encoded = string | Buffer | null;

/** Encodes a value for PostgreSQL. Throws a TypeError for an object, which has no single encoding: send JSON as text. */
export function encode(value: unknown): Encoded {
  if (value === null || value === undefined) return null;
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (value instanceof Date) return value.toISOString();
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  if (Array.isArray(value)) return encodeArray(value);
  throw new TypeError(`a statement takes no value like ${String(value)}`);
}

/** Every element is quoted, so that nothing in it is taken for array syntax. */
function encodeArray(values: readonly unknown[]): string {
  const elements = values.map((value) => {
    if (Array.isArray(value)) return encodeArray(value);
    const encoded = encode(value);
    if (encoded === null) return 'NULL';
    if (typeof encoded !== 'string') return `"\\\\x${encoded.toString('hex')}"`;
    return `"${encoded.replace(/["\\]/g, '\\$&')}"`;
  });
  return `{${elements.join(',')}}`;
}
