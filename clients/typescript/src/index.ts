import createClient, { type Client } from 'openapi-fetch';
import { type ConsoleOptions, type ConsoleStream, openConsole } from './console.ts';
import { type Credential, CredentialSource, isExposed } from './credential.ts';
import { toV1 } from './error.ts';
import { type Feed, type FeedOptions, openFeed } from './feed.ts';
import { Http, type Retry } from './http.ts';
import { type QueryResult, query, type TypedDocument } from './query.ts';
import type { paths } from './v1.ts';

export type { ConsoleOptions, ConsoleStream } from './console.ts';
export type { Credential } from './credential.ts';
export { describeFields, type FieldErrors, type GraphQLFault, PorticoError, toPorticoError } from './error.ts';
export type { FeedEvent, FeedNotification } from './events.ts';
export type { CursorStore, Feed, FeedOptions } from './feed.ts';
export type { QueryResult, TypedDocument } from './query.ts';
export { type ConnectionState, describeState } from './state.ts';
export type { components, paths } from './v1.ts';

export interface ConnectOptions {
  /** The base URL of the server: `https://api.example.com`. */
  readonly url: string;
  readonly credential: Credential;
  /** Allows an `http://` URL of another machine than this one, where others can read the credential on its way. */
  readonly plainHttp?: boolean;
  /** The longest total time a request waits between retries, in milliseconds: a minute by default. */
  readonly maxWaitMs?: number;
  readonly fetch?: typeof fetch;
}

export interface Portico {
  /**
   * Every operation of v1, by its method and path. Error responses are returned, and `toPorticoError` makes a `PorticoError` of one;
   * where no response comes, a `PorticoError` is thrown.
   */
  readonly v1: Client<paths>;
  query<Data, Variables extends object>(
    document: TypedDocument<Data, Variables>,
    variables: Variables,
    options?: { readonly signal?: AbortSignal },
  ): Promise<QueryResult<Data>>;
  feed(options: FeedOptions): Feed;
  console(options: ConsoleOptions): ConsoleStream;
}

/** A client of one server for one credential. Nothing is sent before the first call. Throws a TypeError for an invalid option. */
export function connect({ url: address, credential, plainHttp = false, maxWaitMs = 60_000, fetch: fetchImpl }: ConnectOptions): Portico {
  const given = address.trim();
  if (!URL.canParse(given) || !/^https?:$/.test(new URL(given).protocol))
    throw new TypeError(`${given} is not the address of a server, such as https://api.example.com.`);
  // Such an address is not repeated, as it holds a secret.
  const { username, password } = new URL(given);
  if (username || password) throw new TypeError('The address of a server holds no user name and no password.');
  if (/[?#]/.test(given)) throw new TypeError('The address of a server holds no query and no fragment.');
  if (isExposed(new URL(given)) && !plainHttp)
    throw new TypeError(`${given} has no TLS: the credential could be read on the way. Use https://, or the option plainHttp.`);
  // Without types it may be anything: most likely a variable of the environment that is not set.
  if (!credential || !['string', 'function'].includes(typeof credential))
    throw new TypeError('The credential is missing: give an API key, a session token, or a function that returns a token.');
  const url = given.replace(/\/+$/, '');
  const http = new Http({
    url,
    credentials: new CredentialSource(credential),
    maxWaitMs,
    // Looked up at each call, as a page may replace the global `fetch`.
    fetch: fetchImpl ?? ((input, init) => globalThis.fetch(input, init)),
  });
  return {
    v1: createClient<paths>({ baseUrl: url, fetch: async (request) => toV1(await http.send(request, retryOf(request))) }),
    query: (document, variables, { signal } = {}) => query(http, document, variables, signal),
    feed: (options) => openFeed(http, options),
    console: (options) => openConsole(http, options),
  };
}

const retryOf = ({ method, headers }: Request): Retry =>
  ['GET', 'HEAD'].includes(method) ? 'read' : headers.has('idempotency-key') ? 'keyed write' : 'never';
