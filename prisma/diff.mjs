// Prints the SQL that leads from the migrations to schema.prisma, and exits with 2 if there is any:
// the drift check of `npm run check`, and the first draft of the next migration.
// It also compares database.sql, which has what schema.prisma cannot say, with the migrations; `--write` writes it anew.
// Runs Prisma's schema engine as WebAssembly against a PGlite in memory, so it needs no server and no download.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { PGlite } from '@electric-sql/pglite';
import { bindMigrationAwareSqlAdapterFactory } from '@prisma/driver-adapter-utils';
import * as engine from '@prisma/schema-engine-wasm/schema_engine_bg';
import { PrismaPGlite } from 'pglite-prisma-adapter';
import { describeDatabase } from './describe.mjs';

const here = new URL('.', import.meta.url);
const wasmPath = createRequire(import.meta.url)
  .resolve('@prisma/schema-engine-wasm')
  .replace('schema_engine.js', 'schema_engine_bg.wasm');
const { instance } = await WebAssembly.instantiate(readFileSync(wasmPath), { './schema_engine_bg.js': engine });
engine.__wbg_set_wasm(instance.exports);
instance.exports.__wbindgen_start();

const database = await PGlite.create();
const folders = readdirSync(new URL('migrations/', here), { withFileTypes: true }).filter((entry) => entry.isDirectory());
for (const { name } of folders.sort((a, b) => a.name.localeCompare(b.name))) {
  await database.exec(readFileSync(new URL(`migrations/${name}/migration.sql`, here), 'utf8'));
}

const content = readFileSync(new URL('schema.prisma', here), 'utf8');
const schema = { path: 'schema.prisma', content };
const schemaEngine = await engine.SchemaEngine.new(
  { datamodels: [[schema.path, content]] },
  () => {},
  bindMigrationAwareSqlAdapterFactory(new PrismaPGlite(database)),
);
const { stdout } = await schemaEngine.diff({
  from: { tag: 'schemaDatasource', files: [schema], configDir: '.' },
  to: { tag: 'schemaDatamodel', files: [schema] },
  script: true,
  exitCode: true,
  shadowDatabaseUrl: null,
  filters: { externalTables: [], externalEnums: [] },
});
const description = await describeDatabase(database);
await database.close();
const script = (stdout ?? '').trim();
if (script && !script.includes('This is an empty migration')) {
  console.log(script);
  console.error(
    'The migrations lead to another schema than prisma/schema.prisma. Either put this SQL into a new migration (CONTRIBUTING.md, “Add a field”), or add to schema.prisma what it drops.',
  );
  process.exitCode = 2;
}

const described = new URL('database.sql', here);
if (process.argv.includes('--write')) writeFileSync(described, description);
else if (readFileSync(described, 'utf8') !== description) {
  console.error('prisma/database.sql is not what the migrations lead to: node prisma/diff.mjs --write');
  process.exitCode = 2;
}
