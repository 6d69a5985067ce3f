import { type Message, MessageType, type SubscribeMessage } from 'graphql-ws';
import { Fault } from '../../kernel/fault.ts';
import { closeCodes } from './close.ts';
import type { SocketConnection } from './connection.ts';
import { type OperationDependencies, SocketOperation } from './operation.ts';

const MAX_OPERATIONS = 50;
/** The maximum of operations including those that the client has completed and that have not finished yet. */
const MAX_WITH_COMPLETED = 2 * MAX_OPERATIONS;
/** How many operations may not have finished, also of those that were refused: a peer that does not read keeps each in memory. */
const MAX_UNFINISHED = 4 * MAX_OPERATIONS;

/** The operations of a GraphQL socket that have not finished, each with an id of its own, and the messages that start and complete them. */
export class OpenOperations {
  /** The handler of graphql-ws. Resolves when the message is handled: of a `subscribe` message, when its operation has finished. */
  graphqlWsHandler: (text: string) => Promise<void> = async () => {};
  /** An array, as most sockets have one operation, and none has many. */
  #operations: readonly SocketOperation[] = [];

  constructor(
    private readonly connection: SocketConnection,
    private readonly dependencies: OperationDependencies,
  ) {}

  find(id: string): SocketOperation | undefined {
    return this.#operations.find((one) => one.id === id);
  }

  /** Throws `invalid_request` for the newest operation, and completes it, where the socket carries too many with it. */
  requireRoom(newest: SocketOperation): void {
    const open = this.#operations.filter(({ isCompleted }) => !isCompleted).length;
    if (open <= MAX_OPERATIONS && this.#operations.length <= MAX_WITH_COMPLETED) return;
    newest.isCompleted = true;
    throw Fault.invalidRequest(`A socket carries at most ${MAX_OPERATIONS} operations.`);
  }

  /**
   * Starts or completes an operation; graphql-ws alone handles any other message. A `subscribe` message with the id of an operation that
   * is completed waits until that one has finished. `bytes` is the memory that the message may take.
   */
  handle(message: Message, bytes: number): void {
    const operation = 'id' in message ? this.find(message.id) : undefined;
    if (message.type === MessageType.Subscribe) {
      if (operation?.isCompleted && !operation.hasNext) operation.setNext(message, bytes);
      else if (operation) this.connection.close(closeCodes.idInUse, 'id_in_use');
      else if (this.#operations.length >= MAX_UNFINISHED) this.connection.close(closeCodes.tooManyMessages, 'too_many_operations');
      else this.#start(message);
      return;
    }
    if (message.type === MessageType.Complete && operation?.isCompleted) {
      // A second `complete` withdraws the operation that waits for this one to finish.
      operation.setNext(null);
      return;
    }
    if (message.type === MessageType.Complete && operation) operation.isCompleted = true;
    closeOnFailure(this.connection, this.#forward(message));
    if (operation?.isCompleted) operation.withdraw();
  }

  /** Ends all operations, as the socket closes. */
  stop(): void {
    for (const operation of this.#operations) operation.stop();
  }

  #start(message: SubscribeMessage): void {
    const operation = new SocketOperation(message.id, this.connection, this.dependencies);
    this.#operations = [...this.#operations, operation];
    const finished = this.#forward(message).finally(() => {
      operation.releasePermit();
      this.#operations = this.#operations.filter((one) => one !== operation);
      const next = operation.takeNext();
      if (next && this.connection.isOpen) this.handle(next.message, next.bytes);
    });
    closeOnFailure(this.connection, finished);
  }

  /** graphql-ws accepts a parsed message too, in spite of its types; it would hold a string in memory with the operation. */
  #forward(message: Message): Promise<void> {
    return this.graphqlWsHandler(message as unknown as string);
  }
}

/** Closes a connection if graphql-ws fails, which is a bug, unless the socket is closing, when messages cannot be sent. */
export function closeOnFailure(connection: SocketConnection, work: Promise<void>): void {
  work.catch((failure: unknown) => {
    if (!connection.isOpen) return;
    connection.log.error({ err: failure }, 'a socket message failed');
    connection.close(closeCodes.tryAgainLater, 'internal_error');
  });
}
