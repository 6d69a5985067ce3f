import {
  type DocumentNode,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  getOperationAST,
  isListType,
  type OperationDefinitionNode,
  parse,
  validate,
} from 'graphql';
import { compileOperation, type Operation } from '../../graph/compile.ts';
import type { Context } from '../../graph/context.ts';
import { type Deprecation, deprecationHeaders, findDeprecations } from '../../graph/deprecation.ts';
import { readBindings, type VariableBindings, variableErrors } from '../../graph/variables.ts';
import { Fault, type FieldErrors } from '../../kernel/fault.ts';
import { parseUuid } from '../../kernel/uuid.ts';
import { withLinks } from './links.ts';

/** What an operation of the table answers: its shape is the document's, checked when it is bound. */
// biome-ignore lint/suspicious/noExplicitAny: the shape of the data is written in the document beside each use
export type Data = any;

export type Tag = 'Compute' | 'Projects';

export interface Route {
  readonly method: 'get' | 'post' | 'put' | 'delete';
  /** Parameters are named after the variables that take them; all of them are UUIDs. */
  readonly path: string;
  readonly status: 200 | 201 | 204;
  /** The area of §1 that it belongs to. */
  readonly tag: Tag;
  readonly summary: string;
  /** How it refuses, beyond what any route does. */
  readonly refuses?: ReadonlyArray<'permission_denied' | 'session_required' | 'conflict'>;
  readonly deprecated?: Deprecation;
  /** Whether the answer carries a secret, and must be kept nowhere. */
  readonly isSecret?: boolean;
  readonly operation: string;
  readonly answer: (data: Data) => unknown;
}

/** What the HTTP side hands over: parsed, but not yet judged. */
export interface RouteRequest {
  readonly pathParameters: Readonly<Record<string, string>>;
  readonly ifMatch: string | undefined;
  /** Where the client sees the list: its page links are made from it. */
  readUrl(): string;
  /** Both are read only once the path is found good; they throw `invalid_request`. */
  readQuery(): URLSearchParams;
  readBody(): Promise<Readonly<Record<string, unknown>>>;
}

export interface RouteAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined where the answer has no body. */
  readonly body: unknown;
}

export interface BoundRoute extends BoundOperation {
  readonly route: Route;
  readonly name: string;
  /** The variables that come with the body, or on GET with the query. */
  readonly declared: readonly string[];
  /** The headers of every answer, refusals included. */
  readonly headers: Readonly<Record<string, string>>;
  /** Throws a Fault whose fields have v1's names. */
  serve(request: RouteRequest, openContext: () => Context): Promise<RouteAnswer>;
}

/** Checks a route against the schema, once, at the start: throws for one that does not fit, so it never serves. */
export function bindRoute(schema: GraphQLSchema, route: Route): BoundRoute {
  const bound = bindOperation(schema, `${route.method} ${route.path}`, route.operation);
  const { document, operation, bindings } = bound;
  const execute = compileOperation(schema, document, operation.name?.value);
  const inPath = new Set([...route.path.matchAll(/:(\w+)/g)].map(([, name = '']) => name));
  const declared = [...bindings.keys()].filter((name) => !inPath.has(name) && name !== 'if_match');
  return {
    ...bound,
    route,
    name: operation.name?.value ?? route.path,
    declared,
    headers: deprecationHeaders(route.deprecated, ...findDeprecations(schema, document)),
    async serve(request, openContext) {
      const located = readPath(request.pathParameters);
      const given = route.method === 'get' ? readQuery(bindings, declared, request.readQuery()) : pick(await request.readBody(), declared);
      // The path and the headers come last, so that no body can talk its way into another tenant.
      const variables = { ...given, ...located, ...(bindings.has('if_match') && readIfMatch(request.ifMatch)) };
      const errors = variableErrors(bindings, variables);
      if (errors) throw Fault.invalidFields(errors);
      const data = await run(execute, bindings, variables, openContext());
      return makeAnswer(route, route.answer(data), request);
    },
  };
}

export interface BoundOperation {
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

async function run(execute: Operation, bindings: VariableBindings, variables: Record<string, unknown>, context: Context): Promise<Data> {
  const { data, errors } = await execute(context, variables);
  const [error] = errors ?? [];
  if (!error) return data;
  const fault = Fault.from(error.originalError ?? error);
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
export function readQuery(bindings: VariableBindings, names: readonly string[], query: URLSearchParams): Record<string, unknown> {
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
  // Beyond 32 bits all integers are alike: too large for a page size, and past the end of every list.
  Int: (text) => (/^-?\d+$/.test(text) ? Math.max(-MAX_INT, Math.min(Number(text), MAX_INT)) : text),
  Boolean: (text) => ({ true: true, True: true, '1': true, false: false, False: false, '0': false })[text] ?? text,
};

/** Of an entity tag the version in it. A tag that we never gave out names no version: -1, which no dashboard has. */
function readIfMatch(header: string | undefined): { if_match?: number } {
  if (header === undefined || header.trim() === '*') return {};
  if (/",.*"/.test(header)) throw Fault.invalidRequest('If-Match must name one entity tag.');
  const [, version] = /^\s*"([1-9]\d{0,8})"\s*$/.exec(header) ?? [];
  return { if_match: version === undefined ? -1 : Number(version) };
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
