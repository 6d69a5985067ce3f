import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from 'jose';

export interface ProviderKey {
  readonly jwk: JWK;
  readonly privateKey: CryptoKey;
  readonly algorithm: string;
}

/** An identity provider: a key set that it shows, and tokens that it signs. */
export interface Provider {
  readonly url: string;
  readonly issuer: string;
  readonly audience: string;
  /** How often its key set was asked for. */
  readonly asked: () => number;
  /** What is shown from now on. */
  show(...keys: ProviderKey[]): void;
  /** How it answers instead, until keys are shown again. */
  answer(listener: RequestListener): void;
  /** A token for ten minutes. */
  sign(key: ProviderKey, userId: string, claims?: JWTPayload): Promise<string>;
  close(): Promise<void>;
}

export async function makeKey(algorithm: string, kid: string): Promise<ProviderKey> {
  const { publicKey, privateKey } = await generateKeyPair(algorithm, { extractable: true });
  return { jwk: { ...(await exportJWK(publicKey)), kid, alg: algorithm, use: 'sig' }, privateKey, algorithm };
}

/** On a port of the system's choice, or on one that was free a moment ago. */
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
