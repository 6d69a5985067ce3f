/** `npm test` runs the brief depth, `npm run test:services` the normal one, and `npm run test:full` the full one. */
const depth = process.env.TEST_DEPTH === 'full' ? 'full' : process.env.TEST_DATABASE_URL ? 'normal' : 'brief';

const divisor = { brief: 20, normal: 8, full: 1 }[depth];
const stride = { brief: 7, normal: 3, full: 1 }[depth];

/** The number of cases that a generated suite runs: a share of `full` by depth, or the value of the environment variable if it is set. */
export function countCases(full: number, variable?: string): number {
  const given = variable && process.env[variable];
  if (given) return Number(given);
  return Math.ceil(full / divisor);
}

/** Selects every seventh, every third, or all of the cases, by depth; for suites that enumerate all combinations. */
export function pickCases<Case>(all: readonly Case[]): readonly Case[] {
  return all.filter((_, index) => index % stride === 0);
}

/**
 * Whether a combination is run, given the indexes of its values: a seventh or a third of the combinations, or all of them, by
 * depth. Every pair of values still occurs if a further dimension has at least `stride` values.
 */
export function isPicked(...numbers: readonly number[]): boolean {
  return numbers.reduce((sum, number) => sum + number, 0) % stride === 0;
}
