import type { Consumer, Source } from '../../graph/source.ts';
import { turns } from '../../kernel/turns.ts';
import type { SocketConnection } from '../sockets/connection.ts';
import { type Envelope, frameTexts, holdFrames } from './frames.ts';
import { type QueuedDelivery, WriteQueue } from './queue.ts';
import type { EventRenderer } from './renderer.ts';

/** A write ends with the event that reaches this size. */
const MAX_WRITE_BYTES = 64 * 1024;
/** A write ends with the event at which rendering has taken so long. Most events are rendered within a twentieth of it. */
const SLOW_MS = 1;
/** How long a delivery counts as slow, so that fast events in between do not hide slow ones. */
const SLOW_FOR_MS = 60_000;

interface DeliveryOptions {
  readonly envelope: Envelope;
  /** The client's id of the subscription, where the protocol has one. */
  readonly id?: string;
  /** Called once with the failure, if any, when the source has ended by itself. */
  readonly onEnd: ((failure: unknown) => void) | null;
}

/**
 * Delivers the events of a source to a connection as fast as its peer reads. While nothing is buffered for the peer, the
 * events in memory are sent at once, in one write. Otherwise the delivery waits in the connection's write queue, and
 * meanwhile reads and fetches nothing from the source. So does one whose events took long to render, as they may repeat a text under
 * many aliases: each of its writes takes a turn of the source's user.
 */
export class Delivery implements Consumer, QueuedDelivery {
  #isQueued = false;
  #isWriting = false;
  /** Null for a delivery that has never been slow. */
  #slowUntil: number | null = null;
  readonly #envelope: Envelope;

  readonly id: string;
  /** Null after it was called, and after `stop`. */
  #onEnd: DeliveryOptions['onEnd'];

  constructor(
    private readonly connection: SocketConnection,
    private readonly source: Source,
    private readonly renderer: EventRenderer,
    { envelope, id = '', onEnd }: DeliveryOptions,
  ) {
    this.#envelope = envelope;
    this.id = id;
    this.#onEnd = onEnd;
    source.consumer = this;
  }

  /** Sends what there is already; from then on the source says when there is more. */
  start(): void {
    this.onReadable();
  }

  /** Sends the events that are available. */
  onReadable(): void {
    if (this.#isWriting) return;
    if (this.source.isEnded) this.#finish();
    else if (this.#isQueued) return;
    else if (this.#isSlow) this.#enqueue();
    else this.#deliver();
  }

  /** Ends the delivery without notifying its owner. */
  stop(): void {
    this.#onEnd = null;
    this.source.end();
  }

  async writeNext(): Promise<void> {
    if (this.source.needsFetch && !this.connection.hasPendingBytes) await this.source.fetch();
    if (this.#isSlow) await turns.take(this.source.turnKey);
    this.#isQueued = false;
    if (!this.source.isEnded) this.#deliver();
  }

  #deliver(): void {
    if (!this.connection.isOpen) return;
    const isDone = !this.connection.hasPendingBytes && this.#write();
    if (this.source.isEnded) return this.#finish();
    if (isDone && !this.source.needsFetch) return;
    // Fetched events would stay in memory until the peer reads; they can be fetched from the log again.
    if (this.connection.hasPendingBytes) this.source.release();
    this.#enqueue();
  }

  get #isSlow(): boolean {
    return this.#slowUntil !== null && performance.now() < this.#slowUntil;
  }

  #enqueue(): void {
    this.#isQueued = true;
    WriteQueue.enqueue(this.connection, this);
  }

  /** Writes once. Returns whether no event is left in memory. */
  #write(): boolean {
    this.#isWriting = true;
    const texts: Buffer[] = [];
    const isDone = this.#render(texts);
    this.#isWriting = false;
    if (texts.length > 0 && !this.connection.write(frameTexts(texts, this.#envelope, this.id))) holdFrames();
    return isDone;
  }

  #render(texts: Buffer[]): boolean {
    let tookMs = 0;
    try {
      for (let size = 0; size < MAX_WRITE_BYTES; ) {
        const event = this.source.read();
        if (!event) return true;
        const text = this.renderer.render(event, () => this.connection.openContext());
        texts.push(text);
        size += text.length;
        tookMs += this.renderer.lastTookMs;
        if (tookMs <= SLOW_MS) continue;
        this.#slowUntil = performance.now() + SLOW_FOR_MS;
        return false;
      }
      return false;
    } catch (failure) {
      this.source.end(failure);
      return true;
    }
  }

  #finish(): void {
    this.connection.writeQueue?.remove(this);
    const onEnd = this.#onEnd;
    this.#onEnd = null;
    onEnd?.(this.source.failure);
  }
}
