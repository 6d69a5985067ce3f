// npm run build: brings dist/current, including the desk, and the client package up to date with their sources.
// If both are fresh, it does nothing, in some 60 ms.
//
// A build is placed in dist/<hash of the sources>/ by a rename: concurrent builds do not harm each other, and a running
// server keeps the build that it was started from. Beside the builds is the desk, built again only if its own sources have
// changed, and an empty embedded database, which the first start copies: PGlite takes five seconds and 800 MB to create one.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
} from 'node:fs';
import module from 'node:module';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { checkBuildPrerequisites, end } from './prerequisites.mjs';

// Prisma's generator and Vite would print a thousand lines.
delete process.env.DEBUG;

const root = fileURLToPath(new URL('..', import.meta.url));
const dist = join(root, 'dist');
const draft = join(dist, `.draft-${process.pid}`);
const KEPT_BUILDS = 3;
const HOUR_MS = 3_600_000;
/** V8's options of `npm start` and of the image: V8 takes a compile cache only under the options it was made with. */
const SERVER_OPTIONS = ['--heap-growing-percent=60'];
/** Those of `npm run portico`: a command ends before it would gain from optimizing the embedded database's machine code. */
const COMMAND_OPTIONS = ['--liftoff-only'];

const locate = () =>
  join(
    dist,
    hashFiles([
      'src',
      'demo',
      'reference',
      'docs',
      'web',
      'clients/typescript',
      'prisma',
      'scripts',
      'openapi.json',
      'asyncapi.json',
      'tsconfig.json',
      'package-lock.json',
      'rolldown.config.mjs',
    ]),
  );
let output = locate();
// The link to the desk dangles if a concurrent build has removed that.
const isFresh = existsSync(join(output, 'web'));
// A checkout that uses PostgreSQL does not wait for the embedded database.
const wantsDatabase = !process.env.DATABASE_URL && !existsSync(join(output, 'database'));
const client = join(root, 'clients/typescript');
// The compiled client gets the modification time of its newest source, by which its freshness is checked.
const clientTime = findNewest(['clients/typescript/src', 'clients/typescript/tsconfig.json']);
const isClientFresh = findTime(join(client, 'dist/index.js')) >= clientTime;
if (!isFresh || wantsDatabase || !isClientFresh) {
  checkBuildPrerequisites();
  if (!isFresh && root.includes('?'))
    end(`Portico cannot be built in ${root}: Rolldown and Vite take the rest of a path after a ? for a query. Rename the folder.`);
  try {
    mkdirSync(draft, { recursive: true });
  } catch ({ code }) {
    end(`Portico cannot be built in ${root}: ${dist} cannot be written (${code}).`);
  }
  if (!isFresh) console.error('Building Portico: some fifteen seconds, this once …');
  else if (wantsDatabase) console.error('Making an empty database: some five seconds, this once …');
  try {
    const client = isClientFresh ? Promise.resolve() : compileClient();
    await Promise.all([makeServer(client), client]);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}
if (readLink(join(dist, 'current')) !== basename(output)) {
  link(basename(output), join(dist, 'current'));
  forgetOldBuilds();
}

/** @param {Promise<void>} client resolves when the client package, which the desk imports, is compiled */
async function makeServer(client) {
  if (!isFresh) await compile(client);
  if (wantsDatabase) await makeDatabase();
}

/** Does not check types: `npm run check` does. @param {Promise<void>} client */
async function compile(client) {
  const { generate } = await import('../prisma/generate.mjs');
  const { build } = await import('rolldown');
  const { default: config } = await import('../rolldown.config.mjs');
  const dir = join(draft, 'build');
  let desk = '';
  // Repeats if a source was saved meanwhile, as the name of a build is the hash of its sources.
  for (let made = ''; made !== output; output = locate()) {
    made = output;
    rmSync(dir, { recursive: true, force: true });
    await generate();
    desk = join(dist, `.desk-${hashFiles(['web', 'clients/typescript', 'tsconfig.json', 'package-lock.json'])}`);
    const deskBuilt = existsSync(desk) ? null : client.then(() => buildDesk(join(draft, 'desk')));
    await Promise.all([build({ ...config, cwd: root, output: { ...config.output, dir, sourcemapPathTransform } }), deskBuilt]);
  }
  if (existsSync(join(draft, 'desk'))) moveInPlace(join(draft, 'desk'), desk);
  link(join('..', basename(desk)), join(dir, 'web'));
  // The link may dangle until the database has been made.
  const database = `.database-${hashFiles(['prisma/migrations', 'node_modules/@electric-sql/pglite/package.json'])}`;
  link(join('..', database), join(dir, 'database'));
  moveInPlace(dir, output);
  // Fills the compile cache of Node.js (from 22.8 on) for the server and for the commands, of npm and of the image, which is
  // read-only: it saves a fifth of the start time, and takes 3 MB for each.
  if (module.enableCompileCache) await Promise.all([SERVER_OPTIONS, COMMAND_OPTIONS, []].map((options) => runCommand(['--help'], options)));
}

/**
 * Source maps name the sources by paths from where the build will be, which is another depth than where it is made: with others a
 * stack trace would name files that do not exist. @param {string} source @param {string} map the path of the map
 */
function sourcemapPathTransform(source, map) {
  return relative(output, resolve(dirname(map), source));
}

/** Builds the desk in its own process, to use the second core and to release its memory afterwards. @param {string} dir */
async function buildDesk(dir) {
  const args = [join(root, 'node_modules/vite/bin/vite.js'), 'build', 'web', '--logLevel', 'warn'];
  const env = { ...process.env, DESK_DIR: dir };
  const [code] = await once(spawn(process.execPath, args, { cwd: root, env, stdio: ['ignore', 2, 2] }), 'close');
  if (code !== 0) throw new Error('The desk could not be built.');
}

/** Compiles the client package, which the examples in docs/clients import. */
async function compileClient() {
  const made = join(draft, 'client');
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  const args = [tsc, '--project', client, '--noCheck', '--outDir', made];
  const [code] = await once(spawn(process.execPath, args, { stdio: ['ignore', 2, 2] }), 'close');
  if (code !== 0) throw new Error('The client package could not be compiled.');
  utimesSync(join(made, 'index.js'), clientTime / 1000, clientTime / 1000);
  try {
    renameSync(join(client, 'dist'), join(draft, 'client-before'));
  } catch {
    // There is none, or a concurrent build has just moved it away.
  }
  moveInPlace(made, join(client, 'dist'));
}

/** Creates the empty database, which any user may read. Failures are ignored: the first start would report them. */
async function makeDatabase() {
  const path = join(output, readlinkSync(join(output, 'database')));
  if (existsSync(path)) return;
  await runCommand(['migrate'], COMMAND_OPTIONS);
  const made = join(draft, 'database');
  if (!existsSync(made)) return;
  chmodSync(made, 0o755);
  for (const entry of readdirSync(made, { recursive: true, withFileTypes: true }))
    chmodSync(join(entry.parentPath, entry.name), entry.isDirectory() ? 0o755 : 0o644);
  moveInPlace(made, path);
}

/** Runs a command of the new build, on an embedded database in the draft. */
async function runCommand(args, options) {
  const { PATH, HOME } = process.env;
  const env = { PATH, HOME, DATA_DIR: draft, NODE_COMPILE_CACHE: join(output, 'compiled') };
  await once(spawn(process.execPath, [...options, join(output, 'cli.js'), ...args], { cwd: root, env, stdio: 'ignore' }), 'close');
}

/** Moves a result to its path atomically; if a concurrent build was first, its result stays. */
function moveInPlace(made, path) {
  try {
    renameSync(made, path);
  } catch (failure) {
    if (!existsSync(path)) throw failure;
  }
}

function link(target, path) {
  const made = join(dist, `.link-${process.pid}`);
  rmSync(made, { force: true });
  symlinkSync(target, made);
  renameSync(made, path);
}

function readLink(path) {
  try {
    return readlinkSync(path);
  } catch {
    return null;
  }
}

/** The hash of files and of all files in folders, except generated ones. */
function hashFiles(names) {
  const hash = createHash('sha256');
  for (const name of names) {
    for (const path of listFiles(name))
      hash
        .update(`${path}\0`)
        .update(readFileSync(join(root, path)))
        .update('\0');
  }
  return hash.digest('hex').slice(0, 16);
}

function listFiles(name) {
  if (!statSync(join(root, name)).isDirectory()) return [name];
  const entries = readdirSync(join(root, name)).filter((entry) => !['generated', 'dist', 'node_modules'].includes(entry));
  return entries.sort().flatMap((entry) => listFiles(join(name, entry)));
}

/** The modification time of a file, in whole milliseconds, as `utimes` is not exact below; 0 if there is no such file. */
function findTime(path) {
  return Math.round(statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0);
}

function findNewest(names) {
  return Math.max(...names.flatMap(listFiles).map((name) => findTime(join(root, name))));
}

function forgetOldBuilds() {
  const now = new Date();
  utimesSync(output, now, now);
  const found = readdirSync(dist).map((name) => {
    // A concurrent build may just have removed the entry.
    const { mtimeMs = Number(now) } = statSync(join(dist, name), { throwIfNoEntry: false }) ?? {};
    return { name, path: join(dist, name), age: Number(now) - mtimeMs };
  });
  const builds = found.filter(({ name }) => /^[0-9a-f]{16}$/.test(name)).sort((a, b) => a.age - b.age);
  const links = builds.slice(0, KEPT_BUILDS).flatMap(({ path }) => [join(path, 'database'), join(path, 'web')]);
  const linked = links.map((path) => basename(readLink(path) ?? ''));
  const isAbandoned = ({ name, age }) =>
    (/^\.(draft|generated)-/.test(name) && age > HOUR_MS) || (/^\.(database|desk)-/.test(name) && !linked.includes(name));
  for (const { path } of [...builds.slice(KEPT_BUILDS), ...found.filter(isAbandoned)]) rmSync(path, { recursive: true, force: true });
}
