/** Marks the text of a number. A string that begins with the mark gets a second one. */
const MARK = '\\u0000';
const stringOrNumber = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g;

/** The JSON text with each number that a double would spell differently as a marked string. */
export const markNumbers = (text: string): string =>
  text.replace(stringOrNumber, (token) => {
    if (token.startsWith('"')) return token.startsWith(`"${MARK}`) ? `"${MARK}${token.slice(1)}` : token;
    return String(Number(token)) === token ? token : `"${MARK}${token}"`;
  });

/** Parses a JSON text so that no number loses a digit, and values differ where a digit does. */
export const parseExactly = (text: string): unknown => JSON.parse(markNumbers(text));

/** The JSON of a value from `parseExactly`, with its numbers as they were spelled. */
export const toExactJson = (value: unknown): string =>
  JSON.stringify(value).replace(/(?<!\\)"\\u0000(?:(?=\\u0000)|([^"\\]*)")/g, (_mark, number?: string) => number ?? '"');

/** `JSON` with numbers of any length. */
export const exactJson = { parse: parseExactly, stringify: toExactJson };
