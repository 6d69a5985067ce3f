import type { CredentialSource } from './credential.ts';
import { isFinal, PorticoError } from './error.ts';
import type { StateHolder } from './state.ts';
import { abortable, backoff, wait } from './wait.ts';

/** The steps after each failure of a connection that is opened again and again. */
export class Recovery {
  readonly #credentials: CredentialSource;
  readonly #state: StateHolder;
  readonly #signal: AbortSignal;
  /** The number of failures since a connection worked. */
  #failures = 0;
  /** Whether the credential was renewed since a connection worked. */
  #isRenewed = false;

  constructor(credentials: CredentialSource, state: StateHolder, signal: AbortSignal) {
    this.#credentials = credentials;
    this.#state = state;
    this.#signal = signal;
  }

  /** A connection works: its failure will be another matter than those before. */
  reset(): void {
    this.#failures = 0;
    this.#isRenewed = false;
  }

  /**
   * Resolves when the next attempt is due: at once with another credential, otherwise after a delay, or when the signal aborts.
   * Throws the failure if no attempt could help. The credential is that of the attempt; null if it failed before it had one.
   */
  async prepareRetry(failure: unknown, credential: string | null): Promise<void> {
    if (!(failure instanceof PorticoError)) throw failure;
    if (credential !== null && !this.#isRenewed && (await this.#renew(failure, credential))) {
      this.#isRenewed = true;
      return;
    }
    if (isFinal(failure)) throw failure;
    const delayMs = Math.max(failure.retryAfterMs ?? 0, backoff(this.#failures));
    this.#failures += 1;
    this.#state.enter({ name: 'waiting', delayMs, error: failure });
    await wait(delayMs, this.#signal).catch(() => {});
  }

  /** Discards a refused credential; whether the next attempt may do better. */
  async #renew({ code, status }: PorticoError, credential: string): Promise<boolean> {
    if (code !== 'not_authenticated' && code !== 'access_lost') return false;
    // After an abort nobody attempts anything: it is not a failure.
    const hasAnother = await abortable(this.#credentials.renew(credential), this.#signal).catch(() => true);
    // Without a 401 the next attempt shows whether the credential is invalid or access to the project was lost.
    return hasAnother || status !== 401;
  }
}
