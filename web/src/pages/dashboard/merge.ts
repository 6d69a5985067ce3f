import { type Exact, readExact, toPretty } from '../../graphql/exact.ts';
import { type Content, type Saved, titles } from './content.ts';

/** A part of the dashboard of which somebody chooses a version. Null: that version does not have it. */
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

/** Where one side alone changed a part, that change is proposed; where both did, a person has to say. */
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
  if (!isList(my) || !isList(their)) {
    return [{ key: 'widgets', title: titles.widgets, kind: 'json', base: toPretty(was), mine: toPretty(my), theirs: toPretty(their) }];
  }
  const [before, mineByKey, theirsByKey] = keyedAlike([isList(was) ? was : [], my, their]);
  return order(before, mineByKey, theirsByKey).map((key) => {
    const [b, m, t] = [before, mineByKey, theirsByKey].map((byKey) => byKey.get(key));
    const text = (exact: Exact | undefined) => (exact === undefined ? null : toPretty(exact));
    return { key, title: titleOf(m ?? t, key), kind: 'json', base: text(b), mine: text(m), theirs: text(t) };
  });
}

type Keyed = ReadonlyMap<string, Exact>;

/** Lists of objects of which each has an `id` of its own go by these; others go by position. */
function keyedAlike(lists: readonly [readonly Exact[], readonly Exact[], readonly Exact[]]): [Keyed, Keyed, Keyed] {
  const ids = lists.map((list) => list.map((item) => (item instanceof Map ? idOf(item) : undefined)));
  const isById = ids.every((list) => !list.includes(undefined) && new Set(list).size === list.length);
  return lists.map(
    (list, which) => new Map(list.map((item, index) => [isById ? `id:${ids[which]?.[index]}` : `at:${index}`, item])),
  ) as unknown as [Keyed, Keyed, Keyed];
}

function idOf(item: ReadonlyMap<string, Exact>): string | undefined {
  const id = item.get('id');
  return typeof id === 'string' && id !== 'null' ? id : undefined;
}

/** Their order, unless mine alone is a new one; what the other has besides stands behind what it stood behind there. */
function order(before: Keyed, mine: Keyed, theirs: Keyed): readonly string[] {
  const shared = (keys: Keyed) => [...keys.keys()].filter((key) => mine.has(key) && theirs.has(key) && before.has(key)).join();
  const isMineNew = shared(theirs) === shared(before) && shared(mine) !== shared(before);
  const [first, second] = isMineNew ? [mine, theirs] : [theirs, mine];
  const keys = [...first.keys()];
  let behind = -1;
  for (const key of second.keys()) {
    const at = keys.indexOf(key);
    if (at < 0) keys.splice(behind + 1, 0, key);
    behind = at < 0 ? behind + 1 : at;
  }
  return keys;
}

function titleOf(exact: Exact | undefined, key: string): string {
  const position = key.startsWith('at:') ? `Widget ${Number(key.slice(3)) + 1}` : `Widget ${spoken(key.slice(3))}`;
  const title = exact instanceof Map ? (exact.get('title') ?? exact.get('name') ?? exact.get('type')) : undefined;
  return typeof title === 'string' ? `${position}: ${spoken(title)}` : position;
}

const spoken = (leaf: string) => (leaf.startsWith('"') ? (JSON.parse(leaf) as string) : leaf);

const isList = (exact: Exact): exact is readonly Exact[] => Array.isArray(exact);

/** What a part becomes; null: it goes. */
export function chosenText({ mine, theirs }: Part, choice: Choice): string | null {
  return choice.of === 'edit' ? choice.text : choice.of === 'mine' ? mine : theirs;
}

/** The whole that the choices make. Each part needs one, and what was edited must be JSON where the part is. */
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
