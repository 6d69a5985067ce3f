import { readExact, toPretty } from '../../graphql/exact.ts';

/** The editable fields of a dashboard. The widgets are a text, which need not be valid JSON while somebody types. */
export interface Content {
  readonly name: string;
  readonly description: string;
  readonly isDefault: boolean;
  readonly isPublic: boolean;
  readonly widgets: string;
}

/** The content on the server at one version. */
export interface Saved extends Content {
  readonly version: number;
}

/** A draft (`mine`), and the version that it began with (`base`). */
export interface Draft {
  readonly base: Saved;
  readonly mine: Content;
}

export const fields = ['name', 'description', 'isDefault', 'isPublic', 'widgets'] as const;
export type Field = (typeof fields)[number];

export const titles: Readonly<Record<Field, string>> = {
  name: 'Name',
  description: 'Description',
  isDefault: 'Default of the project',
  isPublic: 'Public',
  widgets: 'Widgets',
};

function contentOf({ name, description, isDefault, isPublic, widgets }: Content): Content {
  return { name, description, isDefault, isPublic, widgets: pretty(widgets) };
}

export const draftOf = (base: Saved): Draft => ({ base, mine: contentOf(base) });

/** The fields in which two contents differ. White space in the JSON is ignored; the spelling of a number is not. */
export const changedFields = (a: Content, b: Content): readonly Field[] =>
  fields.filter((field) => (field === 'widgets' ? compact(a.widgets) !== compact(b.widgets) : a[field] !== b[field]));

const MAX_MEMOIZED = 4;

/** Memoizes a function of a text, as several components compute the same at each key press. */
function memoize<Result>(compute: (text: string) => Result): (text: string) => Result {
  const results = new Map<string, Result>();
  return (text) => {
    if (!results.has(text)) {
      for (const oldest of [...results.keys()].slice(0, results.size - MAX_MEMOIZED)) results.delete(oldest);
      results.set(text, compute(text));
    }
    return results.get(text) as Result;
  };
}

/** JSON without white space between its tokens. */
export const compact = memoize((text) => text.replace(/("[^"\\]*(?:\\.[^"\\]*)*")|\s+/g, '$1'));

/** Pretty-prints JSON. A text that is not JSON is returned unchanged. */
export function pretty(text: string): string {
  return problemOf(text) === null ? toPretty(readExact(text)) : text;
}

/** The browser's message about why a text is not JSON; null if it is. */
export const problemOf = memoize((text) => {
  try {
    JSON.parse(text);
    return null;
  } catch (failure) {
    return text.trim() === '' ? 'There is nothing here. An empty list is [].' : (failure as Error).message;
  }
});
