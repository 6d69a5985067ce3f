/** The connection of a queue. */
interface Writable {
  writeQueue: WriteQueue | null;
  /** Calls back when the kernel has taken all that waits now. */
  afterWriting(callBack: () => void): void;
}

/** A delivery that waits until its connection can take more. */
export interface QueuedDelivery {
  /** Sends one write. Resolves when the next in the queue may go on. */
  writeNext(): Promise<void>;
}

/**
 * The deliveries of one connection that have more to send than the peer has read. Each in turn adds one write, once the
 * kernel has taken the write before: so a peer that does not read is owed one write, however many subscriptions it has.
 */
export class WriteQueue {
  readonly #queue: QueuedDelivery[] = [];
  #isWriting = false;

  constructor(private readonly connection: Writable) {}

  /** Queues a delivery, on its connection's own queue. */
  static enqueue(connection: Writable, delivery: QueuedDelivery): void {
    connection.writeQueue ??= new WriteQueue(connection);
    connection.writeQueue.#queue.push(delivery);
    connection.writeQueue.#next();
  }

  #next(): void {
    if (this.#isWriting) return;
    if (this.#queue.length === 0) {
      this.connection.writeQueue = null;
      return;
    }
    this.#isWriting = true;
    this.connection.afterWriting(() => {
      const next = this.#queue.shift();
      const isOver = () => {
        this.#isWriting = false;
        this.#next();
      };
      next?.writeNext().then(isOver, isOver);
    });
  }
}
