import type { GraphQLSchema } from 'graphql';
import { plainFeeds } from '../src/transport/rest/plainfeeds.ts';
import type { BoundRoute } from '../src/transport/rest/route.ts';
import { describePlainFeeds } from './asyncapi.ts';
import { examples } from './examples.ts';
import { describeApi } from './openapi.ts';

/** The text of `openapi.json`, which is both checked in and served. */
export function printOpenApi(schema: GraphQLSchema, routes: readonly BoundRoute[]): string {
  return print(describeApi(schema, routes, examples));
}

/** The text of `asyncapi.json`. */
export function printAsyncApi(schema: GraphQLSchema): string {
  return print(describePlainFeeds(schema, plainFeeds, examples.events));
}

function print(document: unknown): string {
  return `${JSON.stringify(sort(document), null, 2)}\n`;
}

/** Sorts objects by key, so that diffs stay local; examples keep the order that they had on the wire. */
function sort(value: unknown, isSorted = true): unknown {
  if (typeof value !== 'object' || value === null || !isSorted) return value;
  if (Array.isArray(value)) return value.map((item) => sort(item));
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, item]) => [key, sort(item, key !== 'examples')]));
}
