import { type Change, presentableDiff } from '@codemirror/merge';
import type { ReactNode } from 'react';

interface SideProps {
  readonly text: string;
  /** The ranges of the text that are missing from the other side. */
  readonly ranges: readonly (readonly [number, number])[];
}

/** The scan limit of the diff, for texts that have little in common. */
const SCAN_LIMIT = 2000;

/** Marks in each of two texts what is missing from the other. */
export function compareTexts(mine: string, theirs: string): { readonly mine: ReactNode; readonly theirs: ReactNode } {
  const changes: readonly Change[] = presentableDiff(mine, theirs, { scanLimit: SCAN_LIMIT });
  return {
    mine: <Side text={mine} ranges={changes.map(({ fromA, toA }) => [fromA, toA])} />,
    theirs: <Side text={theirs} ranges={changes.map(({ fromB, toB }) => [fromB, toB])} />,
  };
}

/** A line that differs has a sign before it, with the difference underlined: colour alone is not accessible. */
function Side({ text, ranges }: SideProps) {
  let at = 0;
  return text.split('\n').map((line, index) => {
    const [from, to] = [at, at + line.length];
    at = to + 1;
    const within = ranges.filter(([start, end]) => start <= to && end > from && end > start);
    return (
      // biome-ignore lint/suspicious/noArrayIndexKey: a line is identified by its position.
      <span key={index} className="compared-line" data-differs={within.length > 0 || undefined}>
        {within.length === 0 ? line : mark(line, from, within)}
        {'\n'}
      </span>
    );
  });
}

function mark(line: string, from: number, ranges: SideProps['ranges']): ReactNode[] {
  const parts: ReactNode[] = [];
  let done = 0;
  for (const [start, end] of ranges) {
    const [first, last] = [Math.max(done, start - from), Math.min(line.length, end - from)];
    if (last <= first) continue;
    parts.push(line.slice(done, first), <mark key={first}>{line.slice(first, last)}</mark>);
    done = last;
  }
  return [...parts, line.slice(done)];
}
