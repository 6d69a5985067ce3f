import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openTokens } from '../src/access/tokens.ts';
import { Lifecycle } from '../src/kernel/lifecycle.ts';
import { createLog } from '../src/platform/log.ts';

const open = (dataDir: string) => openTokens({ dataDir, identityProvider: null }, new Lifecycle(), createLog('silent'));

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
