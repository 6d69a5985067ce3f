import { CredentialSource } from '../credential.ts';
import { toForeign, toRejection } from '../error.ts';
import { Http } from '../http.ts';
import type { Feed, FeedOptions, Portico } from '../index.ts';
import { type JsonCodec, query } from '../query.ts';
import { CommandFailure } from './failure.ts';
import { markNumbers } from './numbers.ts';
import type { Project } from './profiles.ts';

/** The longest total time a request waits between retries. */
const MAX_WAIT_MS = 2_000;

interface V1Request {
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly headers?: Readonly<Record<string, string>> | Headers;
  /** A JSON text. */
  readonly body?: string;
}

export interface V1Response {
  readonly response: Response;
  /** The unparsed body. */
  readonly text: string;
}

/** Access to one server as one user, for one run of the program. */
export class Session {
  readonly url: string;
  readonly #credential: string;
  readonly #http: Http;
  readonly #findProject: () => Promise<Project>;
  #project: Promise<Project> | null = null;

  constructor(url: string, credential: string, chooseProject: (session: Session) => Promise<Project>) {
    this.url = url;
    this.#credential = credential;
    this.#http = new Http({ url, credentials: new CredentialSource(credential), maxWaitMs: MAX_WAIT_MS, fetch: globalThis.fetch });
    this.#findProject = () => chooseProject(this);
  }

  /** The project that the command is about. */
  project(): Promise<Project> {
    this.#project ??= this.#findProject();
    return this.#project;
  }

  /** A feed whose notifications keep every digit (`exactJson`); imported on demand, as few commands need it. */
  async feed(options: FeedOptions): Promise<Feed> {
    const { openFeed } = await import('../feed.ts');
    return openFeed(this.#http, options, markNumbers);
  }

  /** The full client, for consoles; imported on demand, too. */
  async connect(): Promise<Portico> {
    const { connect } = await import('../index.ts');
    // The address has been checked, and the user may have allowed it.
    return connect({ url: this.url, credential: this.#credential, plainHttp: true });
  }

  /** The data of a GraphQL operation; throws if it has any error. */
  async query<Data>(document: string, variables: object = {}, json?: JsonCodec): Promise<Data> {
    const { data, error } = await query<Data, object>(this.#http, document, variables, undefined, json);
    if (error) throw error;
    return data;
  }

  /** Sends a request to a path below the project's URL. */
  async v1(method: string, path: string, request: V1Request = {}): Promise<V1Response> {
    const { id, organizationId } = await this.project();
    return this.send(method, `/v1/organizations/${organizationId}/projects/${id}/${path}`, request);
  }

  /** Sends a request to v1; throws if it is rejected, or if its response is not JSON. The response is text, so that numbers keep their digits. */
  async send(method: string, path: string, { query = {}, headers, body }: V1Request = {}): Promise<V1Response> {
    const received = await this.sendAnyway(method, path, { query, body, ...(headers && { headers }) });
    if (!received.response.ok) throw toRejection(received.response, received.text);
    try {
      JSON.parse(received.text);
    } catch (cause) {
      throw toForeign(received.response, 'JSON', { cause });
    }
    return received;
  }

  /** The same, but also returns error responses. A write to v1 without an idempotency key gets one, so that it can be retried. */
  async sendAnyway(method: string, path: string, { query = {}, headers, body }: V1Request): Promise<V1Response> {
    // Rejects paths such as `//elsewhere/`: the credential is for this server only.
    const given = URL.canParse(path, this.url) ? new URL(path, this.url) : null;
    if (!given || given.origin !== new URL(this.url).origin || given.username || given.password)
      throw new CommandFailure(`${path} is not a path of ${this.url}.`, 2);
    const address = this.#http.address(given.pathname + given.search);
    for (const [name, value] of Object.entries(query)) if (value !== undefined) address.searchParams.set(name, String(value));
    const all = new Headers(headers);
    if (body !== undefined && !all.has('content-type')) all.set('content-type', 'application/json');
    const isRead = method === 'GET' || method === 'HEAD';
    const isV1 = given.pathname.startsWith('/v1/');
    if (isV1 && !isRead && !all.has('idempotency-key')) all.set('idempotency-key', crypto.randomUUID());
    const request = new Request(address, { method, headers: all, ...(body !== undefined && { body }) });
    const response = await this.#http.send(request, !isV1 ? 'never' : isRead ? 'read' : 'keyed write');
    return { response, text: await response.text() };
  }
}
