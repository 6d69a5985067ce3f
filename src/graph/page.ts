import type { ArgBuilder, ObjectRef } from '@pothos/core';
import type { Page } from '../kernel/page.ts';
import { builder } from './builder.ts';

type Types = typeof builder.$inferSchemaTypes;

/** The type of one page of a list (§2.7). A list has a page field and a connection field. */
export function implementPage<Item>(name: string, item: ObjectRef<Types, Item>) {
  return builder.objectRef<Page<Item>>(name).implement({
    description: 'One page of a list.',
    fields: (t) => ({
      count: t.exposeInt('count', { description: 'How many items the whole list has.' }),
      page: t.exposeInt('page', { description: 'The number of this page.' }),
      pageSize: t.exposeInt('pageSize', { description: 'How many items a page has: what was asked for, at most 100.' }),
      totalPages: t.exposeInt('totalPages', { description: 'How many pages there are: at least 1, as the first page always exists.' }),
      results: t.field({ type: [item], description: 'The items.', resolve: (page) => page.results as Item[] }),
    }),
  });
}

export function pageArgs(t: { arg: ArgBuilder<Types> }) {
  return {
    page: t.arg.int({ required: true, defaultValue: 1, description: 'From 1. Past the end is `not_found`.', extensions: { minimum: 1 } }),
    pageSize: t.arg.int({
      required: true,
      defaultValue: 20,
      description: 'How many items a page has. More than 100 is cut to 100.',
      extensions: { minimum: 1 },
    }),
  };
}
