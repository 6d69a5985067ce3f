import { batchByOwner } from '../kernel/batch.ts';
import { Fault } from '../kernel/fault.ts';
import type { Database } from '../platform/database.ts';
import { hashSecret, isWellFormedKey, looksLikeKey } from './apikey.ts';
import type { SessionClaims, Tokens } from './tokens.ts';

/** Who asks: an active user, by a session token or by an API key that belongs to them. */
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

/** A key's last use is kept to the minute: one write a minute, not one a request. */
const LAST_USED_STEP_MS = 60_000;

/** Credential → Viewer. Throws `not_authenticated` where it is not valid, or its user unknown or disabled. */
export async function identify(database: Database, tokens: Tokens, credential: string): Promise<Viewer> {
  if (looksLikeKey(credential)) return identifyKey(database, credential);
  return identifySession(database, await tokens.verify(credential));
}

/** The viewer as a user session; throws `session_required` for an API key (§5.5). */
export function requireSession(viewer: Viewer): Session {
  if (viewer.credential.kind !== 'session') throw new Fault('session_required', 'This action requires a user session.');
  return viewer as Session;
}

async function identifySession(database: Database, claims: SessionClaims): Promise<Viewer> {
  const user = await findUser(database, claims.userId);
  if (!user || user.disabledAt) throw invalid();
  const { email, name, created } = user;
  const known = viewers.get(claims);
  if (known && known.email === email && known.name === name && known.created.getTime() === created.getTime()) return known;
  const viewer: Viewer = { userId: claims.userId, email, name, created, credential: { kind: 'session', expires: claims.expires } };
  viewers.set(claims, viewer);
  return viewer;
}

/** One object for all sockets of one token, as long as its user is the same: of many sockets, what each has for itself counts. */
const viewers = new WeakMap<SessionClaims, Viewer>();

interface UserRow {
  readonly id: string;
  readonly email: string;
  readonly name: string;
  readonly created: Date;
  readonly disabledAt: Date | null;
}

const findUser = batchByOwner(async (database: Database, ids: readonly string[]) => {
  const rows = await database.query<UserRow>`
    SELECT id, email, name, created, disabled_at AS "disabledAt" FROM users WHERE id = ANY (${ids}::uuid[])`;
  const users = new Map(rows.map((row) => [row.id, row]));
  return ids.map((id) => users.get(id) ?? null);
});

async function identifyKey(database: Database, credential: string): Promise<Viewer> {
  if (!isWellFormedKey(credential)) throw invalid();
  const key = await findKey(database, hashSecret(credential));
  const now = new Date();
  if (!key || key.revoked || (key.expires && key.expires <= now) || key.disabledAt) throw invalid();
  if (!key.lastUsed || now.getTime() - key.lastUsed.getTime() >= LAST_USED_STEP_MS) {
    await database.query`UPDATE api_keys SET last_used = ${now} WHERE id = ${key.id}::uuid`;
  }
  const { userId, email, name, created } = key;
  return { userId, email, name, created, credential: { kind: 'api_key', id: key.id } };
}

interface KeyRow extends Omit<UserRow, 'id'> {
  readonly id: string;
  readonly userId: string;
  readonly hash: string;
  readonly revoked: Date | null;
  readonly expires: Date | null;
  readonly lastUsed: Date | null;
}

const findKey = batchByOwner(async (database: Database, hashes: ReadonlyArray<Uint8Array>) => {
  const rows = await database.query<KeyRow>`
    SELECT key.id, encode(key.secret_hash, 'hex') AS hash, key.revoked, key.expires, key.last_used AS "lastUsed",
      users.id AS "userId", users.email, users.name, users.created, users.disabled_at AS "disabledAt"
    FROM api_keys AS key JOIN users ON users.id = key.user_id
    WHERE key.secret_hash = ANY (${hashes}::bytea[])`;
  const keys = new Map(rows.map((row) => [row.hash, row]));
  return hashes.map((hash) => keys.get(Buffer.from(hash).toString('hex')) ?? null);
});

function invalid(): Fault {
  return Fault.notAuthenticated('The credential is not valid.');
}
