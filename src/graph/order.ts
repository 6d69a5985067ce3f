import { textProblem } from '../kernel/text.ts';
import { FIRST_TIMESTAMP, LAST_TIMESTAMP } from '../kernel/timestamp.ts';
import { parseUuid } from '../kernel/uuid.ts';
import { builder } from './builder.ts';
import { FIRST_ID, LAST_ID, type Slice } from './keyset.ts';

/** The order of a list: by one of its fields, then by id. The default is by id alone, in one direction, and no client can name it. */
export interface Order {
  readonly field: 'id' | 'name' | 'created' | 'status';
  readonly direction: 'asc' | 'desc';
}

type Orderable = Exclude<Order['field'], 'id'>;

/** The code points of a name that the order compares: as many as a name may have. Older rows may have more. */
const ORDERED_LENGTH = 255;

const describeFields = (statuses: readonly string[]): Readonly<Record<Orderable, string>> => ({
  name: 'By name, in the order of Unicode code points: `B` comes before `a`. Equal names by id.',
  created: 'By time of creation, equal ones by id.',
  status: `By status, ${statuses.map((status) => `\`${status}\``).join(', ')}; equal ones by id.`,
});

const Direction = builder.enumType('OrderDirection', {
  description: 'The direction of an order.',
  values: {
    asc: { value: 'asc', description: 'Ascending: A before Z, the oldest before the newest.' },
    desc: { value: 'desc', description: 'Descending: Z before A, the newest before the oldest.' },
  } as const,
});

/** The input that orders the lists of one item type. `statuses` are in their order, where `status` is a field. */
export function implementOrder<Field extends Orderable>(name: string, fields: readonly Field[], statuses: readonly string[] = []) {
  const descriptions = describeFields(statuses);
  const values = Object.fromEntries(fields.map((field) => [field, { value: field, description: descriptions[field] }]));
  const OrderField = builder.enumType(`${name}OrderField`, {
    description: 'The fields that a list can be ordered by.',
    values: values as Record<Field, { value: Field; description: string }>,
  });
  return builder.inputType(`${name}Order`, {
    description: 'The order of a list. Items with equal values are ordered by id.',
    fields: (t) => ({
      field: t.field({ type: OrderField, required: true, description: 'The field to order by.' }),
      direction: t.field({ type: Direction, required: true, defaultValue: 'asc', description: 'The direction.' }),
    }),
  });
}

/** An item with the fields that it may be ordered by. */
export type Ordered = { readonly id: string } & { readonly [Field in Orderable]?: string | Date };

/** The position of an item in an order. */
interface Place {
  readonly value: string;
  readonly id: string;
}

/** The keyset of a list in this order. Its cursors carry the field, the id and the value of the item. */
export function orderedKeyset({ field }: Order, statuses: readonly string[] = []) {
  if (field === 'id') return { keyOf: (item: Ordered) => item.id, parseKey: parseUuid };
  return {
    keyOf: (item: Ordered) => `${field} ${item.id} ${orderedValue(item, field)}`,
    parseKey: (text: string) => {
      const { value, id } = readKey(text);
      const isKey = text === `${field} ${id} ${value}` && parseUuid(id) === id && isColumnValue(field, value, statuses);
      return isKey ? text : null;
    },
    problem: 'Not a cursor of this order.',
  };
}

function orderedValue(item: Ordered, field: Order['field']): string {
  const value = field === 'id' ? '' : (item[field] ?? '');
  if (typeof value !== 'string') return value.toISOString();
  return value.length > ORDERED_LENGTH ? [...value].slice(0, ORDERED_LENGTH).join('') : value;
}

/** Whether a column can hold the value: PostgreSQL has no year 0. */
function isColumnValue(field: Orderable, value: string, statuses: readonly string[]): boolean {
  if (field === 'status') return statuses.includes(value);
  if (field === 'created')
    return /^(?!0000)\d{4}-/.test(value) && !Number.isNaN(Date.parse(value)) && new Date(value).toISOString() === value;
  return textProblem(value) === null && value.length <= 2 * ORDERED_LENGTH && [...value].length <= ORDERED_LENGTH;
}

function readKey(text: string): Place {
  const [, id, value] = /^\w+ (\S+) (.*)$/s.exec(text) ?? [];
  return id === undefined || value === undefined ? { id: text, value: '' } : { id, value };
}

/** A suffix that sorts a prefix after every name that begins with it. */
const AFTER_NAMES = '\u{10ffff}'.repeat(ORDERED_LENGTH + 1);

interface PlaceBounds {
  readonly above: Place;
  readonly below: Place;
}

/** The bounds of the names that begin with a prefix. */
export function boundsOfPrefix(prefix: string): PlaceBounds {
  return { above: { value: prefix, id: FIRST_ID }, below: { value: prefix + AFTER_NAMES, id: LAST_ID } };
}

/** The times that a cursor can have. */
const cursorTimes: PlaceBounds = { above: { value: FIRST_TIMESTAMP, id: FIRST_ID }, below: { value: LAST_TIMESTAMP, id: LAST_ID } };
const allTimes: PlaceBounds = { above: { value: '-infinity', id: FIRST_ID }, below: { value: 'infinity', id: LAST_ID } };

/**
 * A slice of an ordered list, as the parameters of a statement. The bounds are exclusive and given for every field; those of
 * fields that do not bound the slice include all rows, except that names must begin with `prefix`.
 */
export interface Range {
  readonly nameBounds: PlaceBounds;
  readonly createdBounds: PlaceBounds;
  /** The statuses in the order of the slice, each with the bounds of its ids. */
  readonly statuses: readonly string[];
  readonly idsAbove: readonly string[];
  readonly idsBelow: readonly string[];
  readonly limit: number;
  readonly isAscending: boolean;
  /** The column, next to the id, in whose order a statement scans the rows of one status. */
  readonly scanColumn: 'id' | 'name' | 'created';
}

interface RangeOptions {
  /** All statuses, in their order, and those that are requested. */
  readonly known?: readonly string[];
  readonly wanted?: readonly string[];
  readonly prefix?: string;
}

export function rangeOf(slice: Slice<string>, order: Order, { known = [''], wanted = known, prefix = '' }: RangeOptions = {}): Range {
  const isAscendingOrder = order.direction === 'asc';
  const isAscending = isAscendingOrder !== slice.isBackwards;
  const [low, high] = isAscendingOrder ? [slice.after, slice.before] : [slice.before, slice.after];
  const above = low === undefined ? null : readKey(low);
  const below = high === undefined ? null : readKey(high);
  const rank = (status: string) => known.indexOf(status);
  const [lowest, highest] = order.field === 'status' ? [above, below] : [null, null];
  const chosen = known.filter(
    (status) =>
      wanted.includes(status) && (!lowest || rank(status) >= rank(lowest.value)) && (!highest || rank(status) <= rank(highest.value)),
  );
  const statuses = isAscending ? chosen : chosen.reverse();
  const isById = order.field === 'id';
  const idBound = (place: Place | null, unbounded: string) => (status: string) =>
    place && (isById || (order.field === 'status' && place.value === status)) ? place.id : unbounded;
  const boundsOfField = (field: Orderable, { above: first, below: last }: PlaceBounds): PlaceBounds => ({
    above: order.field === field && above && compareText(above.value, first.value) >= 0 ? above : first,
    below: order.field === field && below && compareText(below.value, last.value) <= 0 ? below : last,
  });
  return {
    nameBounds: boundsOfField('name', boundsOfPrefix(prefix)),
    createdBounds: boundsOfField('created', order.field === 'created' ? cursorTimes : allTimes),
    statuses,
    idsAbove: statuses.map(idBound(above, FIRST_ID)),
    idsBelow: statuses.map(idBound(below, LAST_ID)),
    limit: slice.limit,
    isAscending,
    scanColumn: order.field === 'status' ? 'id' : order.field,
  };
}

/** The first `limit` rows in the order of the slice. A statement that combines several scans returns them unordered. */
export function sortRows<Row extends Ordered>(
  rows: readonly Row[],
  { field }: Order,
  { isAscending, limit }: Range,
  known: readonly string[] = [],
): Row[] {
  const compareValues = (a: Row, b: Row) =>
    field === 'status'
      ? known.indexOf(String(a.status)) - known.indexOf(String(b.status))
      : compareText(orderedValue(a, field), orderedValue(b, field));
  const compare = (a: Row, b: Row) => compareValues(a, b) || compareText(a.id, b.id);
  return [...rows].sort((a, b) => (isAscending ? compare(a, b) : compare(b, a))).slice(0, limit);
}

/** Compares as PostgreSQL does by the collation "C": by the bytes of UTF-8, which is the order of code points. */
function compareText(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
