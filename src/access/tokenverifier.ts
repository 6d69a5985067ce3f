import { type JWTVerifyGetKey, errors as joseErrors, jwtVerify } from 'jose';
import { LRUCache } from 'lru-cache';
import { type CredentialProblem, Fault } from '../kernel/fault.ts';
import { parseUuid } from '../kernel/uuid.ts';

/** The claims of a valid session token. */
export interface SessionClaims {
  readonly userId: string;
  /** The token's `exp`, or a day from now where that is sooner: then it has to be verified again. */
  readonly expires: Date;
}

export interface ExpectedClaims {
  readonly issuer: string;
  readonly audience: string;
}

/** The accepted algorithms: never read from the token, and none with a shared secret. */
const algorithms = ['EdDSA', 'ES256', 'RS256'];

/**
 * How long a verified token is trusted, whatever its `exp`: a socket that has been open for this long is
 * closed, so that it does not outlive a key that the provider has withdrawn.
 */
const MAX_SESSION_MS = 86_400_000;

/** How long the claims of a verified token are cached: far shorter than `MAX_SESSION_MS`, which counts from the verification. */
const VERIFIED_FOR_MS = 3_600_000;

const MAX_TOKENS = 10_000;
/** Of all cached tokens together: a provider may issue long ones. */
const MAX_TOKEN_CHARACTERS = 16 * 1024 * 1024;

/**
 * Verifies tokens and caches their claims for an hour, or until `expires` or a change of the provider's key set. The user, who may
 * change at any moment, is not cached.
 */
export class TokenVerifier {
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
