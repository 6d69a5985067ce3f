import { join } from 'node:path';
import { createLocalJWKSet, type JSONWebKeySet, SignJWT } from 'jose';
import type { Lifecycle } from '../kernel/lifecycle.ts';
import type { Logger } from '../platform/logger.ts';
import { IdentityProvider, type Provider } from './provider.ts';
import { openSigningKey } from './signingkey.ts';
import { type SessionClaims, TokenVerifier } from './tokenverifier.ts';

export interface Tokens {
  /** Whether the last fetch of the identity provider's keys failed. */
  readonly isAway: boolean;
  /** Throws `not_authenticated` for anything but a valid session token, `service_unavailable` without the provider's keys. */
  verify(token: string): Promise<SessionClaims>;
  /** The local key set and a way to sign with it; null where an identity provider signs. */
  readonly local: { readonly jwks: JSONWebKeySet; sign(userId: string, seconds: number): Promise<string> } | null;
}

interface TokenSettings {
  readonly dataDir: string;
  readonly identityProvider: Provider | null;
}

const LOCAL = { issuer: 'portico', audience: 'portico' };

/** Session tokens signed by the identity provider, or else by a local key in `dataDir`. */
export async function openTokens({ dataDir, identityProvider }: TokenSettings, lifecycle: Lifecycle, log: Logger): Promise<Tokens> {
  if (identityProvider) return new IdentityProvider(identityProvider, lifecycle, log);
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
