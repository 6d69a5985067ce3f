import type { FieldReader } from '../graph/fieldreader.ts';

/** The fields that may be large: a list reads each only when it is selected, and within the budget of its response. */
export const heavyFields: ReadonlySet<string> = new Set(['body', 'data']);

/** Which of the heavy columns a statement reads, and of how many rows; none where `bytesLeft` is null. */
export interface HeavyColumns {
  readonly readsBody: boolean;
  readonly readsData: boolean;
  readonly bytesLeft: number | null;
}

export function heavyColumnsOf({ selected }: FieldReader, bytesLeft: number | null): HeavyColumns {
  return { readsBody: selected.has('body'), readsData: selected.has('data'), bytesLeft };
}
