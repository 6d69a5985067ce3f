import { randomUUID } from 'node:crypto';
import { linkSync, mkdirSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { exportJWK, generateKeyPair, importJWK, type JWK } from 'jose';
import { describeFileFailure, OperatorError } from '../platform/operatorerror.ts';

/** The key that signs session tokens, read from a file; generated if there is no file. Throws an OperatorError for a file without a key. */
export async function openSigningKey(path: string) {
  const jwk = await loadKey(path);
  try {
    if (typeof jwk.d !== 'string' || typeof jwk.kid !== 'string') throw new Error('there is no private key with an id in it');
    return { jwk, signingKey: await importJWK(jwk, 'EdDSA') };
  } catch (failure) {
    throw brokenKey(path, failure);
  }
}

function brokenKey(path: string, cause: unknown): OperatorError {
  return new OperatorError(
    `${path} does not hold the key that signs session tokens: put it back from a backup, or delete the file and start again, ` +
      'and a new key is made, with which the tokens of the old one no longer count.',
    { cause },
  );
}

async function loadKey(path: string): Promise<JWK> {
  const known = readKey(path);
  if (known) return known;
  const { privateKey } = await generateKeyPair('EdDSA', { extractable: true });
  const jwk = { ...(await exportJWK(privateKey)), kid: randomUUID(), alg: 'EdDSA', use: 'sig' };
  const draft = `${path}.${jwk.kid}`;
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writeFileSync(draft, JSON.stringify(jwk), { mode: 0o600, flag: 'wx' });
  try {
    // Unlike a rename, a link fails if another process was first: both then sign with its key.
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
    const jwk: JWK | null = JSON.parse(readFileSync(path, 'utf8'));
    return jwk ?? {};
  } catch (failure) {
    if ((failure as NodeJS.ErrnoException).code === 'ENOENT') return null;
    if (failure instanceof SyntaxError) throw brokenKey(path, failure);
    throw new OperatorError(describeFileFailure(failure, path) ?? path, { cause: failure });
  }
}
