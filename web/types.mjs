// node web/types.mjs: generates src/graphql/schema.d.ts, from which gql.tada infers the types of each document, from
// schema.graphql. With --check it only reports whether the file is up to date.
import { readFileSync, writeFileSync } from 'node:fs';
import { minifyIntrospection, outputIntrospectionFile } from '@gql.tada/internal';
import { buildSchema, introspectionFromSchema } from 'graphql';

const target = new URL('src/graphql/schema.d.ts', import.meta.url);
const schema = buildSchema(readFileSync(new URL('../schema.graphql', import.meta.url), 'utf8'));
const introspection = minifyIntrospection(introspectionFromSchema(schema, { descriptions: false }));
const text = outputIntrospectionFile(introspection, { fileType: '.d.ts', shouldPreprocess: true });

if (!process.argv.includes('--check')) {
  writeFileSync(target, text);
} else if (readFileSync(target, 'utf8') !== text) {
  console.error('web/src/graphql/schema.d.ts does not agree with schema.graphql: `npm run web:types` writes it anew.');
  process.exit(1);
}
