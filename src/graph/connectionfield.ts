import type { ObjectRef } from '@pothos/core';
import { parseUuid } from '../kernel/uuid.ts';
import { builder } from './builder.ts';

type Types = typeof builder.$inferSchemaTypes;

/** The connection type of an item type, shared by all its lists. */
export function implementConnection<Item>(name: string, type: ObjectRef<Types, Item>) {
  const edge = builder.edgeObject({ name: `${name}Edge`, type, description: 'An item of a list, with its cursor.' });
  return builder.connectionObject(
    {
      name: `${name}Connection`,
      type,
      description: 'One page of a list, by cursor.',
      fields: (t) => ({
        totalCount: t.int({
          description: 'The number of items in the whole list, with its filter. Counted only if it is selected.',
          resolve: (connection) => connection.count(),
        }),
      }),
    },
    edge,
  );
}

/** The keyset of a list ordered by id. */
export const byId = { keyOf: (node: { readonly id: string }) => node.id, parseKey: parseUuid };
