import { once } from 'node:events';
import { toExactJson } from './numbers.ts';
import { clean, escapeControls, layOut, widthOf } from './text.ts';

const styles = { dim: 2, red: 31, green: 32, yellow: 33, blue: 34 } as const;

export type Style = keyof typeof styles;

/** Whether this stream gets colours: it is a terminal, and the environment does not turn them off. */
const hasColours = ({ isTTY }: { isTTY?: boolean }): boolean => Boolean(isTTY) && !process.env.NO_COLOR && process.env.TERM !== 'dumb';

/** The text in a colour, if standard output has colours. */
export const paint = (text: string, style: Style | null): string =>
  style && text && hasColours(process.stdout) ? `\x1b[${styles[style]}m${text}\x1b[0m` : text;

/** Writes to standard output, with backpressure. */
export async function write(chunk: string | Uint8Array): Promise<void> {
  if (!process.stdout.write(chunk)) await once(process.stdout, 'drain');
}

/** Writes a line for people, without characters that control a terminal. */
export const writeLine = (line: string): Promise<void> => write(`${clean(line)}\n`);

/** Writes a JSON document of the server; its numbers keep all their digits. */
export const writeDocument = (json: string): Promise<void> => write(`${layOut(json)}\n`);

/** Writes a value, perhaps of `exactJson`, as a document. */
export const writeValue = (value: unknown): Promise<void> => writeDocument(toExactJson(value));

/** Writes one of many such values, on a single line. */
export const writeEvent = (value: unknown): Promise<void> => write(`${escapeControls(toExactJson(value))}\n`);

/** Writes a note for people to standard error, so that it stays out of pipes. */
export const note = (line: string): void => void process.stderr.write(`${clean(line)}\n`);

/** A cell of a table: a text with an optional colour. */
type Cell = string | { readonly text: string; readonly style: Style | null };

/** Writes rows below their headings, without characters that control a terminal; the last column is not padded. */
export async function writeTable(headings: readonly string[], rows: ReadonlyArray<readonly Cell[]>): Promise<void> {
  const read = (cell: Cell) => (typeof cell === 'string' ? { text: clean(cell), style: null } : { ...cell, text: clean(cell.text) });
  const all = [headings.map((text) => ({ text, style: 'dim' as const })), ...rows.map((row) => row.map(read))];
  const widths = headings.map((_, column) => Math.max(...all.map((row) => widthOf(row[column]?.text ?? ''))));
  const lines = all.map((row) =>
    row
      .map(({ text, style }, column) => {
        const gap = column === row.length - 1 ? '' : ' '.repeat((widths[column] ?? 0) - widthOf(text) + 2);
        return paint(text, style) + gap;
      })
      .join('')
      .trimEnd(),
  );
  await write(`${lines.join('\n')}\n`);
}
