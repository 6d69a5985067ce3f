import { randomBytes } from 'node:crypto';
import { link, open, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { describeFileFailure, OperatorError } from './operatorerror.ts';

/** Another process owns the folder: the message names it. */
export class FolderLockedError extends OperatorError {}

interface FolderOwner {
  readonly pid: number;
  readonly command: string;
  readonly since: string;
  readonly socket: string;
}

/**
 * Makes this process the only owner of a folder, and returns the function that releases it.
 * Throws a FolderLockedError while another process owns it, and an OperatorError where that owner's claim cannot be read.
 *
 * An owner proves that it is alive by a listening Unix socket in the folder: the kernel closes the socket with the process, so
 * that a dead owner blocks nobody, and a reused process id misleads nobody. The claims are numbered files, `owner.1`,
 * `owner.2`, …, of which the highest counts. A claim is created by `link`, which fails where the number is taken: of two
 * processes that find the same dead owner, one succeeds. The highest number is never removed, so a lower one is known to be
 * superseded.
 */
export async function lockFolder(folder: string): Promise<() => Promise<void>> {
  const directory = await open(folder, 'r');
  // A socket's address is limited to some hundred bytes; a path through the open directory is always short enough.
  const address = (name: string) => (process.platform === 'linux' ? `/proc/self/fd/${directory.fd}/${name}` : join(folder, name));
  const socket = `owner-${randomBytes(6).toString('hex')}.sock`;
  const server = createServer((peer) => peer.destroy());
  const release = async () => {
    await new Promise((resolve) => server.close(resolve));
    await rm(join(folder, socket), { force: true });
    await directory.close();
  };
  try {
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(address(socket), resolve));
    server.unref();
    await claim(folder, address, {
      pid: process.pid,
      command: process.argv.slice(1, 4).join(' '),
      since: new Date().toISOString(),
      socket,
    });
  } catch (failure) {
    await release();
    // The error of a socket has the path through the open directory, which means nothing to the operator.
    const { syscall } = failure as NodeJS.ErrnoException;
    throw syscall === 'listen' ? new OperatorError(describeFileFailure(failure, folder) ?? folder, { cause: failure }) : failure;
  }
  return release;
}

async function claim(folder: string, address: (name: string) => string, self: FolderOwner): Promise<void> {
  const numbers = await listClaims(folder);
  const last = numbers.at(-1) ?? 0;
  if (last > 0) {
    const owner = await readClaim(join(folder, `owner.${last}`));
    if (!owner) return claim(folder, address, self);
    if (await isListening(address(owner.socket))) throw new FolderLockedError(explainOwner(folder, owner));
    await rm(join(folder, owner.socket), { force: true });
  }
  const number = last + 1;
  if (!(await linkClaim(folder, number, self))) return claim(folder, address, self);
  // Other owners may have come and gone since `listClaims`: then this number was free because it had been superseded.
  if ((await listClaims(folder)).some((other) => other > number)) {
    await rm(join(folder, `owner.${number}`), { force: true });
    return claim(folder, address, self);
  }
  for (const superseded of numbers) await rm(join(folder, `owner.${superseded}`), { force: true });
}

/** Returns false where the number is taken. */
async function linkClaim(folder: string, number: number, self: FolderOwner): Promise<boolean> {
  const draft = join(folder, `${self.socket}.draft`);
  try {
    await writeFile(draft, JSON.stringify(self), { mode: 0o600 });
    await link(draft, join(folder, `owner.${number}`));
    return true;
  } catch (failure) {
    if ((failure as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw failure;
  } finally {
    await rm(draft, { force: true });
  }
}

async function listClaims(folder: string): Promise<number[]> {
  const names = await readdir(folder);
  return names
    .flatMap((name) => /^owner\.(\d+)$/.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b);
}

/** The owner that a claim names. Null where a newer owner has just removed the claim. */
async function readClaim(path: string): Promise<FolderOwner | null> {
  try {
    const owner: Partial<FolderOwner> | null = JSON.parse(await readFile(path, 'utf8'));
    if (typeof owner?.socket === 'string') return owner as FolderOwner;
    throw new Error('there is no owner in it');
  } catch (failure) {
    if ((failure as NodeJS.ErrnoException).code === 'ENOENT') return null;
    const message =
      describeFileFailure(failure) ??
      `${path} does not say which process has the folder: make sure that no Portico runs on it, delete the file, and start again.`;
    throw new OperatorError(message, { cause: failure });
  }
}

function isListening(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect(path);
    probe.once('connect', () => {
      probe.destroy();
      resolve(true);
    });
    probe.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code !== 'ECONNREFUSED' && code !== 'ENOENT'));
  });
}

function explainOwner(folder: string, owner: FolderOwner): string {
  return [
    `${folder} is in use by process ${owner.pid} (${owner.command}), since ${owner.since}.`,
    'The embedded database serves one process at a time: stop that one first, choose another DATA_DIR,',
    'or set DATABASE_URL to share a PostgreSQL.',
  ].join('\n');
}
