import { createLocalJWKSet, createRemoteJWKSet, customFetch, errors as joseErrors } from 'jose';
import { Fault } from '../kernel/fault.ts';
import type { Lifecycle } from '../kernel/lifecycle.ts';
import type { Logger } from '../platform/logger.ts';
import { OutageLog } from '../platform/outagelog.ts';
import { type ExpectedClaims, type SessionClaims, TokenVerifier } from './tokenverifier.ts';

export interface Provider extends ExpectedClaims {
  readonly jwksUrl: string;
}

/** How often the provider's keys are fetched, and so how long a withdrawn key stays valid. */
const REFRESH_INTERVAL_MS = 300_000;
const RETRY_INTERVAL_MS = 1_000;

/** The cause of the fault of a token that cannot be checked: a text, as the outage itself has been logged. */
const PROVIDER_AWAY = 'the identity provider is away';

/** Whether a token could not be checked because the identity provider is away. */
export function isProviderAway(failure: unknown): failure is Fault {
  return failure instanceof Fault && failure.cause === PROVIDER_AWAY;
}

/**
 * Verifies the tokens of an identity provider. The keys fetched last are used until the next fetch succeeds: during an outage of the
 * provider, tokens of known keys stay valid. A token of an unknown key causes a fetch at once, at most one a second; in an outage none,
 * as the keys are fetched every second anyway.
 */
export class IdentityProvider {
  readonly local = null;
  readonly #keys: ReturnType<typeof createRemoteJWKSet>;
  readonly #verifier: TokenVerifier;
  readonly #outage: OutageLog;
  /** The text of the key set fetched last. */
  #keySet: string | null = null;
  #isClosed = false;
  /** Whether the fetch that begins is one of ours, which goes on during an outage, and not one for a token of an unknown key. */
  #isRefresh = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(provider: Provider, lifecycle: Lifecycle, log: Logger) {
    this.#outage = new OutageLog('identity_provider', log);
    this.#keys = createRemoteJWKSet(new URL(provider.jwksUrl), {
      timeoutDuration: 1_000,
      cooldownDuration: 1_000,
      cacheMaxAge: Number.POSITIVE_INFINITY,
      [customFetch]: (...request: Parameters<typeof fetch>) => this.#fetch(request),
    });
    this.#verifier = new TokenVerifier(this.#keys, provider, () => !this.#keys.reloading);
    this.#schedule(0);
    lifecycle.onClose(() => {
      this.#isClosed = true;
      clearTimeout(this.#timer);
    });
  }

  /** Whether the last fetch of the keys failed. */
  get isAway(): boolean {
    return this.#outage.isAway;
  }

  /** Throws `not_authenticated` for anything but a valid session token, `service_unavailable` without the provider's keys. */
  verify(token: string): Promise<SessionClaims> {
    return this.#verifier.verify(token).catch((failure: Fault) => {
      throw this.isAway && failure.code === 'service_unavailable' ? Fault.tryLater(PROVIDER_AWAY) : failure;
    });
  }

  /** Fetches the keys, for jose. */
  async #fetch(request: Parameters<typeof fetch>): Promise<Response> {
    if (this.isAway && !this.#isRefresh) throw Fault.tryLater(PROVIDER_AWAY);
    try {
      const response = await fetch(...request);
      const text = response.status === 200 ? await readKeySet(response) : '';
      const problem = findProblem(response, text);
      if (problem) this.#recordAway(problem);
      else this.#recordKeySet(text);
      return response.status === 200 ? new Response(text) : response;
    } catch (failure) {
      this.#recordAway(failure);
      throw failure;
    }
  }

  /**
   * Any client can cause a fetch, by a token that names an unknown key. So the cached claims are dropped only if the key set has
   * changed: otherwise such a client would have every token verified again.
   */
  #recordKeySet(text: string): void {
    this.#outage.recordReply();
    if (text !== this.#keySet) this.#verifier.clear();
    this.#keySet = text;
  }

  #recordAway(failure: unknown): void {
    this.#outage.recordFailure(failure);
    this.#schedule(RETRY_INTERVAL_MS);
  }

  #schedule(delayMs: number): void {
    clearTimeout(this.#timer);
    if (!this.#isClosed) this.#timer = setTimeout(() => this.#refresh(), delayMs).unref();
  }

  async #refresh(): Promise<void> {
    this.#schedule(REFRESH_INTERVAL_MS);
    this.#isRefresh = true;
    // `#fetch` is called before this returns.
    const reloading = this.#keys.reload();
    this.#isRefresh = false;
    // A failure needs no handling here: `#fetch` has recorded it.
    await reloading.catch(() => {});
  }
}

/** The largest key set: a provider has a few keys, of a kilobyte or less. */
const MAX_KEY_SET_BYTES = 1024 * 1024;

/** The text of a key set. Throws JWKSInvalid for one that is too large, of which no more is read. */
async function readKeySet({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.length;
    if (bytes > MAX_KEY_SET_BYTES)
      throw new joseErrors.JWKSInvalid(`the identity provider answers with more than ${MAX_KEY_SET_BYTES} bytes`);
    chunks.push(chunk);
  }
  return new TextDecoder().decode(Buffer.concat(chunks));
}

/** Why the provider's response is not a key set, with a code by which the log tells it from other causes; null where it is one. */
function findProblem({ status }: Response, text: string): Error | null {
  if (status !== 200) return Object.assign(new Error(`the identity provider answers ${status}`), { code: String(status) });
  try {
    createLocalJWKSet(JSON.parse(text));
    return null;
  } catch (cause) {
    return Object.assign(new Error('the identity provider answers with no key set', { cause }), { code: 'no_key_set' });
  }
}
