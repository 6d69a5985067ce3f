import { PorticoError } from './error.ts';

/** An API key, a session token, or a function that returns a valid one. */
export type Credential = string | (() => string | Promise<string>);

/** The current credential. A function is called once, and again when the server rejects what it returned. */
export class CredentialSource {
  readonly #credential: Credential;
  #current: Promise<string> | null = null;

  constructor(credential: Credential) {
    this.#credential = credential;
  }

  get(): Promise<string> {
    if (!this.#current) {
      const pending = resolve(this.#credential);
      // A failure is not cached.
      pending.catch(() => {
        if (this.#current === pending) this.#current = null;
      });
      this.#current = pending;
    }
    return this.#current;
  }

  /** Discards a rejected credential; returns whether another may be available. Requests rejected together call the function once. */
  async renew(refused: string): Promise<boolean> {
    if (typeof this.#credential === 'string') return false;
    if ((await this.get().catch(() => refused)) === refused) this.#current = null;
    return true;
  }
}

/** A key or a token consists of visible ASCII. Anything else is not one, and is not repeated in an error. */
export const isCredential = (text: string): boolean => /^[\x21-\x7e]+$/.test(text);

async function resolve(credential: Credential): Promise<string> {
  const given = typeof credential === 'string' ? credential : await call(credential);
  const text = typeof given === 'string' ? given.trim() : '';
  if (!isCredential(text)) throw new PorticoError('not_authenticated', 'The credential is neither a key nor a token.', 401);
  return text;
}

/** The value that the function returns. Without types it may be anything: most likely null, where nobody is signed in. */
async function call(credential: () => unknown): Promise<unknown> {
  try {
    const given = await credential();
    if (given === null || given === undefined) throw new TypeError('the function returned none');
    return given;
  } catch (failure) {
    const why = failure instanceof Error ? failure.message : String(failure);
    throw new PorticoError('credential_unavailable', `There is no credential now: ${why}.`, null, null, [], { cause: failure });
  }
}

const LOOPBACK = /^(localhost|127\.[\d.]+|\[::1\])$/;

/** Whether a credential that is sent to this server can be read on its way. */
export const isExposed = ({ protocol, hostname }: URL): boolean => protocol === 'http:' && !LOOPBACK.test(hostname);
