import type { GraphQLFormattedError } from 'graphql';
import type { SubscribeMessage, SubscribePayload } from 'graphql-ws';
import type { Services } from '../../graph/context.ts';
import { recordDuration } from '../../kernel/duration.ts';
import { stringifyJson } from '../../kernel/json/text.ts';
import type { Permit } from '../../kernel/semaphore.ts';
import type { Metrics } from '../../platform/metrics.ts';
import type { SlowLog } from '../../platform/slowlog.ts';
import { addCode } from '../http/exchange.ts';
import type { SocketConnection } from './connection.ts';
import type { Subscription } from './subscription.ts';

export interface OperationDependencies {
  readonly services: Pick<Services, 'semaphore'>;
  readonly metrics: Metrics;
  readonly slowLog: SlowLog;
}

/** An operation of a GraphQL socket, from its `subscribe` message until graphql-ws has finished it. */
export class SocketOperation {
  /** Whether the client has sent `complete`, or the operation exceeds the limit. */
  isCompleted = false;
  /** Set when its delivery has started. */
  subscription: Subscription | null = null;
  readonly #startedAt = performance.now();
  /** Its kind and the name of its root field, as in the metrics. */
  #label = 'none';
  /** How long it has waited for others of its user. */
  #waitedMs = 0;
  /** The codes of the errors in its result, each once; null without errors. */
  #errorCodes: readonly string[] | null = null;
  /** The permit that it waits for. */
  #awaited: Permit | null = null;
  /** The permit that it runs with. */
  #permit: Permit | null = null;
  /** A `subscribe` message with the same id, sent after `complete`: it is handled when this operation has finished. */
  #next: SubscribeMessage | null = null;
  /** The memory that is counted for it. */
  #nextBytes = 0;

  constructor(
    readonly id: string,
    private readonly connection: SocketConnection,
    private readonly dependencies: OperationDependencies,
  ) {}

  /** Whether nobody wants its result any more. */
  get isAbandoned(): boolean {
    return this.isCompleted || !this.connection.isOpen;
  }

  /** Waits for a permit of the user's semaphore. The credential is checked afterwards. */
  async acquirePermit(payload: SubscribePayload): Promise<void> {
    const { semaphore } = this.dependencies.services;
    const permit = semaphore.acquire(this.connection.permitKey, () => Buffer.byteLength(stringifyJson(payload)));
    this.#awaited = permit;
    if (this.isAbandoned) this.withdraw();
    if (permit.acquired) await recordDuration(permit.acquired, (milliseconds) => this.recordWait(milliseconds));
    this.#awaited = null;
    this.#permit = permit;
  }

  /** Gives up the permit that the operation waits for. */
  withdraw(): void {
    this.#awaited?.release();
  }

  /** Lets the user's next operation begin. Without effect until this one may begin, and a second time. */
  releasePermit(): void {
    const permit = this.#permit;
    if (!permit) return;
    this.#permit = null;
    permit.release();
    this.#recordDuration();
  }

  /** Ends what it does, as the socket closes. */
  stop(): void {
    this.subscription?.delivery?.stop();
    this.withdraw();
  }

  recordWait(milliseconds: number): void {
    this.#waitedMs += milliseconds;
  }

  /** Counts the operation under its label. */
  setLabel(label: string): void {
    this.#label = label;
    this.dependencies.metrics.socketOperations.inc({ operation: label });
  }

  recordErrors(errors: readonly GraphQLFormattedError[]): void {
    const codes = errors.reduce<string[]>((found, { extensions }) => addCode(found, String(extensions?.code)), []);
    this.#errorCodes = codes;
    for (const code of codes) this.dependencies.metrics.errors.inc({ operation: this.#label, code });
  }

  /** Measures the operation, and logs it if it has taken long. Of a subscription this is its beginning. */
  #recordDuration(): void {
    const { logFields, viewer } = this.connection;
    const operation = this.#label;
    const duration = performance.now() - this.#startedAt;
    this.dependencies.metrics.socketOperationDuration.observe({ operation }, duration / 1000);
    const describe = () => ({
      ...logFields,
      operation,
      error_codes: this.#errorCodes ?? undefined,
      waited_ms: Math.round(this.#waitedMs) || undefined,
      user_id: viewer?.userId,
    });
    this.dependencies.slowLog.report(duration, describe, 'a slow operation', 'info');
  }

  get hasNext(): boolean {
    return this.#next !== null;
  }

  /** Keeps a message until the operation has finished, which may have to wait for the peer to read; null drops it. */
  setNext(message: SubscribeMessage | null, bytes = 0): void {
    this.connection.reserve(bytes - this.#nextBytes);
    this.#next = message;
    this.#nextBytes = bytes;
  }

  /** Returns the message that was kept, with its memory, which is no longer counted. */
  takeNext(): { readonly message: SubscribeMessage; readonly bytes: number } | null {
    const message = this.#next;
    const bytes = this.#nextBytes;
    this.setNext(null);
    return message && { message, bytes };
  }
}
