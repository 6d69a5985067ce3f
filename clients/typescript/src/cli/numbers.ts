/** Marks the text of a number; no text of a dashboard has this character. */
const MARK = '\u0000';
const stringOrNumber = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g;

/** Parses a JSON text with each number as it is spelled, marked, so that values differ where a digit does. */
export function parseExactly(text: string): unknown {
  return JSON.parse(text.replace(stringOrNumber, (token) => (token.startsWith('"') ? token : JSON.stringify(MARK + token))));
}

/** The JSON of a value from `parseExactly`, with its numbers as they were spelled. */
export const toExactJson = (value: unknown): string => JSON.stringify(value).replace(/"\\u0000([^"]*)"/g, '$1');
