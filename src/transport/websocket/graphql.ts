import { type GraphQLError, type GraphQLFormattedError, getOperationAST, Kind, type OperationDefinitionNode } from 'graphql';
import { MessageType, makeServer, type Context as ProtocolContext, type Server } from 'graphql-ws';
import { readBearerText } from '../../access/credential.ts';
import type { Limits } from '../../access/limits.ts';
import { identify } from '../../access/viewer.ts';
import { Fault } from '../../kernel/fault.ts';
import { exceedsDepth } from '../../kernel/json.ts';
import type { Enveloped, GetEnveloped } from '../graphql/door.ts';
import { maskError } from '../graphql/mask.ts';
import { closeCodes } from './close.ts';
import type { Connection, ConnectionParts } from './connection.ts';

const INIT_TIMEOUT_MS = 5_000;
const MAX_SUBSCRIPTIONS = 50;
const MAX_MESSAGE_DEPTH = 520;

interface GraphqlSocketParts extends ConnectionParts {
  readonly limits: Limits;
  readonly getEnveloped: GetEnveloped;
}

type Extra = { readonly connection: Connection };
type SocketContext = ProtocolContext<Record<string, unknown>, Extra>;

/** The graphql-transport-ws protocol over Yoga's pipeline: the same guards, context and masking as over HTTP. */
export function createGraphqlSockets(parts: GraphqlSocketParts): (connection: Connection) => void {
  const server: Server<Extra> = makeServer<Record<string, unknown>, Extra>({
    connectionInitWaitTimeout: INIT_TIMEOUT_MS,
    onConnect: (context) => connect(parts, context),
    onSubscribe: (context, _id, payload) => prepare(parts, context, payload),
    onError: (_context, _id, _payload, errors) => errors.map(toMessage),
    onNext: (_context, _id, _payload, _args, result) => (result.errors ? { ...result, errors: result.errors.map(toMessage) } : undefined),
    execute: (args) => (args as unknown as EnvelopedArgs).enveloped.execute(args),
    subscribe: (args) => (args as unknown as EnvelopedArgs).enveloped.subscribe(args),
  });
  return (connection) => serve(server, connection);
}

interface EnvelopedArgs {
  readonly enveloped: Enveloped;
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
async function prepare({ limits, getEnveloped }: GraphqlSocketParts, { extra, subscriptions }: SocketContext, payload: SubscribePayload) {
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
    const contextValue = await enveloped.contextFactory();
    return {
      schema: enveloped.schema,
      document,
      operationName: payload.operationName,
      variableValues: payload.variables,
      contextValue,
      enveloped,
    };
  } catch (failure) {
    return [maskError(failure, connection.log)];
  }
}

/** What concerns HTTP alone stays out of a socket's messages. */
function toMessage(error: GraphQLError): GraphQLFormattedError {
  const { extensions: { http, ...extensions } = {}, ...rest } = error.toJSON();
  return { ...rest, extensions };
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
