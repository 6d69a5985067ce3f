import { renew } from './renewal.ts';
import { type Session, writeSession } from './session.ts';

/** A new credential is had this long before the old one ends. */
const AHEAD_MS = 60_000;
const RETRY_MS = 15_000;
/** `setTimeout` takes no more. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/** Keeps a session good: renews its credential before it ends, where that can be done. */
export class SessionKeeper {
  #session: Session;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #renewing: Promise<void> | null = null;
  #asked: string | null = null;

  constructor(session: Session) {
    this.#session = session;
    this.#plan();
  }

  get session(): Session {
    return this.#session;
  }

  /** The credential for the client package: asked once, and again when the server refuses what was given. */
  readonly credential = async (): Promise<string> => {
    if (this.#asked === this.#session.credential) await this.#renew();
    this.#asked = this.#session.credential;
    return this.#asked;
  };

  close(): void {
    clearTimeout(this.#timer);
  }

  #plan(): void {
    clearTimeout(this.#timer);
    const { expires, renewal } = this.#session;
    if (!renewal || expires === null) return;
    const delay = Math.min(Math.max(0, expires - Date.now() - AHEAD_MS), MAX_TIMEOUT_MS);
    this.#timer = setTimeout(() => {
      this.#renew().catch(() => {
        this.#timer = setTimeout(() => this.#plan(), RETRY_MS);
      });
    }, delay);
  }

  #renew(): Promise<void> {
    const { renewal } = this.#session;
    if (!renewal) return Promise.resolve();
    this.#renewing ??= renew(renewal)
      .then((session) => {
        this.#session = session;
        writeSession(session);
        this.#plan();
      })
      .finally(() => {
        this.#renewing = null;
      });
    return this.#renewing;
  }
}
