/** Why PostgreSQL cannot store a text as it is, or null: it rejects NUL and would replace a lone surrogate. */
export function textProblem(text: string): string | null {
  if (text.includes('\0')) return 'Null characters are not allowed.';
  if (!text.isWellFormed()) return 'Not valid Unicode: it contains a lone surrogate.';
  return null;
}

/** The length in characters (code points): an emoji outside the basic plane counts once. */
function countCodePoints(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

/** Why a text is too long, or null. A character takes at most two UTF-16 units, so most texts need no counting. */
export function lengthProblem(text: string, maxLength: number): string | null {
  if (text.length <= maxLength || (text.length <= 2 * maxLength && countCodePoints(text) <= maxLength)) return null;
  return `Ensure this field has no more than ${maxLength} characters.`;
}

/** A text of at most so many UTF-16 units; a longer one is cut, and ends with an ellipsis. Well-formed texts stay so. */
export function cutText(text: string, maxLength: number): string {
  return text.length <= maxLength ? text : `${text.slice(0, maxLength - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}
