/** Why PostgreSQL could not store the text as it is, or null: it refuses NUL and would replace a lone surrogate. */
export function textProblem(text: string): string | null {
  if (text.includes('\0')) return 'Null characters are not allowed.';
  if (!text.isWellFormed()) return 'Not valid Unicode: it contains a lone surrogate.';
  return null;
}

/** The length as people count it: an emoji outside the basic plane is one character. */
function countCodePoints(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

/** Why a text is too long, or null. One that is far beyond is not gone through: a character takes two units at most. */
export function lengthProblem(text: string, maxLength: number): string | null {
  if (text.length <= maxLength || (text.length <= 2 * maxLength && countCodePoints(text) <= maxLength)) return null;
  return `Ensure this field has no more than ${maxLength} characters.`;
}
