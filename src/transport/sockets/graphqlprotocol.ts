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
  makeServer,
  type SubscribePayload,
} from 'graphql-ws';
import type { RateLimits } from '../../access/ratelimits.ts';
import { Source } from '../../graph/source.ts';
import { Fault } from '../../kernel/fault.ts';
import { spliceTexts } from '../../kernel/json/text.ts';
import type { ValidDocuments } from '../../pipeline/documents.ts';
import { failedResult, maskError } from '../../pipeline/mask.ts';
import { checkOperationName, labelOperation } from '../../pipeline/naming.ts';
import type { GetEnveloped, PipelineSteps } from '../../pipeline/operation.ts';
import { findText, readHash, type TrustedDocuments } from '../../pipeline/trusted.ts';
import { SlowLog } from '../../platform/slowlog.ts';
import { Delivery } from '../delivery/delivery.ts';
import { openSource, RendererCache } from '../delivery/renderer.ts';
import { checkProjectSocketOperation } from './admission.ts';
import { type CloseCode, closeCodes } from './close.ts';
import type { ConnectionDependencies, Protocol, SocketConnection } from './connection.ts';
import { admitInit } from './connectioninit.ts';
import { formatErrors, nextMessage, readMessage, renderResult } from './messages.ts';
import type { SocketOperation } from './operation.ts';
import { closeOnFailure, OpenOperations } from './operations.ts';
import { Subscription } from './subscription.ts';

const INIT_TIMEOUT_MS = 5_000;
/** The memory that a parsed message may take for each character of its text. */
const PARSED_BYTES = 20;

interface GraphqlProtocolDependencies extends ConnectionDependencies {
  readonly rateLimits: RateLimits;
  readonly getEnveloped: GetEnveloped;
  readonly trusted: TrustedDocuments;
  readonly documents: ValidDocuments;
}

type Dependencies = GraphqlProtocolDependencies & { readonly renderers: RendererCache; readonly slowLog: SlowLog };

/**
 * Returns a function that serves graphql-transport-ws on a connection, by graphql-ws and the pipeline of GraphQL over HTTP. By
 * `makeServer`, since `useServer` reads and answers every message itself: here a connection has rate and size limits, a lease on
 * its credential, and events that are written once for all subscribers.
 */
export function createGraphqlSockets(injected: GraphqlProtocolDependencies): (connection: SocketConnection) => void {
  const dependencies = { ...injected, renderers: new RendererCache(), slowLog: new SlowLog(injected.log) };
  const server = makeServer<ConnectionInitMessage['payload'], GraphqlProtocol>({
    connectionInitWaitTimeout: INIT_TIMEOUT_MS,
    onConnect: (context) => admitInit(context.extra.connection, context, injected),
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
    const protocol = new GraphqlProtocol(connection, dependencies);
    connection.setProtocol(protocol);
    protocol.onClosed = server.opened(protocol, protocol);
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

/**
 * The adapter between a connection and graphql-ws. Messages that a client may not send do not reach graphql-ws, which would
 * close with 4500 for some of them, after which a client does not reconnect. The events of a subscription bypass graphql-ws:
 * they are delivered to the connection.
 */
class GraphqlProtocol implements Protocol, GraphqlWs {
  readonly protocol = GRAPHQL_TRANSPORT_WS_PROTOCOL;
  /** Tells graphql-ws that the socket is closed. */
  onClosed: () => Promise<void> = async () => {};
  readonly #operations: OpenOperations;

  constructor(
    readonly connection: SocketConnection,
    private readonly dependencies: Dependencies,
  ) {
    this.#operations = new OpenOperations(connection, dependencies);
  }

  onMessage(handle: (text: string) => Promise<void>): void {
    this.#operations.graphqlWsHandler = handle;
  }

  send(text: string): Promise<void> {
    return this.connection.send(spliceTexts(text));
  }

  close(code: number): void {
    this.connection.close(code as CloseCode, closeReasons[code] ?? '');
  }

  receive(text: string | null): void {
    const message = text === null ? null : readMessage(text);
    if (message) this.#operations.handle(message, (text?.length ?? 0) * PARSED_BYTES);
    else this.close(closeCodes.badRequest);
  }

  stop(): void {
    this.#operations.stop();
    closeOnFailure(this.connection, this.onClosed());
  }

  /** Counts, authorizes, parses and validates an operation, and creates its context; or returns the errors that reject it. */
  async prepare(id: string, payload: SubscribePayload): Promise<ExecutionArgs | GraphQLError[]> {
    const connection = this.connection;
    const { rateLimits, getEnveloped, trusted, documents } = this.dependencies;
    const operation = this.#operations.find(id);
    try {
      if (!operation) throw new Error('the operation is not known');
      // The limit is checked before the first `await`: of many operations at once, the first ones start.
      this.#operations.requireRoom(operation);
      if (connection.viewer) await rateLimits.spendUser(connection.viewer.userId);
      await operation.acquirePermit(payload);
      const hash = readHash(payload);
      const { userId } = await connection.authorize();
      if (hash === null) await documents.takeTurn(userId, payload.query);
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
    this.#operations.find(id)?.releasePermit();
  }

  formatResult(id: string, result: ExecutionResult, payload: SubscribePayload): FormattedExecutionResult {
    return result.errors ? { ...result, errors: this.formatErrors(id, result.errors, payload) } : (result as FormattedExecutionResult);
  }

  /** An error ends a subscription for good: in an outage the socket is closed instead, so that the client reconnects. */
  formatErrors(id: string, errors: readonly GraphQLError[], payload: SubscribePayload): GraphQLFormattedError[] {
    const formatted = formatErrors(errors, this.connection.log);
    this.#operations.find(id)?.recordErrors(formatted);
    const isOutage = formatted.some(({ extensions }) => extensions?.code === 'service_unavailable');
    if (isOutage && this.#isSubscription(payload)) this.connection.close(closeCodes.tryAgainLater, 'service_unavailable');
    // graphql-ws holds the payload until the errors are sent, for which they may have to wait; its objects take many times its text.
    Object.assign(payload, { query: '', variables: undefined, extensions: undefined });
    return formatted;
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
