import SchemaBuilder, { type InputFieldBuilder } from '@pothos/core';
import ComplexityPlugin from '@pothos/plugin-complexity';
import PrismaPlugin from '@pothos/plugin-prisma';
import RelayPlugin from '@pothos/plugin-relay';
import SimpleObjectsPlugin from '@pothos/plugin-simple-objects';
import type PrismaTypes from '../generated/pothos.ts';
import { getDatamodel } from '../generated/pothos.ts';
import type { Context } from './context.ts';
import { pageCost } from './cost.ts';

type Scalars = {
  ID: { Input: string; Output: string };
  DateTime: { Input: Date; Output: Date };
  UUID: { Input: string; Output: string };
  Name: { Input: string; Output: string };
  Text: { Input: string; Output: string };
  IdempotencyKey: { Input: string; Output: string };
  JSON: { Input: unknown; Output: unknown };
  JSONObject: { Input: unknown; Output: unknown };
  SafeInt: { Input: number; Output: number };
};

/**
 * The one schema builder: every domain adds its types and root fields to it. Models with Prisma's rows, such as instances, are
 * `prismaObject`s; those with rows that are written by hand, such as dashboards, or with a scope are not. Relations and lists are
 * never `t.relation` and `prismaConnection`: those read without a `ProjectScope`, the proof of access, and for a list under each of
 * 20 parents took 7,000 and 2,100 µs of CPU, one statement for all parents 940 (`context.loadByProject`, `loadInScope`: a DataLoader
 * each). Ids are the UUIDs of v1, not Relay's global ids, so `node` is our own (`node.ts`).
 */
export const builder = new SchemaBuilder<{
  Context: Context;
  PrismaTypes: PrismaTypes;
  Scalars: Scalars;
  /** Every list also has the total count of its items. */
  Connection: { count(): Promise<number> };
  DefaultFieldNullability: false;
  DefaultEdgesNullability: false;
  DefaultNodeNullability: false;
}>({
  plugins: [RelayPlugin, SimpleObjectsPlugin, PrismaPlugin, ComplexityPlugin],
  defaultFieldNullability: false,
  relay: {
    cursorType: 'String',
    clientMutationId: 'omit',
    nodeQueryOptions: false,
    nodesQueryOptions: false,
    edgesFieldOptions: { nullable: false, description: 'The items, each with its cursor.' },
    nodesFieldOptions: { description: 'The items.' },
    nodeFieldOptions: { nullable: false, description: 'The item.' },
    cursorFieldOptions: { description: 'The cursor of the item: pass it as `after` or `before`.' },
    pageInfoFieldOptions: { description: 'Whether there are more items on either side of this page, and its first and last cursor.' },
    pageInfoTypeOptions: { description: 'Whether there are more items on either side of a page, and its first and last cursor.' },
    hasNextPageFieldOptions: {
      description:
        'Forward, whether more items follow this page, of those before `before` if it is given. Backward (with `last` and without ' +
        '`first`, or with `before` alone), whether `before` is given.',
    },
    hasPreviousPageFieldOptions: {
      description:
        'Backward (with `last` and without `first`, or with `before` alone), whether more items precede this page, of those after ' +
        '`after` if it is given. Forward, whether `after` is given, or `last` has left out items that `first` had.',
    },
    startCursorFieldOptions: { description: 'The cursor of the first item; null if the page is empty.' },
    endCursorFieldOptions: { description: 'The cursor of the last item; null if the page is empty.' },
    firstArgOptions: {
      description: 'The number of items from the beginning, or after `after`: 20 by default. Values above 100 are reduced to 100.',
      extensions: { minimum: 0 },
    },
    lastArgOptions: {
      description: 'The number of items from the end, or before `before`. Values above 100 are reduced to 100.',
      extensions: { minimum: 0 },
    },
    afterArgOptions: { description: 'Return only items after this cursor.', extensions: { isCursor: true } },
    beforeArgOptions: { description: 'Return only items before this cursor.', extensions: { isCursor: true } },
    defaultConnectionFieldOptions: { complexity: pageCost },
    defaultConnectionTypeOptions: { description: 'One page of a list, by cursor.' },
    defaultEdgeTypeOptions: { description: 'An item of a list, with its cursor.' },
    nodesOnConnection: { description: 'The items.' },
  },
  // The cost of a document is checked before any of its fields is resolved (`createCostCheck`).
  complexity: { defaultComplexity: 1, defaultListMultiplier: 1, disabled: true },
  prisma: {
    client: (context) => context.database.prisma,
    dmmf: getDatamodel(),
  },
});

/** The builder of the fields of an input type. */
export type InputFields = InputFieldBuilder<typeof builder.$inferSchemaTypes, 'InputObject'>;

builder.queryType({ description: 'Read operations. Without a credential, only `viewer` (null) and introspection are available.' });
builder.mutationType({ description: 'Write operations. Each takes one `input` and returns a payload.' });
builder.subscriptionType({ description: 'Live updates, over WebSocket (graphql-transport-ws) or server-sent events.' });
