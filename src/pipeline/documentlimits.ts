import { maxAliasesPlugin } from '@escape.tech/graphql-armor-max-aliases';
import { type DocumentNode, Lexer, type ParseOptions, Source, TokenKind, visit } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { LIMITS, tooLarge } from '../graph/cost.ts';
import { responseNameOf } from '../graph/parsedoperation.ts';
import { Fault } from '../kernel/fault.ts';
import { exceedsDepth, MAX_REQUEST_DEPTH } from '../kernel/json/depth.ts';
import { getOrInsert } from '../kernel/map.ts';
import { toGraphqlError } from './mask.ts';

const MAX_TOKENS = 2_000;
const MAX_ALIASES = 50;
/** As many as two hundred fields of one name make. */
const MAX_PAIRS = 20_000;
const MAX_CHARACTERS = 65_536;
/**
 * Errors in documents that are longer, in characters or in lines, have no locations. graphql-js counts the lines before each error to
 * compute its location, and an operation may have thousands of errors.
 */
const MAX_LOCATED = { characters: 8_192, lines: 300 } as const;
/** In characters. A hundred errors, the most that are reported, may each repeat a name. */
const MAX_NAME_LENGTH = 255;

/** Limits the size of a client's document. */
export function limitDocuments(): Plugin[] {
  return [
    maxAliasesPlugin({ n: MAX_ALIASES }) as Plugin,
    {
      onParams({ params }) {
        if (exceedsDepth(params.variables, MAX_REQUEST_DEPTH))
          throw toGraphqlError(Fault.invalidRequest(`The variables are nested deeper than ${MAX_REQUEST_DEPTH} levels.`));
      },
      onParse({ parseFn, setParseFn }) {
        setParseFn((source: string | Source, options) => {
          const text = typeof source === 'string' ? source : source.body;
          const excess = findExcess(text);
          if (excess) throw toGraphqlError(Fault.invalidRequest(excess));
          const document = isLocated(text) ? (parseFn(source, options) as DocumentNode) : parseUnlocated(text, parseFn, options);
          const { fields, pairs } = countFields(document);
          if (fields > LIMITS.breadth) throw toGraphqlError(Fault.invalidRequest(tooLarge('breadth', fields)));
          if (pairs > MAX_PAIRS) throw toGraphqlError(Fault.invalidRequest('The document repeats the names of fields too often.'));
          return document;
        });
      },
    },
  ];
}

/** The fields of one response name that were written so far. */
interface SameName {
  plain: number;
  others: number;
}

/**
 * The fields that are written in a document, and the pairs of them that have the same name in the response. Validation may compare the
 * fields of each pair. Two plain fields, such as the `id` of each object, do not count: as many as a document may
 * have are compared in milliseconds.
 */
function countFields(document: DocumentNode): { fields: number; pairs: number } {
  const counts = new Map<string, SameName>();
  let fields = 0;
  let pairs = 0;
  visit(document, {
    Field(node) {
      const before = getOrInsert(counts, responseNameOf(node), () => ({ plain: 0, others: 0 }));
      const isPlain = !node.alias && !node.arguments?.length && !node.selectionSet;
      pairs += isPlain ? before.others : before.plain + before.others;
      before[isPlain ? 'plain' : 'others'] += 1;
      fields += 1;
    },
  });
  return { fields, pairs };
}

/** Parses a document whose nodes have no locations. It has its own, with the text. */
function parseUnlocated(
  text: string,
  parseFn: (source: Source, options: ParseOptions) => DocumentNode,
  options?: ParseOptions,
): DocumentNode {
  const source = new Source(text);
  const document = parseFn(source, { ...options, noLocation: true });
  return Object.assign(document, { loc: { source, start: 0, end: text.length } });
}

/** Whether a text is so short that the locations of many errors can be computed. */
function isLocated(text: string): boolean {
  if (text.length > MAX_LOCATED.characters) return false;
  return text.split(/\r\n|[\n\r]/, MAX_LOCATED.lines + 1).length <= MAX_LOCATED.lines;
}

const brackets: Readonly<Record<string, number>> = {
  [TokenKind.BRACE_L]: 1,
  [TokenKind.BRACKET_L]: 1,
  [TokenKind.PAREN_L]: 1,
  [TokenKind.BRACE_R]: -1,
  [TokenKind.BRACKET_R]: -1,
  [TokenKind.PAREN_R]: -1,
};

/**
 * The message for a text that is too long, for brackets that are nested too deeply for the recursive parser, for a name that is too
 * long, and for too many tokens; null for none of them. A syntax error is left to the parser.
 */
function findExcess(text: string): string | null {
  if (text.length > MAX_CHARACTERS) return `The document has more than ${MAX_CHARACTERS} characters: send long values as variables.`;
  const lexer = new Lexer(new Source(text));
  let depth = 0;
  try {
    for (let tokens = 0; tokens <= MAX_TOKENS; tokens += 1) {
      const { kind, start, end } = lexer.advance();
      if (kind === TokenKind.EOF) return null;
      if (kind === TokenKind.NAME && end - start > MAX_NAME_LENGTH) return `A name has more than ${MAX_NAME_LENGTH} characters.`;
      depth += brackets[kind] ?? 0;
      if (depth > MAX_REQUEST_DEPTH) return `The document is nested deeper than ${MAX_REQUEST_DEPTH} levels.`;
    }
  } catch {
    // The parser reports it.
    return null;
  }
  return `Syntax Error: Token limit of ${MAX_TOKENS} exceeded.`;
}
