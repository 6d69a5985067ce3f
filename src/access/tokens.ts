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
import { Fault } from '../kernel/fault.ts';
import type { Lifecycle } from '../kernel/lifecycle.ts';
import { parseUuid } from '../kernel/uuid.ts';
import type { Logger } from '../platform/logger.ts';
import { openSigningKey } from './signingkey.ts';

/** The claims of a valid session token. */
export interface SessionClaims {
  readonly userId: string;
  readonly expires: Date;
}

export interface Tokens {
  /** Whether the identity provider did not answer when it was asked last. */
  readonly isAway: boolean;
  /** Throws `not_authenticated` for whatever is not a valid session token, `service_unavailable` without the provider's keys. */
  verify(token: string): Promise<SessionClaims>;
  /** The local key set and a way to sign with it; null where an identity provider signs. */
  readonly local: { readonly jwks: JSONWebKeySet; sign(userId: string, seconds: number): Promise<string> } | null;
}

interface TokenSettings {
  readonly dataDir: string;
  readonly identityProvider: { readonly jwksUrl: string; readonly issuer: string; readonly audience: string } | null;
}

/** The algorithms that count: never read from the token, and never a shared secret. */
const algorithms = ['EdDSA', 'ES256', 'RS256'];
const LOCAL = { issuer: 'portico', audience: 'portico' };

/** How often the provider's keys are fetched: a key that was withdrawn is no longer valid then. */
const REFRESH_INTERVAL_MS = 300_000;
const RETRY_INTERVAL_MS = 1_000;

/** Session tokens of the identity provider, or of a key of our own that is kept in `dataDir`. */
export async function openTokens({ dataDir, identityProvider }: TokenSettings, lifecycle: Lifecycle, log: Logger): Promise<Tokens> {
  if (identityProvider) return openProvider(identityProvider, lifecycle, log);
  const { jwk, signingKey } = await openSigningKey(join(dataDir, 'key.json'));
  const { d: _private, ...publicJwk } = jwk;
  const jwks = { keys: [publicJwk] };
  const keys = createLocalJWKSet(jwks);
  const verified = new VerifiedTokens(() => true);
  return {
    isAway: false,
    verify: (token) => verified.verify(token, () => verify(token, keys, LOCAL)),
    local: {
      jwks,
      sign: (userId, seconds) =>
        new SignJWT()
          .setProtectedHeader({ alg: 'EdDSA', kid: String(jwk.kid), typ: 'JWT' })
          .setIssuer(LOCAL.issuer)
          .setAudience(LOCAL.audience)
          .setSubject(userId)
          .setIssuedAt()
          .setExpirationTime(Math.floor(Date.now() / 1000) + seconds)
          .sign(signingKey),
    },
  };
}

type Provider = NonNullable<TokenSettings['identityProvider']>;

/**
 * The keys that were fetched last count until new ones are: during an outage of the provider, tokens of known keys stay
 * valid. An unknown key is fetched at once, at most once a second.
 */
function openProvider(provider: Provider, lifecycle: Lifecycle, log: Logger): Tokens {
  const keys = createRemoteJWKSet(new URL(provider.jwksUrl), {
    timeoutDuration: 1_000,
    cooldownDuration: 1_000,
    cacheMaxAge: Number.POSITIVE_INFINITY,
    [customFetch]: async (...request: Parameters<typeof fetch>) => {
      const response = await fetch(...request);
      verified.forget();
      return response;
    },
  });
  const verified = new VerifiedTokens(() => !keys.reloading);
  let isAway = false;
  const refresh = async () => {
    try {
      await keys.reload();
      isAway = false;
    } catch (failure) {
      if (!isAway) log.warn({ dependency: 'identity_provider', err: failure }, 'a dependency is away');
      isAway = true;
    }
    timer = setTimeout(refresh, isAway ? RETRY_INTERVAL_MS : REFRESH_INTERVAL_MS).unref();
  };
  let timer = setTimeout(refresh, 0).unref();
  lifecycle.onClose(() => clearTimeout(timer));
  return {
    verify: (token) => verified.verify(token, () => verify(token, keys, provider)),
    local: null,
    get isAway() {
      return isAway;
    },
  };
}

const MAX_TOKENS = 10_000;
/** A provider may put much into each of them. */
const MAX_TOKEN_CHARACTERS = 16 * 1024 * 1024;

/**
 * A cache of verified tokens: a token stays verified until it expires, or until keys are fetched again. The user, who may
 * change at any moment, is not cached.
 */
class VerifiedTokens {
  readonly #known = new LRUCache<string, SessionClaims>({
    max: MAX_TOKENS,
    maxSize: MAX_TOKEN_CHARACTERS,
    sizeCalculation: (_claims, token) => token.length,
  });

  /** While `isSettled` returns false, keys are being fetched, and nothing is cached. */
  constructor(private readonly isSettled: () => boolean) {}

  async verify(token: string, check: () => Promise<SessionClaims>): Promise<SessionClaims> {
    const known = this.#known.get(token);
    if (known && known.expires.getTime() > Date.now()) return known;
    const claims = await check();
    if (this.isSettled()) this.#known.set(token, claims);
    return claims;
  }

  forget(): void {
    this.#known.clear();
  }
}

/** The last second of the year 9999: an `exp` beyond it is not a date that PostgreSQL would read. */
const LAST_SECOND = 253_402_300_799;

async function verify(
  token: string,
  keys: JWTVerifyGetKey,
  { issuer, audience }: { issuer: string; audience: string },
): Promise<SessionClaims> {
  const { payload } = await jwtVerify(token, keys, { algorithms, issuer, audience, requiredClaims: ['iss', 'aud', 'sub', 'exp'] }).catch(
    refuse,
  );
  const { sub, exp, iat } = payload;
  const userId = parseUuid(sub);
  if (!userId || !Number.isFinite(exp) || Number(exp) > LAST_SECOND) throw invalid();
  if (iat !== undefined && iat > Date.now() / 1000 + 60) throw invalid();
  return { userId, expires: new Date(Number(exp) * 1000) };
}

function refuse(failure: unknown): never {
  const isKeySource = failure instanceof joseErrors.JWKSTimeout || failure instanceof joseErrors.JWKSInvalid;
  const isNetwork = failure instanceof TypeError || (failure instanceof joseErrors.JOSEError && failure.code === 'ERR_JOSE_GENERIC');
  if (isKeySource || isNetwork) throw Fault.unavailable(failure);
  throw invalid();
}

function invalid(): Fault {
  return Fault.notAuthenticated('The credential is not valid.');
}
