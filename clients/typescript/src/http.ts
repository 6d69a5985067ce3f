import type { CredentialSource } from './credential.ts';
import { type PorticoError, readRetryAfter, toUnreachable } from './error.ts';
import { backoff, wait } from './wait.ts';

/** For how long an answer is waited for, with its body. */
const ANSWER_MS = 30_000;

export interface HttpOptions {
  readonly url: string;
  readonly credentials: CredentialSource;
  /** How long a call may wait in all before it gives up, in milliseconds. */
  readonly maxWaitMs: number;
  readonly fetch: typeof fetch;
}

/** Sends requests of one server with the credential, and again where waiting helps. */
export class Http {
  readonly options: HttpOptions;

  constructor(options: HttpOptions) {
    this.options = options;
  }

  /** The same without patience, for who waits in a way of their own. */
  get once(): Http {
    return new Http({ ...this.options, maxWaitMs: 0 });
  }

  /**
   * Answers with the response and its whole body, whatever its status. One that is repeatable is sent again after 429, 503 and no answer at all, as
   * `Retry-After` says; any one after a 401, once, where there is another credential: nothing was done. Rejects with a
   * `PorticoError` where no answer came, or with the signal's reason.
   */
  async send(request: Request, isRepeatable: boolean): Promise<Response> {
    const { credentials, maxWaitMs } = this.options;
    const until = Date.now() + maxWaitMs;
    let isRenewed = false;
    for (let tries = 0; ; tries += 1) {
      const credential = await credentials.get();
      const outcome = await this.#try(request, credential);
      if (outcome instanceof Response && outcome.status === 401 && !isRenewed && (await credentials.renew(credential))) {
        isRenewed = true;
        await outcome.body?.cancel();
        continue;
      }
      const isPassing = outcome instanceof Response ? [429, 503].includes(outcome.status) : outcome.code === 'unreachable';
      const delayMs = Math.max((outcome instanceof Response && readRetryAfter(outcome)) || 0, backoff(tries));
      if (!isPassing || !isRepeatable || Date.now() + delayMs > until) {
        if (outcome instanceof Response) return outcome;
        throw outcome;
      }
      if (outcome instanceof Response) await outcome.body?.cancel();
      await wait(delayMs, request.signal);
    }
  }

  /** The answer with its whole body, or why there is none. Rejects with the request's reason where its signal fires. */
  async #try(request: Request, credential: string): Promise<Response | PorticoError> {
    const leaving = new AbortController();
    const attempt = new Request(request.clone(), { signal: leaving.signal });
    attempt.headers.set('authorization', `Bearer ${credential}`);
    const leave = () => leaving.abort(request.signal.reason);
    request.signal.addEventListener('abort', leave, { once: true });
    if (request.signal.aborted) leave();
    // A connection may break without a word, and the fetch of Node.js 20 may never notice that it broke: who waits would wait for
    // ever. A timer of its own keeps the program alive until then, as `AbortSignal.timeout` does not.
    const timer = setTimeout(() => leaving.abort(new DOMException('No answer came in time.', 'TimeoutError')), ANSWER_MS);
    const left = new Promise<never>((_, reject) => {
      leaving.signal.addEventListener('abort', () => reject(leaving.signal.reason), { once: true });
    });
    try {
      return await Promise.race([this.options.fetch(attempt).then(readWhole), left]);
    } catch (failure) {
      if (request.signal.aborted) throw request.signal.reason;
      return toUnreachable(failure, request.url);
    } finally {
      clearTimeout(timer);
      request.signal.removeEventListener('abort', leave);
    }
  }
}

/** The same answer, with a body that has come: where it breaks off there is no answer. */
async function readWhole(response: Response): Promise<Response> {
  const body = await response.arrayBuffer();
  const whole = new Response(body.byteLength > 0 ? body : null, response);
  return Object.defineProperty(whole, 'url', { value: response.url });
}
