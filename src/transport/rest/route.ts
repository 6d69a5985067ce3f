import {
  type DocumentNode,
  type ExecutionResult,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  getOperationAST,
  isListType,
  type OperationDefinitionNode,
  parse,
  validate,
} from 'graphql';
import type { Context } from '../../graph/context.ts';
import { type Deprecation, deprecationHeaders, findDeprecations } from '../../graph/deprecation.ts';
import { keepTexts } from '../../graph/exact.ts';
import { findRefused, type Located } from '../../graph/locate.ts';
import { isIdempotencyKey } from '../../graph/scalars.ts';
import { readBindings, type VariableBindings, variableErrors } from '../../graph/variables.ts';
import { Fault, type FieldErrors } from '../../kernel/fault.ts';
import { parseUuid } from '../../kernel/uuid.ts';
import { toFault } from '../../platform/errors.ts';
import { withLinks } from './links.ts';

/** The data of an operation of the table: its shape is the document's, checked when it is bound. */
// biome-ignore lint/suspicious/noExplicitAny: the shape of the data is written in the document beside each use
export type Data = any;

type Tag = 'Compute' | 'Organizations' | 'Projects';

export interface Route {
  readonly method: 'get' | 'post' | 'put' | 'delete';
  /** Parameters are named after the variables that take them; all of them are UUIDs. */
  readonly path: string;
  readonly status: 200 | 201 | 204;
  /** The area of §1 that it belongs to. */
  readonly tag: Tag;
  readonly summary: string;
  /** The faults of the route, beyond those of any route. */
  readonly refuses?: ReadonlyArray<'permission_denied' | 'session_required' | 'conflict' | 'idempotency_key_reused'>;
  readonly deprecated?: Deprecation;
  /** Whether the answer carries a secret, and must be kept nowhere. */
  readonly isSecret?: boolean;
  readonly operation: string;
  readonly answer: (data: Data) => unknown;
}

/** A request as the HTTP side hands it over: parsed, but not validated; with its way through the pipeline. */
export interface RouteRequest {
  readonly pathParameters: Readonly<Record<string, string>>;
  readonly ifMatch: string | undefined;
  readonly idempotencyKey: string | undefined;
  /** The client's URL of the list, for the page links. */
  readUrl(): string;
  /** Both throw `invalid_request`, before the access to the path's project is checked. */
  readQuery(): URLSearchParams;
  readBody(): Promise<Readonly<Record<string, unknown>>>;
  openContext(): Context;
  /** Executes the route's document. `advice`: what to ask less of where the answer is too large. */
  execute(document: DocumentNode, variables: Record<string, unknown>, advice: string | undefined): Promise<ExecutionResult>;
}

interface RouteAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined where the answer has no body. */
  readonly body: unknown;
}

export interface BoundRoute extends BoundOperation {
  readonly route: Route;
  readonly name: string;
  /** The variables that come with the path. */
  readonly idNames: readonly string[];
  /** The variables that come with the body, or on GET with the query. */
  readonly declared: readonly string[];
  /** The headers of every answer, refusals included. */
  readonly headers: Readonly<Record<string, string>>;
  /** Throws a Fault whose fields have v1's names. */
  serve(request: RouteRequest): Promise<RouteAnswer>;
}

/** The variables that come with a header. */
const inHeaders: ReadonlySet<string> = new Set(['if_match', 'idempotency_key']);

/** Checks a route against the schema, once, at the start: throws for one that does not fit, so it never serves. */
export function bindRoute(schema: GraphQLSchema, route: Route): BoundRoute {
  const bound = bindOperation(schema, `${route.method} ${route.path}`, route.operation);
  const { document, operation, bindings } = bound;
  const advice = bindings.has('page_size') ? 'ask for a smaller `page_size`' : undefined;
  const idNames = [...route.path.matchAll(/:(\w+)/g)].map(([, name = '']) => name);
  const declared = [...bindings.keys()].filter((name) => !idNames.includes(name) && !inHeaders.has(name));
  return {
    ...bound,
    route,
    name: operation.name?.value ?? route.path,
    idNames,
    declared,
    headers: deprecationHeaders(route.deprecated, ...findDeprecations(schema, document)),
    async serve(request) {
      const given =
        route.method === 'get'
          ? queryVariables(bindings, declared, request.readQuery())
          : pick(keepTexts(bindings, await request.readBody()), declared);
      const version = bindings.has('if_match') && readIfMatch(request.ifMatch);
      const key = bindings.has('idempotency_key') && readIdempotencyKey(request.idempotencyKey);
      // The path and the headers come last, so that no body can talk its way into another tenant.
      const variables = { ...given, ...readPath(request.pathParameters), ...version, ...key };
      const errors = variableErrors(bindings, variables);
      if (errors) throw await refuseFields({ schema, document, operation, variables }, request.openContext(), errors);
      const data = readData(await request.execute(document, variables, advice), bindings);
      return makeAnswer(route, route.answer(data), request);
    },
  };
}

/** Field errors are for callers with access; without it the fault is `not_found`. */
async function refuseFields(located: Located, context: Context, errors: FieldErrors): Promise<unknown> {
  const [refused] = await findRefused(located, context);
  return refused ? refused.failure : Fault.invalidFields(errors);
}

interface BoundOperation {
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
  readonly bindings: VariableBindings;
}

/** Parses and validates one operation of the table. */
export function bindOperation(schema: GraphQLSchema, place: string, text: string): BoundOperation {
  const document = parse(text);
  const problems = validate(schema, document);
  const operation = getOperationAST(document);
  if (problems.length > 0 || !operation?.name) {
    throw new AggregateError(problems, `${place}: ${problems.map(({ message }) => message).join('; ') || 'no named operation'}`);
  }
  return { document, operation, bindings: readBindings(schema, document, operation) };
}

function readData({ data, errors }: ExecutionResult, bindings: VariableBindings): Data {
  const [error] = errors ?? [];
  if (!error) return data;
  const fault = toFault(error.originalError ?? error);
  throw fault.fields ? Fault.invalidFields(rename(bindings, fault.fields)) : fault;
}

/** A service names a field as the GraphQL input does; the variable in its place in the document has v1's name. */
export function rename(bindings: VariableBindings, fields: FieldErrors): FieldErrors {
  const names = new Map([...bindings].map(([variable, { position }]) => [position?.name, variable]));
  return Object.fromEntries(Object.entries(fields).map(([name, messages]) => [names.get(name) ?? name, messages]));
}

/** A malformed id is as absent as an unknown one. */
function readPath(parameters: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(parameters).map(([name, value]) => {
      const id = parseUuid(value);
      if (!id) throw Fault.notFound();
      return [name, id];
    }),
  );
}

function pick(body: Readonly<Record<string, unknown>>, names: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(names.filter((name) => Object.hasOwn(body, name)).map((name) => [name, body[name]]));
}

/** Query parameters are text: what the declared type can be read from becomes that, all else is left to be refused. */
export function queryVariables(bindings: VariableBindings, names: readonly string[], query: URLSearchParams): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const name of names) {
    const given = query.getAll(name);
    const type = bindings.get(name)?.type;
    if (!type || given.length === 0) continue;
    const read = readers[getNamedType(type).name] ?? ((text: string) => text);
    // A parameter that is given twice stays a list, and is refused where one value is declared.
    const items = given.map(read);
    values[name] = items.length > 1 || isListType(getNullableType(type)) ? items : items[0];
  }
  return values;
}

const MAX_INT = 2 ** 31 - 1;

const readers: Readonly<Record<string, (text: string) => unknown>> = {
  // Integers beyond 32 bits are cut: each is too large for a page size, and past the end of every list.
  Int: (text) => (/^-?\d+$/.test(text) ? Math.max(-MAX_INT, Math.min(Number(text), MAX_INT)) : text),
  Boolean: (text) => ({ true: true, True: true, '1': true, false: false, False: false, '0': false })[text] ?? text,
};

/**
 * Of an entity tag the version in it. A proxy that compresses makes a tag of ours weak, which changes nothing of what it names.
 * One beyond 32 bits names no version: -1, which no dashboard has.
 */
function readIfMatch(header: string | undefined): { if_match?: number } {
  if (header === undefined || header.trim() === '*') return {};
  if (/",.*"/.test(header)) throw Fault.invalidRequest('If-Match must name one entity tag.');
  const [, version] = /^\s*(?:W\/)?"([1-9]\d*)"\s*$/.exec(header) ?? [];
  if (version === undefined) throw Fault.invalidRequest('If-Match must be an entity tag that an answer had, such as "2".');
  return { if_match: Number(version) > MAX_INT ? -1 : Number(version) };
}

/** A text, as the IETF's draft has it (a structured field), or the same without the quotes, as is usual. */
function readIdempotencyKey(header: string | undefined): { idempotency_key?: string } {
  if (header === undefined) return {};
  const [, quoted] = /^"(.*)"$/.exec(header) ?? [];
  const key = quoted ?? header;
  if (isIdempotencyKey(key)) return { idempotency_key: key };
  throw Fault.invalidRequest('Idempotency-Key must be 16 to 255 visible ASCII characters, without quotation marks and backslashes in it.');
}

function makeAnswer(route: Route, answer: Data, request: RouteRequest): RouteAnswer {
  const headers: Record<string, string> = route.isSecret ? { 'Cache-Control': 'no-store' } : {};
  if (route.status === 204) return { status: 204, headers, body: undefined };
  if (answer && 'etag' in answer) {
    const { etag, ...body } = answer;
    return { status: route.status, headers: { ...headers, ETag: `"${etag}"` }, body };
  }
  const body = answer && 'total_pages' in answer ? withLinks(answer, request.readUrl()) : answer;
  return { status: route.status, headers, body };
}
