import { createHmac, createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { JWK } from 'jose';
import type { TestApp } from './app.ts';

/** The parts of a token; a string is used unchanged, so that JSON of any shape can be signed. */
interface TokenParts {
  readonly header?: Record<string, unknown> | string;
  readonly claims?: Record<string, unknown> | string | readonly unknown[];
}

/** Signs tokens, valid or not, with the app's own key. */
export interface Forge {
  readonly publicJwk: JWK;
  readonly publicPem: string;
  readonly kid: string;
  /** The claims of a valid token. */
  goodClaims(): Record<string, unknown>;
  /** A token signed with the app's key. */
  sign(parts?: TokenParts): string;
  /** A token signed with another key. */
  signWith(key: KeyObject | ((data: string) => Buffer), parts?: TokenParts): string;
  hmac(secret: string | Buffer, parts?: TokenParts): string;
}

export function openForge({ config, demo }: TestApp): Forge {
  const jwk = JSON.parse(readFileSync(`${config.dataDir}/key.json`, 'utf8'));
  const privateKey = createPrivateKey({ key: jwk, format: 'jwk' });
  const publicKey = createPublicKey(privateKey);
  const goodClaims = () => {
    const now = Math.floor(Date.now() / 1000);
    return { iss: 'portico', aud: 'portico', sub: demo.users.owner.id, iat: now, exp: now + 60 };
  };
  const signWith: Forge['signWith'] = (key, { header = {}, claims = {} } = {}) => {
    const head = typeof header === 'string' ? header : JSON.stringify({ alg: 'EdDSA', kid: jwk.kid, typ: 'JWT', ...header });
    const body = typeof claims === 'string' || Array.isArray(claims) ? claims : { ...goodClaims(), ...claims };
    const data = `${encode(head)}.${encode(typeof body === 'string' ? body : JSON.stringify(body))}`;
    const signature = typeof key === 'function' ? key(data) : sign(null, Buffer.from(data), key);
    return `${data}.${signature.toString('base64url')}`;
  };
  return {
    publicJwk: publicKey.export({ format: 'jwk' }) as JWK,
    publicPem: publicKey.export({ format: 'pem', type: 'spki' }).toString(),
    kid: jwk.kid,
    goodClaims,
    sign: (parts) => signWith(privateKey, parts),
    signWith,
    hmac: (secret, parts) => signWith((data) => createHmac('sha256', secret).update(data).digest(), parts),
  };
}

export function encode(text: string): string {
  return Buffer.from(text).toString('base64url');
}
