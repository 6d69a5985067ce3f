import { PorticoError } from './error.ts';

/** An API key, a session token, or a function that gets one that is good now. */
export type Credential = string | (() => string | Promise<string>);

/** The credential in use: a function is asked once, and again when what it gave is refused. */
export class CredentialSource {
  readonly #credential: Credential;
  #current: Promise<string> | null = null;

  constructor(credential: Credential) {
    this.#credential = credential;
  }

  get(): Promise<string> {
    if (!this.#current) {
      const asked = ask(this.#credential);
      // What failed is asked for again.
      asked.catch(() => {
        if (this.#current === asked) this.#current = null;
      });
      this.#current = asked;
    }
    return this.#current;
  }

  /** Whether there may be another one than the refused one, which is forgotten. Requests that were refused together ask once. */
  async renew(refused: string): Promise<boolean> {
    if (typeof this.#credential === 'string') return false;
    if ((await this.get().catch(() => refused)) === refused) this.#current = null;
    return true;
  }
}

/** A key or a token is visible ASCII: anything else is none, and is not repeated in an error. */
export const isCredential = (text: string): boolean => /^[\x21-\x7e]+$/.test(text);

async function ask(credential: Credential): Promise<string> {
  const given = (typeof credential === 'string' ? credential : await call(credential)).trim();
  if (!isCredential(given)) throw new PorticoError('not_authenticated', 'The credential is no key and no token.', 401);
  return given;
}

async function call(credential: () => string | Promise<string>): Promise<string> {
  try {
    return await credential();
  } catch (failure) {
    const why = failure instanceof Error ? failure.message : String(failure);
    throw new PorticoError('credential_unavailable', `There is no credential now: ${why}.`, null, null, [], { cause: failure });
  }
}
