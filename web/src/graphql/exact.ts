import { PorticoError } from 'portico-client';
import { randomKey } from './key.ts';

/**
 * JSON as it is spelled. The server stores a dashboard's widgets and a notification's data to the digit; JavaScript would change numbers like
 * `9007199254740993`, `1.0` or `1e-400`, and the order of keys like `"2"`. So the page never parses them: where a document selects
 * `jsonText: widgets`, the response has them as a string with a prefix, and such a string in a variable is sent as the JSON it holds.
 */
const MARK = `${randomKey()}:`;
const MEMBER = '"jsonText":';

/** Wraps a JSON text as the value of a variable. */
export const fromJsonText = (text: string): unknown => MARK + text;

/** The JSON text of a value that was selected as `jsonText`. */
export const toJsonText = (value: unknown): string =>
  typeof value === 'string' && value.startsWith(MARK) ? value.slice(MARK.length) : JSON.stringify(value ?? null);

/** Replaces `fetch` in the client package. */
export const exactFetch: typeof fetch = async (input, init) => {
  const request = new Request(input, init);
  if (request.method !== 'POST' || new URL(request.url).pathname !== '/graphql') return reach(request);
  const body = await request.clone().text();
  const response = await reach(body.includes(MARK) ? new Request(request, { body: spliceMarked(body) }) : request);
  if (!body.includes('jsonText:')) return response;
  const quoted = new Response(quoteMembers(await response.text()), response);
  return Object.defineProperty(quoted, 'url', { value: response.url });
};

/** The desk calls its own origin only, so that a request without a response has nothing to do with allowed origins. */
async function reach(request: Request): Promise<Response> {
  try {
    return await fetch(request);
  } catch (cause) {
    if (!(cause instanceof TypeError)) throw cause;
    const message = `${new URL(request.url).host} does not answer: nothing listens there, or the network is gone.`;
    throw new PorticoError('unreachable', message, null, null, [], { cause });
  }
}

/** Replaces each marked string by the JSON that it holds. */
function spliceMarked(json: string): string {
  return replaceValues(json, `"${MARK}`, 0, (value) => (JSON.parse(value) as string).slice(MARK.length));
}

/** Replaces each `jsonText` value by a marked string. Inside a string the member's quotes would be escaped, so it cannot match. */
function quoteMembers(json: string): string {
  return replaceValues(json, MEMBER, MEMBER.length, (value) => JSON.stringify(MARK + value));
}

function replaceValues(json: string, marker: string, offset: number, replace: (value: string) => string): string {
  const parts: string[] = [];
  let from = 0;
  for (let at = json.indexOf(marker); at >= 0; at = json.indexOf(marker, from)) {
    const end = endOfValue(json, at + offset);
    parts.push(json.slice(from, at + offset), replace(json.slice(at + offset, end)));
    from = end;
  }
  return parts.join('') + json.slice(from);
}

/** The end index of the value that begins at `start`, in well-formed JSON. */
function endOfValue(json: string, start: number): number {
  let depth = 0;
  for (let at = start; at < json.length; at += 1) {
    const char = json[at] as string;
    if (char === '"') {
      at = endOfString(json, at) - 1;
      if (depth === 0) return at + 1;
    } else if ('{['.includes(char)) depth += 1;
    else if ('}]'.includes(char)) {
      if (depth === 0) return at;
      depth -= 1;
      if (depth === 0) return at + 1;
    } else if (char === ',' && depth === 0) return at;
  }
  return json.length;
}

/** A JSON value as it is spelled: a leaf as its text, an object with its keys in order. */
export type Exact = string | readonly Exact[] | ReadonlyMap<string, Exact>;

/** Throws a SyntaxError if the text is not JSON. */
export function readExact(text: string): Exact {
  JSON.parse(text);
  let at = 0;
  const skip = () => {
    while (' \t\r\n,:'.includes(text[at] ?? '.')) at += 1;
  };
  const read = (): Exact => {
    skip();
    const start = at;
    const char = text[at];
    if (char === '"') {
      at = endOfString(text, at);
      return JSON.stringify(JSON.parse(text.slice(start, at)));
    }
    if (char !== '[' && char !== '{') {
      while (at < text.length && !' \t\r\n,]}'.includes(text[at] as string)) at += 1;
      return text.slice(start, at);
    }
    at += 1;
    const items: Exact[] = [];
    const members = new Map<string, Exact>();
    for (skip(); text[at] !== ']' && text[at] !== '}'; skip()) {
      if (char === '[') items.push(read());
      else members.set(JSON.parse(read() as string), read());
    }
    at += 1;
    return char === '[' ? items : members;
  };
  return read();
}

const isLeaf = (exact: Exact): exact is string => typeof exact === 'string';
const isList = (exact: Exact): exact is readonly Exact[] => Array.isArray(exact);

/** The pretty-printed text, indented by two spaces a level. */
export function toPretty(exact: Exact, indent = ''): string {
  if (isLeaf(exact)) return exact;
  const inner = `${indent}  `;
  const lines = isList(exact)
    ? exact.map((item) => inner + toPretty(item, inner))
    : [...exact].map(([key, item]) => `${inner}${JSON.stringify(key)}: ${toPretty(item, inner)}`);
  const [open, close] = isList(exact) ? '[]' : '{}';
  return lines.length === 0 ? `${open}${close}` : `${open}\n${lines.join(',\n')}\n${indent}${close}`;
}

/** The end index of the string whose opening quote is at `start`. */
function endOfString(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let backslashes = 0;
    while (text[at - 1 - backslashes] === '\\') backslashes += 1;
    if (backslashes % 2 === 0) return at + 1;
  }
  return text.length;
}
