import { type Exact, readExact, toPretty } from '../../graphql/exact.ts';
import { type Content, type Saved, titles } from './content.ts';

/** A part of the dashboard, for which a version is chosen. Null: the part is absent from that version. */
export interface Part {
  readonly key: string;
  readonly title: string;
  readonly kind: 'line' | 'text' | 'flag' | 'json';
  readonly base: string | null;
  readonly mine: string | null;
  readonly theirs: string | null;
}

export type Choice = { readonly of: 'mine' | 'theirs' } | { readonly of: 'edit'; readonly text: string };
export type Choices = Readonly<Record<string, Choice | undefined>>;

const fieldKinds = { name: 'line', description: 'text', isDefault: 'flag', isPublic: 'flag' } as const;

export const isSame = ({ mine, theirs }: Part): boolean => mine === theirs;

/** A three-way merge: a change by one side only is proposed; if both changed the part, the user must choose. */
export function propose({ base, mine, theirs }: Part): Choice | undefined {
  if (mine === theirs || mine === base) return { of: 'theirs' };
  return theirs === base ? { of: 'mine' } : undefined;
}

/** All parts: the fields, then each widget once. */
export function partsOf(base: Saved, mine: Content, theirs: Saved): readonly Part[] {
  const plain = Object.entries(fieldKinds).map(([name, kind]) => {
    const field = name as keyof typeof fieldKinds;
    const [b, m, t] = [base, mine, theirs].map((content) => String(content[field]));
    return { key: field, title: titles[field], kind, base: b, mine: m, theirs: t } as Part;
  });
  return [...plain, ...widgetParts(base.widgets, mine.widgets, theirs.widgets)];
}

function widgetParts(base: string, mine: string, theirs: string): readonly Part[] {
  const [was, my, their] = [base, mine, theirs].map(readExact) as [Exact, Exact, Exact];
  const whole: readonly Part[] = [
    { key: 'widgets', title: titles.widgets, kind: 'json', base: toPretty(was), mine: toPretty(my), theirs: toPretty(their) },
  ];
  if (!isList(my) || !isList(their)) return whole;
  const keyed = keyItems([isList(was) ? was : [], my, their]);
  if (!keyed) return whole;
  const [before, mineByKey, theirsByKey] = keyed;
  return mergeOrder(before, mineByKey, theirsByKey).map((key) => {
    const [b, m, t] = [before, mineByKey, theirsByKey].map((byKey) => byKey.get(key));
    const text = (exact: Exact | undefined) => (exact === undefined ? null : toPretty(exact));
    return { key, title: titleOf(m ?? t, key), kind: 'json', base: text(b), mine: text(m), theirs: text(t) };
  });
}

type Keyed = ReadonlyMap<string, Exact>;

/**
 * Keys list items by `id` if every item of every list has a unique one, otherwise by position; null for lists of different lengths,
 * whose positions do not correspond.
 */
function keyItems(lists: readonly [readonly Exact[], readonly Exact[], readonly Exact[]]): [Keyed, Keyed, Keyed] | null {
  const ids = lists.map((list) => list.map((item) => (item instanceof Map ? idOf(item) : undefined)));
  const isById = ids.every((list) => !list.includes(undefined) && new Set(list).size === list.length);
  if (!isById && lists.some((list) => list.length !== lists[0].length)) return null;
  return lists.map(
    (list, which) => new Map(list.map((item, index) => [isById ? `id:${ids[which]?.[index]}` : `at:${index}`, item])),
  ) as unknown as [Keyed, Keyed, Keyed];
}

function idOf(item: ReadonlyMap<string, Exact>): string | undefined {
  const id = item.get('id');
  return typeof id === 'string' && id !== 'null' ? id : undefined;
}

/**
 * The keys in the order of `theirs`, unless only `mine` was reordered: then in the order of `mine`. A key that only the other list
 * has follows the key that it follows there.
 */
function mergeOrder(before: Keyed, mine: Keyed, theirs: Keyed): readonly string[] {
  const shared = (keys: Keyed) => [...keys.keys()].filter((key) => mine.has(key) && theirs.has(key) && before.has(key)).join();
  const isMineNew = shared(theirs) === shared(before) && shared(mine) !== shared(before);
  const [first, second] = isMineNew ? [mine, theirs] : [theirs, mine];
  const keys = [...first.keys()];
  let previous = -1;
  for (const key of second.keys()) {
    const at = keys.indexOf(key);
    if (at < 0) keys.splice(previous + 1, 0, key);
    previous = at < 0 ? previous + 1 : at;
  }
  return keys;
}

function titleOf(exact: Exact | undefined, key: string): string {
  const position = key.startsWith('at:') ? `Widget ${Number(key.slice(3)) + 1}` : `Widget ${unquote(key.slice(3))}`;
  const title = exact instanceof Map ? (exact.get('title') ?? exact.get('name') ?? exact.get('type')) : undefined;
  return typeof title === 'string' ? `${position}: ${unquote(title)}` : position;
}

const unquote = (leaf: string) => (leaf.startsWith('"') ? (JSON.parse(leaf) as string) : leaf);

const isList = (exact: Exact): exact is readonly Exact[] => Array.isArray(exact);

/** The chosen text of a part; null: the part is removed. */
function chosenText({ mine, theirs }: Part, choice: Choice): string | null {
  return choice.of === 'edit' ? choice.text : choice.of === 'mine' ? mine : theirs;
}

/** Builds the content from the choices. Each part needs one, and an edited JSON part must be valid JSON. */
export function assemble(parts: readonly Part[], choices: Choices): Content {
  const texts = new Map(parts.map((part) => [part.key, chosenText(part, choices[part.key] as Choice)]));
  const widgets = parts.filter(({ kind }) => kind === 'json').map(({ key }) => texts.get(key) ?? null);
  const isWhole = texts.has('widgets');
  const kept = widgets.filter((text) => text !== null);
  return {
    name: texts.get('name') ?? '',
    description: texts.get('description') ?? '',
    isDefault: texts.get('isDefault') === 'true',
    isPublic: texts.get('isPublic') === 'true',
    widgets: toPretty(readExact(isWhole ? (kept[0] ?? 'null') : `[${kept.join(',')}]`)),
  };
}
