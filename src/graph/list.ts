import type { ObjectRef } from '@pothos/core';
import { parseUuid } from '../kernel/uuid.ts';
import { builder } from './builder.ts';
import { resolveKeyset } from './connection.ts';

type Types = typeof builder.$inferSchemaTypes;

/** The one connection of an item type, whichever list it is. */
export function implementConnection<Item>(name: string, type: ObjectRef<Types, Item>) {
  const edge = builder.edgeObject({ name: `${name}Edge`, type, description: 'An item of a list, with its cursor.' });
  return builder.connectionObject(
    {
      name: `${name}Connection`,
      type,
      description: 'A part of a list.',
      fields: (t) => ({
        totalCount: t.int({
          description: 'How many items the whole list has, with its filter. Counted only where it is asked for.',
          resolve: (connection) => connection.count(),
        }),
      }),
    },
    edge,
  );
}

type Keyset<Item, Key extends string | number> = Parameters<typeof resolveKeyset<Item, Key>>;

/** A connection in the order of a unique key, which counts its items where that is asked for. */
export async function resolveList<Item, Key extends string | number>(
  keyset: Keyset<Item, Key>[0] & { readonly count: () => Promise<number> },
  load: Keyset<Item, Key>[1],
) {
  return { ...(await resolveKeyset(keyset, load)), count: keyset.count };
}

/** What a list by id is made of. */
export const byId = { keyOf: (node: { readonly id: string }) => node.id, parseKey: parseUuid };
