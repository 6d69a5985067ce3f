import { GraphQLError, type ValueNode, valueFromASTUntyped } from 'graphql';
import { jsonProblem } from '../kernel/json.ts';
import { countCodePoints, textProblem } from '../kernel/text.ts';
import { parseUuid } from '../kernel/uuid.ts';
import { builder } from './builder.ts';

/** The largest JSON value that is kept: 256 KiB as JSON text. */
const MAX_JSON_BYTES = 256 * 1024;
const MAX_NAME_LENGTH = 255;
/** What the parsers below refuse, as far as a pattern can tell: null characters, a byte order mark in front, only spaces. */
const TEXT_PATTERN = '^([^\u0000\ufeff][^\u0000]*)?$';
const NAME_PATTERN = '^([^\u0000\ufeff][^\u0000]*)?[^\\s\u0000][^\u0000]*$';

/** A value that its scalar refuses. The message is shown to clients of every door, so it names no type. */
function refuse(message: string): never {
  throw new GraphQLError(message, { extensions: { code: 'validation_failed' } });
}

/** A scalar's two ways in. A literal that is refused carries its node, so that the refusal can name the field. */
function parsers<Value>(parseValue: (value: unknown) => Value) {
  const parseLiteral = (node: ValueNode, variables?: Record<string, unknown> | null) => {
    try {
      // Without a prototype, in which a variable that was left out could be found by the name of its own.
      return parseValue(valueFromASTUntyped(node, variables && Object.assign(Object.create(null), variables)));
    } catch (refusal) {
      throw new GraphQLError((refusal as GraphQLError).message, { nodes: node, extensions: (refusal as GraphQLError).extensions });
    }
  };
  return { parseValue, parseLiteral };
}

function parseText(value: unknown): string {
  if (typeof value !== 'string') return refuse('Not a valid string.');
  const problem = textProblem(value);
  if (problem) refuse(problem);
  // PGlite reads a column without it.
  if (value.startsWith('\ufeff')) refuse('A byte order mark at the beginning is not allowed.');
  return value;
}

function parseName(value: unknown): string {
  const name = parseText(value);
  if (name.trim() === '') refuse('This field may not be blank.');
  if (countCodePoints(name) > MAX_NAME_LENGTH) refuse(`Ensure this field has no more than ${MAX_NAME_LENGTH} characters.`);
  return name;
}

function parseJson(value: unknown): unknown {
  const problem = jsonProblem(value, MAX_JSON_BYTES);
  return problem ? refuse(problem) : value;
}

function parseJsonObject(value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return refuse('Must be a JSON object.');
  return parseJson(value) as Record<string, unknown>;
}

const isoMoment = /^(\d{4})-(\d\d)-(\d\d)T\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/;

function parseMoment(value: unknown): Date {
  const match = typeof value === 'string' ? isoMoment.exec(value) : null;
  const [text = '', year, month, day] = match ?? [];
  const moment = new Date(text);
  // JavaScript would make the 2nd of March of a 30th of February.
  const isDay = Number(day) <= new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate();
  // A year that needs more than four digits is spelled otherwise, and PostgreSQL could not read it.
  const isMoment = isDay && !Number.isNaN(moment.getTime()) && moment.toISOString().length === 'YYYY-MM-DDThh:mm:ss.sssZ'.length;
  return isMoment ? moment : refuse('Not a valid date-time: use ISO 8601 with a time zone.');
}

builder.scalarType('DateTime', {
  description: 'A moment, as ISO 8601 in UTC with milliseconds: `2026-01-31T12:00:00.000Z`.',
  extensions: { jsonSchema: { type: 'string', format: 'date-time' } },
  serialize: (value) => value.toISOString(),
  ...parsers(parseMoment),
});

builder.scalarType('UUID', {
  description: 'A UUID in its canonical spelling.',
  extensions: { jsonSchema: { type: 'string', format: 'uuid' } },
  serialize: (value) => value,
  ...parsers((value) => parseUuid(value) ?? refuse('Must be a valid UUID.')),
});

builder.scalarType('Name', {
  description: `A line of 1 to ${MAX_NAME_LENGTH} characters (code points), not blank.`,
  extensions: { jsonSchema: { type: 'string', minLength: 1, maxLength: MAX_NAME_LENGTH, pattern: NAME_PATTERN } },
  serialize: (value) => value,
  ...parsers(parseName),
});

builder.scalarType('Text', {
  description: 'Text, without null characters and lone surrogates, and with no byte order mark in front.',
  extensions: { jsonSchema: { type: 'string', pattern: TEXT_PATTERN } },
  serialize: (value) => value,
  ...parsers(parseText),
});

builder.scalarType('JSON', {
  description: 'Any JSON value of up to 256 KiB, kept as it was sent.',
  extensions: { jsonSchema: {} },
  serialize: (value) => value,
  ...parsers(parseJson),
});

builder.scalarType('JSONObject', {
  description: 'A JSON object of up to 256 KiB, kept as it was sent.',
  extensions: { jsonSchema: { type: 'object', additionalProperties: true } },
  serialize: (value) => value,
  ...parsers(parseJsonObject),
});

builder.scalarType('SafeInt', {
  description: 'An integer that may pass 32 bits: up to 2^53 - 1.',
  extensions: { jsonSchema: { type: 'integer', format: 'int64' } },
  serialize: (value) => Number(value),
  ...parsers((value) => (Number.isSafeInteger(value) ? (value as number) : refuse('A valid integer is required.'))),
});
