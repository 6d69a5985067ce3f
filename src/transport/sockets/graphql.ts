import {
  type ExecutionArgs,
  type ExecutionResult,
  type FormattedExecutionResult,
  type GraphQLError,
  type GraphQLFormattedError,
  getOperationAST,
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
import type { RateLimits } from '../../access/ratelimits.ts';
import { Source } from '../../graph/source.ts';
import { type CredentialProblem, Fault } from '../../kernel/fault.ts';
import { spliceTexts } from '../../kernel/json/text.ts';
import type { ValidDocuments } from '../../pipeline/documents.ts';
import { failedResult, maskError } from '../../pipeline/mask.ts';
import { checkOperationName, labelOperation } from '../../pipeline/naming.ts';
import type { GetEnveloped, PipelineSteps } from '../../pipeline/operation.ts';
import { findText, readHash, type TrustedDocuments } from '../../pipeline/trusted.ts';
import { toFault } from '../../platform/errors.ts';
import { SlowLog } from '../../platform/slowlog.ts';
import { Delivery } from '../delivery/delivery.ts';
import { openSource, RendererCache } from '../delivery/renderer.ts';
import { checkProjectSocketOperation } from './admission.ts';
import { type CloseCode, closeCodes } from './close.ts';
import type { ConnectionDependencies, Protocol, SocketConnection } from './connection.ts';
import { formatErrors, nextMessage, readMessage, renderResult } from './messages.ts';
import { SocketOperation } from './operation.ts';
import { Subscription } from './subscription.ts';

const INIT_TIMEOUT_MS = 5_000;
const MAX_OPERATIONS = 50;
/** The maximum of operations including those that the client has completed and that have not finished yet. */
const MAX_WITH_COMPLETED = 2 * MAX_OPERATIONS;
/** How many operations may not have finished, also of those that were refused: a peer that does not read keeps each in memory. */
const MAX_UNFINISHED = 4 * MAX_OPERATIONS;
/** The memory that a parsed message may take for each character of its text. */
const PARSED_BYTES = 20;

interface GraphqlSocketDependencies extends ConnectionDependencies {
  readonly rateLimits: RateLimits;
  readonly getEnveloped: GetEnveloped;
  readonly trusted: TrustedDocuments;
  readonly documents: ValidDocuments;
}

type Dependencies = GraphqlSocketDependencies & { readonly renderers: RendererCache; readonly slowLog: SlowLog };
type InitContext = GraphqlWsContext<ConnectionInitMessage['payload'], GraphqlSocket>;

/**
 * Returns a function that serves graphql-transport-ws on a connection, by graphql-ws and the pipeline of GraphQL over HTTP. By
 * `makeServer`, since `useServer` reads and answers every message itself: here a connection has rate and size limits, a lease on
 * its credential, and events that are written once for all subscribers.
 */
export function createGraphqlSockets(injected: GraphqlSocketDependencies): (connection: SocketConnection) => void {
  const dependencies = { ...injected, renderers: new RendererCache(), slowLog: new SlowLog(injected.log) };
  const server = makeServer<ConnectionInitMessage['payload'], GraphqlSocket>({
    connectionInitWaitTimeout: INIT_TIMEOUT_MS,
    onConnect: (context) => context.extra.admit(context),
    onSubscribe: ({ extra }, id, payload) => extra.prepare(id, payload),
    async execute(args) {
      try {
        return await runOf(args).pipeline.execute({ ...args, rootValue: undefined });
      } catch (failure) {
        return failedResult(failure);
      }
    },
    async subscribe(args) {
      const { pipeline, operation } = runOf(args);
      const result = await pipeline.subscribe({ ...args, rootValue: undefined });
      // One that is refused is measured with its errors, by `onNext`.
      if (!('errors' in result)) operation.releasePermit();
      forgetInputs(args);
      return operation.subscription ?? result;
    },
    onNext({ extra }, id, payload, args, result) {
      const formatted = extra.formatResult(id, result, payload);
      extra.releasePermit(id);
      forgetInputs(args);
      return formatted;
    },
    onError({ extra }, id, payload, errors) {
      const formatted = extra.formatErrors(id, errors, payload);
      extra.releasePermit(id);
      return formatted;
    },
  });
  return (connection) => {
    const socket = new GraphqlSocket(connection, dependencies);
    connection.setProtocol(socket);
    socket.onClosed = server.opened(socket, socket);
  };
}

/** An operation and its pipeline. It is passed through graphql-ws as the root value, which no resolver reads. */
interface OperationRun {
  readonly pipeline: PipelineSteps;
  readonly operation: SocketOperation;
}

/** graphql-ws would hold them in memory as long as a subscription lasts, or until a result is sent, which do not use them. */
function forgetInputs(args: ExecutionArgs): void {
  Object.assign(args, { contextValue: undefined, rootValue: undefined, variableValues: undefined });
}

const runOf = ({ rootValue }: ExecutionArgs) => rootValue as OperationRun;

/** The close reasons for the codes with which graphql-ws closes a socket. */
const closeReasons: Readonly<Record<number, string>> = {
  [closeCodes.badRequest]: 'invalid_message',
  [closeCodes.unauthorized]: 'not_authenticated',
  [closeCodes.initTimeout]: 'connection_init_timeout',
  [closeCodes.idInUse]: 'id_in_use',
  [closeCodes.tooManyMessages]: 'too_many_connection_inits',
};

/** The reason names the right place, for a client that sends its credential elsewhere in `connection_init`. */
const missingCredentialReason = 'not_authenticated: connection_init takes {"authorization": "Bearer …"}';

/**
 * The adapter between a connection and graphql-ws. Messages that a client may not send do not reach graphql-ws, which would
 * close with 4500 for some of them, after which a client does not reconnect. The events of a subscription bypass graphql-ws:
 * they are delivered to the connection.
 */
class GraphqlSocket implements Protocol, GraphqlWs {
  readonly protocol = GRAPHQL_TRANSPORT_WS_PROTOCOL;
  /** Tells graphql-ws that the socket is closed. */
  onClosed: () => Promise<void> = async () => {};
  #graphqlWsHandler: (text: string) => Promise<void> = async () => {};
  /** An array, as most sockets have one operation, and none has many. */
  #operations: readonly SocketOperation[] = [];

  constructor(
    private readonly connection: SocketConnection,
    private readonly dependencies: Dependencies,
  ) {}

  onMessage(handle: (text: string) => Promise<void>): void {
    this.#graphqlWsHandler = handle;
  }

  send(text: string): Promise<void> {
    return this.connection.send(spliceTexts(text));
  }

  close(code: number): void {
    this.connection.close(code as CloseCode, closeReasons[code] ?? '');
  }

  receive(text: string | null): void {
    const message = text === null ? null : readMessage(text);
    if (message) this.#handleMessage(message, (text?.length ?? 0) * PARSED_BYTES);
    else this.close(closeCodes.badRequest);
  }

  stop(): void {
    for (const operation of this.#operations) operation.stop();
    this.#handleFailure(this.onClosed());
  }

  /** Admits a client by the credential in `connection_init`: `{ "authorization": "Bearer …" }`. Returns whether it is admitted. */
  async admit(context: InitContext): Promise<boolean> {
    const connection = this.connection;
    const { authorization, Authorization, token } = context.connectionParams ?? {};
    // graphql-ws would hold the secret in memory as long as the socket is open.
    delete (context as { connectionParams?: unknown }).connectionParams;
    if (connection.viewer) return true;
    const credential = authorization ?? Authorization ?? (typeof token === 'string' ? `Bearer ${token}` : null);
    try {
      const { viewer, fault } = await admit(this.dependencies, {
        readCredential: () => (credential === null ? null : readBearerText(credential)),
        readAddress: () => connection.address,
      });
      if (fault) throw fault;
      if (!viewer) this.#closeUnauthorized();
      else if (this.dependencies.socketLimit.isFull(viewer.userId)) connection.close(closeCodes.tryAgainLater, 'too_many_sockets');
      else connection.signIn(viewer);
    } catch (failure) {
      const { code, reason } = toFault(failure);
      if (reason) this.#logRefusal(reason);
      connection.close(code === 'not_authenticated' ? closeCodes.forbidden : closeCodes.tryAgainLater, code);
    }
    return connection.isOpen;
  }

  #closeUnauthorized(): void {
    this.#logRefusal('missing');
    this.connection.close(closeCodes.unauthorized, missingCredentialReason);
  }

  /** Says what is wrong with the credential, which the reason of the close frame does not. */
  #logRefusal(reason: CredentialProblem): void {
    this.connection.log.info({ code: 'not_authenticated', reason }, 'connection_init refused');
  }

  /** Counts, authorizes, parses and validates an operation, and creates its context; or returns the errors that reject it. */
  async prepare(id: string, payload: SubscribePayload): Promise<ExecutionArgs | GraphQLError[]> {
    const connection = this.connection;
    const { rateLimits, getEnveloped, trusted, documents } = this.dependencies;
    const operation = this.#find(id);
    try {
      if (!operation) throw new Error('the operation is not known');
      // The limit is checked before the first `await`: of many operations at once, the first ones start.
      if (this.#hasTooManyOperations) {
        operation.isCompleted = true;
        throw Fault.invalidRequest(`A socket carries at most ${MAX_OPERATIONS} operations.`);
      }
      if (connection.viewer) await rateLimits.spendUser(connection.viewer.userId);
      await operation.acquirePermit(payload);
      const hash = readHash(payload);
      await connection.authorize();
      if (hash === null) await documents.takeTurn(connection.owner, payload.query);
      connection.requireOpen();
      if (operation.isCompleted) throw Fault.invalidRequest('The operation was completed before it began.');
      const pipeline = getEnveloped({
        openContext: () => connection.openContext((milliseconds) => operation.recordWait(milliseconds)),
        subscribe: (args) => this.#subscribe(operation, args),
      });
      const { operationName, variables: variableValues } = payload;
      const document = pipeline.parse(hash === null ? payload.query : findText(trusted, hash));
      const errors = pipeline.validate(pipeline.schema, document);
      if (errors.length > 0) return [...errors];
      const node = getOperationAST(document, operationName);
      if (connection.onlyProject && node) checkProjectSocketOperation(document, node);
      operation.setLabel(labelOperation(document, operationName));
      checkOperationName(document, operationName);
      const contextValue = await pipeline.contextFactory();
      const rootValue: OperationRun = { pipeline, operation };
      // graphql-ws holds the payload as long as the operation runs: the cached document's text is shared by all operations.
      Object.assign(payload, { query: document.loc?.source.body ?? payload.query, variables: undefined, extensions: undefined });
      return { schema: pipeline.schema, document, operationName, variableValues, contextValue, rootValue };
    } catch (failure) {
      return [maskError(failure, connection.log)];
    }
  }

  /** Lets the user's next operation begin, before the response of this one is sent: its peer may not read. */
  releasePermit(id: string): void {
    this.#find(id)?.releasePermit();
  }

  formatResult(id: string, result: ExecutionResult, payload: SubscribePayload): FormattedExecutionResult {
    return result.errors ? { ...result, errors: this.formatErrors(id, result.errors, payload) } : (result as FormattedExecutionResult);
  }

  /** An error ends a subscription for good: in an outage the socket is closed instead, so that the client reconnects. */
  formatErrors(id: string, errors: readonly GraphQLError[], payload: SubscribePayload): GraphQLFormattedError[] {
    const formatted = formatErrors(errors, this.connection.log);
    this.#find(id)?.recordErrors(formatted);
    const isOutage = formatted.some(({ extensions }) => extensions?.code === 'service_unavailable');
    if (isOutage && this.#isSubscription(payload)) this.connection.close(closeCodes.tryAgainLater, 'service_unavailable');
    // graphql-ws holds the payload until the errors are sent, for which they may have to wait; its objects take many times its text.
    Object.assign(payload, { query: '', variables: undefined, extensions: undefined });
    return formatted;
  }

  #find(id: string): SocketOperation | undefined {
    return this.#operations.find((one) => one.id === id);
  }

  get #hasTooManyOperations(): boolean {
    const open = this.#operations.filter(({ isCompleted }) => !isCompleted).length;
    return open > MAX_OPERATIONS || this.#operations.length > MAX_WITH_COMPLETED;
  }

  /** `bytes` is the memory that the message may take. */
  #handleMessage(message: Message, bytes: number): void {
    const operation = 'id' in message ? this.#find(message.id) : undefined;
    if (message.type === MessageType.Subscribe) {
      if (operation?.isCompleted && !operation.hasNext) operation.setNext(message, bytes);
      else if (operation) this.close(closeCodes.idInUse);
      else if (this.#operations.length >= MAX_UNFINISHED) this.connection.close(closeCodes.tooManyMessages, 'too_many_operations');
      else this.#startOperation(message);
      return;
    }
    if (message.type === MessageType.Complete && operation?.isCompleted) {
      // A second `complete` withdraws the operation that waits for this one to finish.
      operation.setNext(null);
      return;
    }
    if (message.type === MessageType.Complete && operation) operation.isCompleted = true;
    this.#handleFailure(this.#forward(message));
    if (operation?.isCompleted) operation.withdraw();
  }

  #startOperation(message: SubscribeMessage): void {
    const operation = new SocketOperation(message.id, this.connection, this.dependencies);
    this.#operations = [...this.#operations, operation];
    const finished = this.#forward(message).finally(() => {
      operation.releasePermit();
      this.#operations = this.#operations.filter((one) => one !== operation);
      const next = operation.takeNext();
      if (next && this.connection.isOpen) this.#handleMessage(next.message, next.bytes);
    });
    this.#handleFailure(finished);
  }

  /** graphql-ws accepts a parsed message too, in spite of its types; it would hold a string in memory with the operation. */
  #forward(message: Message): Promise<void> {
    return this.#graphqlWsHandler(message as unknown as string);
  }

  /** A failure within graphql-ws is a bug, unless the socket is closing, when messages cannot be sent. */
  #handleFailure(work: Promise<void>): void {
    work.catch((failure: unknown) => {
      if (!this.connection.isOpen) return;
      this.connection.log.error({ err: failure }, 'a socket message failed');
      this.connection.close(closeCodes.tryAgainLater, 'internal_error');
    });
  }

  /** Starts a subscription: its events go to the connection, and graphql-ws learns only of its end. */
  async #subscribe(operation: SocketOperation, args: ExecutionArgs): Promise<Subscription | ExecutionResult> {
    const source = await openSource(args);
    if (!(source instanceof Source)) return source;
    const subscription = new Subscription();
    const renderer = this.dependencies.renderers.forSubscription(args, renderResult);
    const delivery = new Delivery(this.connection, source, renderer, {
      envelope: nextMessage,
      id: operation.id,
      onEnd: subscription.end,
    });
    subscription.delivery = delivery;
    operation.subscription = subscription;
    if (operation.isAbandoned) delivery.stop();
    else delivery.start();
    return subscription;
  }

  #isSubscription(payload: SubscribePayload): boolean {
    const { query, operationName } = payload;
    const { getEnveloped, trusted } = this.dependencies;
    try {
      const hash = readHash(payload);
      const text = hash === null ? query : findText(trusted, hash);
      const document = getEnveloped({ openContext: () => this.connection.openContext() }).parse(text);
      return getOperationAST(document, operationName)?.operation === OperationTypeNode.SUBSCRIPTION;
    } catch {
      return false;
    }
  }
}
