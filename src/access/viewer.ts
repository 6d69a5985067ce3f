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

async function identifySession(database: Database, { userId, expires }: SessionClaims): Promise<Viewer> {
  const user = await database.user.findUnique({ where: { id: userId } });
  if (!user || user.disabledAt) throw invalid();
  return { userId, email: user.email, name: user.name, created: user.created, credential: { kind: 'session', expires } };
}

async function identifyKey(database: Database, credential: string): Promise<Viewer> {
  if (!isWellFormedKey(credential)) throw invalid();
  const key = await database.apiKey.findUnique({
    where: { secretHash: hashSecret(credential) },
    select: { id: true, revoked: true, expires: true, lastUsed: true, user: true },
  });
  const now = new Date();
  if (!key || key.revoked || (key.expires && key.expires <= now) || key.user.disabledAt) throw invalid();
  if (!key.lastUsed || now.getTime() - key.lastUsed.getTime() >= LAST_USED_STEP_MS) {
    await database.apiKey.update({ where: { id: key.id }, data: { lastUsed: now }, select: { id: true } });
  }
  const { id: userId, email, name, created } = key.user;
  return { userId, email, name, created, credential: { kind: 'api_key', id: key.id } };
}

function invalid(): Fault {
  return Fault.notAuthenticated('The credential is not valid.');
}
