import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openTokens } from '../../src/access/tokens.ts';
import { Lifecycle } from '../../src/kernel/lifecycle.ts';
import { createLogger } from '../../src/platform/logger.ts';
import { OperatorError } from '../../src/platform/operatorerror.ts';

const open = (dataDir: string) => openTokens({ dataDir, identityProvider: null }, new Lifecycle(), createLogger('silent'));

test('processes that open one new folder at once sign with one key', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'portico-key-'));
  try {
    const opened = await Promise.all(Array.from({ length: 8 }, () => open(dataDir)));
    const userId = '019b76da-a800-7f80-b447-2b4165543001';
    for (const signer of [...opened, await open(dataDir)]) {
      const token = (await signer.local?.sign(userId, 60)) ?? '';
      for (const { verify } of opened) expect((await verify(token)).userId).toBe(userId);
    }
    expect(readdirSync(dataDir)).toEqual(['key.json']);
    expect((statSync(join(dataDir, 'key.json')).mode & 0o777).toString(8)).toBe('600');
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
});

test.each([
  ['empty', ''],
  ['cut off', '{"crv":"Ed25519","d":"'],
  ['no object', 'null'],
  ['without a key', '{"kid":"one"}'],
  ['a public key', '{"crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","kty":"OKP","kid":"one"}'],
  ['no key of Ed25519', '{"crv":"Ed25519","d":"AA","x":"AA","kty":"OKP","kid":"one"}'],
])('a key.json that is %s is named in a sentence, and left as it is', async (_, content) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'portico-key-'));
  const path = join(dataDir, 'key.json');
  writeFileSync(path, content);
  try {
    const failure = await open(dataDir).catch((thrown) => thrown);
    expect(failure).toBeInstanceOf(OperatorError);
    expect(
      failure.message.startsWith(`${path} does not hold the key that signs session tokens: put it back from a backup, or delete`),
    ).toBe(true);
    expect(failure.message).not.toContain('\n');
    expect(readdirSync(dataDir)).toEqual(['key.json']);
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
});

test('a key.json that cannot be read is named in a sentence', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'portico-key-'));
  mkdirSync(join(dataDir, 'key.json'));
  try {
    await expect(open(dataDir)).rejects.toThrow(`${join(dataDir, 'key.json')} cannot be used (EISDIR): a folder is where a file should be`);
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
});
