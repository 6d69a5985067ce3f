const isFull = process.env.TEST_DATABASE_URL !== undefined;

/**
 * How many cases a generated suite draws: a twentieth of `full` in `npm test`, all of them in `npm run test:services`, and as
 * many as the variable says where somebody has set it.
 */
export function countCases(full: number, variable?: string): number {
  const given = variable && process.env[variable];
  if (given) return Number(given);
  return isFull ? full : Math.ceil(full / 20);
}

/** Of cases that are all combinations of a few things: every seventh in `npm test`, all of them in `npm run test:services`. */
export function pickCases<Case>(all: readonly Case[]): readonly Case[] {
  return isFull ? all : all.filter((_, index) => index % 7 === 0);
}

/**
 * Whether a combination is tried, by the numbers of what it combines: in `npm test` a seventh of them, among which any two
 * meet that have seven or more others to meet with; all of them in `npm run test:services`.
 */
export function isPicked(...numbers: readonly number[]): boolean {
  return isFull || numbers.reduce((sum, number) => sum + number, 0) % 7 === 0;
}
