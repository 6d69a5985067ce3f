import { initGraphQLTada } from 'gql.tada';
import type { introspection } from './schema.d.ts';

/** A document with the types of its data and variables, derived from `schema.graphql`. */
export const graphql = initGraphQLTada<{
  introspection: introspection;
  disableMasking: true;
  scalars: {
    DateTime: string;
    IdempotencyKey: string;
    JSON: unknown;
    JSONObject: Record<string, unknown>;
    Name: string;
    SafeInt: number;
    Text: string;
    UUID: string;
  };
}>();

export type { ResultOf, VariablesOf } from 'gql.tada';
