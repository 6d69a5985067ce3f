import { setImmediate as nextImmediate } from 'node:timers/promises';
import { type GraphQLResolveInfo, responsePathAsArray } from 'graphql';
import type { FairLimit } from '../kernel/fairlimit.ts';
import { stringifyJsonParts } from '../kernel/json/text.ts';
import { type LimitExceeded, responseTooLarge } from './responseoverflow.ts';

/** A row with the size of its heavy columns in bytes, whether they were read or not. */
export interface Sized {
  readonly bytes: number | null;
}

/**
 * Reads rows, with the heavy columns of as many of the first rows as fit in `bytesLeft`; with null, of none. Throws
 * `invalid_request` when the lists of the response together exceed its budget.
 */
export type ReadWithinBudget = <Row extends Sized>(load: (bytesLeft: number | null) => Promise<Row[]>) => Promise<Row[]>;

interface BudgetDependencies {
  readonly maxBytes: number;
  /** Runs a task when one of the slots for large responses is free; the slot is taken until the task has ended. */
  readonly runInSlot: (task: () => Promise<void>) => Promise<void>;
  /** Called after a wait for the slot, in milliseconds; rejects if the request may go on no longer. */
  readonly admitAfter: (waitedMs: number) => Promise<void>;
}

/** A list up to this size is read at once; a larger one first waits for a slot among the large responses of the process. */
const SMALL_BYTES = 256 * 1024;
/** A slot is released after this time, whatever the state of the response. */
const MAX_SLOT_MS = 10_000;

/**
 * The bytes that all lists of one request may read together. Lists are read one after another, so that a document with many
 * lists holds no more memory than a document with one. A large response waits for a slot and holds it until it is serialized,
 * so that large responses take neither the memory nor the database from the others.
 */
export class ResponseBudget {
  /** The list that exceeded the budget; null while there is none. */
  exceeded: LimitExceeded | null = null;
  readonly #dependencies: BudgetDependencies;
  #bytesLeft: number;
  #previousRead: Promise<unknown> | null = null;
  #releaseSlot: (() => void) | null = null;
  #isSerializing = false;
  #isClosed = false;
  /** Why the request may go on no longer; null while it may. */
  #refusal: { readonly cause: unknown } | null = null;

  constructor(dependencies: BudgetDependencies) {
    this.#bytesLeft = dependencies.maxBytes;
    this.#dependencies = dependencies;
  }

  read<Row extends Sized>(path: GraphQLResolveInfo['path'], load: (bytesLeft: number) => Promise<Row[]>): Promise<Row[]> {
    const previous = this.#previousRead;
    const rows = previous ? previous.then(() => this.#readNext(path, load)) : this.#readNext(path, load);
    this.#previousRead = rows.catch(() => {});
    return rows;
  }

  /** Whether the response is large and holds a slot. */
  get isLarge(): boolean {
    return this.#releaseSlot !== null;
  }

  /** The JSON text of a large response, in UTF-8. Each step blocks the event loop for some milliseconds; other work runs in between. */
  async serialize(body: unknown): Promise<Buffer> {
    this.#isSerializing = true;
    try {
      await nextImmediate();
      const parts = stringifyJsonParts(body);
      await nextImmediate();
      return await toBytes(parts);
    } finally {
      this.#isSerializing = false;
      this.close();
    }
  }

  /** Reads nothing more. When a field has failed, lists beside it may still be pending. */
  stopReading(): void {
    this.#isClosed = true;
  }

  /** Reads nothing more, and releases the slot, unless the response is being serialized. */
  close(): void {
    if (this.#isSerializing) return;
    this.stopReading();
    this.#releaseSlot?.();
    this.#releaseSlot = null;
  }

  async #readNext<Row extends Sized>(path: GraphQLResolveInfo['path'], load: (bytesLeft: number) => Promise<Row[]>): Promise<Row[]> {
    if (this.#isClosed) return [];
    if (this.exceeded) throw responseTooLarge(this.exceeded);
    if (this.#refusal) throw this.#refusal.cause;
    const hasSlot = this.isLarge;
    // All lists together may take this much without a slot.
    const smallLeft = Math.max(0, SMALL_BYTES - (this.#dependencies.maxBytes - this.#bytesLeft));
    let rows = await load(hasSlot ? this.#bytesLeft : Math.min(this.#bytesLeft, smallLeft));
    if (this.#isClosed) return [];
    let bytes = sumBytes(rows);
    if (!hasSlot && bytes > smallLeft && bytes <= this.#bytesLeft) {
      // The rows are dropped while the response waits, as many responses may wait, and read again when it has a slot.
      rows = [];
      await this.#waitForSlot();
      if (this.#isClosed) return rows;
      rows = await load(this.#bytesLeft);
      bytes = sumBytes(rows);
    }
    if (bytes > this.#bytesLeft) {
      this.exceeded = { maxBytes: this.#dependencies.maxBytes, path: namesOf(path) };
      throw responseTooLarge(this.exceeded);
    }
    this.#bytesLeft -= bytes;
    return rows;
  }

  /** Waits for a slot, which a response that has ended meanwhile releases. Throws if the request may go on no longer: nothing more is read. */
  async #waitForSlot(): Promise<void> {
    const waitedSince = performance.now();
    await this.#acquireSlot();
    try {
      if (!this.#isClosed) await this.#dependencies.admitAfter(performance.now() - waitedSince);
    } catch (cause) {
      this.#refusal = { cause };
      throw cause;
    } finally {
      if (this.#isClosed) this.close();
    }
  }

  #acquireSlot(): Promise<void> {
    return new Promise((resolve) => {
      const occupy = (release: () => void) => {
        const timer = setTimeout(release, MAX_SLOT_MS);
        this.#releaseSlot = () => {
          clearTimeout(timer);
          release();
        };
        resolve();
      };
      void this.#dependencies.runInSlot(() => new Promise<void>(occupy));
    });
  }
}

/** The bytes that are encoded in a step: a millisecond's work. */
const STEP_BYTES = 512 * 1024;

/** Joins texts into one buffer, in UTF-8, in steps. */
async function toBytes(parts: readonly string[]): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(parts.reduce((sum, part) => sum + Buffer.byteLength(part), 0));
  let at = 0;
  let stepEnd = STEP_BYTES;
  for (const part of parts) {
    at += bytes.write(part, at);
    if (at < stepEnd) continue;
    stepEnd = at + STEP_BYTES;
    await nextImmediate();
  }
  return bytes;
}

function sumBytes(rows: readonly Sized[]): number {
  return rows.reduce((sum, { bytes }) => sum + (bytes ?? 0), 0);
}

/** The limits of the responses of a process. */
export interface ResponseLimits {
  /** The size of one response, as JSON text. */
  readonly maxBytes: number;
  /** The large responses that are read at once, by user. */
  readonly largeResponses: FairLimit;
}

/** The part of a request's context that limits its response. */
export interface ResponseContext {
  readonly services: { readonly responseLimits: ResponseLimits };
  /** The budget that all lists of the request share. */
  openResponseBudget(): ResponseBudget;
  /** The budget, or null if no list has opened it. */
  findResponseBudget(): ResponseBudget | null;
  /** The JSON text of the response. A large response is serialized in steps, with other work in between. */
  serializeResponse(body: unknown): string | Promise<Buffer>;
}

function namesOf(path: GraphQLResolveInfo['path']): string[] {
  return responsePathAsArray(path).filter((key) => typeof key === 'string');
}
