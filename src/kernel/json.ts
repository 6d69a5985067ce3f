import { textProblem } from './text.ts';

const MAX_DEPTH = 500;

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

/**
 * Why a JSON value could not be kept exactly as it was sent, or null.
 * Walks without recursion: a value nested deeper than the stack must be refused, not crash.
 */
export function jsonProblem(value: unknown, maxBytes: number): string | null {
  if (exceedsDepth(value, MAX_DEPTH)) return `Nested deeper than ${MAX_DEPTH} levels.`;
  const open = [value];
  while (open.length > 0) {
    const part = open.pop();
    if (typeof part === 'number' && !Number.isFinite(part)) return 'A number is out of range.';
    if (typeof part === 'string') {
      const problem = textProblem(part);
      if (problem) return problem;
    } else if (Array.isArray(part)) {
      for (const item of part) open.push(item);
    } else if (typeof part === 'object' && part !== null) {
      for (const [key, item] of Object.entries(part)) {
        const problem = textProblem(key);
        if (problem) return problem;
        open.push(item);
      }
    }
  }
  if (Buffer.byteLength(JSON.stringify(value)) > maxBytes) return `Ensure this value takes no more than ${maxBytes} bytes.`;
  return null;
}
