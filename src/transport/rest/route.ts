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
import { findInaccessibleFields } from '../../graph/accesscheck.ts';
import { readBindings, type VariableBindings } from '../../graph/bindings.ts';
import type { Context } from '../../graph/context.ts';
import { type Deprecation, deprecationHeaders, findDeprecations } from '../../graph/deprecation.ts';
import { keepTexts } from '../../graph/kepttexts.ts';
import type { ParsedOperation } from '../../graph/parsedoperation.ts';
import { isIdempotencyKey } from '../../graph/scalars.ts';
import { variableErrors } from '../../graph/variableerrors.ts';
import { Fault, type FieldErrors } from '../../kernel/fault.ts';
import { parseUuid } from '../../kernel/uuid.ts';
import { toFault } from '../../platform/errors.ts';
import { withLinks } from './links.ts';

/** The data of an operation of the table; its shape is that of the document, which is validated when the route is bound. */
// biome-ignore lint/suspicious/noExplicitAny: the shape of the data is written in the document beside each use
export type Data = any;

type Tag = 'Compute' | 'Organizations' | 'Projects';

export interface Route {
  readonly method: 'get' | 'post' | 'put' | 'delete';
  /** Parameters have the names of their variables; all of them are UUIDs. */
  readonly path: string;
  readonly status: 200 | 201 | 204;
  /** The route's area in §1. */
  readonly tag: Tag;
  readonly summary: string;
  /** The faults of the route, besides those of every route. */
  readonly faults?: ReadonlyArray<'permission_denied' | 'session_required' | 'conflict' | 'idempotency_key_reused'>;
  readonly deprecated?: Deprecation;
  /** Whether the response contains a secret, so that nobody may store it. */
  readonly isSecret?: boolean;
  readonly operation: string;
  readonly response: (data: Data) => unknown;
}

/** A request from the HTTP layer, parsed but not validated, with the functions that execute it. */
export interface RouteRequest {
  readonly pathParameters: Readonly<Record<string, string>>;
  readonly ifMatch: string | undefined;
  readonly idempotencyKey: string | undefined;
  /** The URL that the client requested, for the page links. */
  readUrl(): string;
  /** `readQuery` and `readBody` throw `invalid_request`, before the access to the path's project is checked. */
  readQuery(): URLSearchParams;
  readBody(): Promise<Readonly<Record<string, unknown>>>;
  openContext(): Context;
  /** Executes the route's document. `advice`: what the fault for a too large response tells the client to reduce. */
  execute(document: DocumentNode, variables: Record<string, unknown>, advice: string): Promise<ExecutionResult>;
}

interface RouteResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined for a response without a body. */
  readonly body: unknown;
}

export interface BoundRoute extends BoundOperation {
  readonly route: Route;
  readonly name: string;
  /** The variables from the path. */
  readonly pathNames: readonly string[];
  /** The variables from the body, or on GET from the query. */
  readonly inputNames: readonly string[];
  /** The headers of every response, including faults. */
  readonly headers: Readonly<Record<string, string>>;
  /** Throws a fault whose fields have v1's names. */
  serve(request: RouteRequest): Promise<RouteResponse>;
}

/** The variables from headers. */
const headerNames: ReadonlySet<string> = new Set(['if_match', 'idempotency_key']);

/** Validates a route against the schema, once, at the start. Throws for an invalid route, so that it never serves. */
export function bindRoute(schema: GraphQLSchema, route: Route): BoundRoute {
  const bound = bindOperation(schema, `${route.method} ${route.path}`, route.operation);
  const { document, operation, bindings } = bound;
  const advice = bindings.has('page_size') ? 'ask for a smaller `page_size`' : 'it has no smaller form';
  const pathNames = [...route.path.matchAll(/:(\w+)/g)].map(([, name = '']) => name);
  const inputNames = [...bindings.keys()].filter((name) => !pathNames.includes(name) && !headerNames.has(name));
  return {
    ...bound,
    route,
    name: operation.name?.value ?? route.path,
    pathNames,
    inputNames,
    headers: deprecationHeaders(route.deprecated, ...findDeprecations(schema, document)),
    async serve(request) {
      const input =
        route.method === 'get'
          ? queryVariables(bindings, inputNames, request.readQuery())
          : pick(keepTexts(bindings, await request.readBody()), inputNames);
      const version = bindings.has('if_match') && readIfMatch(request.ifMatch);
      const key = bindings.has('idempotency_key') && readIdempotencyKey(request.idempotencyKey);
      // The path and the headers come last, so that no body can select another tenant.
      const variables = { ...input, ...parsePathIds(request.pathParameters), ...version, ...key };
      const errors = variableErrors(bindings, variables);
      if (errors) throw await findRejection({ schema, document, operation, variables }, request.openContext(), errors);
      const data = readData(await request.execute(document, variables, advice), bindings);
      return makeResponse(route, route.response(data), request);
    },
  };
}

/** Returns the failure: field errors for a caller with access to the project, `not_found` for one without. */
async function findRejection(parsed: ParsedOperation, context: Context, errors: FieldErrors): Promise<unknown> {
  const [rejected] = await findInaccessibleFields(parsed, context);
  return rejected ? rejected.failure : Fault.invalidFields(errors);
}

interface BoundOperation {
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
  readonly bindings: VariableBindings;
}

/** Parses and validates one operation of the table. Throws an error that begins with `label` for an invalid one. */
export function bindOperation(schema: GraphQLSchema, label: string, text: string): BoundOperation {
  const document = parse(text);
  const problems = validate(schema, document);
  const operation = getOperationAST(document);
  if (problems.length > 0 || !operation?.name) {
    throw new AggregateError(problems, `${label}: ${problems.map(({ message }) => message).join('; ') || 'no named operation'}`);
  }
  return { document, operation, bindings: readBindings(schema, document, operation) };
}

/** The data of a result. Throws the fault of a result with errors. */
export function readData(result: ExecutionResult, bindings: VariableBindings): Data {
  if (result.errors?.length) throw faultOf(result, bindings);
  return result.data;
}

/** The fault of a result's first error; its fields have v1's names. */
export function faultOf({ errors }: ExecutionResult, bindings: VariableBindings): Fault {
  const fault = toFault(errors?.[0]?.originalError ?? errors?.[0]);
  return fault.fields ? Fault.invalidFields(renameFields(bindings, fault.fields)) : fault;
}

/** Renames the fields from the names of the GraphQL input to v1's: the names of the variables that the document passes there. */
function renameFields(bindings: VariableBindings, fields: FieldErrors): FieldErrors {
  const names = new Map([...bindings].map(([variable, { inputValue }]) => [inputValue?.name, variable]));
  return Object.fromEntries(Object.entries(fields).map(([name, messages]) => [names.get(name) ?? name, messages]));
}

/** Throws `not_found` for a malformed id, as for an unknown one. */
function parsePathIds(parameters: Readonly<Record<string, string>>): Record<string, string> {
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

/** Converts query parameters to the declared types. Text that cannot be converted is left as it is, for the validation to reject. */
export function queryVariables(bindings: VariableBindings, names: readonly string[], query: URLSearchParams): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const name of names) {
    const texts = query.getAll(name);
    const type = bindings.get(name)?.type;
    if (!type || texts.length === 0) continue;
    const convert = converters[getNamedType(type).name] ?? ((text: string) => text);
    // A repeated parameter becomes a list, which the validation rejects where a single value is declared.
    const items = texts.map(convert);
    values[name] = items.length > 1 || isListType(getNullableType(type)) ? items : items[0];
  }
  return values;
}

const MAX_INT = 2 ** 31 - 1;

const converters: Readonly<Record<string, (text: string) => unknown>> = {
  // Integers beyond 32 bits are clamped: such a page size is too large anyway, and such a page past the end of every list.
  Int: (text) => (/^-?\d+$/.test(text) ? Math.max(-MAX_INT, Math.min(Number(text), MAX_INT)) : text),
  Boolean: (text) => ({ true: true, True: true, '1': true, false: false, False: false, '0': false })[text] ?? text,
};

/**
 * Reads the version from an entity tag. A weak tag names the same version, as does one that ends with a coding: a proxy that
 * compresses weakens our tags (nginx) or extends them (Apache, Caddy). A number beyond 32 bits becomes -1, a version that no
 * dashboard has. Throws `invalid_request` for anything else.
 */
function readIfMatch(header: string | undefined): { if_match?: number } {
  if (header === undefined || header.trim() === '*') return {};
  if (/",.*"/.test(header)) throw Fault.invalidRequest('If-Match must name one entity tag.');
  const [, version] = /^\s*(?:W\/)?"([1-9]\d*)(?:-(?:gzip|br|zstd|deflate))?"\s*$/.exec(header) ?? [];
  if (version === undefined) throw Fault.invalidRequest('If-Match must be an entity tag that a response had, such as "2".');
  return { if_match: Number(version) > MAX_INT ? -1 : Number(version) };
}

/** Reads the key as a quoted string (a structured field, as in the IETF's draft), or without quotes, as is usual. Throws `invalid_request`. */
function readIdempotencyKey(header: string | undefined): { idempotency_key?: string } {
  if (header === undefined) return {};
  const [, quoted] = /^"(.*)"$/.exec(header) ?? [];
  const key = quoted ?? header;
  if (isIdempotencyKey(key)) return { idempotency_key: key };
  throw Fault.invalidRequest('Idempotency-Key must be 16 to 255 visible ASCII characters, without quotation marks and backslashes in it.');
}

function makeResponse(route: Route, data: Data, request: RouteRequest): RouteResponse {
  const headers: Record<string, string> = route.isSecret ? { 'Cache-Control': 'no-store' } : {};
  if (route.status === 204) return { status: 204, headers, body: undefined };
  // The document promises an object: a resolver throws `not_found` for what is not there.
  if (data === null) throw new Error(`${route.method} ${route.path}: null is not a response of a route`);
  if ('etag' in data) {
    const { etag, ...body } = data;
    return { status: route.status, headers: { ...headers, ETag: `"${etag}"` }, body };
  }
  const body = 'total_pages' in data ? withLinks(data, request.readUrl()) : data;
  return { status: route.status, headers, body };
}
