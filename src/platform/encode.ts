/** The values that a statement takes. */
export type Parameter = Single | readonly Parameter[];
type Single = string | number | boolean | Date | Uint8Array | null | undefined;

/** Text, bytes or null: what `pg` sends as they are. */
export type Encoded = string | Buffer | null;

/** A value as PostgreSQL reads it. Throws for a value that has no single encoding, as an object: JSON is sent as text. */
export function encode(value: unknown): Encoded {
  if (value === null || value === undefined) return null;
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (value instanceof Date) return value.toISOString();
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  if (Array.isArray(value)) return encodeArray(value);
  throw new TypeError(`a statement takes no value like ${String(value)}`);
}

/** Every element is in quotes, so that nothing in it has a meaning to the array's syntax. */
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
