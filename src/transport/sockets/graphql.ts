import {
  type ExecutionArgs,
  type ExecutionResult,
  type FormattedExecutionResult,
  type GraphQLError,
  type GraphQLFormattedError,
  getOperationAST,
  Kind,
  type OperationDefinitionNode,
  OperationTypeNode,
} from 'graphql';
import {
  type ConnectionInitMessage,
  GRAPHQL_TRANSPORT_WS_PROTOCOL,
  type WebSocket as GraphqlWs,
  type Context as GraphqlWsContext,
  type Message,
  MessageType,
  makeServer,
  type SubscribeMessage,
  type SubscribePayload,
} from 'graphql-ws';
import { admit } from '../../access/admission.ts';
import { readBearerText } from '../../access/credential.ts';
import type { Limits } from '../../access/limits.ts';
import { Source } from '../../graph/source.ts';
import { Fault } from '../../kernel/fault.ts';
import { spliceTexts } from '../../kernel/jsontext.ts';
import type { Enveloped, GetEnveloped } from '../../pipeline/enveloped.ts';
import { maskError } from '../../pipeline/mask.ts';
import { labelOperation } from '../../pipeline/naming.ts';
import { findText, readHash, type TrustedDocuments } from '../../pipeline/trusted.ts';
import { toFault } from '../../platform/errors.ts';
import { Delivery } from '../delivery/delivery.ts';
import { openSource, RendererCache } from '../delivery/renderer.ts';
import { type CloseCode, closeCodes } from './close.ts';
import type { ConnectionParts, Protocol, SocketConnection } from './connection.ts';
import { formatErrors, nextMessage, readMessage, renderResult } from './messages.ts';
import { Subscription } from './subscription.ts';

const INIT_TIMEOUT_MS = 5_000;
const MAX_OPERATIONS = 50;

interface GraphqlSocketParts extends ConnectionParts {
  readonly limits: Limits;
  readonly getEnveloped: GetEnveloped;
  readonly trusted: TrustedDocuments;
}

type Parts = GraphqlSocketParts & { readonly renderers: RendererCache };
type InitContext = GraphqlWsContext<ConnectionInitMessage['payload'], GraphqlSocket>;

/** The graphql-transport-ws protocol, spoken by graphql-ws, over the same pipeline as GraphQL over HTTP. */
export function createGraphqlSockets(given: GraphqlSocketParts): (connection: SocketConnection) => void {
  const parts = { ...given, renderers: new RendererCache() };
  const server = makeServer<ConnectionInitMessage['payload'], GraphqlSocket>({
    connectionInitWaitTimeout: INIT_TIMEOUT_MS,
    onConnect: (context) => context.extra.admit(context),
    onSubscribe: ({ extra }, id, payload) => extra.prepare(id, payload),
    execute: (args) => runOf(args).pipeline.execute({ ...args, rootValue: undefined }),
    async subscribe(args) {
      const { pipeline, operation } = runOf(args);
      const result = await pipeline.subscribe({ ...args, rootValue: undefined });
      // graphql-ws keeps them for as long as the subscription lasts, which has no need of them.
      Object.assign(args, { contextValue: undefined, rootValue: undefined, variableValues: undefined });
      return operation.subscription ?? result;
    },
    onNext: ({ extra }, _id, payload, _args, result) => extra.formatResult(result, payload),
    onError: ({ extra }, _id, payload, errors) => extra.formatErrors(errors, payload),
  });
  return (connection) => {
    const socket = new GraphqlSocket(connection, parts);
    connection.speak(socket);
    socket.onClosed = server.opened(socket, socket);
  };
}

/** The pipeline of an operation. It travels as the root value, which no resolver reads. */
interface OperationRun {
  readonly pipeline: Enveloped;
  readonly operation: SocketOperation;
}

const runOf = ({ rootValue }: ExecutionArgs) => rootValue as OperationRun;

/** The reasons for the codes with which graphql-ws closes. */
const reasons: Readonly<Record<number, string>> = {
  [closeCodes.badRequest]: 'invalid_message',
  [closeCodes.unauthorized]: 'not_authenticated',
  [closeCodes.initTimeout]: 'connection_init_timeout',
  [closeCodes.idInUse]: 'id_in_use',
  [closeCodes.tooManyMessages]: 'too_many_connection_inits',
};

/** A client with its credential elsewhere in `connection_init` would else not know what to mend. */
const noCredential = 'not_authenticated: connection_init takes {"authorization": "Bearer …"}';

/** An operation from its message until graphql-ws has done with it. */
interface SocketOperation {
  readonly id: string;
  /** Set once it has begun to deliver. */
  subscription: Subscription | null;
  isCompleted: boolean;
  /** A message that begins another operation by the same id: it waits for the end of this one, which the client has completed. */
  next: SubscribeMessage | null;
}

/**
 * One socket, between its connection and graphql-ws: messages that a client may not send do not reach graphql-ws, which
 * would close with 4500 for some of them, after which a client does not reconnect. The events of a subscription do not pass
 * through graphql-ws, but are delivered to the connection.
 */
class GraphqlSocket implements Protocol, GraphqlWs {
  readonly protocol = GRAPHQL_TRANSPORT_WS_PROTOCOL;
  onClosed: () => Promise<void> = async () => {};
  #handle: (text: string) => Promise<void> = async () => {};
  /** An array, as most sockets have one operation, and none has many. */
  #operations: readonly SocketOperation[] = [];

  constructor(
    private readonly connection: SocketConnection,
    private readonly parts: Parts,
  ) {}

  onMessage(handle: (text: string) => Promise<void>): void {
    this.#handle = handle;
  }

  send(text: string): Promise<void> {
    return this.connection.send(spliceTexts(text));
  }

  close(code: number): void {
    this.connection.close(code as CloseCode, reasons[code] ?? '');
  }

  receive(text: string | null): void {
    const message = text === null ? null : readMessage(text);
    if (message) this.#take(message);
    else this.close(closeCodes.badRequest);
  }

  finish(): void {
    for (const { subscription } of this.#operations) subscription?.delivery?.stop();
    this.#run(this.onClosed());
  }

  /** Admits a client whose credential comes with the first message: `{ "authorization": "Bearer …" }`. */
  async admit(context: InitContext): Promise<boolean> {
    const connection = this.connection;
    const { authorization, Authorization, token } = context.connectionParams ?? {};
    // graphql-ws would keep the secret for as long as the socket is open.
    delete (context as { connectionParams?: unknown }).connectionParams;
    if (connection.viewer) return true;
    const given = authorization ?? Authorization ?? (typeof token === 'string' ? `Bearer ${token}` : null);
    try {
      const { viewer, fault } = await admit(this.parts, {
        readCredential: () => (given === null ? null : readBearerText(given)),
        readAddress: () => connection.address,
      });
      if (fault) throw fault;
      if (!viewer) connection.close(closeCodes.unauthorized, noCredential);
      else if (this.parts.quota.isFull(viewer.userId)) connection.close(closeCodes.tryAgainLater, 'too_many_sockets');
      else connection.signIn(viewer);
    } catch (failure) {
      const { code } = toFault(failure);
      connection.close(code === 'not_authenticated' ? closeCodes.comeBackWithFreshCredential : closeCodes.tryAgainLater, code);
    }
    return connection.isOpen;
  }

  /** One operation: counted, parsed, validated and given its context; or the errors that refuse it. */
  async prepare(id: string, payload: SubscribePayload): Promise<ExecutionArgs | GraphQLError[]> {
    const connection = this.connection;
    const { limits, getEnveloped, trusted, metrics } = this.parts;
    const operation = this.#operations.find((one) => one.id === id);
    try {
      if (!operation) throw new Error('the operation is not known');
      // Counted before anything is waited for: of many that come at once the first ones begin.
      if (this.#isFull) {
        operation.isCompleted = true;
        throw Fault.invalidRequest(`A socket carries at most ${MAX_OPERATIONS} operations.`);
      }
      if (connection.viewer) await limits.spendUser(connection.viewer.userId);
      await connection.authorize();
      connection.requireOpen();
      if (operation.isCompleted) throw Fault.invalidRequest('The operation was completed before it began.');
      const pipeline = getEnveloped({
        openContext: () => connection.openContext(),
        subscribe: (args) => this.#deliver(operation, args),
      });
      const { operationName, variables: variableValues } = payload;
      const hash = readHash(payload);
      const document = pipeline.parse(hash === null ? payload.query : findText(trusted, hash));
      const errors = pipeline.validate(pipeline.schema, document);
      if (errors.length > 0) return [...errors];
      const node = getOperationAST(document, operationName);
      if (connection.onlyProject && node) checkTicketOperation(node);
      metrics.socketOperations.inc({ operation: labelOperation(document, operationName) });
      const contextValue = await pipeline.contextFactory();
      const rootValue: OperationRun = { pipeline, operation };
      // The text is that of the kept document, of which there is one for all.
      Object.assign(payload, { query: document.loc?.source.body ?? payload.query, variables: undefined, extensions: undefined });
      return { schema: pipeline.schema, document, operationName, variableValues, contextValue, rootValue };
    } catch (failure) {
      return [maskError(failure, connection.log)];
    }
  }

  formatResult(result: ExecutionResult, payload: SubscribePayload): FormattedExecutionResult {
    return result.errors ? { ...result, errors: this.formatErrors(result.errors, payload) } : (result as FormattedExecutionResult);
  }

  /** To its client an error is the end of a subscription for good: in an outage a closed socket makes it come back instead. */
  formatErrors(errors: readonly GraphQLError[], payload: SubscribePayload): GraphQLFormattedError[] {
    const formatted = formatErrors(errors, this.connection.log);
    const isOutage = formatted.some(({ extensions }) => extensions?.code === 'service_unavailable');
    if (isOutage && this.#isSubscription(payload)) this.connection.close(closeCodes.tryAgainLater, 'service_unavailable');
    return formatted;
  }

  /** Operations that the client has completed count until they have ended, towards a limit of their own. */
  get #isFull(): boolean {
    const open = this.#operations.filter(({ isCompleted }) => !isCompleted).length;
    return open > MAX_OPERATIONS || this.#operations.length > 2 * MAX_OPERATIONS;
  }

  #take(message: Message): void {
    const operation = 'id' in message ? this.#operations.find(({ id }) => id === message.id) : undefined;
    if (message.type === MessageType.Subscribe) {
      if (operation?.isCompleted && operation.next === null) operation.next = message;
      else if (operation) this.close(closeCodes.idInUse);
      else this.#begin(message);
    } else if (message.type === MessageType.Complete && operation?.isCompleted) operation.next = null;
    else {
      if (message.type === MessageType.Complete && operation) operation.isCompleted = true;
      this.#run(this.#pass(message));
    }
  }

  #begin(message: SubscribeMessage): void {
    const operation: SocketOperation = { id: message.id, subscription: null, isCompleted: false, next: null };
    this.#operations = [...this.#operations, operation];
    const over = this.#pass(message).finally(() => {
      this.#operations = this.#operations.filter((one) => one !== operation);
      if (operation.next && this.connection.isOpen) this.#take(operation.next);
    });
    this.#run(over);
  }

  /** graphql-ws reads a text or a message that is parsed, though its type says a text, which it would keep with the operation. */
  #pass(message: Message): Promise<void> {
    return this.#handle(message as unknown as string);
  }

  /** A failure within graphql-ws is a mistake of ours, unless the socket is closing, when a message cannot be sent. */
  #run(work: Promise<void>): void {
    work.catch((failure: unknown) => {
      if (!this.connection.isOpen) return;
      this.connection.log.error({ err: failure }, 'a socket message failed');
      this.connection.close(closeCodes.tryAgainLater, 'internal_error');
    });
  }

  /** Begins a subscription: its events go to the connection, and graphql-ws learns only of its end. */
  async #deliver(operation: SocketOperation, args: ExecutionArgs): Promise<Subscription | ExecutionResult> {
    const source = await openSource(args);
    if (!(source instanceof Source)) return source;
    const subscription = new Subscription();
    const renderer = this.parts.renderers.forSubscription(args, renderResult);
    const delivery = new Delivery(this.connection, source, renderer, nextMessage, operation.id, subscription);
    subscription.delivery = delivery;
    operation.subscription = subscription;
    if (operation.isCompleted || !this.connection.isOpen) delivery.stop();
    else delivery.onReadable();
    return subscription;
  }

  #isSubscription({ query, operationName }: SubscribePayload): boolean {
    try {
      const document = this.parts.getEnveloped({ openContext: () => this.connection.openContext() }).parse(query);
      return getOperationAST(document, operationName)?.operation === OperationTypeNode.SUBSCRIPTION;
    } catch {
      return false;
    }
  }
}

const ticketFields = new Set(['notificationFeed', 'renewCredential', '__typename']);

/** A ticket reaches its target's subscription, and the renewal of the credential: nothing else. */
function checkTicketOperation({ selectionSet }: OperationDefinitionNode): void {
  const isAllowed = selectionSet.selections.every((selection) => selection.kind === Kind.FIELD && ticketFields.has(selection.name.value));
  if (!isAllowed) throw Fault.permissionDenied('A socket that a ticket opened carries its feed and renewCredential only.');
}
