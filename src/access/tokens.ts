import { randomUUID } from 'node:crypto';
import { linkSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  exportJWK,
  generateKeyPair,
  importJWK,
  type JSONWebKeySet,
  type JWK,
  type JWTVerifyGetKey,
  errors as joseErrors,
  jwtVerify,
  SignJWT,
} from 'jose';
import { LRUCache } from 'lru-cache';
import { Fault } from '../kernel/fault.ts';
import type { Lifecycle } from '../kernel/lifecycle.ts';
import { parseUuid } from '../kernel/uuid.ts';
import type { Log } from '../platform/log.ts';

/** What a valid session token says: who, and until when. */
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

/** How often the provider's keys are fetched anew: one that was withdrawn counts no longer then. */
const REFRESH_INTERVAL_MS = 300_000;
const RETRY_INTERVAL_MS = 1_000;

/** Session tokens of the identity provider, or of a key of our own that is kept in `dataDir`. */
export async function openTokens({ dataDir, identityProvider }: TokenSettings, lifecycle: Lifecycle, log: Log): Promise<Tokens> {
  if (identityProvider) return openProvider(identityProvider, lifecycle, log);
  const jwk = await loadKey(join(dataDir, 'key.json'));
  const { d: _private, ...publicJwk } = jwk;
  const jwks = { keys: [publicJwk] };
  const keys = createLocalJWKSet(jwks);
  const checked = new CheckedTokens(() => true);
  const signingKey = await importJWK(jwk, 'EdDSA');
  return {
    isAway: false,
    verify: (token) => checked.verify(token, () => verify(token, keys, LOCAL)),
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
 * The keys that were fetched last count until others are: an outage of the provider is felt by nobody whose key is
 * known. A key that is not known is asked for at once, at most once a second.
 */
function openProvider(provider: Provider, lifecycle: Lifecycle, log: Log): Tokens {
  const keys = createRemoteJWKSet(new URL(provider.jwksUrl), {
    timeoutDuration: 1_000,
    cooldownDuration: 1_000,
    cacheMaxAge: Number.POSITIVE_INFINITY,
    [customFetch]: async (...request: Parameters<typeof fetch>) => {
      const response = await fetch(...request);
      checked.forget();
      return response;
    },
  });
  const checked = new CheckedTokens(() => !keys.reloading);
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
    verify: (token) => checked.verify(token, () => verify(token, keys, provider)),
    local: null,
    get isAway() {
      return isAway;
    },
  };
}

const REMEMBERED_TOKENS = 10_000;

/**
 * A signature is checked once: its token is good until it expires, or until keys were fetched again. What may change at
 * any moment, the user, is not remembered.
 */
class CheckedTokens {
  readonly #known = new LRUCache<string, SessionClaims>({ max: REMEMBERED_TOKENS });
  readonly #isSettled: () => boolean;

  /** While `isSettled` says no, other keys are on their way, and nothing is kept. */
  constructor(isSettled: () => boolean) {
    this.#isSettled = isSettled;
  }

  async verify(token: string, check: () => Promise<SessionClaims>): Promise<SessionClaims> {
    const known = this.#known.get(token);
    if (known && known.expires.getTime() > Date.now()) return known;
    const claims = await check();
    if (this.#isSettled()) this.#known.set(token, claims);
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

async function loadKey(path: string): Promise<JWK> {
  const known = readKey(path);
  if (known) return known;
  const { privateKey } = await generateKeyPair('EdDSA', { extractable: true });
  const jwk = { ...(await exportJWK(privateKey)), kid: randomUUID(), alg: 'EdDSA', use: 'sig' };
  const draft = `${path}.${jwk.kid}`;
  writeFileSync(draft, JSON.stringify(jwk), { mode: 0o600, flag: 'wx' });
  try {
    // Unlike a rename, this fails where another process was first: both then sign with its key.
    linkSync(draft, path);
  } catch (failure) {
    if ((failure as NodeJS.ErrnoException).code !== 'EEXIST') throw failure;
  } finally {
    unlinkSync(draft);
  }
  return readKey(path) ?? jwk;
}

function readKey(path: string): JWK | null {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as JWK;
  } catch (failure) {
    if ((failure as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw failure;
  }
}
