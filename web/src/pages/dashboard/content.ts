import { readExact, toPretty } from '../../graphql/exact.ts';

/** What people change of a dashboard. The widgets are a text, which need not be JSON while somebody types. */
export interface Content {
  readonly name: string;
  readonly description: string;
  readonly isDefault: boolean;
  readonly isPublic: boolean;
  readonly widgets: string;
}

/** As the server has it at one version. */
export interface Saved extends Content {
  readonly version: number;
}

/** What somebody is writing, and the version that they began with. */
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

export function contentOf({ name, description, isDefault, isPublic, widgets }: Content): Content {
  return { name, description, isDefault, isPublic, widgets: pretty(widgets) };
}

export const draftOf = (base: Saved): Draft => ({ base, mine: contentOf(base) });

/** The fields in which two contents differ. White space of the JSON is no difference; the spelling of a number is. */
export const changedFields = (a: Content, b: Content): readonly Field[] =>
  fields.filter((field) => (field === 'widgets' ? compact(a.widgets) !== compact(b.widgets) : a[field] !== b[field]));

const REMEMBERED = 4;

/** The last answers for a text: several parts of the page ask for the same at each key. */
function remember<Answer>(ask: (text: string) => Answer): (text: string) => Answer {
  const answers = new Map<string, Answer>();
  return (text) => {
    if (!answers.has(text)) {
      for (const oldest of [...answers.keys()].slice(0, answers.size - REMEMBERED)) answers.delete(oldest);
      answers.set(text, ask(text));
    }
    return answers.get(text) as Answer;
  };
}

/** Without the white space between its parts. */
export const compact = remember((text) => text.replace(/("[^"\\]*(?:\\.[^"\\]*)*")|\s+/g, '$1'));

/** As people read it. A text that is no JSON stays as it is. */
export function pretty(text: string): string {
  return problemOf(text) === null ? toPretty(readExact(text)) : text;
}

/** Why a text is no JSON, in the browser's words; null where it is. */
export const problemOf = remember((text) => {
  try {
    JSON.parse(text);
    return null;
  } catch (failure) {
    return text.trim() === '' ? 'There is nothing here. An empty list is [].' : (failure as Error).message;
  }
});

/** Drafts of this tab by viewer and dashboard: whoever has to sign in again, or goes back, finds theirs. */
export const drafts = new Map<string, Draft>();
