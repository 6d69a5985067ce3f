import { LRUCache } from 'lru-cache';
import { batchByOwner } from '../kernel/batch.ts';
import { Fault } from '../kernel/fault.ts';
import type { Database } from '../platform/database.ts';
import { hashSecret, isWellFormedKey, looksLikeKey } from './apikey.ts';
import type { SessionClaims, Tokens } from './tokens.ts';

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

/** The last use of a key is written once a minute, not once a request. */
const LAST_USED_STEP_MS = 60_000;

/** The looks at the user of a credential. */
interface UserLooks {
  /** Looks up the user of a session token. */
  readonly findUser: FindUser;
  /** Is told the user of an API key that has been good before, while it is checked. */
  readonly expectUser?: (userId: string) => unknown;
}

/** Credential → Viewer. Throws `not_authenticated` where it is not valid, or its user unknown or disabled. */
export async function identify(
  database: Database,
  tokens: Tokens,
  credential: string,
  { findUser, expectUser }: UserLooks = { findUser: (userId) => findUserAlone(database, userId) },
): Promise<Viewer> {
  if (looksLikeKey(credential)) return identifyKey(database, credential, expectUser);
  const claims = await tokens.verify(credential);
  return identifySession(claims, await findUser(claims.userId));
}

/** Null for an unknown user. */
export type FindUser = (userId: string) => Promise<UserRow | null>;

/**
 * The viewer as they are now, for a connection that outlives the check of its credential: neither the token nor the key
 * is needed for that, only whose it is. Throws `not_authenticated` where the credential no longer counts.
 */
export async function refreshViewer(database: Database, viewer: Viewer): Promise<Viewer> {
  const { credential } = viewer;
  const user =
    credential.kind === 'api_key'
      ? await admitKey(database, await findKeyById(database, credential.id))
      : admitUser(await findUserAlone(database, viewer.userId));
  if (hasExpired(viewer)) throw invalid();
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

function identifySession(claims: SessionClaims, found: UserRow | null): Viewer {
  const user = admitUser(found);
  const { email, name, created } = user;
  const known = viewers.get(claims);
  if (known && isSameUser(known, user)) return known;
  const viewer: Viewer = { userId: claims.userId, email, name, created, credential: { kind: 'session', expires: claims.expires } };
  viewers.set(claims, viewer);
  return viewer;
}

function admitUser(user: UserRow | null): UserRow {
  if (!user || user.disabledAt) throw invalid();
  return user;
}

function isSameUser(viewer: Viewer, { email, name, created }: Pick<Viewer, 'email' | 'name' | 'created'>): boolean {
  return viewer.email === email && viewer.name === name && viewer.created.getTime() === created.getTime();
}

/** All sockets of one token share one viewer, as long as its user is unchanged: the memory of many sockets is what each has for itself. */
const viewers = new WeakMap<SessionClaims, Viewer>();

export interface UserRow {
  readonly id: string;
  readonly email: string;
  readonly name: string;
  readonly created: Date;
  readonly disabledAt: Date | null;
}

export const findUserAlone = batchByOwner(async (database: Database, ids: readonly string[]) => {
  const rows = await database.query<UserRow>`
    SELECT id, email, name, created, disabled_at AS "disabledAt" FROM users WHERE id = ANY (${ids}::uuid[])`;
  const users = new Map(rows.map((row) => [row.id, row]));
  return ids.map((id) => users.get(id) ?? null);
});

/** Whose a key was when it was good, by its hash: a key never changes hands. Nobody is admitted by this. */
const owners = new LRUCache<string, string>({ max: 10_000 });

async function identifyKey(database: Database, credential: string, expectUser: UserLooks['expectUser']): Promise<Viewer> {
  if (!isWellFormedKey(credential)) throw invalid();
  const hash = hashSecret(credential);
  const name = toHex(hash);
  const owner = owners.get(name);
  if (owner !== undefined) expectUser?.(owner);
  const viewer = await admitKey(database, await findKey(database, hash));
  owners.set(name, viewer.userId);
  return viewer;
}

async function admitKey(database: Database, key: KeyRow | null): Promise<Viewer> {
  const now = new Date();
  if (!key || key.revoked || (key.expires && key.expires <= now) || key.disabledAt) throw invalid();
  if (!key.lastUsed || now.getTime() - key.lastUsed.getTime() >= LAST_USED_STEP_MS) {
    // A full database still reads: the key is valid also where its last use cannot be written.
    await database.query`UPDATE api_keys SET last_used = ${now} WHERE id = ${key.id}::uuid`.catch(() => {});
  }
  const { userId, email, name, created } = key;
  return { userId, email, name, created, credential: { kind: 'api_key', id: key.id } };
}

interface KeyRow extends Omit<UserRow, 'id'> {
  readonly id: string;
  readonly userId: string;
  readonly hash: Uint8Array;
  readonly revoked: Date | null;
  readonly expires: Date | null;
  readonly lastUsed: Date | null;
}

const findKey = batchByOwner(async (database: Database, hashes: ReadonlyArray<Uint8Array>) => {
  const rows = await database.query<KeyRow>`
    SELECT key.id, key.secret_hash AS hash, key.revoked, key.expires, key.last_used AS "lastUsed",
      users.id AS "userId", users.email, users.name, users.created, users.disabled_at AS "disabledAt"
    FROM api_keys AS key JOIN users ON users.id = key.user_id
    WHERE key.secret_hash = ANY (${hashes}::bytea[])`;
  const keys = new Map(rows.map((row) => [toHex(row.hash), row]));
  return hashes.map((hash) => keys.get(toHex(hash)) ?? null);
});

const findKeyById = batchByOwner(async (database: Database, ids: readonly string[]) => {
  const rows = await database.query<KeyRow>`
    SELECT key.id, key.secret_hash AS hash, key.revoked, key.expires, key.last_used AS "lastUsed",
      users.id AS "userId", users.email, users.name, users.created, users.disabled_at AS "disabledAt"
    FROM api_keys AS key JOIN users ON users.id = key.user_id
    WHERE key.id = ANY (${ids}::uuid[])`;
  const keys = new Map(rows.map((row) => [row.id, row]));
  return ids.map((id) => keys.get(id) ?? null);
});

function toHex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

function invalid(): Fault {
  return Fault.notAuthenticated('The credential is not valid.');
}
