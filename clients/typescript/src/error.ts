/** The problems of each field of a request: `{ name: ['This field may not be blank.'] }`. */
export type FieldErrors = Readonly<Record<string, readonly string[]>>;

/** The failure of a request, a feed or a console; the message is one sentence for people. */
export class PorticoError extends Error {
  override readonly name = 'PorticoError';
  /** The field errors of `validation_failed`, which the message names too; empty for any other code. */
  readonly fields: FieldErrors;

  constructor(
    /**
     * A code of Portico (`not_found`, …: docs/errors.md), the close reason of a socket (`taken_over`, …), or one of this
     * package: `unreachable`, `connection_lost`, `connection_closed`, `certificate_refused`, `credential_unavailable`, `reader_too_slow`,
     * `input_lost`.
     */
    readonly code: string,
    message: string,
    /** The status of the response, if there was one. */
    readonly status: number | null = null,
    /** `Retry-After` of the response, in milliseconds. */
    readonly retryAfterMs: number | null = null,
    /** The `errors` of a GraphQL response, unchanged. */
    readonly errors: readonly GraphQLFault[] = [],
    { fields = {}, ...options }: ErrorOptions & { readonly fields?: FieldErrors } = {},
  ) {
    super(message, options);
    this.fields = fields;
  }
}

/** An error of a GraphQL response. */
export interface GraphQLFault {
  readonly message: string;
  readonly path?: readonly (string | number)[];
  readonly extensions?: { readonly code?: string; readonly [name: string]: unknown };
}

/** Codes for which a retry would fail the same way. */
const FINAL = new Set([
  'not_authenticated',
  'permission_denied',
  'session_required',
  'not_found',
  'validation_failed',
  'invalid_request',
  'certificate_refused',
]);

export const isFinal = (error: PorticoError): boolean => FINAL.has(error.code);

/** The error in a response of v1 or of GraphQL. */
export async function readRejection(response: Response): Promise<PorticoError> {
  return toRejection(response, await response.text().catch(() => ''));
}

/** The JSON of a successful response. Throws a `PorticoError` if the body is not JSON. */
// biome-ignore lint/suspicious/noExplicitAny: the caller knows the shape of the response.
export async function readJson(response: Response, { parse }: { parse(text: string): unknown } = JSON): Promise<any> {
  try {
    return parse(await response.text());
  } catch (cause) {
    throw toForeign(response, 'JSON', { cause });
  }
}

/** The error for a successful response that cannot be the server's own, such as a proxy's page. */
export const toForeign = (response: Response, expected: string, options?: ErrorOptions): PorticoError =>
  new PorticoError(
    'unreachable',
    `Something before ${hostOf(response)} has answered what is not ${expected}.`,
    response.status,
    null,
    [],
    options,
  );

/** A response of v1 unchanged; an error of a proxy in front of the server, in v1's form. Throws a `PorticoError` for a proxy's success. */
export async function toV1(response: Response): Promise<Response> {
  const isOwn = response.status === 204 || /\bjson\b/.test(response.headers.get('content-type') ?? '');
  if (isOwn) return response;
  if (response.ok) throw toForeign(response, 'JSON');
  const { code, message } = await readRejection(response);
  const headers = new Headers(response.headers);
  for (const name of ['content-length', 'content-encoding']) headers.delete(name);
  headers.set('content-type', 'application/json');
  return new Response(JSON.stringify({ detail: message, code, error: message }), { status: response.status, headers });
}

/** The error of a response whose body has been read. */
export function toRejection(response: Response, text: string): PorticoError {
  return toBodyError(response, parse(text));
}

/** The JSON of a text; undefined if it is none, as the response is not the server's own, but for example a proxy's. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The error that an operation of v1 has returned, as one that can be thrown, with a message for people. */
export const toPorticoError = ({ error, response }: { readonly error?: unknown; readonly response: Response }): PorticoError =>
  toBodyError(response, error);

/** The host that a response is from; a response that was made by a `fetch` of the caller may have no URL. */
const hostOf = ({ url }: Response): string => (URL.canParse(url) ? new URL(url).host : 'the server');

/** The error of a response with this body. */
function toBodyError(response: Response, body: unknown): PorticoError {
  const { status } = response;
  const retryAfterMs = readRetryAfter(response);
  const { errors, code, detail } = (body ?? {}) as { errors?: unknown; code?: unknown; detail?: unknown };
  if (Array.isArray(errors)) return toError(errors, status, retryAfterMs);
  if (typeof code === 'string' && typeof detail === 'string') return new PorticoError(code, detail, status, retryAfterMs);
  // v1 sends field errors as the bare map of the fields.
  const fields = status === 400 ? readFields(body) : {};
  const described = describeFields(fields);
  if (described !== null) return new PorticoError('validation_failed', described, status, null, [], { fields });
  const known = status === 429 ? 'rate_limited' : status >= 500 ? 'service_unavailable' : 'invalid_request';
  return new PorticoError(known, `${hostOf(response)} answered ${status}.`, status, retryAfterMs);
}

/** The fields that a response names with their errors; empty if these are not field errors. */
function readFields(value: unknown): FieldErrors {
  if (typeof value !== 'object' || value === null) return {};
  const entries = Object.entries(value).filter((entry): entry is [string, string[]] => Array.isArray(entry[1]));
  return Object.fromEntries(entries);
}

/** `name: This field may not be blank.` for each field; null if there is none. */
export function describeFields(fields: FieldErrors): string | null {
  const entries = Object.entries(fields);
  return entries.length === 0 ? null : entries.map(([name, messages]) => `${name}: ${messages.join(' ')}`).join(' ');
}

/** The error of a GraphQL response, with the code, the message and the fields of its first error. */
export function toError(errors: readonly GraphQLFault[], status: number | null = null, retryAfterMs: number | null = null): PorticoError {
  const [first] = errors;
  const fields = readFields(first?.extensions?.fields);
  const message = describeFields(fields) ?? first?.message ?? 'no error is named';
  return new PorticoError(first?.extensions?.code ?? 'internal_error', message, status, retryAfterMs, errors, { fields });
}

/** The longest wait that a date may ask for: one further ahead is taken for a wrong clock. */
const MAX_DATE_MS = 3_600_000;

/** `Retry-After` of a response, in milliseconds. The server sends seconds; a proxy may send an HTTP date. */
export function readRetryAfter({ headers }: Pick<Response, 'headers'>): number | null {
  const value = headers.get('retry-after');
  if (value === null) return null;
  const seconds = Number(value);
  if (Number.isFinite(seconds)) return Math.max(0, seconds * 1000);
  // By the clock of the sender, if it is known.
  const sent = Date.parse(headers.get('date') ?? '');
  const ms = Date.parse(value) - (Number.isNaN(sent) ? Date.now() : sent);
  return Number.isNaN(ms) ? null : Math.min(Math.max(0, ms), MAX_DATE_MS);
}

/** The certificate errors of Node.js; a browser reports none. */
const CERTIFICATE = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER|HOSTNAME_MISMATCH/;

/** The error of a request that got no response. */
export function toUnreachable(failure: unknown, url: string): PorticoError {
  if (failure instanceof PorticoError) return failure;
  const { host } = new URL(url);
  const cause = failure instanceof Error ? (failure.cause as { code?: string; message?: string } | undefined) : undefined;
  const code = cause?.code ?? '';
  if (CERTIFICATE.test(code)) {
    return new PorticoError('certificate_refused', `The certificate of ${host} is not trusted (${code}).`, null, null, [], {
      cause: failure,
    });
  }
  if (failure instanceof Error && failure.name === 'TimeoutError')
    return new PorticoError('unreachable', `${host} does not answer in time.`);
  const why = code || 'nothing listens there, the network is gone, or the server does not allow this page (ALLOWED_ORIGINS)';
  return new PorticoError('unreachable', `${host} does not answer: ${why}.`, null, null, [], { cause: failure });
}

/** The error of a feed whose server ended it. The client retries it with a delay, so a server that ends each feed is not called in a loop. */
export const endedByServer = (): PorticoError => new PorticoError('connection_closed', 'The server ended the feed.');
