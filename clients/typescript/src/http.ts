import type { CredentialSource } from './credential.ts';
import { PorticoError, readRejection, readRetryAfter, toUnreachable } from './error.ts';
import { abortable, backoff, wait } from './wait.ts';

/** The timeout of one attempt, including the response body. */
const RESPONSE_MS = 30_000;

interface HttpOptions {
  /** The base URL of the server, perhaps with a path, without a slash at its end. */
  readonly url: string;
  readonly credentials: CredentialSource;
  /** The longest total time a call waits between retries, in milliseconds. */
  readonly maxWaitMs: number;
  readonly fetch: typeof fetch;
}

/**
 * How a request may be retried: a read at will; a write with an idempotency key, too, as it is executed once however often it is
 * sent; any other request only if nothing was executed.
 */
export type Retry = 'read' | 'keyed write' | 'never';

/** Sends requests to one server with the credential, and retries those for which waiting helps. */
export class Http {
  readonly options: HttpOptions;

  constructor(options: HttpOptions) {
    this.options = options;
  }

  /** The address of a path of the server, below the path of its base URL. */
  address(path: string): URL {
    return new URL(this.options.url + path);
  }

  /** The same without waiting, for callers with their own retries. */
  get once(): Http {
    return new Http({ ...this.options, maxWaitMs: 0 });
  }

  /**
   * Returns the response with its whole body, whatever its status. A request that may be retried is retried after 429, 503 and no
   * response, respecting `Retry-After`. Any request is retried once after a 401 if there is another credential, as nothing was
   * executed. Rejects with a `PorticoError` if there is no credential, if no response came, or none that tells whether a write was
   * executed, or with the signal's reason.
   */
  async send(request: Request, retry: Retry): Promise<Response> {
    const { credentials, maxWaitMs } = this.options;
    const until = Date.now() + maxWaitMs;
    let isRenewed = false;
    /** The last attempt at a write that may have been executed. */
    let doubt: Response | PorticoError | null = null;
    for (let tries = 0; ; tries += 1) {
      const credential = await abortable(credentials.get(), request.signal).catch(async (failure: Error) => {
        throw doubt && !request.signal.aborted ? await toUnsent(doubt, failure) : failure;
      });
      const outcome = await this.#try(request, credential);
      const { status, retryAfterMs } = describe(outcome);
      if (status === 401 && !isRenewed && (await abortable(credentials.renew(credential), request.signal))) {
        isRenewed = true;
        await discard(outcome);
        continue;
      }
      // Rejected before the server looked up what an earlier attempt had done.
      const isUnseen = status === 401 || status === 429;
      const isPassing = status === 429 || status === 503 || status === 'unreachable';
      const delayMs = Math.max(retryAfterMs, backoff(tries));
      if (!isPassing || retry === 'never' || Date.now() + delayMs > until) {
        if (doubt && isUnseen) throw await toUncertain(doubt, outcome as Response);
        if (outcome instanceof Response) return outcome;
        throw outcome;
      }
      if (retry === 'keyed write' && !isUnseen) doubt = outcome;
      else await discard(outcome);
      await wait(delayMs, request.signal);
    }
  }

  /** The response with its whole body, or the error why there is none. Rejects with the signal's reason when the request is aborted. */
  async #try(request: Request, credential: string): Promise<Response | PorticoError> {
    const leaving = new AbortController();
    const attempt = new Request(request.clone(), { signal: leaving.signal });
    attempt.headers.set('authorization', `Bearer ${credential}`);
    const leave = () => leaving.abort(request.signal.reason);
    request.signal.addEventListener('abort', leave, { once: true });
    if (request.signal.aborted) leave();
    // A connection may break silently, and the fetch of Node.js 20 may never notice: the caller would wait for ever. A timer, unlike
    // `AbortSignal.timeout`, keeps the process alive until it fires.
    const timer = setTimeout(() => leaving.abort(new DOMException('No answer came in time.', 'TimeoutError')), RESPONSE_MS);
    const aborted = new Promise<never>((_, reject) => {
      leaving.signal.addEventListener('abort', () => reject(leaving.signal.reason), { once: true });
    });
    try {
      return await Promise.race([this.options.fetch(attempt).then(readWhole), aborted]);
    } catch (failure) {
      if (request.signal.aborted) throw request.signal.reason;
      return toUnreachable(failure, request.url);
    } finally {
      clearTimeout(timer);
      request.signal.removeEventListener('abort', leave);
    }
  }
}

/** The status of a response, or the code of the error in its place, and how long the server asks to wait. */
function describe(outcome: Response | PorticoError): { status: number | string; retryAfterMs: number } {
  if (!(outcome instanceof Response)) return { status: outcome.code, retryAfterMs: 0 };
  return { status: outcome.status, retryAfterMs: readRetryAfter(outcome) || 0 };
}

async function discard(outcome: Response | PorticoError): Promise<void> {
  if (outcome instanceof Response) await outcome.body?.cancel();
}

/** The error of a write that an earlier attempt may have executed, and whose last one was rejected unseen. */
async function toUncertain(earlier: Response | PorticoError, last: Response): Promise<PorticoError> {
  const cause = earlier instanceof Response ? await readRejection(earlier) : earlier;
  const message = `${cause.message} Then it was rejected with ${last.status}, which does not tell whether it had been executed before.`;
  return new PorticoError(cause.code, message, cause.status, readRetryAfter(last), [], { cause });
}

/** The error of a write that an earlier attempt may have executed, and that could not be sent again for want of a credential. */
async function toUnsent(earlier: Response | PorticoError, cause: Error): Promise<PorticoError> {
  const { code, message, status } = earlier instanceof Response ? await readRejection(earlier) : earlier;
  const sentence = `${message} Whether it was executed is not known, as it could not be sent again: ${cause.message}`;
  return new PorticoError(code, sentence, status, null, [], { cause });
}

/** The same response with its body read to the end. Rejects if the body breaks off. */
async function readWhole(response: Response): Promise<Response> {
  const body = await response.arrayBuffer();
  const whole = new Response(body.byteLength > 0 ? body : null, response);
  return Object.defineProperty(whole, 'url', { value: response.url });
}
