import {
  type ExecutionArgs,
  type ExecutionResult,
  type FormattedExecutionResult,
  GraphQLError,
  type GraphQLFormattedError,
  getOperationAST,
  Kind,
  type OperationDefinitionNode,
  OperationTypeNode,
} from 'graphql';
import {
  type ConnectionInitMessage,
  type Message,
  MessageType,
  type SubscribeMessage,
  type SubscribePayload,
  validateMessage,
} from 'graphql-ws';
import { readBearerText } from '../../access/credential.ts';
import type { Limits } from '../../access/limits.ts';
import { identify } from '../../access/viewer.ts';
import { Source } from '../../graph/source.ts';
import { Fault } from '../../kernel/fault.ts';
import { exceedsDepth } from '../../kernel/json.ts';
import type { Log } from '../../platform/log.ts';
import type { Metrics } from '../../platform/metrics.ts';
import { type Form, Forms, nameForm, openSource, type ToText } from '../fanout.ts';
import type { Enveloped, GetEnveloped } from '../graphql/door.ts';
import { checkOperation } from '../graphql/guards.ts';
import { maskError } from '../graphql/mask.ts';
import { describeOperation } from '../graphql/operation.ts';
import { closeCodes } from './close.ts';
import type { Connection, ConnectionParts, Protocol } from './connection.ts';
import { Delivery, type DeliveryOwner } from './delivery.ts';
import type { Envelope } from './frames.ts';

const INIT_TIMEOUT_MS = 5_000;
const MAX_SUBSCRIPTIONS = 50;
const MAX_MESSAGE_DEPTH = 520;

interface GraphqlSocketParts extends ConnectionParts {
  readonly limits: Limits;
  readonly metrics: Metrics;
  readonly getEnveloped: GetEnveloped;
}

/** The graphql-transport-ws protocol over Yoga's pipeline: the same guards, context and masking as over HTTP. */
export function createGraphqlSockets(given: GraphqlSocketParts): (connection: Connection) => void {
  const parts = { ...given, forms: new Forms() };
  return (connection) => connection.speak(new GraphqlSocket(connection, parts));
}

type Parts = GraphqlSocketParts & { readonly forms: Forms };

/** An operation under way, by the client's name for it: a subscription that has begun is a Delivery. */
interface Operation {
  readonly id: string;
}

const nextMessage: Envelope = { head: (id) => `{"id":${JSON.stringify(id)},"type":"next","payload":`, tail: '}' };

/**
 * One socket's side of the protocol. It is written out here, where graphql-ws would keep for each subscription its
 * request, its document's text and a chain of waiting functions: what a subscription needs is its id, its form, which it
 * shares, and its source.
 */
class GraphqlSocket implements Protocol, DeliveryOwner {
  readonly #connection: Connection;
  readonly #parts: Parts;
  /** Most sockets have one, and none has many. */
  #operations: readonly Operation[] = [];
  #initTimer: NodeJS.Timeout | null;
  #isAcknowledged = false;

  constructor(connection: Connection, parts: Parts) {
    this.#connection = connection;
    this.#parts = parts;
    this.#initTimer = setTimeout(() => connection.close(closeCodes.initTimeout, 'connection_init_timeout'), INIT_TIMEOUT_MS);
  }

  receive(text: string | null): void {
    const message = text === null ? null : readMessage(text);
    switch (message?.type) {
      case MessageType.ConnectionInit:
        return this.#run(() => this.#init(message));
      case MessageType.Ping:
        return this.#say({ type: MessageType.Pong, ...(message.payload && { payload: message.payload }) });
      case MessageType.Pong:
        return;
      case MessageType.Subscribe:
        return this.#run(() => this.#begin(message));
      case MessageType.Complete:
        return this.#forget(message.id);
      default:
        return this.#connection.close(closeCodes.badRequest, 'invalid_message');
    }
  }

  finish(): void {
    if (this.#initTimer) clearTimeout(this.#initTimer);
    for (const { id } of this.#operations) this.#forget(id);
  }

  endDelivery(delivery: Delivery, failure: unknown): void {
    if (failure) this.#fail(delivery.id, toMessages([failure], this.#connection.log), true);
    else this.#complete(delivery.id);
  }

  #find(id: string): Operation | undefined {
    return this.#operations.find((operation) => operation.id === id);
  }

  #forget(id: string): void {
    const operation = this.#find(id);
    if (operation instanceof Delivery) operation.stop();
    this.#operations = this.#operations.filter((operation) => operation.id !== id);
  }

  #run(work: () => Promise<void>): void {
    work().catch((failure: unknown) => {
      if (!this.#connection.isOpen) return;
      this.#connection.log.error({ err: failure }, 'a socket message failed');
      this.#connection.close(closeCodes.tryAgainLater, 'internal_error');
    });
  }

  /** A message that cannot be sent was for a socket that is closing. */
  #say(message: Message): void {
    this.#connection.send(JSON.stringify(message)).catch(() => {});
  }

  async #init({ payload }: ConnectionInitMessage): Promise<void> {
    if (!this.#initTimer) return this.#connection.close(closeCodes.tooManyMessages, 'too_many_connection_inits');
    clearTimeout(this.#initTimer);
    this.#initTimer = null;
    if (!(await this.#identify(payload ?? {}))) return;
    this.#isAcknowledged = true;
    this.#say({ type: MessageType.ConnectionAck });
  }

  /** Without a credential at the upgrade, the first message brings one: `{ "authorization": "Bearer …" }`. */
  async #identify({ authorization, Authorization, token }: Record<string, unknown>): Promise<boolean> {
    const connection = this.#connection;
    if (connection.viewer) return true;
    try {
      const given = authorization ?? Authorization ?? (typeof token === 'string' ? `Bearer ${token}` : undefined);
      if (given === undefined) {
        connection.close(closeCodes.unauthorized, 'not_authenticated');
        return false;
      }
      connection.viewer = await identify(this.#parts.database, this.#parts.tokens, readBearerText(given));
      connection.watch();
      return true;
    } catch (failure) {
      const fault = Fault.from(failure);
      const isOutage = fault.code === 'service_unavailable' || fault.code === 'internal_error';
      connection.close(isOutage ? closeCodes.tryAgainLater : closeCodes.comeBackWithFreshCredential, fault.code);
      return false;
    }
  }

  async #begin({ id, payload }: SubscribeMessage): Promise<void> {
    const connection = this.#connection;
    if (!this.#isAcknowledged) return connection.close(closeCodes.unauthorized, 'not_authenticated');
    if (this.#find(id)) return connection.close(closeCodes.idInUse, 'id_in_use');
    const operation: Operation = { id };
    this.#operations = [...this.#operations, operation];
    // The client may have completed it meanwhile, and have begun another by the same id.
    const isWanted = () => this.#operations.includes(operation);
    const prepared = await this.#prepare(payload);
    if (Array.isArray(prepared)) return isWanted() ? this.#fail(id, toMessages(prepared, connection.log)) : undefined;
    const { args, enveloped, form } = prepared;
    const result = await (form ? openSource(args) : enveloped.execute(args));
    if (form && result instanceof Source) {
      if (isWanted()) this.#deliver(operation, result, form);
      else result.end();
      return;
    }
    const openLog = () => connection.log;
    if (isWanted()) this.#answer(id, toPayload(result as ExecutionResult, openLog), form !== null);
  }

  /** One operation: counted, parsed, validated and given its context; or the errors that refuse it. */
  async #prepare(payload: SubscribePayload): Promise<Prepared | GraphQLError[]> {
    const connection = this.#connection;
    const { limits, getEnveloped, metrics, forms } = this.#parts;
    try {
      const viewer = connection.viewer;
      if (!viewer) throw Fault.notAuthenticated();
      await limits.spendUser(viewer.userId);
      if (this.#operations.length > MAX_SUBSCRIPTIONS)
        throw Fault.invalidRequest(`A socket carries at most ${MAX_SUBSCRIPTIONS} operations.`);
      const enveloped = getEnveloped({ openContext: () => connection.openContext() });
      const document = enveloped.parse(payload.query);
      const errors = enveloped.validate(enveloped.schema, document);
      if (errors.length > 0) return [...errors];
      const operation = getOperationAST(document, payload.operationName);
      if (!operation) return [new GraphQLError('Unable to identify operation')];
      if (connection.onlyProject) checkTicketOperation(operation);
      const args = {
        schema: enveloped.schema,
        document,
        operationName: payload.operationName,
        variableValues: payload.variables,
        contextValue: await enveloped.contextFactory(),
      };
      const error = checkOperation(args);
      if (error) return [error];
      metrics.socketOperations.inc({ operation: describeOperation(document, payload.operationName) });
      const isSubscription = operation.operation === OperationTypeNode.SUBSCRIPTION;
      const form = isSubscription ? forms.of(nameForm(payload.query, operation, payload.variables ?? {}), args, toText) : null;
      return { args, enveloped, form };
    } catch (failure) {
      return [maskError(failure, connection.log)];
    }
  }

  #deliver(operation: Operation, source: Source, form: Form): void {
    const delivery = new Delivery(this.#connection, { source, form, id: operation.id, envelope: nextMessage, owner: this });
    this.#operations = this.#operations.map((other) => (other === operation ? delivery : other));
    delivery.hear();
  }

  #answer(id: string, payload: FormattedExecutionResult, isSubscription: boolean): void {
    if (isSubscription && this.#isOutage(payload.errors)) return;
    this.#say({ id, type: MessageType.Next, payload });
    this.#complete(id);
  }

  #complete(id: string): void {
    this.#say({ id, type: MessageType.Complete });
    this.#forget(id);
  }

  #fail(id: string, errors: readonly GraphQLFormattedError[], isSubscription = false): void {
    if (isSubscription && this.#isOutage(errors)) return;
    this.#say({ id, type: MessageType.Error, payload: errors });
    this.#forget(id);
  }

  /** To its client an error is the end of a subscription for good; a closed socket makes it come back. */
  #isOutage(errors: readonly GraphQLFormattedError[] = []): boolean {
    const isOutage = errors.some(({ extensions }) => extensions?.code === 'service_unavailable');
    if (isOutage) this.#connection.close(closeCodes.tryAgainLater, 'service_unavailable');
    return isOutage;
  }
}

interface Prepared {
  readonly args: ExecutionArgs;
  readonly enveloped: Enveloped;
  /** How a subscription's events are told; null for another operation. */
  readonly form: Form | null;
}

const clientMessages = new Set<unknown>([
  MessageType.ConnectionInit,
  MessageType.Ping,
  MessageType.Pong,
  MessageType.Subscribe,
  MessageType.Complete,
]);

/** A message that a client may send; null for anything else. */
function readMessage(text: string): Message | null {
  try {
    const message = validateMessage(JSON.parse(text));
    return clientMessages.has(message.type) && !exceedsDepth(message, MAX_MESSAGE_DEPTH) ? message : null;
  } catch {
    return null;
  }
}

function toPayload(result: ExecutionResult, openLog: () => Log): FormattedExecutionResult {
  return result.errors ? { ...result, errors: toMessages(result.errors, openLog()) } : result;
}

/** What concerns HTTP alone stays out of a socket's messages. */
function toMessages(errors: readonly unknown[], log: Log): GraphQLFormattedError[] {
  return errors.map((error) => {
    const { extensions: { http, ...extensions } = {}, ...rest } = maskError(error, log).toJSON();
    return { ...rest, extensions };
  });
}

const toText: ToText = (result, context) => JSON.stringify(toPayload(result, context.openLog));

const ticketFields = new Set(['notificationFeed', 'renewCredential', '__typename']);

/** A ticket reaches its target's subscription, and the renewal of the credential: nothing else. */
function checkTicketOperation({ selectionSet }: OperationDefinitionNode): void {
  const isAllowed = selectionSet.selections.every((selection) => selection.kind === Kind.FIELD && ticketFields.has(selection.name.value));
  if (!isAllowed) throw Fault.permissionDenied('A socket that a ticket opened carries its feed and renewCredential only.');
}
