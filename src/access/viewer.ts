import { LRUCache } from 'lru-cache';
import { Fault } from '../kernel/fault.ts';
import { pickRows } from '../kernel/rows.ts';
import { createSharedLoader } from '../kernel/sharedloader.ts';
import type { Database } from '../platform/database.ts';
import { hashSecret, isWellFormedKey, looksLikeKey, toHex } from './apikey.ts';
import type { Tokens } from './tokens.ts';
import type { SessionClaims } from './tokenverifier.ts';

/** The active user of a request, identified by a session token or an API key. */
export interface Viewer {
  readonly userId: string;
  readonly email: string;
  readonly name: string;
  readonly created: Date;
  readonly credential: { readonly kind: 'session'; readonly expires: Date } | { readonly kind: 'api_key'; readonly id: string };
}

export interface Session extends Viewer {
  readonly credential: { readonly kind: 'session'; readonly expires: Date };
}

/** The last use of a key is written at most once a minute. */
const LAST_USED_INTERVAL_MS = 60_000;
/** The pause after a last use that could not be written: each attempt costs a connection, as the driver closes that of a failed statement. */
const FAILED_WRITE_PAUSE_MS = 10_000;
/** The time until which a database is not asked to write a last use. */
const writesAgainAt = new WeakMap<Database, number>();

interface UserLookups {
  /** Finds the user of a session token. */
  readonly findUser: FindUser;
  /** Called with the user of an API key that was valid before, while the key is being checked. */
  readonly prefetch?: (userId: string) => unknown;
}

/** Credential → Viewer. Throws `not_authenticated` for an invalid credential, and for an unknown or disabled user. */
export async function identify(
  database: Database,
  tokens: Tokens,
  credential: string,
  { findUser, prefetch }: UserLookups = { findUser: (userId) => findUserById(database, userId) },
): Promise<Viewer> {
  if (looksLikeKey(credential)) return identifyKey(database, credential, prefetch);
  const claims = await tokens.verify(credential);
  return identifySession(claims, await findUser(claims.userId));
}

/** Null for an unknown user. */
export type FindUser = (userId: string) => Promise<UserRow | null>;

/**
 * The viewer's current state, for a connection that outlives the check of its credential: it needs only the ids in the viewer,
 * not the token or the key. Throws `not_authenticated` if the credential is no longer valid.
 */
export async function refreshViewer(database: Database, viewer: Viewer): Promise<Viewer> {
  const { credential } = viewer;
  const user =
    credential.kind === 'api_key'
      ? await admitKey(database, await findKeyById(database, credential.id))
      : admitUser(await findUserById(database, viewer.userId));
  if (hasExpired(viewer)) throw Fault.invalidCredential('expired');
  const { email, name, created } = user;
  return isSameUser(viewer, user) ? viewer : { ...viewer, email, name, created };
}

/** Whether the session has expired. The expiry of a key is checked in the database. */
export function hasExpired({ credential }: Viewer, now = new Date()): boolean {
  return credential.kind === 'session' && credential.expires <= now;
}

/** The viewer as a user session; throws `session_required` for an API key (§5.5). */
export function requireSession(viewer: Viewer): Session {
  if (viewer.credential.kind !== 'session') throw new Fault('session_required', 'This action requires a user session.');
  return viewer as Session;
}

/** Sockets of one token share one viewer, as long as its user is unchanged: this saves memory with many sockets. */
const viewers = new WeakMap<SessionClaims, Viewer>();

function identifySession(claims: SessionClaims, found: UserRow | null): Viewer {
  const user = admitUser(found);
  const { email, name, created } = user;
  const cached = viewers.get(claims);
  if (cached && isSameUser(cached, user)) return cached;
  const viewer: Viewer = { userId: claims.userId, email, name, created, credential: { kind: 'session', expires: claims.expires } };
  viewers.set(claims, viewer);
  return viewer;
}

function admitUser(user: UserRow | null): UserRow {
  if (!user) throw Fault.invalidCredential('unknown_user');
  if (user.disabledAt) throw Fault.invalidCredential('disabled');
  return user;
}

function isSameUser(viewer: Viewer, { email, name, created }: Pick<Viewer, 'email' | 'name' | 'created'>): boolean {
  return viewer.email === email && viewer.name === name && viewer.created.getTime() === created.getTime();
}

export interface UserRow {
  readonly id: string;
  readonly email: string;
  readonly name: string;
  readonly created: Date;
  readonly disabledAt: Date | null;
}

export const findUserById = createSharedLoader(async (database: Database, ids: readonly string[]) => {
  const rows = await database.query<UserRow>`
    SELECT id, email, name, created, disabled_at AS "disabledAt" FROM users WHERE id = ANY (${ids}::uuid[])`;
  return pickRows(ids, rows, ({ id }) => id);
});

/** The user ids of keys that were valid, by the hash of the key, whose user never changes. Only for prefetching: it admits nobody. */
const keyOwners = new LRUCache<string, string>({ max: 10_000 });

async function identifyKey(database: Database, credential: string, prefetch: UserLookups['prefetch']): Promise<Viewer> {
  if (!isWellFormedKey(credential)) throw Fault.invalidCredential('malformed');
  const hash = hashSecret(credential);
  const hex = toHex(hash);
  const owner = keyOwners.get(hex);
  if (owner !== undefined) prefetch?.(owner);
  const viewer = await admitKey(database, await findKey(database, hash));
  keyOwners.set(hex, viewer.userId);
  return viewer;
}

async function admitKey(database: Database, key: KeyRow | null): Promise<Viewer> {
  const now = new Date();
  if (!key) throw Fault.invalidCredential('unknown_key');
  if (key.revoked) throw Fault.invalidCredential('revoked');
  if (key.expires && key.expires <= now) throw Fault.invalidCredential('expired_key');
  if (key.disabledAt) throw Fault.invalidCredential('disabled');
  await recordUse(database, key, now);
  const { userId, email, name, created } = key;
  return { userId, email, name, created, credential: { kind: 'api_key', id: key.id } };
}

async function recordUse(database: Database, { id, lastUsed }: KeyRow, now: Date): Promise<void> {
  if (lastUsed && now.getTime() - lastUsed.getTime() < LAST_USED_INTERVAL_MS) return;
  if (performance.now() < (writesAgainAt.get(database) ?? 0)) return;
  // A database with a full disk still reads: the key is valid even if its last use cannot be written. Nor does it wait for the
  // disk, for a standby that may be away, or for another session that has locked the key.
  await database.query`
    UPDATE api_keys SET last_used = ${now}
    WHERE id = (SELECT id FROM api_keys WHERE id = ${id}::uuid FOR NO KEY UPDATE SKIP LOCKED) AND set_config('synchronous_commit', 'off', true) IS NOT NULL`.catch(
    () => void writesAgainAt.set(database, performance.now() + FAILED_WRITE_PAUSE_MS),
  );
}

/** `id` is the key's. */
interface KeyRow extends UserRow {
  readonly userId: string;
  readonly revoked: Date | null;
  readonly expires: Date | null;
  readonly lastUsed: Date | null;
}

const findKey = createSharedLoader(async (database: Database, hashes: ReadonlyArray<Uint8Array>) => {
  const rows = await database.query<KeyRow & { readonly hash: Uint8Array }>`
    SELECT key.id, key.secret_hash AS hash, key.revoked, key.expires, key.last_used AS "lastUsed",
      users.id AS "userId", users.email, users.name, users.created, users.disabled_at AS "disabledAt"
    FROM api_keys AS key JOIN users ON users.id = key.user_id
    WHERE key.secret_hash = ANY (${hashes}::bytea[])`;
  return pickRows(hashes.map(toHex), rows, ({ hash }) => toHex(hash));
});

const findKeyById = createSharedLoader(async (database: Database, ids: readonly string[]) => {
  const rows = await database.query<KeyRow>`
    SELECT key.id, key.revoked, key.expires, key.last_used AS "lastUsed",
      users.id AS "userId", users.email, users.name, users.created, users.disabled_at AS "disabledAt"
    FROM api_keys AS key JOIN users ON users.id = key.user_id
    WHERE key.id = ANY (${ids}::uuid[])`;
  return pickRows(ids, rows, ({ id }) => id);
});
