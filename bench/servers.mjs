// Portico and its peers, each a process of its own.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { exportJWK, generateKeyPair, importJWK, SignJWT } from 'jose';
import { build as rolldown } from 'rolldown';
import { WebSocket } from 'ws';
import { query, root } from './database.mjs';
import { idOf } from './fill.mjs';

const POOL = 10;
const ISSUER = 'portico';

/** A signing key in a folder that Portico uses as its data folder; the peers get the public key. */
export async function makeKey() {
  const folder = mkdtempSync(join(tmpdir(), 'portico-bench-'));
  const { privateKey } = await generateKeyPair('EdDSA', { extractable: true });
  const jwk = { ...(await exportJWK(privateKey)), kid: 'bench', alg: 'EdDSA', use: 'sig' };
  writeFileSync(join(folder, 'key.json'), JSON.stringify(jwk), { mode: 0o600 });
  const { d: _private, ...publicJwk } = jwk;
  const signingKey = await importJWK(jwk, 'EdDSA');
  /** @type {Map<number, Promise<string>>} */
  const tokens = new Map();
  const sign = (/** @type {number} */ user) =>
    new SignJWT()
      .setProtectedHeader({ alg: 'EdDSA', kid: 'bench', typ: 'JWT' })
      .setIssuer(ISSUER)
      .setAudience(ISSUER)
      .setSubject(idOf('user', user))
      .setIssuedAt()
      .setExpirationTime('12h')
      .sign(signingKey);
  return {
    folder,
    jwks: JSON.stringify({ keys: [publicJwk] }),
    /** @param {number} user */
    tokenOf(user) {
      const token = tokens.get(user) ?? sign(user);
      tokens.set(user, token);
      return token;
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/**
 * @typedef {Awaited<ReturnType<typeof makeKey>>} Key
 * @typedef {{name: string, baseUrl: string, pid: number, inspector: string | null, stop: () => Promise<void>}} Server
 */

/** The commands by name. `node` is the program to run it with. Portico's is what `npm start` runs once the build is fresh. */
const entries = {
  portico: ['--heap-growing-percent=60', '--v8-pool-size=1', 'dist/current/main.js'],
};

/** @type {Promise<string> | null} */
let prismaClient = null;

/** Compiles Prisma's client for the peers that use it, as Portico's build bundles it with everything else. */
async function compilePrismaClient() {
  execFileSync('npm', ['run', '--silent', 'generate'], { cwd: root });
  const file = join(root, 'dist/.bench/prisma.js');
  const input = join(root, 'src/generated/prisma/client.ts');
  await rolldown({ input, platform: 'node', external: /^@prisma\//, output: { file, codeSplitting: false } });
  return file;
}

/**
 * Starts a server and waits until it reports its address.
 * @param {string} name
 * @param {{databaseUrl?: string, key: Key, env?: Record<string, string>, node?: string, label?: string, arguments?: string[], inspect?: boolean}} options
 * `label`: its name in the results, if it is measured more than once.
 * @returns {Promise<Server>}
 */
export async function start(name, { label = name, databaseUrl, key, env = {}, node = process.execPath, ...options }) {
  const { arguments: nodeArguments = [], inspect = false } = options;
  const command = entries[/** @type {keyof typeof entries} */ (name)] ?? [join(root, `bench/peers/${name}.mjs`)];
  const settings = {
    NODE_ENV: 'production',
    HOST: '127.0.0.1',
    PORT: '0',
    ...(databaseUrl && { DATABASE_URL: databaseUrl }),
    DATABASE_POOL: String(POOL),
    // High enough never to be reached; all servers count requests all the same.
    RATE_LIMIT_USER: '1000000000',
    RATE_LIMIT_ANONYMOUS: '1000000000',
    // All sockets of the bench come from one address, and a single process reads them as fast as it can.
    MAX_CONNECTIONS_PER_ADDRESS: '20000',
    MAX_UNREAD_MIB: '1024',
    MAX_UNREAD_MIB_PER_ADDRESS: '1024',
    // The peers keep no log of requests either.
    LOG_LEVEL: 'warn',
    DATA_DIR: key.folder,
    DRAIN_SECONDS: '0',
    JWKS: key.jwks,
    ...(name.endsWith('-prisma') && { PRISMA_CLIENT: await (prismaClient ??= compilePrismaClient()) }),
    ...(name === 'portico' && { NODE_COMPILE_CACHE: join(root, 'dist/current/compiled'), MALLOC_TRIM_THRESHOLD_: '131072' }),
    ...env,
  };
  const { PATH = '', HOME = '' } = process.env;
  const child = spawn(node, [...nodeArguments, ...(inspect ? ['--inspect=127.0.0.1:0'] : []), ...command], {
    cwd: root,
    env: { PATH, HOME, ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let printed = '';
  /** @type {string | null} */
  let inspector = null;
  const exit = new Promise((resolve) => child.once('close', resolve));
  const baseUrl = await new Promise((resolve, reject) => {
    const read = (/** @type {Buffer} */ bytes) => {
      printed = (printed + bytes).slice(-4000);
      inspector ??= /Debugger listening on (\S+)/.exec(printed)?.[1] ?? null;
      const port = /listens on http:\/\/[^:]+:(\d+)/.exec(printed)?.[1];
      if (port) resolve(`http://127.0.0.1:${port}`);
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    exit.then((code) => reject(new Error(`${name} ended with ${code}: ${printed}`)));
  });
  const stop = async () => {
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), 5_000);
    await exit;
    clearTimeout(timer);
  };
  return { name: label, baseUrl, pid: Number(child.pid), inspector, stop };
}

const NEWER_NODE = 24;

/**
 * A Node.js for peers that need a newer one: the current one if it is new enough. Otherwise it is the program that the install
 * script of the package `node` would fetch.
 */
export function newerNode() {
  if (Number(process.versions.node.split('.')[0]) >= NEWER_NODE) return process.execPath;
  const program = `node-${process.platform}-${process.arch}@${NEWER_NODE}`;
  const command = ['-y', '-p', program, 'node', '-p', 'process.execPath'];
  return execFileSync('npx', command, { cwd: tmpdir(), encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
}

/** Starts all of the servers; if one fails, stops the others. @param {string[]} names @param {Parameters<typeof start>[1]} options */
export async function startAll(names, options) {
  const started = await Promise.allSettled(names.map((name) => start(name, options)));
  const servers = started.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
  const failed = started.find((result) => result.status === 'rejected');
  if (!failed) return servers;
  await Promise.all(servers.map((server) => server.stop()));
  throw /** @type {PromiseRejectedResult} */ (failed).reason;
}

/**
 * Runs a garbage collection in a server that was started with `inspect`, so that only live memory is left.
 * @param {Server} server
 */
export async function collectGarbage({ inspector }) {
  const socket = new WebSocket(String(inspector));
  await once(socket, 'open');
  const answered = once(socket, 'message');
  socket.send(JSON.stringify({ id: 1, method: 'HeapProfiler.collectGarbage' }));
  await answered;
  socket.close();
}

const TICK_US = 10_000;

/** A process's name, its parent, and its CPU time in microseconds: its own, and that of its ended children. @param {number} pid */
function statOf(pid) {
  // The name may contain blanks and parentheses.
  const [, name, rest = ''] = /^\d+ \((.*)\) (.*)/s.exec(readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? [];
  const fields = rest.split(' ').map(Number);
  const timeOf = (/** @type {number} */ user, /** @type {number} */ system) => (Number(fields[user]) + Number(fields[system])) * TICK_US;
  return { name, parent: Number(fields[1]), own: timeOf(11, 12), ended: timeOf(13, 14) };
}

/** User and system time of a process so far, in microseconds. @param {number} pid */
export function cpuOf(pid) {
  return statOf(pid).own;
}

/** The parent of all processes of a PostgreSQL. @param {string} databaseUrl */
export async function postmasterOf(databaseUrl) {
  const [{ pid }] = await query(databaseUrl, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'");
  const postmaster = existsSync(`/proc/${pid}`) ? statOf(pid).parent : 0;
  if (postmaster === 0 || statOf(postmaster).name !== 'postgres') throw new Error('PostgreSQL runs elsewhere: its CPU cannot be counted');
  return postmaster;
}

/** User and system time of all processes of a PostgreSQL so far, in microseconds, including ended ones. @param {number} postmaster */
export function cpuOfPostgres(postmaster) {
  const listChildren = () => readFileSync(`/proc/${postmaster}/task/${postmaster}/children`, 'utf8').trim();
  // A process that ends between two readings would be counted never or twice.
  for (;;) {
    const children = listChildren();
    try {
      const running = children.split(' ').reduce((sum, pid) => sum + runningTimeOf(Number(pid)), 0);
      const { own, ended } = statOf(postmaster);
      if (listChildren() === children) return own + ended + running;
    } catch (failure) {
      if (!['ENOENT', 'ESRCH'].includes(/** @type {NodeJS.ErrnoException} */ (failure).code ?? '')) throw failure;
    }
  }
}

/**
 * The running time of a single-threaded process, in microseconds. The ticks of `stat` would be off by up to two for each of
 * dozens of processes.
 * @param {number} pid
 */
function runningTimeOf(pid) {
  return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1000;
}

/** Resident memory in MiB. @param {number} pid */
export function memoryOf(pid) {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}
