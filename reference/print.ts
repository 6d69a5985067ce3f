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

function report(message: string): void {
  console.error(message);
  process.exitCode = 1;
}

let isStale = false;
for (const [name, print] of Object.entries(printed)) {
  const path = new URL(name, packageRoot);
  try {
    const text = print();
    if (!process.argv.includes('--check')) writeFileSync(path, text);
    else if (readFileSync(path, 'utf8') !== text) {
      isStale = true;
      report(`${name} is stale`);
    }
  } catch (failure) {
    // `bindRoute` throws it for a route that does not fit the schema. Its message says all: a stack trace would hide it.
    if (!(failure instanceof AggregateError)) throw failure;
    report(`${name} cannot be printed: a route of src/transport/rest/routes.ts does not fit the schema.\n${failure.message}`);
  }
}
if (isStale) report('`npm run documents` writes these files anew, and all that is generated from them.');
