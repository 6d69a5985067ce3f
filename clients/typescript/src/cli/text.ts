/** Characters that move the cursor, set the window title or change text direction: control and bidirectional formatting characters. */
const CONTROLS = /[\p{Cc}\u2028-\u202e\u2066-\u2069]+/gu;

/** Text from the server on one line, without characters that control a terminal. */
export const clean = (text: string): string => text.replace(CONTROLS, ' ').trim();

/** The same for text of many lines. */
export const cleanLines = (text: string): string => text.replace(/[^\P{Cc}\n\t]|[\u202a-\u202e\u2066-\u2069]/gu, '');

const segmenter = new Intl.Segmenter();
const WIDE = /\p{Emoji_Presentation}|[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6]/u;

/** How many columns a text occupies. */
export function widthOf(text: string): number {
  let width = 0;
  for (const { segment } of segmenter.segment(text)) width += WIDE.test(segment) ? 2 : 1;
  return width;
}

/** `2026-01-31 08:30`, in UTC. */
export const formatTime = (date: string): string => date.slice(0, 16).replace('T', ' ');

/** The tokens of a JSON text: strings, punctuation, and literals. */
const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

/**
 * Pretty-prints a JSON text without parsing it, so that numbers keep their spelling. Characters that control a terminal are
 * escaped.
 */
export function layOut(json: string): string {
  const tokens = json.match(TOKENS) ?? [];
  let depth = 0;
  const newLine = (change: 1 | 0 | -1) => {
    depth += change;
    return `\n${'  '.repeat(depth)}`;
  };
  const parts = tokens.map((token, index) => {
    if (OPENING.test(token)) return CLOSING.test(tokens[index + 1] ?? '') ? token : token + newLine(1);
    if (CLOSING.test(token)) return OPENING.test(tokens[index - 1] ?? '') ? token : newLine(-1) + token;
    if (token === ',') return token + newLine(0);
    return token === ':' ? ': ' : escapeControls(token);
  });
  return parts.join('');
}

const OPENING = /^[{[]$/;
const CLOSING = /^[}\]]$/;

/** The same JSON with characters that control a terminal escaped as `\u…`: also those that JSON forbids, as it may not be valid. */
export const escapeControls = (json: string): string =>
  json.replace(/[\p{Cc}\u2028-\u202e\u2066-\u2069]/gu, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`);
