import { toExactJson } from './numbers.ts';

/** A place in which two values differ: `widgets[2].title`. */
export interface Difference {
  readonly path: string;
  /** Truncated JSON; `(none)` if there is no value. */
  readonly there: string;
  readonly yours: string;
}

const MAX_SHOWN = 60;

/**
 * The differences of two values, compared recursively as far as they have the same shape. The order of the names in an object is
 * content, except that of the outermost, whose names are the dashboard's fields.
 */
export function findDifferences(there: unknown, yours: unknown, path = ''): Difference[] {
  const names = Array.isArray(there) && Array.isArray(yours) ? listIndexes(there, yours) : listNames(there, yours);
  const found = (names ?? []).flatMap((name) => {
    const below = typeof name === 'number' ? `${path}[${name}]` : path ? `${path}.${name}` : name;
    return findDifferences(read(there, name), read(yours, name), below);
  });
  const isSame = found.length > 0 || (names && path === '') || JSON.stringify(there) === JSON.stringify(yours);
  return isSame ? found : [{ path, there: show(there), yours: show(yours) }];
}

const listIndexes = (there: readonly unknown[], yours: readonly unknown[]): number[] => [
  ...Array(Math.max(there.length, yours.length)).keys(),
];

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null && !Array.isArray(value);

const listNames = (there: unknown, yours: unknown): string[] | null =>
  isObject(there) && isObject(yours) ? [...new Set([...Object.keys(there), ...Object.keys(yours)])] : null;

const read = (value: unknown, name: string | number): unknown =>
  Object.hasOwn(value as object, name) ? (value as Record<string | number, unknown>)[name] : undefined;

function show(value: unknown): string {
  if (value === undefined) return '(none)';
  const text = [...toExactJson(value)];
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN - 1).join('')}…` : text.join('');
}
