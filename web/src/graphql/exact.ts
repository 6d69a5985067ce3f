/**
 * JSON as it is spelled. The server keeps a dashboard's widgets to the digit; JavaScript would give back `9007199254740993`, `1.0`
 * or `1e-400` as other numbers, and keys like `"2"` in another place. So the page never parses them: an answer has them as a string
 * behind a mark, where the document asks for `widgetsText: widgets`, and such a string of a variable goes out as the JSON it holds.
 */
const MARK = `${randomKey()}:`;
const MEMBER = '"widgetsText":';

/** Letters and digits that nobody can guess; pages without TLS have this too. */
export function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** A JSON text as the value of a variable. */
export const fromJsonText = (text: string): unknown => MARK + text;

/** The text of what `widgetsText: widgets` was answered with. */
export const toJsonText = (value: unknown): string =>
  typeof value === 'string' && value.startsWith(MARK) ? value.slice(MARK.length) : JSON.stringify(value ?? null);

/** Takes the place of `fetch` in the client package. */
export const exactFetch: typeof fetch = async (input, init) => {
  const request = new Request(input, init);
  if (request.method !== 'POST' || new URL(request.url).pathname !== '/graphql') return fetch(request);
  const body = await request.clone().text();
  const response = await fetch(body.includes(MARK) ? new Request(request, { body: spliceMarked(body) }) : request);
  if (!body.includes('widgetsText:')) return response;
  return new Response(quoteMembers(await response.text()), response);
};

/** Puts the JSON that a marked string holds into its place. */
function spliceMarked(json: string): string {
  return replaceValues(json, `"${MARK}`, 0, (value) => (JSON.parse(value) as string).slice(MARK.length));
}

/** Puts a marked string into the place of each value under the name. Within a string the quotes of the name would be escaped. */
function quoteMembers(json: string): string {
  return replaceValues(json, MEMBER, MEMBER.length, (value) => JSON.stringify(MARK + value));
}

function replaceValues(json: string, sign: string, offset: number, replace: (value: string) => string): string {
  const parts: string[] = [];
  let from = 0;
  for (let at = json.indexOf(sign); at >= 0; at = json.indexOf(sign, from)) {
    const end = endOfValue(json, at + offset);
    parts.push(json.slice(from, at + offset), replace(json.slice(at + offset, end)));
    from = end;
  }
  return parts.join('') + json.slice(from);
}

/** Where the value ends that begins at `start`, in JSON that is well formed. */
function endOfValue(json: string, start: number): number {
  let depth = 0;
  for (let at = start; at < json.length; at += 1) {
    const sign = json[at] as string;
    if (sign === '"') {
      at = endOfString(json, at) - 1;
      if (depth === 0) return at + 1;
    } else if ('{['.includes(sign)) depth += 1;
    else if ('}]'.includes(sign)) {
      if (depth === 0) return at;
      depth -= 1;
      if (depth === 0) return at + 1;
    } else if (sign === ',' && depth === 0) return at;
  }
  return json.length;
}

/** A JSON value as it is spelled: a leaf as its text, an object with its keys in their order. */
export type Exact = string | readonly Exact[] | ReadonlyMap<string, Exact>;

/** Throws a SyntaxError for what is no JSON. */
export function readExact(text: string): Exact {
  JSON.parse(text);
  let at = 0;
  const skip = () => {
    while (' \t\r\n,:'.includes(text[at] ?? '.')) at += 1;
  };
  const read = (): Exact => {
    skip();
    const start = at;
    const sign = text[at];
    if (sign === '"') {
      at = endOfString(text, at);
      return JSON.stringify(JSON.parse(text.slice(start, at)));
    }
    if (sign !== '[' && sign !== '{') {
      while (at < text.length && !' \t\r\n,]}'.includes(text[at] as string)) at += 1;
      return text.slice(start, at);
    }
    at += 1;
    const items: Exact[] = [];
    const members = new Map<string, Exact>();
    for (skip(); text[at] !== ']' && text[at] !== '}'; skip()) {
      if (sign === '[') items.push(read());
      else members.set(JSON.parse(read() as string), read());
    }
    at += 1;
    return sign === '[' ? items : members;
  };
  return read();
}

const isLeaf = (exact: Exact): exact is string => typeof exact === 'string';
const isList = (exact: Exact): exact is readonly Exact[] => Array.isArray(exact);

/** The text as people read it, of two spaces a level. */
export function toPretty(exact: Exact, indent = ''): string {
  if (isLeaf(exact)) return exact;
  const inner = `${indent}  `;
  const lines = isList(exact)
    ? exact.map((item) => inner + toPretty(item, inner))
    : [...exact].map(([key, item]) => `${inner}${JSON.stringify(key)}: ${toPretty(item, inner)}`);
  const [open, close] = isList(exact) ? '[]' : '{}';
  return lines.length === 0 ? `${open}${close}` : `${open}\n${lines.join(',\n')}\n${indent}${close}`;
}

/** Where a string ends that begins with the quote at `start`. */
function endOfString(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let backslashes = 0;
    while (text[at - 1 - backslashes] === '\\') backslashes += 1;
    if (backslashes % 2 === 0) return at + 1;
  }
  return text.length;
}
