/** `npm test` is brief, `npm run test:services` normal, and `npm run test:full` full. */
const depth = process.env.TEST_DEPTH === 'full' ? 'full' : process.env.TEST_DATABASE_URL ? 'normal' : 'brief';

const divisor = { brief: 20, normal: 4, full: 1 }[depth];
const stride = { brief: 7, normal: 3, full: 1 }[depth];

/** How many cases a generated suite draws of those that a full run has, or as many as the variable says where somebody has set it. */
export function countCases(full: number, variable?: string): number {
  const given = variable && process.env[variable];
  if (given) return Number(given);
  return Math.ceil(full / divisor);
}

/** Of cases that are all combinations of a few things: every seventh, every third, or all of them. */
export function pickCases<Case>(all: readonly Case[]): readonly Case[] {
  return all.filter((_, index) => index % stride === 0);
}

/**
 * Whether a combination is tried, by the numbers of what it combines: a seventh or a third of them, among which any two meet that
 * have as many others to meet with, or all of them.
 */
export function isPicked(...numbers: readonly number[]): boolean {
  return numbers.reduce((sum, number) => sum + number, 0) % stride === 0;
}
