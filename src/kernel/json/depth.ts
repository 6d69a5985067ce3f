/** The levels of a JSON value that a client stores. */
export const MAX_JSON_DEPTH = 500;

/**
 * The levels of a client's variables, of the brackets of its document, and of its message over a socket, all of which recursive code
 * reads. The 20 are for what surrounds a JSON value, such as the message, its payload, the variables and the input: a value at its own
 * limit is accepted, and the error of one just beyond it names its field.
 */
export const MAX_REQUEST_DEPTH = MAX_JSON_DEPTH + 20;

/**
 * Whether a value has lists or objects in more than `maxDepth` levels, an empty one counted. Walks without recursion, so that
 * depth cannot exhaust the stack.
 */
export function exceedsDepth(value: unknown, maxDepth: number): boolean {
  const pending: Array<{ parts: object; depth: number }> = [];
  const add = (part: unknown, depth: number) => {
    // Not for a leaf, of which a list may have hundreds of thousands.
    if (typeof part === 'object' && part !== null) pending.push({ parts: part, depth });
  };
  add(value, 1);
  for (let next = pending.pop(); next; next = pending.pop()) {
    if (next.depth > maxDepth) return true;
    for (const part of Array.isArray(next.parts) ? next.parts : Object.values(next.parts)) add(part, next.depth + 1);
  }
  return false;
}
