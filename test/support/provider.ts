import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from 'jose';

export interface ProviderKey {
  readonly jwk: JWK;
  readonly privateKey: CryptoKey;
  readonly algorithm: string;
}

/** An identity provider that serves a key set (JWKS) and signs tokens. */
export interface Provider {
  readonly url: string;
  readonly issuer: string;
  readonly audience: string;
  /** The number of requests for the key set. */
  readonly asked: () => number;
  /** Sets the keys that it serves from now on. */
  show(...keys: ProviderKey[]): void;
  /** Sets a listener that answers instead, until the next call of `show`. */
  answer(listener: RequestListener): void;
  /** Signs a token that expires in ten minutes, unless the claims say otherwise. */
  sign(key: ProviderKey, userId: string, claims?: JWTPayload): Promise<string>;
  close(): Promise<void>;
}

export async function makeKey(algorithm: string, kid: string): Promise<ProviderKey> {
  const { publicKey, privateKey } = await generateKeyPair(algorithm, { extractable: true });
  return { jwk: { ...(await exportJWK(publicKey)), kid, alg: algorithm, use: 'sig' }, privateKey, algorithm };
}

/** Listens on `port`, which must be free; 0 lets the system choose one. */
export async function openProvider(port = 0): Promise<Provider> {
  let asked = 0;
  let listener: RequestListener = (_request, response) => void response.writeHead(404).end();
  const server = createServer((request, response) => {
    asked += 1;
    listener(request, response);
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const { port: actual } = server.address() as AddressInfo;
  const [issuer, audience] = ['https://login.example', 'https://api.example'];
  return {
    url: `http://127.0.0.1:${actual}/keys`,
    issuer,
    audience,
    asked: () => asked,
    show(...keys) {
      const text = JSON.stringify({ keys: keys.map(({ jwk }) => jwk) });
      listener = (_request, response) => void response.writeHead(200, { 'content-type': 'application/json' }).end(text);
    },
    answer: (other) => (listener = other),
    sign: ({ algorithm, jwk, privateKey }, userId, claims = {}) =>
      new SignJWT({ iss: issuer, aud: audience, sub: userId, exp: Math.floor(Date.now() / 1000) + 600, ...claims })
        .setProtectedHeader({ alg: algorithm, kid: jwk.kid })
        .sign(privateKey),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
