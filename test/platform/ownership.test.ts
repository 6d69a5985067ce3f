import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { FolderLockedError, lockFolder } from '../../src/platform/folderlock.ts';
import { OperatorError } from '../../src/platform/operatorerror.ts';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'portico-owned-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const claims = () => readdirSync(folder).filter((name) => /^owner\.\d+$/.test(name));
const deadClaim = (socket: string) => JSON.stringify({ pid: 1, command: 'gone', since: new Date(0).toISOString(), socket });

/** Lets another process own the folder, and kills it so that it cannot clean up. */
async function leaveDeadOwner(number = 1): Promise<void> {
  const socket = 'owner-dead.sock';
  const script = `
    process.chdir(${JSON.stringify(folder)});
    require('node:net').createServer().listen('${socket}', () => process.stdout.write('listening'));`;
  const owner = spawn(process.execPath, ['-e', script]);
  await once(owner.stdout, 'data');
  writeFileSync(join(folder, `owner.${number}`), deadClaim(socket));
  owner.kill('SIGKILL');
  await once(owner, 'exit');
  expect(readdirSync(folder)).toContain(socket);
}

/** Runs `count` contenders at once; returns the release functions of the winners and the errors of the others. */
async function contend(count: number) {
  const outcomes = await Promise.allSettled(Array.from({ length: count }, () => lockFolder(folder)));
  const winners = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
  const refusals = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason as unknown] : []));
  return { winners, refusals };
}

describe('one owner', () => {
  test('a second one is refused with the process that has the folder, and what to do', async () => {
    const release = await lockFolder(folder);
    const refusal = await lockFolder(folder).catch((failure) => failure);
    expect(refusal).toBeInstanceOf(FolderLockedError);
    const [first, ...rest] = refusal.message.split('\n');
    expect(first).toMatch(`${folder} is in use by process ${process.pid} (`);
    expect(rest).toEqual([
      'The embedded database serves one process at a time: stop that one first, choose another DATA_DIR,',
      'or set DATABASE_URL to share a PostgreSQL.',
    ]);
    await expect(lockFolder(folder)).rejects.toBeInstanceOf(FolderLockedError);
    await release();
    const again = await lockFolder(folder);
    await again();
  });

  test('leaves one claim behind, and no socket, however often the folder changed hands', async () => {
    for (let turn = 1; turn <= 12; turn += 1) {
      const release = await lockFolder(folder);
      expect(claims()).toEqual([`owner.${turn}`]);
      await release();
    }
    expect(readdirSync(folder)).toEqual(['owner.12']);
    expect(JSON.parse(readFileSync(join(folder, 'owner.12'), 'utf8'))).toMatchObject({ pid: process.pid });
  });

  test('the claim of a dead owner is replaced', async () => {
    await leaveDeadOwner();
    const release = await lockFolder(folder);
    expect(claims()).toEqual(['owner.2']);
    expect(readdirSync(folder)).not.toContain('owner-dead.sock');
    await release();
  });

  test('in a folder whose path is longer than the address of a socket may be', async () => {
    const top = folder;
    folder = join(top, ...Array.from({ length: 8 }, () => 'a-folder-name-of-thirty-letters'));
    mkdirSync(folder, { recursive: true });
    expect(folder.length).toBeGreaterThan(250);
    const release = await lockFolder(folder);
    await expect(lockFolder(folder)).rejects.toBeInstanceOf(FolderLockedError);
    await release();
    await leaveDeadOwner(2);
    const again = await lockFolder(folder);
    await expect(lockFolder(folder)).rejects.toBeInstanceOf(FolderLockedError);
    await again();
    folder = top;
  });
});

describe('a claim that cannot be read', () => {
  test.each(['', '{"pid":', 'null', '{"pid":1}'])('%j: it is named in a message, and the folder cannot be claimed', async (content) => {
    const path = join(folder, 'owner.3');
    writeFileSync(path, content);
    const failure = await lockFolder(folder).catch((thrown) => thrown);
    expect(failure).toBeInstanceOf(OperatorError);
    expect(failure.message).toBe(
      `${path} does not say which process has the folder: make sure that no Portico runs on it, delete the file, and start again.`,
    );
    expect(readdirSync(folder)).toEqual(['owner.3']);
    rmSync(path);
    const release = await lockFolder(folder);
    await release();
  });
});

describe('many at once', () => {
  test.each(['fresh', 'left by a dead owner'])('exactly one wins in a folder that is %s', async (state) => {
    for (let round = 1; round <= 6; round += 1) {
      if (state !== 'fresh') await leaveDeadOwner(1 + round * 100);
      const { winners, refusals } = await contend(24);
      expect(winners.length).toBe(1);
      expect(refusals.filter((refusal) => !(refusal instanceof FolderLockedError))).toEqual([]);
      expect(claims()).toHaveLength(1);
      await winners[0]?.();
    }
  });

  test('there are never two while owners start and stop', async () => {
    let owners = 0;
    let turns = 0;
    const takeTurns = async () => {
      for (let attempt = 0; attempt < 20; attempt += 1) {
        const release = await lockFolder(folder).catch((failure) => {
          if (!(failure instanceof FolderLockedError)) throw failure;
          return null;
        });
        if (!release) continue;
        turns += 1;
        owners += 1;
        expect(owners).toBe(1);
        await new Promise((resolve) => setTimeout(resolve, 1));
        owners -= 1;
        await release();
      }
    };
    await Promise.all(Array.from({ length: 12 }, takeTurns));
    expect(turns).toBeGreaterThan(12);
  });

  test('a delayed claimant does not win with an outdated number', async () => {
    // A FIFO is a claim that can be opened, but not read to its end until the test closes it.
    execFileSync('mkfifo', [join(folder, 'owner.1')]);
    const gate = await open(join(folder, 'owner.1'), 'r+');
    const late = lockFolder(folder);
    late.catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, 100));
    // Meanwhile claim 2 was taken and released, and claim 3 is in force.
    rmSync(join(folder, 'owner.1'));
    writeFileSync(join(folder, 'owner.2'), deadClaim('owner-gone.sock'));
    const release = await lockFolder(folder);
    expect(claims()).toEqual(['owner.3']);
    await gate.write(deadClaim('owner-older.sock'));
    await gate.close();
    await expect(late).rejects.toBeInstanceOf(FolderLockedError);
    expect(claims()).toEqual(['owner.3']);
    await release();
  });
});
