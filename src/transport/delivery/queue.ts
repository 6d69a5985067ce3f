/** The connection of a queue. */
interface Writable {
  writeQueue: WriteQueue | null;
  /** Calls back when everything that is buffered now has been passed to the kernel. */
  afterWriting(callback: () => void): void;
}

/** A delivery that waits until its connection can write more. */
export interface QueuedDelivery {
  /** Writes once. Resolves when the next delivery may write. */
  writeNext(): Promise<void>;
}

/**
 * The deliveries of one connection that have more to send than the peer has read, served first in, first out. Each writes
 * once, after the kernel has taken the write before it: a peer that does not read makes the process buffer one write, however
 * many subscriptions it has.
 */
export class WriteQueue {
  readonly #queue = new Set<QueuedDelivery>();
  #isWriting = false;

  constructor(private readonly connection: Writable) {}

  /** Appends a delivery to its connection's queue. */
  static enqueue(connection: Writable, delivery: QueuedDelivery): void {
    connection.writeQueue ??= new WriteQueue(connection);
    connection.writeQueue.#queue.add(delivery);
    connection.writeQueue.#next();
  }

  /** Removes a delivery that has ended: a peer that does not read would keep in memory whatever it has subscribed to and left. */
  remove(delivery: QueuedDelivery): void {
    this.#queue.delete(delivery);
  }

  #next(): void {
    if (this.#isWriting) return;
    if (this.#queue.size === 0) {
      this.connection.writeQueue = null;
      return;
    }
    this.#isWriting = true;
    this.connection.afterWriting(() => {
      const onWritten = () => {
        this.#isWriting = false;
        this.#next();
      };
      const [next] = this.#queue;
      if (!next) return onWritten();
      this.#queue.delete(next);
      next.writeNext().then(onWritten, onWritten);
    });
  }
}
