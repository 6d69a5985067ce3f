import { expect } from 'vitest';

/** Matchers for values that a test cannot predict. */
export const anyUuid = expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/);
export const anyMoment = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

/** Compares the whole value strictly, including the order of the keys of every object. */
export function expectExact(actual: unknown, expected: unknown): void {
  expect(actual).toStrictEqual(expected);
  expect(keyOrder(actual, expected)).toEqual(keyOrder(expected, expected));
}

export function isMatcher(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'asymmetricMatch' in value;
}

/** The keys of a value as nested lists; a part for which the shape has a matcher is skipped. */
function keyOrder(value: unknown, shape: unknown): unknown {
  if (isMatcher(shape) || typeof value !== 'object' || value === null) return null;
  const part = (key: string) => (typeof shape === 'object' && shape !== null ? (shape as Record<string, unknown>)[key] : undefined);
  if (Array.isArray(value)) return value.map((item, index) => keyOrder(item, part(String(index))));
  return Object.entries(value).map(([key, item]) => [key, keyOrder(item, part(key))]);
}
