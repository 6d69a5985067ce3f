import { Fault } from '../kernel/fault.ts';
import { Seal } from '../kernel/seal.ts';
import { deserialize, serialize } from '../kernel/serialize.ts';
import { exceedsBytes } from '../kernel/size.ts';
import { deleteInBatches } from '../platform/cleanup.ts';
import type { Database } from '../platform/database.ts';
import type { Query } from '../platform/query.ts';
import type { ReadWithinBudget, Sized } from './responsebudget.ts';

/** The size of all stored responses of a user, beyond which no further key is accepted. */
const MAX_BYTES_PER_USER = 64 * 1024 * 1024;
/** The largest response that is stored, as JSON text: more than any that selects only what was written. */
const MAX_RESPONSE_BYTES = 512 * 1024;

/**
 * The result of a request: its outcome until it has been answered, then its first response. A rejection is stored with its
 * reason. The database holds this format, in which the response is called `answer`, and the rejection `refusal`.
 */
export type StoredContent<Outcome> =
  | { readonly kind: 'outcome'; readonly outcome: Outcome }
  | { readonly kind: 'refusal'; readonly detail: string; readonly context: Fault['context'] }
  | { readonly kind: 'answer'; readonly value: unknown };

interface StoredRow extends Sized {
  readonly requestHash: Uint8Array;
  readonly content: Uint8Array | null;
}

interface KeyedRequest {
  readonly userId: string;
  readonly key: string;
  /** Equal for equal requests. */
  readonly fingerprint: string;
  /** The number of responses that may be stored for the user. */
  readonly quota: number;
}

/**
 * The stored response of a request with an idempotency key, for 24 hours, by user and key. The content is encrypted with a key
 * derived from the idempotency key, which is not stored: the content may include the text of a new API key.
 */
export class StoredResponse<Outcome> {
  readonly #seal: Seal;
  readonly #requestHash: Uint8Array;

  constructor(
    private readonly database: Database,
    private readonly request: KeyedRequest,
  ) {
    this.#seal = new Seal(request.key, request.userId);
    this.#requestHash = this.#seal.sign(request.fingerprint);
  }

  /**
   * Claims the key within the transaction that does the work. Waits for a running transaction that has claimed it. False if
   * the key is taken or the quota is exceeded.
   */
  claim(query: Query): Promise<boolean> {
    return this.#insert(query, null, false);
  }

  /** Waits for a running transaction that has claimed the key, for which a claim without room does not. Stores nothing. */
  async awaitClaim(): Promise<void> {
    const undo = new Error('nothing is stored');
    const claim = async (query: Query) => {
      await this.#insert(query, null, true);
      throw undo;
    };
    await this.database.transact(claim).catch((failure) => failure === undo || Promise.reject(failure));
  }

  /** Stores the outcome of the work under a claimed key. */
  async storeOutcome(query: Query, outcome: Outcome): Promise<void> {
    await this.#update(query, { kind: 'outcome', outcome });
  }

  /** Stores an outcome or a rejection outside of a transaction. False if a response is already stored, which then counts. */
  store(content: StoredContent<Outcome>): Promise<boolean> {
    return this.#insert(this.database.query, content, true);
  }

  /** Stores the first response. False if a response is already stored, which then counts. */
  async storeResponse(value: unknown): Promise<boolean> {
    if (exceedsBytes(value, MAX_RESPONSE_BYTES)) return true;
    return this.#update(this.database.query, { kind: 'answer', value });
  }

  /** Null if nothing is stored within 24 hours. Throws `idempotency_key_reused` if the key was sent with another request. */
  async read(load: ReadWithinBudget): Promise<StoredContent<Outcome> | null> {
    const [row] = await load(
      (bytesLeft) => this.database.query<StoredRow>`
        SELECT request_hash AS "requestHash", octet_length(content) AS bytes,
          CASE WHEN octet_length(content) <= ${bytesLeft}::bigint THEN content END AS content
        FROM kept_answers WHERE user_id = ${this.request.userId}::uuid AND key_hash = ${this.#seal.hash}::bytea
          AND created > now() - interval '24 hours'`,
    );
    if (!row) return null;
    if (Buffer.compare(row.requestHash, this.#requestHash) !== 0)
      throw new Fault('idempotency_key_reused', 'The idempotency key has been sent with another request.');
    return row.content && (deserialize(this.#seal.decrypt(row.content)) as StoredContent<Outcome>);
  }

  /** Throws `conflict` if the user's quota is exceeded. */
  async requireRoom(): Promise<void> {
    const [row] = await this.database.query<{ hasRoom: boolean | null }>`
      SELECT has_answer_room(${this.request.userId}::uuid, ${this.request.quota}::bigint, ${MAX_BYTES_PER_USER}::bigint)::boolean AS "hasRoom"`;
    if (!row?.hasRoom) throw this.quotaExceeded();
  }

  quotaExceeded(): Fault {
    const detail = 'As many responses are stored for the user as may be: send the request without an idempotency key, or later.';
    return Fault.quotaReached(detail, { quota: 'idempotency_keys_per_user', limit: this.request.quota });
  }

  /** Replaces a response that was stored more than 24 hours ago. The quota is checked unless it has been (`hasRoom`). */
  async #insert(query: Query, content: StoredContent<Outcome> | null, hasRoom: boolean): Promise<boolean> {
    const { userId, quota } = this.request;
    const inserted = await query<{ created: Date }>`
      INSERT INTO kept_answers AS kept (user_id, key_hash, request_hash, content, is_answered)
      SELECT ${userId}::uuid, ${this.#seal.hash}::bytea, ${this.#requestHash}::bytea, ${this.#encrypt(content)}::bytea,
        ${content?.kind === 'refusal'}::boolean
      WHERE ${hasRoom}::boolean OR has_answer_room(${userId}::uuid, ${quota}::bigint, ${MAX_BYTES_PER_USER}::bigint)
      ON CONFLICT (user_id, key_hash) DO UPDATE
        SET request_hash = excluded.request_hash, content = excluded.content, is_answered = excluded.is_answered, created = excluded.created
        WHERE kept.created <= now() - interval '24 hours'
      RETURNING created`;
    return inserted.length > 0;
  }

  async #update(query: Query, content: StoredContent<Outcome>): Promise<boolean> {
    const updated = await query<{ created: Date }>`
      UPDATE kept_answers SET content = ${this.#encrypt(content)}::bytea, is_answered = ${content.kind === 'answer'}::boolean
      WHERE user_id = ${this.request.userId}::uuid AND key_hash = ${this.#seal.hash}::bytea
        AND request_hash = ${this.#requestHash}::bytea AND NOT is_answered
      RETURNING created`;
    return updated.length > 0;
  }

  #encrypt(content: StoredContent<Outcome> | null): Uint8Array {
    return content === null ? new Uint8Array() : this.#seal.encrypt(serialize(content));
  }
}

/**
 * Deletes responses stored more than 24 hours ago, an hour later, so that none is deleted while it is being used. The outer
 * condition, which no index serves, is for a key that is claimed anew after the rows were chosen.
 */
export function deleteOldStoredResponses(database: Database, signal?: AbortSignal): Promise<void> {
  return deleteInBatches(
    (limit) => database.query<{ deleted: number | null }>`
      DELETE FROM kept_answers WHERE now() - created > interval '25 hours' AND ctid = ANY (ARRAY(
        SELECT ctid FROM kept_answers WHERE created < now() - interval '25 hours' ORDER BY created LIMIT ${limit}::int
      )) RETURNING 1 AS deleted`,
    signal,
  );
}
