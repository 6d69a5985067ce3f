import { join } from 'node:path';
import {
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  type JSONWebKeySet,
  type JWTVerifyGetKey,
  errors as joseErrors,
  jwtVerify,
  SignJWT,
} from 'jose';
import { LRUCache } from 'lru-cache';
import { type CredentialProblem, Fault } from '../kernel/fault.ts';
import type { Lifecycle } from '../kernel/lifecycle.ts';
import { parseUuid } from '../kernel/uuid.ts';
import type { Logger } from '../platform/logger.ts';
import { OutageLog } from '../platform/outagelog.ts';
import { openSigningKey } from './signingkey.ts';

/** The claims of a valid session token. */
export interface SessionClaims {
  readonly userId: string;
  /** The token's `exp`, or a day from now where that is sooner: then it has to be verified again. */
  readonly expires: Date;
}

export interface Tokens {
  /** Whether the last fetch of the identity provider's keys failed. */
  readonly isAway: boolean;
  /** Throws `not_authenticated` for anything but a valid session token, `service_unavailable` without the provider's keys. */
  verify(token: string): Promise<SessionClaims>;
  /** The local key set and a way to sign with it; null where an identity provider signs. */
  readonly local: { readonly jwks: JSONWebKeySet; sign(userId: string, seconds: number): Promise<string> } | null;
}

interface ExpectedClaims {
  readonly issuer: string;
  readonly audience: string;
}

interface Provider extends ExpectedClaims {
  readonly jwksUrl: string;
}

interface TokenSettings {
  readonly dataDir: string;
  readonly identityProvider: Provider | null;
}

/** The accepted algorithms: never read from the token, and none with a shared secret. */
const algorithms = ['EdDSA', 'ES256', 'RS256'];
const LOCAL = { issuer: 'portico', audience: 'portico' };

/** How often the provider's keys are fetched, and so how long a withdrawn key stays valid. */
const REFRESH_INTERVAL_MS = 300_000;
const RETRY_INTERVAL_MS = 1_000;

/** Session tokens signed by the identity provider, or else by a local key in `dataDir`. */
export async function openTokens({ dataDir, identityProvider }: TokenSettings, lifecycle: Lifecycle, log: Logger): Promise<Tokens> {
  if (identityProvider) return openProvider(identityProvider, lifecycle, log);
  const { jwk, signingKey } = await openSigningKey(join(dataDir, 'key.json'));
  const { d: _private, ...publicJwk } = jwk;
  const jwks = { keys: [publicJwk] };
  const keys = createLocalJWKSet(jwks);
  const verifier = new TokenVerifier(keys, LOCAL);
  return {
    isAway: false,
    verify: (token) => verifier.verify(token),
    local: {
      jwks,
      sign: (userId, seconds) =>
        new SignJWT()
          .setProtectedHeader({ alg: 'EdDSA', kid: String(jwk.kid), typ: 'JWT' })
          .setIssuer(LOCAL.issuer)
          .setAudience(LOCAL.audience)
          .setSubject(userId)
          .setIssuedAt()
          .setExpirationTime(`${seconds} seconds`)
          .sign(signingKey),
    },
  };
}

/** The cause of the fault of a token that cannot be checked: a text, as the outage itself has been logged. */
const PROVIDER_AWAY = 'the identity provider is away';

/** Whether a token could not be checked because the identity provider is away. */
export function isProviderAway(failure: unknown): failure is Fault {
  return failure instanceof Fault && failure.cause === PROVIDER_AWAY;
}

/**
 * The keys fetched last are used until the next fetch succeeds: during an outage of the provider, tokens of known keys stay
 * valid. A token of an unknown key causes a fetch at once, at most one a second; in an outage none, as the keys are fetched every
 * second anyway.
 */
function openProvider(provider: Provider, lifecycle: Lifecycle, log: Logger): Tokens {
  const keys = createRemoteJWKSet(new URL(provider.jwksUrl), {
    timeoutDuration: 1_000,
    cooldownDuration: 1_000,
    cacheMaxAge: Number.POSITIVE_INFINITY,
    [customFetch]: async (...request: Parameters<typeof fetch>) => {
      if (outage.isAway && !isRefresh) throw Fault.tryLater(PROVIDER_AWAY);
      try {
        const response = await fetch(...request);
        const text = response.status === 200 ? await readKeySet(response) : '';
        const problem = findProblem(response, text);
        if (problem) recordAway(problem);
        else recordKeySet(text);
        return response.status === 200 ? new Response(text) : response;
      } catch (failure) {
        recordAway(failure);
        throw failure;
      }
    },
  });
  const verifier = new TokenVerifier(keys, provider, () => !keys.reloading);
  let keySet: string | null = null;
  /**
   * Any client can cause a fetch, by a token that names an unknown key. So the cached claims are dropped only if the key set has
   * changed: otherwise such a client would have every token verified again.
   */
  const recordKeySet = (text: string) => {
    outage.recordReply();
    if (text !== keySet) verifier.clear();
    keySet = text;
  };
  const outage = new OutageLog('identity_provider', log);
  let isClosed = false;
  let isRefresh = false;
  let timer: NodeJS.Timeout | undefined;
  const schedule = (delayMs: number) => {
    clearTimeout(timer);
    if (!isClosed) timer = setTimeout(refresh, delayMs).unref();
  };
  const recordAway = (failure: unknown) => {
    outage.recordFailure(failure);
    schedule(RETRY_INTERVAL_MS);
  };
  const refresh = async () => {
    schedule(REFRESH_INTERVAL_MS);
    isRefresh = true;
    // `customFetch` is called before this returns.
    const reloading = keys.reload();
    isRefresh = false;
    // A failure needs no handling here: `customFetch` has recorded it.
    await reloading.catch(() => {});
  };
  schedule(0);
  lifecycle.onClose(() => {
    isClosed = true;
    clearTimeout(timer);
  });
  return {
    verify: (token) =>
      verifier.verify(token).catch((failure: Fault) => {
        throw outage.isAway && failure.code === 'service_unavailable' ? Fault.tryLater(PROVIDER_AWAY) : failure;
      }),
    local: null,
    get isAway() {
      return outage.isAway;
    },
  };
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

/**
 * How long a verified token is trusted, whatever its `exp`: a socket that has been open for this long is
 * closed, so that it does not outlive a key that the provider has withdrawn.
 */
const MAX_SESSION_MS = 86_400_000;

/** So a token that was verified long ago does not give a socket or a ticket less time than one that is new here. */
const VERIFIED_FOR_MS = 3_600_000;

const MAX_TOKENS = 10_000;
/** Of all cached tokens together: a provider may issue long ones. */
const MAX_TOKEN_CHARACTERS = 16 * 1024 * 1024;

/**
 * Verifies tokens and caches their claims for an hour, or until `expires` or a change of the provider's key set. The user, who may
 * change at any moment, is not cached.
 */
class TokenVerifier {
  /** The number of changes of the key set: claims that were verified with keys from before one are not cached after it. */
  #changes = 0;
  readonly #cache = new LRUCache<string, SessionClaims & { readonly verifiedAt: number }>({
    max: MAX_TOKENS,
    maxSize: MAX_TOKEN_CHARACTERS,
    sizeCalculation: (_claims, token) => token.length,
  });

  /** While `isSettled` returns false, keys are being fetched, and nothing is cached. */
  constructor(
    private readonly keys: JWTVerifyGetKey,
    private readonly expected: ExpectedClaims,
    private readonly isSettled = () => true,
  ) {}

  async verify(token: string): Promise<SessionClaims> {
    const cached = this.#cache.get(token);
    const now = Date.now();
    if (cached && cached.expires.getTime() > now && now - cached.verifiedAt < VERIFIED_FOR_MS) return cached;
    const [wasSettled, changes] = [this.isSettled(), this.#changes];
    const claims = await readClaims(token, this.keys, this.expected);
    if (wasSettled && this.isSettled() && changes === this.#changes) this.#cache.set(token, { ...claims, verifiedAt: now });
    return claims;
  }

  clear(): void {
    this.#changes += 1;
    this.#cache.clear();
  }
}

/** How far the clock of the signer may be ahead of ours: `iat` and `nbf` may be this far in the future. */
const AHEAD_SECONDS = 60;

/** The last second of the year 9999: PostgreSQL cannot read an `exp` beyond it as a date. */
const LAST_SECOND = 253_402_300_799;

async function readClaims(token: string, keys: JWTVerifyGetKey, { issuer, audience }: ExpectedClaims): Promise<SessionClaims> {
  const options = { algorithms, issuer, audience, clockTolerance: AHEAD_SECONDS };
  const { payload } = await jwtVerify(token, keys, options).catch((failure: unknown) => {
    throw toTokenFault(failure);
  });
  const { sub, exp, iat } = payload;
  const userId = parseUuid(sub);
  if (!userId) throw Fault.invalidCredential('subject');
  if (!Number.isFinite(exp) || Number(exp) > LAST_SECOND) throw Fault.invalidCredential('claims');
  // `clockTolerance` applies to `exp` as well: by jose alone, a token would stay valid for a minute after its expiry.
  if (Number(exp) * 1000 <= Date.now()) throw Fault.invalidCredential('expired');
  if (iat !== undefined && iat > Date.now() / 1000 + AHEAD_SECONDS) throw Fault.invalidCredential('not_yet_valid');
  return { userId, expires: new Date(Math.min(Number(exp) * 1000, Date.now() + MAX_SESSION_MS)) };
}

function toTokenFault(failure: unknown): Fault {
  if (failure instanceof Fault) return failure;
  const isKeySource = failure instanceof joseErrors.JWKSTimeout || failure instanceof joseErrors.JWKSInvalid;
  const isNetwork = failure instanceof TypeError || (failure instanceof joseErrors.JOSEError && failure.code === 'ERR_JOSE_GENERIC');
  return isKeySource || isNetwork ? Fault.unavailable(failure) : Fault.invalidCredential(findProblemOfToken(failure));
}

/**
 * The problem by the claim that jose rejects, be it wrong, absent or of the wrong type. A time (`exp`, `iat`, `nbf`) that is not a number
 * is the problem `claims` instead.
 */
const problemsOfClaims: Readonly<Record<string, CredentialProblem>> = { iss: 'issuer', aud: 'audience' };

function findProblemOfToken(failure: unknown): CredentialProblem {
  if (failure instanceof joseErrors.JWTExpired) return 'expired';
  if (failure instanceof joseErrors.JWTClaimValidationFailed) {
    if (failure.claim === 'nbf' && failure.reason === 'check_failed') return 'not_yet_valid';
    return problemsOfClaims[failure.claim] ?? 'claims';
  }
  if (failure instanceof joseErrors.JWSSignatureVerificationFailed) return 'signature';
  if (failure instanceof joseErrors.JWKSNoMatchingKey || failure instanceof joseErrors.JWKSMultipleMatchingKeys)
    return 'unknown_signing_key';
  if (failure instanceof joseErrors.JOSEAlgNotAllowed) return 'algorithm';
  return 'malformed';
}
