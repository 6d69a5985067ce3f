import { GraphQLError, Kind, type ValueNode, valueFromASTUntyped } from 'graphql';
import { jsonProblem, sizeProblem } from '../kernel/json/canonical.ts';
import { survivesRoundTrip } from '../kernel/json/scan.ts';
import { JsonText } from '../kernel/json/text.ts';
import { getOrInsert } from '../kernel/map.ts';
import { exceedsBytes } from '../kernel/size.ts';
import { lengthProblem, textProblem } from '../kernel/text.ts';
import { LAST_TIMESTAMP } from '../kernel/timestamp.ts';
import { parseUuid } from '../kernel/uuid.ts';
import { builder } from './builder.ts';
import { literalText } from './kepttexts.ts';

/** The largest values that are stored, as JSON text. */
const MAX_JSON_BYTES = 256 * 1024;
const MAX_JSON_OBJECT_BYTES = 64 * 1024;
/** In code points. Most fields declare a lower limit (`maxLength`). */
const MAX_NAME_LENGTH = 500;
const MAX_TEXT_LENGTH = 20_000;
/**
 * The patterns reject what the parsers below reject, as far as a pattern can express it: null characters, a leading byte order mark,
 * only spaces. The characters are escaped within the patterns, as generators copy these into sources and messages.
 */
const TEXT_PATTERN = '^([^\\u0000\\ufeff][^\\u0000]*)?$';
const NAME_PATTERN = '^([^\\u0000\\ufeff][^\\u0000]*)?[^\\s\\u0000][^\\u0000]*$';

/** The key is also sent as a header: no spaces, and neither `"` nor `\\`, which would have to be escaped there. */
const KEY_PATTERN = '^[!#-\\[\\]-~]{16,255}$';
const keyPattern = new RegExp(KEY_PATTERN);

export function isIdempotencyKey(text: string): boolean {
  return keyPattern.test(text);
}

/** Rejects a value. The message is shown to clients of every API, so it names no type. */
function reject(message: string): never {
  throw new GraphQLError(message, { extensions: { code: 'validation_failed' } });
}

/** The parsers of a scalar. The error of a literal carries its node, so that it can be reported by field. */
function parsers<Value>(parseValue: (value: unknown) => Value, readLiteral = valueOfLiteral) {
  const parseLiteral = (node: ValueNode, variables?: Record<string, unknown> | null) => {
    try {
      return parseValue(readLiteral(node, variables && getOrInsert(bareVariables, variables, withoutPrototype)));
    } catch (failure) {
      const { message, extensions } = failure as GraphQLError;
      throw new GraphQLError(message, { nodes: node, extensions });
    }
  };
  return { parseValue, parseLiteral };
}

type Variables = Readonly<Record<string, unknown>> | null | undefined;

/** The variables of an operation without a prototype: an absent one called `constructor` must not be found there. */
const bareVariables = new WeakMap<object, Record<string, unknown>>();
const withoutPrototype = (variables: object): Record<string, unknown> => Object.assign(Object.create(null), variables);

/** Undefined for an unquoted word: GraphQL reads it as a value of an enum, which no scalar has. */
function valueOfLiteral(node: ValueNode, variables: Variables): unknown {
  return node.kind === Kind.ENUM ? undefined : valueFromASTUntyped(node, variables);
}

/** Whether a literal has an unquoted word at any level. */
function hasWord(node: ValueNode): boolean {
  if (node.kind === Kind.LIST) return node.values.some(hasWord);
  if (node.kind === Kind.OBJECT) return node.fields.some(({ value }) => hasWord(value));
  return node.kind === Kind.ENUM;
}

/** The characters that variables have added to the JSON literals of an operation so far, by these variables. */
const addedLengths = new WeakMap<object, number>();

/**
 * Reads a JSON literal, with its text if JavaScript would serialize it differently. A literal may name a large variable hundreds
 * of times: its size is known before any text is built. So may the literals of many fields, which are read one after another
 * without a pause: what variables add to all of them is bounded as a single value is.
 */
function jsonOfLiteral(maxBytes: number) {
  return (node: ValueNode, variables: Variables): unknown => {
    if (hasWord(node)) reject('Not a JSON value.');
    const added = (variables && addedLengths.get(variables)) ?? 0;
    if (added > MAX_JSON_BYTES) reject(`Variables may add ${MAX_JSON_BYTES} characters to the JSON literals of a document.`);
    const ownLength = (node.loc?.end ?? 0) - (node.loc?.start ?? 0);
    const record = (length: number) => variables && addedLengths.set(variables, added + Math.max(0, length - ownLength));
    const value = valueOfLiteral(node, variables);
    if (exceedsBytes(value, maxBytes)) {
      // It took as long to measure as one that fits.
      record(maxBytes + 1);
      reject(sizeProblem(maxBytes));
    }
    const text = literalText(node, variables);
    if (text) record(text.length);
    return text === undefined || survivesRoundTrip(text) ? value : new JsonText(text);
  };
}

function parseText(value: unknown): string {
  if (typeof value !== 'string') return reject('Not a valid string.');
  const problem = textProblem(value);
  if (problem) reject(problem);
  // Many programs drop it when they decode text, so it would not come back as it was sent.
  if (value.startsWith('\ufeff')) reject('A byte order mark at the beginning is not allowed.');
  const tooLong = lengthProblem(value, MAX_TEXT_LENGTH);
  return tooLong ? reject(tooLong) : value;
}

function parseName(value: unknown): string {
  const name = parseText(value);
  if (name.trim() === '') reject('This field may not be blank.');
  const tooLong = lengthProblem(name, MAX_NAME_LENGTH);
  return tooLong ? reject(tooLong) : name;
}

function checkJson(value: unknown, maxBytes = MAX_JSON_BYTES): unknown {
  const problem = jsonProblem(value, maxBytes);
  return problem ? reject(problem) : value;
}

function checkJsonObject(given: unknown): unknown {
  const value = given instanceof JsonText ? given.value : given;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return reject('Must be a JSON object.');
  return checkJson(given, MAX_JSON_OBJECT_BYTES);
}

const isoDateTime = /^(\d{4})-(\d\d)-(\d\d)T\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/;

function parseDateTime(value: unknown): Date {
  const match = typeof value === 'string' ? isoDateTime.exec(value) : null;
  const [text = '', year, month, day] = match ?? [];
  const moment = new Date(text);
  // JavaScript turns the 30th of February into the 2nd of March.
  const isDay = Number(day) <= new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate();
  // A year of more than four digits has another spelling, which PostgreSQL cannot read.
  const isValid = isDay && !Number.isNaN(moment.getTime()) && moment.toISOString().length === 'YYYY-MM-DDThh:mm:ss.sssZ'.length;
  return isValid ? moment : reject('Not a valid date-time: use ISO 8601 with a time zone.');
}

/** A stored moment that JavaScript does not have, as Prisma reads one without end or before the year 1, is shown as the last one. */
const formatDateTime = (moment: Date) => (Number.isNaN(moment.getTime()) ? LAST_TIMESTAMP : moment.toISOString());

builder.scalarType('DateTime', {
  specifiedByURL: 'https://www.rfc-editor.org/rfc/rfc3339',
  description: 'A point in time, as ISO 8601 in UTC with milliseconds: `2026-01-31T12:00:00.000Z`.',
  extensions: { jsonSchema: { type: 'string', format: 'date-time' } },
  serialize: formatDateTime,
  ...parsers(parseDateTime),
});

builder.scalarType('UUID', {
  specifiedByURL: 'https://www.rfc-editor.org/rfc/rfc9562',
  description: 'A UUID in its canonical form.',
  extensions: { jsonSchema: { type: 'string', format: 'uuid' } },
  serialize: (value) => value,
  ...parsers((value) => parseUuid(value) ?? reject('Must be a valid UUID.')),
});

builder.scalarType('Name', {
  description: `Text that is not blank, of 1 to ${MAX_NAME_LENGTH} characters (code points), or fewer if the field says so.`,
  extensions: { jsonSchema: { type: 'string', minLength: 1, maxLength: MAX_NAME_LENGTH, pattern: NAME_PATTERN } },
  serialize: (value) => value,
  ...parsers(parseName),
});

builder.scalarType('Text', {
  description: `Text of at most ${MAX_TEXT_LENGTH} characters (code points), or fewer if the field says so, without null characters, lone surrogates, or a leading byte order mark.`,
  extensions: { jsonSchema: { type: 'string', maxLength: MAX_TEXT_LENGTH, pattern: TEXT_PATTERN } },
  serialize: (value) => value,
  ...parsers(parseText),
});

builder.scalarType('IdempotencyKey', {
  description:
    'A string of 16 to 255 visible ASCII characters, without `"` and `\\`, that nobody can guess, such as a random UUID. A client ' +
    'generates a new one for each operation, and sends the same one when it retries the request.',
  extensions: { jsonSchema: { type: 'string', minLength: 16, maxLength: 255, pattern: KEY_PATTERN } },
  serialize: (value) => value,
  ...parsers((value) =>
    typeof value === 'string' && isIdempotencyKey(value)
      ? value
      : reject('Must be 16 to 255 visible ASCII characters, without quotation marks and backslashes.'),
  ),
});

interface ScalarExtensions {
  readonly jsonSchema: object;
  /** A variable keeps the text of its value (`keepTexts`), unless it takes more bytes than this. */
  readonly keptBytes?: number;
}

const JSON_IS_KEPT =
  'returned as it was sent: numbers to the digit, keys in their order. A number beyond the range of a double is rejected.';

builder.scalarType('JSON', {
  description: `Any JSON value of up to 256 KiB, or as a literal of as much as a document may have (65,536 characters), in a request body with at most 25,000 lists, objects and fields, ${JSON_IS_KEPT}`,
  extensions: { jsonSchema: {}, keptBytes: MAX_JSON_BYTES } satisfies ScalarExtensions,
  serialize: (value) => value,
  ...parsers((value) => checkJson(value), jsonOfLiteral(MAX_JSON_BYTES)),
});

builder.scalarType('JSONObject', {
  description: `A JSON object of up to 64 KiB, ${JSON_IS_KEPT}`,
  extensions: { jsonSchema: { type: 'object', additionalProperties: true }, keptBytes: MAX_JSON_OBJECT_BYTES } satisfies ScalarExtensions,
  serialize: (value) => value,
  ...parsers(checkJsonObject, jsonOfLiteral(MAX_JSON_OBJECT_BYTES)),
});

builder.scalarType('SafeInt', {
  description: 'An integer that may exceed 32 bits: up to 2^53 - 1.',
  extensions: { jsonSchema: { type: 'integer', format: 'int64' } },
  serialize: (value) => Number(value),
  ...parsers((value) => (Number.isSafeInteger(value) ? (value as number) : reject('A valid integer is required.'))),
});
