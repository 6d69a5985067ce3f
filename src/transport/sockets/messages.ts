import type { GraphQLFormattedError } from 'graphql';
import { type Message, MessageType, validateMessage } from 'graphql-ws';
import { exceedsDepth, MAX_REQUEST_DEPTH } from '../../kernel/json/depth.ts';
import { moveJsonPart, parseTracked } from '../../kernel/json/exact.ts';
import { stringifyJson } from '../../kernel/json/text.ts';
import { formatError, maskError } from '../../pipeline/mask.ts';
import type { Logger } from '../../platform/logger.ts';
import type { Envelope } from '../delivery/frames.ts';
import type { FormatResult } from '../delivery/renderer.ts';

/** The id of an operation is stored as long as it runs, and is part of each of its messages. */
const MAX_ID_LENGTH = 255;
/** The length of a ping or pong message: the payload of a ping is sent back in the pong. */
const MAX_PING_LENGTH = 1_000;
/** The length of the message that completes an operation: its id, each unit of which may be escaped. */
const MAX_COMPLETE_LENGTH = 2_000;

const clientMessages = new Set<unknown>([
  MessageType.ConnectionInit,
  MessageType.Ping,
  MessageType.Pong,
  MessageType.Subscribe,
  MessageType.Complete,
]);

/** Parses a message of a client; null for one that is malformed, too long or too deep, or that a client may not send. */
export function readMessage(text: string): Message | null {
  try {
    const message = validateMessage(parseTracked(text));
    if (!clientMessages.has(message.type) || isTooLong(message, text) || exceedsDepth(message, MAX_REQUEST_DEPTH)) return null;
    if (message.type !== MessageType.Subscribe) return message;
    moveJsonPart(message, 'payload', 'variables');
    const { id, type, payload } = message;
    const { query, operationName, variables, extensions } = payload;
    // graphql-ws holds the message as long as the operation runs: members without a meaning are left out.
    return { id, type, payload: { query, operationName: operationName || undefined, variables, extensions } };
  } catch {
    return null;
  }
}

function isTooLong(message: Message, text: string): boolean {
  if ('id' in message && message.id.length > MAX_ID_LENGTH) return true;
  if (message.type === MessageType.Complete) return text.length > MAX_COMPLETE_LENGTH;
  return (message.type === MessageType.Ping || message.type === MessageType.Pong) && text.length > MAX_PING_LENGTH;
}

/** The message around each event of a subscription. */
export const nextMessage: Envelope = { head: (id) => `{"id":${JSON.stringify(id)},"type":"next","payload":`, tail: '}' };

/** Masks errors for the client. */
export function formatErrors(errors: readonly unknown[], log: Logger): GraphQLFormattedError[] {
  return errors.map((error) => formatError(maskError(error, log)));
}

/** Serializes the result of an event as the payload of its message. */
export const renderResult: FormatResult = (result, { openLogger }) =>
  stringifyJson(result.errors ? { ...result, errors: formatErrors(result.errors, openLogger()) } : result);
