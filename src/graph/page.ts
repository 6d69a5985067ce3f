import type { ArgBuilder, ObjectRef } from '@pothos/core';
import type { Page } from '../kernel/page.ts';
import { builder } from './builder.ts';

type Types = typeof builder.$inferSchemaTypes;

/** The type of one page of a list (§2.7): the page field stands beside the connection of the same list. */
export function implementPage<Item>(name: string, item: ObjectRef<Types, Item>) {
  return builder.objectRef<Page<Item>>(name).implement({
    description: 'One page of a list.',
    fields: (t) => ({
      count: t.exposeInt('count', { description: 'Of the whole list.' }),
      page: t.exposeInt('page'),
      pageSize: t.exposeInt('pageSize'),
      totalPages: t.exposeInt('totalPages', { description: 'At least 1: the first page always exists.' }),
      results: t.field({ type: [item], resolve: (page) => page.results as Item[] }),
    }),
  });
}

export function pageArgs(t: { arg: ArgBuilder<Types> }) {
  return {
    page: t.arg.int({ required: true, defaultValue: 1, extensions: { minimum: 1 } }),
    pageSize: t.arg.int({ required: true, defaultValue: 20, description: 'More than 100 is cut to 100.', extensions: { minimum: 1 } }),
  };
}
