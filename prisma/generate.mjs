// npm run generate: writes src/generated (Prisma's client, Pothos' types, and the names of the tables) if schema.prisma has
// changed. It calls the generators of `prisma generate` without Prisma's CLI, which would install another 230 MB.
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { checkBuildPrerequisites } from '../scripts/prerequisites.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const generated = join(root, 'src/generated');
/** The hash of the inputs, stored beside the generated code. */
const stamp = join(generated, '.made-of');

export async function generate() {
  const hash = createHash('sha256');
  for (const name of ['prisma/schema.prisma', 'prisma/generate.mjs', 'package-lock.json']) hash.update(readFileSync(join(root, name)));
  const madeOf = hash.digest('hex');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === madeOf) return;

  // Generated in a draft folder and moved in place by a rename, so that a concurrent bundler or test never reads half of it.
  const draft = join(root, `dist/.generated-${process.pid}`);
  rmSync(draft, { recursive: true, force: true });
  mkdirSync(join(draft, 'prisma'), { recursive: true });
  cpSync(join(root, 'prisma/schema.prisma'), join(draft, 'prisma/schema.prisma'));
  try {
    await runGenerators(join(draft, 'prisma/schema.prisma'));
    writeFileSync(join(draft, 'src/generated/tables.ts'), `export const tables = ${JSON.stringify(readTables())};\n`);
    writeFileSync(join(draft, 'src/generated/.made-of'), madeOf);
    if (existsSync(generated)) renameSync(generated, join(draft, 'old'));
    renameSync(join(draft, 'src/generated'), generated);
  } catch (failure) {
    // A concurrent run was first.
    if (failure.code !== 'ENOTEMPTY') throw failure;
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

/** The names of all tables. */
function readTables() {
  const schema = readFileSync(join(root, 'prisma/schema.prisma'), 'utf8');
  return [...schema.matchAll(/^model .*?^ {2}@@map\("(\w+)"\)/gms)].map(([, name]) => name);
}

/** @param {string} schema the path of the schema */
async function runGenerators(schema) {
  // `require`, as the `import` exports of these packages name files that do not exist.
  const require = createRequire(import.meta.url);
  const { getGenerators, loadSchemaContext } = require('@prisma/internals');
  const { PrismaClientTsGenerator } = require('@prisma/client-generator-ts');
  const generators = await getGenerators({
    schemaContext: await loadSchemaContext({ schemaPath: { cliProvidedPath: schema }, printLoadMessage: false }),
    registry: {
      'prisma-client': { type: 'in-process', generator: new PrismaClientTsGenerator() },
      // By its path, as a folder whose path has a colon cannot be in PATH.
      'prisma-pothos-types': {
        type: 'rpc',
        generatorPath: join(root, 'node_modules/@pothos/plugin-prisma/bin/generator.js'),
        isNode: true,
      },
    },
    // No generator needs an engine.
    skipDownload: true,
  });
  for (const generator of generators) {
    await generator.generate();
    generator.stop();
  }
}

if (pathToFileURL(process.argv[1]).href === import.meta.url) {
  checkBuildPrerequisites();
  await generate();
}
