/** The notifications that a subscriber should have received, and those that it did receive. */
interface History {
  /** The committed log of the subscriber's project, in order. */
  readonly committed: readonly Entry[];
  /** The cursor at which the subscriber began. */
  readonly from: number;
  /** Everything received, over all connections, in the order of arrival. */
  readonly received: readonly Entry[];
}

export interface Entry {
  readonly sequence: number;
  readonly id: string;
}

/** Lists the violations in a history, one line each: entries that are lost, duplicated, out of order or foreign. */
export function checkHistory({ committed, from, received }: History): string[] {
  const expected = committed.filter(({ sequence }) => sequence > from);
  const problems: string[] = [];
  for (const [index, { sequence }] of committed.entries()) {
    if (sequence !== index + 1) problems.push(`the log itself: ${sequence} stands at ${index + 1}`);
  }
  const idOf = new Map(expected.map(({ sequence, id }) => [sequence, id]));
  const seen = new Set<number>();
  let last = from;
  for (const { sequence, id } of received) {
    if (idOf.get(sequence) !== id) problems.push(`foreign: ${sequence} ${id}`);
    else if (seen.has(sequence)) problems.push(`doubled: ${sequence}`);
    else if (sequence < last) problems.push(`out of order: ${sequence} after ${last}`);
    seen.add(sequence);
    last = Math.max(last, sequence);
  }
  for (const { sequence } of expected) if (!seen.has(sequence)) problems.push(`lost: ${sequence}`);
  return problems;
}
