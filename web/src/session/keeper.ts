import { loadProvider, renew } from './renewal.ts';
import { type Session, writeSession } from './session.ts';

/** The credential is renewed this long before it expires. */
const RENEW_AHEAD_MS = 60_000;
/** The pause before the next renewal, after one that failed, and after one whose credential expires soon by this clock. */
const RETRY_MS = 15_000;
/** The longest delay that `setTimeout` accepts. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;
/** How long a tab waits for the one that renews, and how often it looks. */
const OTHERS_TIMEOUT_MS = 10_000;
const OTHERS_INTERVAL_MS = 100;
const ENDED = 'the session has ended';

/** Renews the session's credential before it expires, if it can be renewed, until the session ends. */
export class SessionKeeper {
  #session: Session;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #renewing: Promise<void> | null = null;
  #issued: string | null = null;
  #isClosed = false;
  /** Lets another tab renew; null until this one may. */
  #releaseRenewal: (() => void) | null = null;
  /** The channel of the tabs with the same session: the one that renews tells the others, whose refresh token would be a used one. */
  #renewals: BroadcastChannel | null = null;

  constructor(session: Session) {
    this.#session = session;
  }

  get session(): Session {
    return this.#session;
  }

  /** Whether the session has ended here. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** The credential for the client package, which calls this once, and again after the server has rejected the credential. */
  readonly credential = async (): Promise<string> => {
    if (this.#issued === this.#session.credential) await this.#renew();
    this.#issued = this.#session.credential;
    return this.#issued;
  };

  /** Begins to renew the credential; also after `close`, as React runs effects twice in development. */
  start(): void {
    this.#isClosed = false;
    this.#session = withFamily(this.#session);
    const family = familyOf(this.#session);
    if (family === null) return this.#scheduleRenewal();
    // After a deploy the server may have this build's code no longer.
    loadProvider().catch(() => {});
    this.#renewals = new BroadcastChannel(`portico:${family}`);
    this.#renewals.onmessage = ({ data }: MessageEvent<Session | null>) => (data ? this.#store(data) : this.#tell());
    // The session that this tab has stored may be older, if the tab is a copy or was not loaded for a while.
    this.#renewals.postMessage(null);
    void navigator.locks.request(`portico:${family}`, () => this.#renewAlone());
  }

  /** Renews while other tabs with the same session do not: a tab that was duplicated has its refresh token, too. */
  #renewAlone(): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    this.#scheduleRenewal();
    return new Promise((resolve) => {
      this.#releaseRenewal = resolve;
    });
  }

  /** Ends the session here: a renewal that is under way changes nothing any more. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#releaseRenewal?.();
    this.#releaseRenewal = null;
    this.#renewals?.close();
    this.#renewals = null;
  }

  /** Tells the other tabs the session, if this tab is the one that renews it. */
  #tell(): void {
    if (this.#releaseRenewal) this.#renewals?.postMessage(this.#session);
  }

  #store(session: Session): void {
    this.#session = session;
    writeSession(session);
  }

  #scheduleRenewal(minMs = 0): void {
    clearTimeout(this.#timer);
    const { expires, renewal } = this.#session;
    if (!renewal || expires === null) return;
    const delay = Math.min(Math.max(minMs, expires - Date.now() - RENEW_AHEAD_MS), MAX_TIMEOUT_MS);
    this.#timer = setTimeout(() => {
      this.#renew().catch(() => {
        if (!this.#isClosed) this.#timer = setTimeout(() => this.#scheduleRenewal(), RETRY_MS);
      });
    }, delay);
  }

  /** Resolves when another tab has renewed the session. Rejects if none does: only the server's word ends the session. */
  async #awaitOthers(): Promise<void> {
    const { credential } = this.#session;
    for (let waitedMs = 0; waitedMs < OTHERS_TIMEOUT_MS; waitedMs += OTHERS_INTERVAL_MS) {
      await new Promise((resolve) => setTimeout(resolve, OTHERS_INTERVAL_MS));
      if (this.#session.credential !== credential) return;
      if (this.#releaseRenewal) return this.#renew();
    }
    throw new Error('no other tab has renewed the session');
  }

  #renew(): Promise<void> {
    const { renewal } = this.#session;
    if (!renewal) return Promise.resolve();
    if (this.#isClosed) return Promise.reject(new Error(ENDED));
    const isLeftToOthers = familyOf(this.#session) !== null && !this.#releaseRenewal;
    if (isLeftToOthers) return this.#awaitOthers();
    this.#renewing ??= renew(renewal)
      .then((session) => {
        if (this.#isClosed) throw new Error(ENDED);
        // A session that cannot be renewed ends when the server rejects its credential.
        this.#store(session ?? { ...this.#session, renewal: null });
        this.#tell();
        this.#scheduleRenewal(RETRY_MS);
      })
      .finally(() => {
        this.#renewing = null;
      });
    return this.#renewing;
  }
}

/** A session that an earlier release has stored has a refresh token without a family. */
function withFamily(session: Session): Session {
  const { renewal } = session;
  if (!renewal || 'demo' in renewal || renewal.family) return session;
  const named = { ...session, renewal: { ...renewal, family: crypto.randomUUID() } };
  writeSession(named);
  return named;
}

function familyOf({ renewal }: Session): string | null {
  return renewal && 'family' in renewal ? renewal.family : null;
}
