import type { ArgBuilder, ObjectRef } from '@pothos/core';
import type { Page } from '../kernel/page.ts';
import { builder } from './builder.ts';

type Types = typeof builder.$inferSchemaTypes;

/** The type of one page of a list (§2.7). A list has a page field and a connection field. */
export function implementPage<Item>(name: string, item: ObjectRef<Types, Item>) {
  return builder.objectRef<Page<Item>>(name).implement({
    description: 'One page of a list, by number.',
    fields: (t) => ({
      count: t.exposeInt('count', { description: 'The number of items in the whole list.' }),
      page: t.exposeInt('page', { description: 'The number of this page.' }),
      pageSize: t.exposeInt('pageSize', { description: 'The number of items per page: as requested, at most 100.' }),
      totalPages: t.exposeInt('totalPages', { description: 'The number of pages: at least 1, as the first page always exists.' }),
      results: t.field({ type: [item], description: 'The items.', resolve: (page) => page.results as Item[] }),
    }),
  });
}

export function pageArgs(t: { arg: ArgBuilder<Types> }) {
  return {
    page: t.arg.int({
      required: true,
      defaultValue: 1,
      description: 'The page number, from 1. `not_found` after the last page.',
      extensions: { minimum: 1 },
    }),
    pageSize: t.arg.int({
      required: true,
      defaultValue: 20,
      description: 'The number of items per page. Values above 100 are reduced to 100.',
      extensions: { minimum: 1 },
    }),
  };
}
