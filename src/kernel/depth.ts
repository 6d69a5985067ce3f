/** Whether a value is nested deeper than so many levels; walks without recursion. */
export function exceedsDepth(value: unknown, maxDepth: number): boolean {
  const open: Array<{ value: unknown; depth: number }> = [{ value, depth: 0 }];
  for (let next = open.pop(); next; next = open.pop()) {
    if (next.depth > maxDepth) return true;
    if (typeof next.value !== 'object' || next.value === null) continue;
    for (const part of Object.values(next.value)) open.push({ value: part, depth: next.depth + 1 });
  }
  return false;
}
