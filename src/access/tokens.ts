import { randomUUID } from 'node:crypto';
import { linkSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  createLocalJWKSet,
  createRemoteJWKSet,
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
import { Fault } from '../kernel/fault.ts';
import { parseUuid } from '../kernel/uuid.ts';

/** What a valid session token says: who, and until when. */
export interface SessionClaims {
  readonly userId: string;
  readonly expires: Date;
}

export interface Tokens {
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

/** Session tokens of the identity provider, or of a key of our own that is kept in `dataDir`. */
export async function openTokens({ dataDir, identityProvider }: TokenSettings): Promise<Tokens> {
  if (identityProvider) {
    const keys = createRemoteJWKSet(new URL(identityProvider.jwksUrl), { timeoutDuration: 2_000, cooldownDuration: 5_000 });
    return { verify: (token) => verify(token, keys, identityProvider), local: null };
  }
  const jwk = await loadKey(join(dataDir, 'key.json'));
  const { d: _private, ...publicJwk } = jwk;
  const jwks = { keys: [publicJwk] };
  const keys = createLocalJWKSet(jwks);
  const signingKey = await importJWK(jwk, 'EdDSA');
  return {
    verify: (token) => verify(token, keys, LOCAL),
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
