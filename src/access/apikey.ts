import { createHash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

const PREFIX = 'sk-portico-';
const SECRET_BYTES = 24;
const keyPattern = new RegExp(`^${PREFIX}([0-9a-f]{${SECRET_BYTES * 2}})([0-9a-f]{8})$`);

interface NewKey {
  /** Shown once, never stored. */
  readonly key: string;
  readonly secretHash: Uint8Array<ArrayBuffer>;
  /** Enough to recognize the key in a list. */
  readonly hint: string;
}

/** `sk-portico-`, 192 random bits, and a checksum of 32 bits, in hexadecimal (§5.2). */
export function generateKey(): NewKey {
  const secret = randomBytes(SECRET_BYTES).toString('hex');
  const key = `${PREFIX}${secret}${checksum(secret)}`;
  return { key, secretHash: hashSecret(key), hint: `${PREFIX}${secret.slice(0, 4)}…` };
}

export function looksLikeKey(credential: string): boolean {
  return credential.startsWith('sk-');
}

/** Whether the checksum matches: a mistyped key is rejected without a query. */
export function isWellFormedKey(credential: string): boolean {
  const match = keyPattern.exec(credential);
  return match !== null && checksum(match[1] ?? '') === match[2];
}

/** SHA-256: the secrets are random, 192 bits or more, so a slow hash would add nothing. */
export function hashSecret(secret: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(createHash('sha256').update(secret).digest());
}

/** A hash as the key of a map. */
export function toHex(hash: Uint8Array): string {
  return Buffer.from(hash).toString('hex');
}

function checksum(secret: string): string {
  return crc32(PREFIX + secret)
    .toString(16)
    .padStart(8, '0');
}
