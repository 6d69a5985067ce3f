import { Fault } from '../kernel/fault.ts';
import { pack, unpack } from '../kernel/pack.ts';
import { Seal } from '../kernel/seal.ts';
import { exceedsBytes } from '../kernel/size.ts';
import type { Database } from '../platform/database.ts';
import type { Query } from '../platform/query.ts';
import type { ReadWeighed, Weighed } from './answer.ts';

/** How many answers are kept for a user. */
export interface AnswerQuota {
  readonly perUser: number;
}

/** The bytes of all answers that are kept for a user, beyond which no further key is taken. */
const MAX_BYTES_PER_USER = 64 * 1024 * 1024;
/** What an answer may take as JSON text to be kept: any that shows what was written alone, and more. */
const MAX_ANSWER_BYTES = 512 * 1024;

/** What a request came to: what it has done; why it was refused; from the first answer on, that answer. */
export type Content<Outcome> =
  | { readonly kind: 'outcome'; readonly outcome: Outcome }
  | { readonly kind: 'refusal'; readonly detail: string; readonly context: Fault['context'] }
  | { readonly kind: 'answer'; readonly value: unknown };

interface KeptRow extends Weighed {
  readonly requestHash: Uint8Array;
  readonly content: Uint8Array | null;
}

interface KeptParts {
  readonly userId: string;
  readonly key: string;
  /** The same text for the same request. */
  readonly request: string;
  readonly quota: AnswerQuota;
}

/**
 * What is kept of a request with an idempotency key, for 24 hours, by the user and the key. The key is not stored, and without
 * it the content cannot be read: it may be an API key's text.
 */
export class KeptAnswer<Outcome> {
  readonly #seal: Seal;
  readonly #requestHash: Uint8Array;

  constructor(
    private readonly database: Database,
    private readonly parts: KeptParts,
  ) {
    this.#seal = new Seal(parts.key, parts.userId);
    this.#requestHash = this.#seal.sign(parts.request);
  }

  /**
   * Claims the key within the transaction of what is to be done under it. Whoever has claimed it in a transaction that is
   * under way is waited for. False where it is taken, or the quota is used up.
   */
  claim(query: Query): Promise<boolean> {
    return this.#insert(query, null, false);
  }

  /** Keeps what was done under a claimed key. */
  async keepOutcome(query: Query, outcome: Outcome): Promise<void> {
    await this.#update(query, { kind: 'outcome', outcome });
  }

  /** Keeps what was done or refused outside of a transaction. False where something is kept already, which then counts. */
  enter(content: Content<Outcome>): Promise<boolean> {
    return this.#insert(this.database.query, content, true);
  }

  /** Keeps the first answer. False where there is an answer already, which then counts. */
  async keepAnswer(value: unknown): Promise<boolean> {
    if (exceedsBytes(value, MAX_ANSWER_BYTES)) return true;
    return this.#update(this.database.query, { kind: 'answer', value });
  }

  /** Null where nothing is kept. Throws `idempotency_key_reused` where it is of another request. */
  async read(load: ReadWeighed): Promise<Content<Outcome> | null> {
    const [row] = await load(
      (bytesLeft) => this.database.query<KeptRow>`
        SELECT request_hash AS "requestHash", octet_length(content) AS bytes,
          CASE WHEN octet_length(content) <= ${bytesLeft}::bigint THEN content END AS content
        FROM kept_answers WHERE user_id = ${this.parts.userId}::uuid AND key_hash = ${this.#seal.hash}::bytea`,
    );
    if (!row) return null;
    if (Buffer.compare(row.requestHash, this.#requestHash) !== 0)
      throw new Fault('idempotency_key_reused', 'The idempotency key has been sent with another request.');
    return row.content && (unpack(this.#seal.open(row.content)) as Content<Outcome>);
  }

  /** Throws `conflict` where no further answer may be kept for the user. */
  async requireRoom(): Promise<void> {
    const [row] = await this.database.query<{ hasRoom: boolean | null }>`
      SELECT has_answer_room(${this.parts.userId}::uuid, ${this.parts.quota.perUser}::bigint, ${MAX_BYTES_PER_USER}::bigint)::boolean AS "hasRoom"`;
    if (!row?.hasRoom) throw this.refuseMore();
  }

  refuseMore(): Fault {
    return new Fault(
      'conflict',
      'As many answers are kept for the user as may be: send the request without an idempotency key, or later.',
      {
        context: { quota: 'idempotency_keys_per_user', limit: this.parts.quota.perUser },
      },
    );
  }

  /** An answer that was kept a day ago makes room for the new one. */
  async #insert(query: Query, content: Content<Outcome> | null, hasRoom: boolean): Promise<boolean> {
    const { userId, quota } = this.parts;
    const inserted = await query<{ created: Date }>`
      INSERT INTO kept_answers AS kept (user_id, key_hash, request_hash, content, is_answered)
      SELECT ${userId}::uuid, ${this.#seal.hash}::bytea, ${this.#requestHash}::bytea, ${this.#close(content)}::bytea,
        ${content?.kind === 'refusal'}::boolean
      WHERE ${hasRoom}::boolean OR has_answer_room(${userId}::uuid, ${quota.perUser}::bigint, ${MAX_BYTES_PER_USER}::bigint)
      ON CONFLICT (user_id, key_hash) DO UPDATE
        SET request_hash = excluded.request_hash, content = excluded.content, is_answered = excluded.is_answered, created = excluded.created
        WHERE kept.created <= now() - interval '24 hours'
      RETURNING created`;
    return inserted.length > 0;
  }

  async #update(query: Query, content: Content<Outcome>): Promise<boolean> {
    const updated = await query<{ created: Date }>`
      UPDATE kept_answers SET content = ${this.#close(content)}::bytea, is_answered = ${content.kind === 'answer'}::boolean
      WHERE user_id = ${this.parts.userId}::uuid AND key_hash = ${this.#seal.hash}::bytea
        AND request_hash = ${this.#requestHash}::bytea AND NOT is_answered
      RETURNING created`;
    return updated.length > 0;
  }

  #close(content: Content<Outcome> | null): Uint8Array {
    return content === null ? new Uint8Array() : this.#seal.close(pack(content));
  }
}

/** Deletes what has been kept for a day; one that is asked for at that moment is left for another hour. */
export async function deleteOldAnswers(database: Database): Promise<void> {
  await database.query`DELETE FROM kept_answers WHERE created < now() - interval '25 hours'`;
}
