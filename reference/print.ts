import { readFileSync, writeFileSync } from 'node:fs';
import { lexicographicSortSchema, printSchema } from 'graphql';
import { faults } from '../src/kernel/fault.ts';
import { packageRoot } from '../src/platform/packageroot.ts';
import { schema } from '../src/schema.ts';
import { bindRoute } from '../src/transport/rest/route.ts';
import { routes } from '../src/transport/rest/routes.ts';
import { printAsyncApi, printOpenApi } from './published.ts';

/** The generated files that are checked in: this program writes them, or compares them with `--check`. */
const printed: Readonly<Record<string, () => string>> = {
  'schema.graphql': () => `${printSchema(lexicographicSortSchema(schema))}\n`,
  'openapi.json': () =>
    printOpenApi(
      schema,
      routes.map((route) => bindRoute(schema, route)),
    ),
  'asyncapi.json': () => printAsyncApi(schema),
  'docs/errors.md': () => replaceTable(readFileSync(new URL('docs/errors.md', packageRoot), 'utf8')),
};

/** Replaces the catalogue between its two marks; the rest of the page is written by hand. */
function replaceTable(page: string): string {
  const rows = Object.entries(faults).map(([code, { status, when, where }]) => `| \`${code}\` | ${status} | ${when} | ${where} |`);
  const table = ['| code | status | when | where |', '| --- | --- | --- | --- |', ...rows].join('\n');
  return page.replace(
    /(<!-- catalogue -->\n\n)[\s\S]*?(\n<!-- \/catalogue -->)/,
    (_, before: string, after: string) => before + table + after,
  );
}

for (const [name, print] of Object.entries(printed)) {
  const path = new URL(name, packageRoot);
  if (!process.argv.includes('--check')) writeFileSync(path, print());
  else if (readFileSync(path, 'utf8') !== print()) {
    console.error(`${name} is stale: npm run schema writes it anew`);
    process.exitCode = 1;
  }
}
