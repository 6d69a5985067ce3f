import SchemaBuilder from '@pothos/core';
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

/** The one schema builder: every domain adds its types and root fields to it. */
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
    cursorFieldOptions: { description: 'Where the item stands: pass it as `after` or `before`.' },
    pageInfoFieldOptions: { description: 'What lies on either side of this part.' },
    pageInfoTypeOptions: { description: 'What lies on either side of a part of a list.' },
    hasNextPageFieldOptions: { description: 'Whether there is more behind.' },
    hasPreviousPageFieldOptions: { description: 'Whether there is more before.' },
    startCursorFieldOptions: { description: 'The cursor of the first item; null where there is none.' },
    endCursorFieldOptions: { description: 'The cursor of the last item; null where there is none.' },
    firstArgOptions: { description: 'How many items from the beginning, or behind `after`: 20 unless given, at most 100.' },
    lastArgOptions: { description: 'How many items from the end, or before `before`: at most 100.' },
    afterArgOptions: { description: 'The cursor of the item to begin behind.' },
    beforeArgOptions: { description: 'The cursor of the item to end before.' },
    defaultConnectionFieldOptions: { complexity: pageCost },
    defaultConnectionTypeOptions: { description: 'A part of a list.' },
    defaultEdgeTypeOptions: { description: 'An item of a list, with its cursor.' },
    nodesOnConnection: { description: 'The items.' },
  },
  // The cost of a document is checked before any of its fields is resolved (`createCostJudge`).
  complexity: { defaultComplexity: 1, defaultListMultiplier: 1, disabled: true },
  prisma: {
    client: (context) => context.database,
    dmmf: getDatamodel(),
    filterConnectionTotalCount: true,
  },
});

builder.queryType({ description: 'Reads. Without a credential only `viewer` (null) and introspection are answered.' });
builder.mutationType({ description: 'Writes. Each takes one `input` and returns a payload.' });
builder.subscriptionType({ description: 'Live reads: over WebSocket (graphql-transport-ws) and over server-sent events.' });
