import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';

const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const CIPHER = 'aes-256-gcm';

/**
 * Encrypts data under a secret that is not stored itself: a caller who has the secret can look the data up by `hash` and
 * decrypt it, and nobody else can. Keys differ by owner. All three are derived from the secret (HKDF), so that a secret that
 * can be guessed protects nothing.
 */
export class Seal {
  /** The key for looking the data up. */
  readonly hash: Uint8Array;
  readonly #signingKey: Uint8Array;
  readonly #encryptionKey: Uint8Array;

  constructor(secret: string, owner: string) {
    const derived = new Uint8Array(hkdfSync('sha256', secret, owner, 'portico seal', 3 * KEY_BYTES));
    this.hash = derived.subarray(0, KEY_BYTES);
    this.#signingKey = derived.subarray(KEY_BYTES, 2 * KEY_BYTES);
    this.#encryptionKey = derived.subarray(2 * KEY_BYTES);
  }

  /** A keyed hash: without the secret it reveals nothing of the text. */
  sign(text: string): Uint8Array {
    return createHmac('sha256', this.#signingKey).update(text).digest();
  }

  /** Returns nonce, authentication tag and ciphertext. */
  encrypt(plain: Uint8Array): Uint8Array {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, this.#encryptionKey, nonce);
    const sealed = [cipher.update(plain), cipher.final()];
    return Buffer.concat([nonce, cipher.getAuthTag(), ...sealed]);
  }

  /** Throws an Error for data that was not sealed with the same secret and owner. */
  decrypt(sealed: Uint8Array): Uint8Array {
    const decipher = createDecipheriv(CIPHER, this.#encryptionKey, sealed.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES });
    decipher.setAuthTag(sealed.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
    return Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()]);
  }
}
