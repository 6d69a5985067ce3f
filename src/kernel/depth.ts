/** Whether a value is nested deeper than `maxDepth` levels. Walks without recursion, so that depth cannot exhaust the stack. */
export function exceedsDepth(value: unknown, maxDepth: number): boolean {
  const pending: Array<{ value: unknown; depth: number }> = [{ value, depth: 0 }];
  for (let next = pending.pop(); next; next = pending.pop()) {
    if (next.depth > maxDepth) return true;
    if (typeof next.value !== 'object' || next.value === null) continue;
    for (const item of Object.values(next.value)) pending.push({ value: item, depth: next.depth + 1 });
  }
  return false;
}
