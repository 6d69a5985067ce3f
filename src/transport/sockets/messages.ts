import type { GraphQLFormattedError } from 'graphql';
import { type Message, MessageType, validateMessage } from 'graphql-ws';
import { exceedsDepth } from '../../kernel/depth.ts';
import { parseJson, passText, toJsonText } from '../../kernel/jsontext.ts';
import { maskError } from '../../pipeline/mask.ts';
import type { Logger } from '../../platform/logger.ts';
import type { Envelope } from '../delivery/frames.ts';
import type { FormatResult } from '../delivery/renderer.ts';

const MAX_DEPTH = 520;
/** The id of an operation is kept in memory, and is part of each of its messages. */
const MAX_ID_LENGTH = 255;
/** The length of a ping or pong: a ping is sent back. */
const MAX_PING_LENGTH = 1_000;

const clientMessages = new Set<unknown>([
  MessageType.ConnectionInit,
  MessageType.Ping,
  MessageType.Pong,
  MessageType.Subscribe,
  MessageType.Complete,
]);

/** A message that a client may send; null for anything else. */
export function readMessage(text: string): Message | null {
  try {
    const message = validateMessage(parseJson(text));
    const isGood = clientMessages.has(message.type) && !isTooLong(message, text) && !exceedsDepth(message, MAX_DEPTH);
    if (isGood && message.type === MessageType.Subscribe) {
      passText(message, 'payload');
      passText(message.payload, 'variables');
    }
    return isGood ? message : null;
  } catch {
    return null;
  }
}

function isTooLong(message: Message, text: string): boolean {
  if ('id' in message) return message.id.length > MAX_ID_LENGTH;
  return message.type !== MessageType.ConnectionInit && text.length > MAX_PING_LENGTH;
}

/** The message around each event of a subscription. */
export const nextMessage: Envelope = { head: (id) => `{"id":${JSON.stringify(id)},"type":"next","payload":`, tail: '}' };

/** Errors as a client sees them. What concerns HTTP alone stays out of a socket's messages. */
export function formatErrors(errors: readonly unknown[], log: Logger): GraphQLFormattedError[] {
  return errors.map((error) => {
    const { extensions: { http, ...extensions } = {}, ...rest } = maskError(error, log).toJSON();
    return { ...rest, extensions };
  });
}

/** An event of a subscription, executed, as the payload of its message. */
export const renderResult: FormatResult = (result, { openLogger }) =>
  toJsonText(result.errors ? { ...result, errors: formatErrors(result.errors, openLogger()) } : result);
