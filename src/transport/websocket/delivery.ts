import type { Listener, Source } from '../../graph/source.ts';
import type { Form } from '../fanout.ts';
import type { Connection } from './connection.ts';
import { type Envelope, frameTexts, holdFrames } from './frames.ts';

/** What one write may hold, but for a single event that is larger. */
const MAX_WRITE_BYTES = 64 * 1024;

export interface DeliveryParts {
  readonly source: Source;
  readonly form: Form;
  /** The client's name for the subscription; empty where it has no need of one. */
  readonly id: string;
  readonly envelope: Envelope;
  readonly owner: DeliveryOwner;
}

export interface DeliveryOwner {
  /** Called once, when a source has ended by itself. */
  endDelivery(delivery: Delivery, failure: unknown): void;
}

/**
 * Brings a source's events to a connection as fast as its peer reads: all that there is, in one write, and what comes
 * meanwhile when that has gone to the kernel.
 */
export class Delivery implements Listener {
  readonly id: string;
  readonly #connection: Connection;
  readonly #source: Source;
  readonly #form: Form;
  readonly #envelope: Envelope;
  /** Null when it has been told of the end, or does not want to be. */
  #owner: DeliveryOwner | null;
  /** While something is being taken, or is on its way to the kernel. */
  #isBusy = false;

  constructor(connection: Connection, { source, form, id, envelope, owner }: DeliveryParts) {
    this.#connection = connection;
    this.#source = source;
    this.#form = form;
    this.id = id;
    this.#envelope = envelope;
    this.#owner = owner;
    source.listener = this;
  }

  /** Sends what there is; the first call begins it. */
  hear(): void {
    if (this.#isBusy) return;
    this.#isBusy = true;
    const texts: Buffer[] = [];
    const isAll = this.#take(texts);
    const isWritten = texts.length === 0 || this.#connection.write(frameTexts(texts, this.#envelope, this.id));
    if (!isWritten) holdFrames();
    // Where there is more, the next socket is told as much first: it is sent the same bytes.
    if (!isWritten || !isAll) return this.#connection.afterWriting(() => this.#goOn());
    this.#isBusy = false;
    if (!this.#source.isEnded) return;
    const owner = this.#owner;
    this.#owner = null;
    owner?.endDelivery(this, this.#source.failure);
  }

  /** Nobody wants to hear more. */
  stop(): void {
    this.#owner = null;
    this.#source.end();
  }

  #goOn(): void {
    this.#isBusy = false;
    this.hear();
  }

  /** Takes the texts for one write; returns whether that was all there is. */
  #take(texts: Buffer[]): boolean {
    if (!this.#connection.isOpen) return true;
    // Of many subscriptions, each adds no more than an event to what waits already.
    const limit = this.#connection.isWaiting ? 1 : MAX_WRITE_BYTES;
    try {
      for (let size = 0; size < limit; ) {
        const event = this.#source.take();
        if (!event) return true;
        const text = this.#form.tell(event, () => this.#connection.openContext());
        texts.push(text);
        size += text.length;
      }
      return false;
    } catch (failure) {
      this.#source.end(failure);
      return true;
    }
  }
}
