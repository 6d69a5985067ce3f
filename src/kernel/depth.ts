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
