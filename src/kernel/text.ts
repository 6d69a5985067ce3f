/** Why PostgreSQL could not store the text as it is, or null: it refuses NUL and would replace a lone surrogate. */
export function textProblem(text: string): string | null {
  if (text.includes('\0')) return 'Null characters are not allowed.';
  if (!text.isWellFormed()) return 'Not valid Unicode: it contains a lone surrogate.';
  return null;
}

/** The length as people count it: an emoji outside the basic plane is one character. */
export function countCodePoints(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}
