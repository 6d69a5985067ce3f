import { renew } from './renewal.ts';
import { type Session, writeSession } from './session.ts';

/** The credential is renewed this long before it expires. */
const RENEW_AHEAD_MS = 60_000;
const RETRY_MS = 15_000;
/** The longest delay that `setTimeout` accepts. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/** Renews the session's credential before it expires, if it can be renewed. */
export class SessionKeeper {
  #session: Session;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #renewing: Promise<void> | null = null;
  #issued: string | null = null;

  constructor(session: Session) {
    this.#session = session;
    this.#scheduleRenewal();
  }

  get session(): Session {
    return this.#session;
  }

  /** The credential for the client package, which calls this once, and again after the server has rejected the credential. */
  readonly credential = async (): Promise<string> => {
    if (this.#issued === this.#session.credential) await this.#renew();
    this.#issued = this.#session.credential;
    return this.#issued;
  };

  close(): void {
    clearTimeout(this.#timer);
  }

  #scheduleRenewal(): void {
    clearTimeout(this.#timer);
    const { expires, renewal } = this.#session;
    if (!renewal || expires === null) return;
    const delay = Math.min(Math.max(0, expires - Date.now() - RENEW_AHEAD_MS), MAX_TIMEOUT_MS);
    this.#timer = setTimeout(() => {
      this.#renew().catch(() => {
        this.#timer = setTimeout(() => this.#scheduleRenewal(), RETRY_MS);
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
        this.#scheduleRenewal();
      })
      .finally(() => {
        this.#renewing = null;
      });
    return this.#renewing;
  }
}
