import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';

const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const CIPHER = 'aes-256-gcm';

/**
 * Stores something under a secret of which only a hash is kept: whoever has the secret finds it again and can read it, and
 * nobody else can. The same secret of another owner is another one. All three keys are derived from the secret (HKDF): one
 * that can be guessed protects nothing.
 */
export class Seal {
  /** By which it is found. */
  readonly hash: Uint8Array;
  readonly #signing: Uint8Array;
  readonly #sealing: Uint8Array;

  constructor(secret: string, owner: string) {
    const derived = new Uint8Array(hkdfSync('sha256', secret, owner, 'portico seal', 3 * KEY_BYTES));
    this.hash = derived.subarray(0, KEY_BYTES);
    this.#signing = derived.subarray(KEY_BYTES, 2 * KEY_BYTES);
    this.#sealing = derived.subarray(2 * KEY_BYTES);
  }

  /** A hash that tells nothing of the text to whoever does not have the secret. */
  sign(text: string): Uint8Array {
    return createHmac('sha256', this.#signing).update(text).digest();
  }

  close(plain: Uint8Array): Uint8Array {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, this.#sealing, nonce);
    const sealed = [cipher.update(plain), cipher.final()];
    return Buffer.concat([nonce, cipher.getAuthTag(), ...sealed]);
  }

  /** Throws for what was not sealed by the same secret and owner. */
  open(sealed: Uint8Array): Uint8Array {
    const decipher = createDecipheriv(CIPHER, this.#sealing, sealed.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES });
    decipher.setAuthTag(sealed.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
    return Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()]);
  }
}
