// node launch.mjs [entry] [arguments]: compiles what is stale, then runs src/<entry>.ts. Without an entry it only compiles.
//
// The compiled code lies in dist/<hash of the sources>/: it is stale exactly when that folder is not there. It is made
// in a folder of its own and appears by a rename, so two who start at once do not harm each other.
//
// Our code and the packages' are each one file: to look for some 1,100 of them, and to read them one by one, would take
// longer than all else that a start does. Beside it lies an empty embedded database, which first starts copy: PGlite takes
// five seconds and 800 MB to make and migrate one.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  cpSync,
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
import module, { createRequire } from 'node:module';
import { delimiter, join, relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { setFlagsFromString } from 'node:v8';

const root = fileURLToPath(new URL('.', import.meta.url));
const require = createRequire(import.meta.url);
const KEPT_BUILDS = 3;
/** Each is a program, src/<entry>.ts. */
const ENTRIES = ['main', 'cli', 'print'];
/** Left where they are: they read files that lie beside their code, or are large and seldom asked for. */
const LEFT_OUT = ['@electric-sql/pglite', '@graphql-yoga/render-graphiql', 'swagger-ui-dist'];

const [entry, ...entryArguments] = process.argv.slice(2);
const output = await build();
if (entry) {
  process.argv.splice(1, process.argv.length - 1, join(output, `${entry}.js`), ...entryArguments);
  process.setSourceMapsEnabled(true);
  // Since 22.8 Node.js keeps what V8 has compiled, and saves a fifth of a start and 10 MB; where it cannot write, it compiles.
  module.enableCompileCache?.(join(output, 'compiled'));
  // What Node.js has since 21. Without it pg would find out where it is by making a Response, for which all of fetch is loaded.
  globalThis.navigator ??= { userAgent: `Node.js/${process.versions.node.split('.')[0]}` };
  // A gateway's garbage comes in bursts. Left alone, the heap would grow to a multiple of what lives before it is swept;
  // with less than 50, it is swept all the time while a client sends to a console as fast as it can.
  setFlagsFromString('--heap-growing-percent=60');
  await import(pathToFileURL(join(output, `${entry}.js`)).href);
}

/** The folder of the compiled code, made if need be. */
async function build() {
  const dist = join(root, 'dist');
  const output = join(dist, hashSources());
  const wantsTemplate = !process.env.DATABASE_URL && !existsSync(join(output, 'database'));
  if (existsSync(output)) {
    // It may have been compiled for a PostgreSQL. A start would rather make the database that it needs.
    if (wantsTemplate && !entry) await (await makeTemplate(dist)).finish(output);
    return output;
  }
  const staging = join(dist, `.staging-${process.pid}`);
  rmSync(staging, { recursive: true, force: true });
  mkdirSync(join(staging, 'prisma'), { recursive: true });
  cpSync(join(root, 'src'), join(staging, 'src'), { recursive: true, filter: (path) => !path.endsWith('generated') });
  cpSync(join(root, 'prisma/schema.prisma'), join(staging, 'prisma/schema.prisma'));
  const template = wantsTemplate ? makeTemplate(dist) : null;
  await generate(join(staging, 'prisma/schema.prisma'));
  await bundle(join(staging, 'src'), join(staging, 'out'));
  await (await template)?.finish(join(staging, 'out'));
  appear(join(staging, 'out'), output);
  rmSync(staging, { recursive: true, force: true });
  forgetOldBuilds(dist, output);
  // Whoever compiles for others, as for an image that cannot be written to, has it all compiled.
  if (!entry) await run([fileURLToPath(import.meta.url), 'cli', '--help']);
  return output;
}

/** Whole, or not at all; another that was there first stays. */
function appear(draft, path) {
  try {
    renameSync(draft, path);
  } catch (failure) {
    if (!existsSync(path)) throw failure;
  }
}

function hashSources() {
  const others = ['prisma/schema.prisma', 'tsconfig.json', 'package-lock.json', 'launch.mjs'].map((name) => join(root, name));
  return hashFiles([...listFiles('src').filter((path) => !path.includes('generated')), ...others]);
}

function listFiles(folder) {
  const entries = readdirSync(join(root, folder), { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

function hashFiles(paths, seed = '') {
  const hash = createHash('sha256').update(seed);
  for (const path of paths)
    hash
      .update(`${path.slice(root.length)}\0`)
      .update(readFileSync(path))
      .update('\0');
  return hash.digest('hex').slice(0, 16);
}

/** Prisma's client. Generating needs no engine, but looks for one, and would download it: any program that exists will do. */
async function generate(schema) {
  const prisma = join(require.resolve('prisma/package.json'), '../build/index.js');
  const PATH = [join(root, 'node_modules/.bin'), process.env.PATH].join(delimiter);
  const env = { ...process.env, PATH, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, CHECKPOINT_DISABLE: '1' };
  const { status, printed } = await run([prisma, 'generate', '--no-hints', '--schema', schema], env);
  if (status === 0) return;
  console.error(printed);
  process.exit(1);
}

/** Types are judged by `npm run check`, not at each start. */
async function bundle(src, output) {
  const { build: rolldown } = await import('rolldown');
  await rolldown({
    cwd: join(src, '..'),
    input: Object.fromEntries(ENTRIES.map((name) => [name, join(src, `${name}.ts`)])),
    platform: 'node',
    // What throws is an effect too: the shaking drops a call like `decodeURIComponent(text)` whose value nobody uses.
    treeshake: false,
    external: LEFT_OUT,
    // Yoga only asks whether its own Request is Node's. It is not; but to look, Node would load all of fetch.
    transform: { define: { 'globalThis.Request': 'undefined' } },
    tsconfig: join(root, 'tsconfig.json'),
    logLevel: 'warn',
    plugins: [{ name: 'packages', generateBundle: (_options, files) => trimPackages(files) }],
    output: {
      dir: output,
      entryFileNames: '[name].js',
      chunkFileNames: '[name].js',
      minify: false,
      comments: { jsdoc: false, annotation: false, legal: false },
      sourcemap: true,
      sourcemapExcludeSources: true,
      sourcemapPathTransform: (path) => join('../../src', relative(src, resolve(output, path))),
      // What is imported with `import()` is in files of its own.
      codeSplitting: {
        groups: [
          { name: 'packages', test: /node_modules/, tags: ['$initial'] },
          { name: 'shared', minShareCount: 2, tags: ['$initial'] },
        ],
      },
    },
  });
}

/** What Node.js would keep in memory for nothing: maps of the packages, and a second byte for each of their characters. */
function trimPackages(files) {
  for (const file of Object.values(files)) {
    if (!file.moduleIds?.every((id) => id.includes('node_modules'))) continue;
    const escapeUnit = (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
    file.code = file.code.replace(/^\/\/# sourceMappingURL=.*$/m, '').replace(/[^\0-\x7f]/g, escapeUnit);
    delete files[`${file.fileName}.map`];
  }
}

/**
 * An empty embedded database in `dist`, made once for each version of PGlite and set of migrations. The first part, which
 * needs nothing compiled, begins at once; `finish` migrates it, and links a build to it. Where one fails, the build goes
 * without, and a first start tells why.
 */
async function makeTemplate(dist) {
  const packaged = readFileSync(join(root, 'node_modules/@electric-sql/pglite/package.json'));
  const name = `.database-${hashFiles(listFiles('prisma/migrations'), packaged)}`;
  const draft = join(dist, `.draft-${process.pid}`);
  const script = `import { PGlite } from '@electric-sql/pglite'; await (await PGlite.create(process.argv[1])).close();`;
  if (!existsSync(join(dist, name))) {
    mkdirSync(draft, { recursive: true });
    await run(['--input-type=module', '--eval', script, join(draft, 'database')]);
  }
  return {
    async finish(output) {
      if (!existsSync(join(dist, name))) {
        const { PATH, HOME } = process.env;
        const { status } = await run([join(output, 'cli.js'), 'migrate'], { PATH, HOME, DATA_DIR: draft });
        if (status === 0) appear(join(draft, 'database'), join(dist, name));
      }
      rmSync(draft, { recursive: true, force: true });
      if (!existsSync(join(dist, name))) return;
      symlinkSync(join('..', name), draft);
      renameSync(draft, join(output, 'database'));
    },
  };
}

async function run(args, env = process.env) {
  const { spawn } = await import('node:child_process');
  const child = spawn(process.execPath, args, { cwd: root, env });
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (printed += text));
  const [status] = await once(child, 'close');
  return { status, printed };
}

function forgetOldBuilds(dist, output) {
  const now = new Date();
  utimesSync(output, now, now);
  const builds = readdirSync(dist)
    .filter((name) => !name.startsWith('.'))
    .map((name) => join(dist, name));
  const byAge = builds.sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs);
  for (const old of byAge.slice(KEPT_BUILDS)) rmSync(old, { recursive: true, force: true });
  const linked = byAge
    .slice(0, KEPT_BUILDS)
    .flatMap((build) => (existsSync(join(build, 'database')) ? readlinkSync(join(build, 'database')) : []));
  for (const name of readdirSync(dist).filter((name) => name.startsWith('.database-')))
    if (!linked.includes(join('..', name))) rmSync(join(dist, name), { recursive: true, force: true });
}
