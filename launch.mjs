// node launch.mjs [entry] [arguments]: compiles what is stale, then runs src/<entry>.ts. Without an entry it only compiles.
//
// The compiled code lies in dist/<hash of the sources>/: it is stale exactly when that folder is not there. It is made
// in a folder of its own and appears by a rename, so two who start at once do not harm each other.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { setFlagsFromString } from 'node:v8';

const root = fileURLToPath(new URL('.', import.meta.url));
const require = createRequire(import.meta.url);
const KEPT_BUILDS = 3;
/** Types are judged by `npm run check`, not at each start. */
const compilerOptions = { noEmit: false, noCheck: true, rootDir: 'src', outDir: 'out', sourceMap: true };

const [entry, ...entryArguments] = process.argv.slice(2);
const output = build();
if (entry) {
  process.argv.splice(1, process.argv.length - 1, join(output, `${entry}.js`), ...entryArguments);
  process.setSourceMapsEnabled(true);
  // A gateway's garbage comes in bursts. Left alone, the heap would grow to a multiple of what lives before it is swept.
  setFlagsFromString('--heap-growing-percent=30');
  await import(pathToFileURL(join(output, `${entry}.js`)).href);
}

/** The folder of the compiled code, made if need be. */
function build() {
  const dist = join(root, 'dist');
  const output = join(dist, hashSources());
  if (existsSync(output)) return output;
  const staging = join(dist, `.staging-${process.pid}`);
  rmSync(staging, { recursive: true, force: true });
  mkdirSync(join(staging, 'prisma'), { recursive: true });
  cpSync(join(root, 'src'), join(staging, 'src'), { recursive: true, filter: (path) => !path.endsWith('generated') });
  cpSync(join(root, 'prisma/schema.prisma'), join(staging, 'prisma/schema.prisma'));
  writeFileSync(join(staging, 'tsconfig.json'), JSON.stringify({ extends: '../../tsconfig.json', compilerOptions, include: ['src'] }));
  generate(join(staging, 'prisma/schema.prisma'));
  run(join(require.resolve('typescript/package.json'), '../bin/tsc'), ['-p', join(staging, 'tsconfig.json')]);
  try {
    renameSync(join(staging, 'out'), output);
  } catch (failure) {
    if (!existsSync(output)) throw failure;
  }
  rmSync(staging, { recursive: true, force: true });
  forgetOldBuilds(dist, output);
  return output;
}

function hashSources() {
  const hash = createHash('sha256');
  const files = readdirSync(join(root, 'src'), { recursive: true, withFileTypes: true })
    .filter((file) => file.isFile() && !file.parentPath.includes('generated'))
    .map((file) => join(file.parentPath, file.name));
  for (const path of [
    ...files.sort(),
    ...['prisma/schema.prisma', 'tsconfig.json', 'package-lock.json', 'launch.mjs'].map((name) => join(root, name)),
  ]) {
    hash
      .update(`${path.slice(root.length)}\0`)
      .update(readFileSync(path))
      .update('\0');
  }
  return hash.digest('hex').slice(0, 16);
}

/** Prisma's client. Generating needs no engine, but looks for one, and would download it: any program that exists will do. */
function generate(schema) {
  const prisma = join(require.resolve('prisma/package.json'), '../build/index.js');
  run(prisma, ['generate', '--no-hints', '--schema', schema], { PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, CHECKPOINT_DISABLE: '1' });
}

function run(script, args, env = {}) {
  const PATH = [join(root, 'node_modules/.bin'), process.env.PATH].join(delimiter);
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...args], {
    cwd: root,
    env: { ...process.env, PATH, ...env },
    encoding: 'utf8',
  });
  if (status !== 0) {
    console.error(stdout + stderr);
    process.exit(1);
  }
}

function forgetOldBuilds(dist, output) {
  const now = new Date();
  utimesSync(output, now, now);
  const builds = readdirSync(dist)
    .filter((name) => !name.startsWith('.'))
    .map((name) => join(dist, name));
  const byAge = builds.sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs);
  for (const old of byAge.slice(KEPT_BUILDS)) rmSync(old, { recursive: true, force: true });
}
