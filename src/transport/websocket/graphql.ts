import {
  type ExecutionArgs,
  type ExecutionResult,
  type GraphQLError,
  type GraphQLFormattedError,
  getOperationAST,
  Kind,
  type OperationDefinitionNode,
} from 'graphql';
import { MessageType, makeServer, type Context as ProtocolContext, type Server } from 'graphql-ws';
import { readBearerText } from '../../access/credential.ts';
import type { Limits } from '../../access/limits.ts';
import { identify } from '../../access/viewer.ts';
import { Fault } from '../../kernel/fault.ts';
import { exceedsDepth } from '../../kernel/json.ts';
import type { Metrics } from '../../platform/metrics.ts';
import { openSources, readForm, tellEvent } from '../fanout.ts';
import type { Enveloped, GetEnveloped } from '../graphql/door.ts';
import { checkVariables } from '../graphql/guards.ts';
import { maskError } from '../graphql/mask.ts';
import { describeOperation } from '../graphql/operation.ts';
import { closeCodes } from './close.ts';
import type { Connection, ConnectionParts } from './connection.ts';

const INIT_TIMEOUT_MS = 5_000;
const MAX_SUBSCRIPTIONS = 50;
const MAX_MESSAGE_DEPTH = 520;

interface GraphqlSocketParts extends ConnectionParts {
  readonly limits: Limits;
  readonly metrics: Metrics;
  readonly getEnveloped: GetEnveloped;
}

type Extra = { readonly connection: Connection };
type SocketContext = ProtocolContext<Record<string, unknown>, Extra>;

/** The graphql-transport-ws protocol over Yoga's pipeline: the same guards, context and masking as over HTTP. */
export function createGraphqlSockets(parts: GraphqlSocketParts): (connection: Connection) => void {
  const server: Server<Extra> = makeServer<Record<string, unknown>, Extra>({
    connectionInitWaitTimeout: INIT_TIMEOUT_MS,
    onConnect: (context) => connect(parts, context),
    onSubscribe: (context, id, payload) => prepare(parts, context, id, payload),
    onError: ({ extra }, _id, _payload, errors) => toMessages(errors, extra.connection),
    onNext: ({ extra }, _id, _payload, _args, result) =>
      result.errors ? { ...result, errors: toMessages(result.errors, extra.connection) } : undefined,
    execute: (args) => (args as PreparedArgs).enveloped.execute(args),
    subscribe: (args) => follow(args as PreparedArgs),
  });
  return (connection) => serve(server, connection);
}

interface PreparedArgs extends ExecutionArgs {
  readonly enveloped: Enveloped;
  readonly connection: Connection;
  readonly id: string;
  readonly form: string;
}

/**
 * A subscription that sends for itself: what the protocol's library would serialize for each socket is serialized once
 * for all. It yields nothing; its end is the library's to tell.
 */
async function follow(args: PreparedArgs): Promise<AsyncGenerator<never> | ExecutionResult> {
  const { connection, id, form } = args;
  const sources = await openSources(args);
  if (!(Symbol.asyncIterator in sources)) {
    // To its client an error is the end of a subscription for good; a closed socket makes it come back.
    const isOutage = sources.errors?.some((error) => maskError(error, connection.log).extensions.code === 'service_unavailable');
    if (isOutage) connection.close(closeCodes.tryAgainLater, 'service_unavailable');
    return sources;
  }
  const toText = (result: ExecutionResult) =>
    JSON.stringify(result.errors ? { ...result, errors: toMessages(result.errors, connection) } : result);
  const head = `{"id":${JSON.stringify(id)},"type":"next","payload":`;
  const end = async () => {
    await sources.return?.();
    return { done: true, value: undefined } as const;
  };
  const sending = {
    [Symbol.asyncIterator]() {
      return sending;
    },
    async next() {
      while (connection.isOpen) {
        const { done, value } = await sources.next();
        if (done) return { done, value: undefined };
        await connection.send(`${head}${await tellEvent(args, form, value, toText)}}`);
      }
      return end();
    },
    return: end,
    throw: end,
  };
  return sending as unknown as AsyncGenerator<never>;
}

function serve(server: Server<Extra>, connection: Connection): void {
  const { socket, log } = connection;
  const closed = server.opened(
    {
      protocol: socket.protocol,
      send: (text) => connection.send(text),
      close: (code, reason) => socket.close(code, reason),
      onMessage: (handle) => {
        socket.on('message', (data, isBinary) => {
          if (!connection.countMessage()) return;
          const text = isBinary ? null : String(data);
          if (text === null || !isClientMessage(text)) return connection.close(closeCodes.badRequest, 'invalid_message');
          handle(text).catch((failure: unknown) => {
            if (socket.readyState !== socket.OPEN) return;
            log.error({ err: failure }, 'a socket message failed');
            connection.close(closeCodes.tryAgainLater, 'internal_error');
          });
        });
      },
    },
    { connection },
  );
  socket.once('close', (code, reason) => {
    closed(code, String(reason)).catch((failure: unknown) => log.error({ err: failure }, 'a subscription did not end well'));
  });
}

const clientMessages = new Set<unknown>([
  MessageType.ConnectionInit,
  MessageType.Ping,
  MessageType.Pong,
  MessageType.Subscribe,
  MessageType.Complete,
]);

/** Frames that the protocol's library would answer with a code that its client never comes back from. */
function isClientMessage(text: string): boolean {
  try {
    const message = JSON.parse(text) as { type?: unknown };
    return clientMessages.has(message?.type) && !exceedsDepth(message, MAX_MESSAGE_DEPTH);
  } catch {
    return false;
  }
}

/** Without a credential at the upgrade, the first message brings one: `{ "authorization": "Bearer …" }`. */
async function connect({ database, tokens }: GraphqlSocketParts, { extra, connectionParams }: SocketContext): Promise<boolean> {
  const { connection } = extra;
  if (connection.viewer) return true;
  try {
    const { authorization, Authorization, token } = connectionParams ?? {};
    const given = authorization ?? Authorization ?? (typeof token === 'string' ? `Bearer ${token}` : undefined);
    if (given === undefined) {
      connection.close(closeCodes.unauthorized, 'not_authenticated');
      return true;
    }
    connection.viewer = await identify(database, tokens, readBearerText(given));
    connection.watch();
  } catch (failure) {
    const fault = Fault.from(failure);
    const isOutage = fault.code === 'service_unavailable' || fault.code === 'internal_error';
    connection.close(isOutage ? closeCodes.tryAgainLater : closeCodes.comeBackWithFreshCredential, fault.code);
  }
  return true;
}

/** One operation: counted, parsed, validated and given its context. Returns errors, as a throw would close the socket. */
async function prepare(parts: GraphqlSocketParts, { extra, subscriptions }: SocketContext, id: string, payload: SubscribePayload) {
  const { limits, getEnveloped, metrics } = parts;
  const { connection } = extra;
  try {
    const viewer = connection.viewer;
    if (!viewer) throw Fault.notAuthenticated();
    await limits.spendUser(viewer.userId);
    if (Object.keys(subscriptions).length > MAX_SUBSCRIPTIONS)
      throw Fault.invalidRequest(`A socket carries at most ${MAX_SUBSCRIPTIONS} operations.`);
    const enveloped = getEnveloped({ openContext: () => connection.openContext() });
    const document = enveloped.parse(payload.query);
    const errors = enveloped.validate(enveloped.schema, document);
    if (errors.length > 0) return errors;
    const operation = getOperationAST(document, payload.operationName);
    if (connection.onlyProject && operation) checkTicketOperation(operation);
    const args = {
      schema: enveloped.schema,
      document,
      operationName: payload.operationName,
      variableValues: payload.variables,
      contextValue: await enveloped.contextFactory(),
    };
    const error = checkVariables(args);
    if (error) return [error];
    metrics.socketOperations.inc({ operation: describeOperation(document, payload.operationName) });
    const form = operation ? readForm(payload.query, operation, payload.variables ?? {}) : '';
    return { ...args, enveloped, connection, id, form };
  } catch (failure) {
    return [maskError(failure, connection.log)];
  }
}

/** What concerns HTTP alone stays out of a socket's messages. */
function toMessages(errors: readonly GraphQLError[], { log }: Connection): GraphQLFormattedError[] {
  return errors.map((error) => {
    const { extensions: { http, ...extensions } = {}, ...rest } = maskError(error, log).toJSON();
    return { ...rest, extensions };
  });
}

interface SubscribePayload {
  readonly query: string;
  readonly operationName?: string | null;
  readonly variables?: Record<string, unknown> | null;
}

const ticketFields = new Set(['notificationFeed', 'renewCredential', '__typename']);

/** A ticket reaches its target's subscription, and the renewal of the credential: nothing else. */
function checkTicketOperation({ selectionSet }: OperationDefinitionNode): void {
  const isAllowed = selectionSet.selections.every((selection) => selection.kind === Kind.FIELD && ticketFields.has(selection.name.value));
  if (!isAllowed) throw Fault.permissionDenied('A socket that a ticket opened carries its feed and renewCredential only.');
}
