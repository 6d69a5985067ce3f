import { setImmediate as nextImmediate } from 'node:timers/promises';
import type { GraphQLResolveInfo } from 'graphql';
import type { LimitFunction } from 'p-limit';
import { Fault } from '../kernel/fault.ts';
import { toJsonParts } from '../kernel/jsontext.ts';
import { exceedsBytes, findExcess } from '../kernel/size.ts';
import { asksFor } from './selection.ts';

/** A row with the bytes of its heavy columns, whether they were read or not. */
export interface Weighed {
  readonly bytes: number | null;
}

/**
 * Reads rows with their heavy columns, of as many of the first rows as `bytesLeft` allows; with null, of none. Throws the
 * refusal of the whole answer where all together go beyond its budget.
 */
export type ReadWeighed = <Row extends Weighed>(load: (bytesLeft: number | null) => Promise<Row[]>) => Promise<Row[]>;

/** Reads rows without their heavy columns. */
export const readLight: ReadWeighed = (load) => load(null);

/** What is read at once; the rows of a larger list are read in turn with those of the other large answers of the process. */
const SMALL_BYTES = 256 * 1024;
/** A place is given back after this time, whatever has become of the answer. */
const MAX_TURN_MS = 10_000;

/**
 * How many bytes the lists of one request may read, all together: they read one after another, so that a document with
 * many of them holds no more than one with a single one. What is more than a small answer waits for its turn, and keeps
 * it until the answer has been worded: large answers take neither the memory nor the database from the others.
 */
export class AnswerBudget {
  /** Where it was spent; null while it lasts. */
  excess: Excess | null = null;
  readonly #maxBytes: number;
  readonly #inTurn: LimitFunction;
  #bytesLeft: number;
  #previous: Promise<unknown> | null = null;
  #leave: (() => void) | null = null;
  #isWording = false;
  #isClosed = false;

  constructor({ maxBytes, inTurn }: AnswerLimits) {
    this.#maxBytes = maxBytes;
    this.#bytesLeft = maxBytes;
    this.#inTurn = inTurn;
  }

  read<Row extends Weighed>(path: GraphQLResolveInfo['path'], load: (bytesLeft: number) => Promise<Row[]>): Promise<Row[]> {
    const before = this.#previous;
    const rows = before ? before.then(() => this.#take(path, load)) : this.#take(path, load);
    this.#previous = rows.catch(() => {});
    return rows;
  }

  /** Whether it is the turn of this answer, which is large. */
  get isLarge(): boolean {
    return this.#leave !== null;
  }

  /** The JSON text of a large answer, in UTF-8. Each step takes the event loop for some milliseconds, and others go between. */
  async word(body: unknown): Promise<Buffer> {
    this.#isWording = true;
    try {
      await nextImmediate();
      const parts = toJsonParts(body);
      await nextImmediate();
      return toBytes(parts);
    } finally {
      this.#isWording = false;
      this.close();
    }
  }

  /**
   * Gives the turn to the next large answer, unless this one is being worded. Where a field has failed, lists beside it may
   * still be on their way: no more is read for them.
   */
  close(): void {
    if (this.#isWording) return;
    this.#isClosed = true;
    this.#leave?.();
    this.#leave = null;
  }

  async #take<Row extends Weighed>(path: GraphQLResolveInfo['path'], load: (bytesLeft: number) => Promise<Row[]>): Promise<Row[]> {
    if (this.#isClosed) return [];
    if (this.excess) throw refuseAnswer(this.excess);
    const isMyTurn = this.#leave !== null;
    let rows = await load(isMyTurn ? this.#bytesLeft : Math.min(this.#bytesLeft, SMALL_BYTES));
    let bytes = sumBytes(rows);
    if (!isMyTurn && bytes > SMALL_BYTES && bytes <= this.#bytesLeft) {
      // Many may wait: they hold no rows meanwhile.
      rows = [];
      await this.#takeTurn();
      if (this.#isClosed) {
        this.close();
        return rows;
      }
      rows = await load(this.#bytesLeft);
      bytes = sumBytes(rows);
    }
    if (bytes > this.#bytesLeft) {
      this.excess = { maxBytes: this.#maxBytes, path: namesOf(path) };
      throw refuseAnswer(this.excess);
    }
    this.#bytesLeft -= bytes;
    return rows;
  }

  #takeTurn(): Promise<void> {
    return new Promise((begin) => {
      const hold = (leave: () => void) => {
        const timer = setTimeout(leave, MAX_TURN_MS);
        this.#leave = () => {
          clearTimeout(timer);
          leave();
        };
        begin();
      };
      void this.#inTurn(() => new Promise<void>(hold));
    });
  }
}

/** One text of several, in UTF-8. */
function toBytes(parts: readonly string[]): Buffer {
  const bytes = Buffer.allocUnsafe(parts.reduce((sum, part) => sum + Buffer.byteLength(part), 0));
  let at = 0;
  for (const part of parts) at += bytes.write(part, at);
  return bytes;
}

function sumBytes(rows: readonly Weighed[]): number {
  return rows.reduce((sum, { bytes }) => sum + (bytes ?? 0), 0);
}

/** What the answers of a process may hold. */
export interface AnswerLimits {
  /** Of one answer, as JSON text. */
  readonly maxBytes: number;
  /** Runs few of those at once that read a large answer. */
  readonly inTurn: LimitFunction;
}

/** What the context of a request has for it. */
export interface AnswerContext {
  readonly services: { readonly answers: AnswerLimits };
  /** What the lists of the request may read, all together. */
  openAnswerBudget(): AnswerBudget;
  /** The JSON text of the answer; that of a large one is made beside other work. */
  wordAnswer(body: unknown): string | Promise<Buffer>;
  /** Whether the answer is large, by what its lists have read. */
  isLargeAnswer(): boolean;
  /** Is told that the answer has been worded, or never will be. */
  closeAnswer(): void;
  /** Where a list has gone beyond it; null where none has. */
  findExcess(): Excess | null;
}

/** The way to read what a field asks for of its rows: where that is none of the heavy fields, they are not read. */
export function openReader(context: AnswerContext, info: GraphQLResolveInfo, heavyFields: ReadonlySet<string>): ReadWeighed {
  if (!asksFor(info, heavyFields)) return readLight;
  return (load) => context.openAnswerBudget().read(info.path, load);
}

/** What an answer may not be: its size, and the place in which it passes that. */
interface Excess {
  readonly maxBytes: number;
  /** The names that lead to the list, or to the field; empty where no single one does. */
  readonly path: readonly string[];
}

/** Whether the answer is too large to be worded, known before it is; null where it is not. */
export function findAnswerExcess(result: unknown, context: AnswerContext): Excess | null {
  const { maxBytes } = context.services.answers;
  const spent = context.findExcess();
  if (spent) return spent;
  if (!exceedsBytes(result, maxBytes)) return null;
  const [, ...place] = findExcess(result, maxBytes) ?? [];
  const end = place.findIndex((part) => typeof part === 'number');
  return { maxBytes, path: (end < 0 ? place : place.slice(0, end)).map(String) };
}

/** The refusal, which says what to ask less of. */
export function refuseAnswer({ maxBytes, path }: Excess, advice = adviseOn(path)): Fault {
  return Fault.invalidRequest(`The answer would take more than ${maxBytes} bytes: ${advice}.`);
}

function adviseOn(path: readonly string[]): string {
  const names = path.join('.');
  // A name that the client has made up may be long itself.
  const place = names.length > MAX_PLACE_LENGTH ? `${names.slice(0, MAX_PLACE_LENGTH)}…` : names;
  return place === '' ? 'ask for less at once' : `ask for fewer items of \`${place}\`, or for fewer of their fields`;
}

const MAX_PLACE_LENGTH = 200;

function namesOf(path: GraphQLResolveInfo['path']): string[] {
  const names: string[] = [];
  for (let part: GraphQLResolveInfo['path'] | undefined = path; part; part = part.prev) {
    if (typeof part.key === 'string') names.unshift(part.key);
  }
  return names;
}
