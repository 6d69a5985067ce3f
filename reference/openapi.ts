import { STATUS_CODES } from 'node:http';
import {
  type GraphQLField,
  GraphQLNonNull,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNullableType,
  isEnumType,
  isObjectType,
  Kind,
  type SelectionSetNode,
} from 'graphql';
import type { VariableBinding } from '../src/graph/bindings.ts';
import type { FieldConstraints } from '../src/graph/constraints.ts';
import { type FaultCode, faults, statusByCode } from '../src/kernel/fault.ts';
import type { BoundRoute } from '../src/transport/rest/route.ts';
import { schemaNames } from '../src/transport/rest/routes.ts';
import { inputSchema, type JsonSchema, NamedSchemas, objectOf, objectSchema, type Shape, shapeOf } from './shape.ts';

/** An example of a call of an operation: sent to the demo, and answered by it. */
export interface OperationExample {
  /** Path parameters, query parameters and headers, by the names of the document. */
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
  readonly response?: unknown;
  readonly etag?: string;
}

export interface Examples {
  readonly operations: Readonly<Record<string, OperationExample>>;
  /** A body for each code of the catalogue. */
  readonly refusals: Readonly<Record<FaultCode, unknown>>;
  /** The events that a stream tells, by its operation. */
  readonly events: Readonly<Record<string, readonly unknown[]>>;
}

type Part = Readonly<Record<string, unknown>>;

/**
 * The v1 contract as an OpenAPI 3.1 document, from the table that is served: variables make the parameters and the
 * body, the selection makes the response, the schema has the words. Throws for a route that it cannot describe.
 */
export function describeApi(schema: GraphQLSchema, routes: readonly BoundRoute[], examples: Examples) {
  const document = new DocumentParts(examples);
  const paths: Record<string, Record<string, Part>> = {};
  for (const bound of routes) {
    const path = bound.route.path.replace(/:(\w+)/g, '{$1}');
    (paths[path] ??= {})[bound.route.method] = describeOperation(document, schema, bound);
  }
  const tags = new Set(routes.map(({ route }) => route.tag));
  return {
    openapi: '3.1.0',
    info: {
      title: 'Portico',
      version: 'v1',
      summary: 'API gateway of a cloud provider',
      description: introduction,
      contact: { name: 'Portico' },
      license: { name: 'Proprietary', identifier: 'LicenseRef-Proprietary' },
    },
    // A URL that is relative to the document's own is right also where a proxy strips a path (`PUBLIC_URL`).
    servers: [{ url: '..', description: 'The service that serves this document.' }],
    security: [{ bearer: [] }],
    tags: Object.entries(areas).flatMap(([name, description]) => (tags.has(name as keyof typeof areas) ? [{ name, description }] : [])),
    paths,
    components: {
      securitySchemes: { bearer },
      schemas: document.schemas.all,
      parameters: document.parameters,
      headers: document.headers,
      responses: document.responses,
    },
  };
}

/** Its links are relative to `/docs`, which shows it. */
const introduction = `Resources are scoped by organization and project. Every request carries \`Authorization: Bearer <token>\`, with a session
token or an API key. The demo's are in the file \`demo.json\` of the data folder: press **Authorize** and paste one.

The live feed of notifications is described in [\`/v1/asyncapi.json\`](v1/asyncapi.json); the same data is served by GraphQL
at [\`/graphql\`](graphql).`;

/** §1. */
const areas = {
  Organizations: 'The organizations that the caller belongs to.',
  Projects: 'The projects that the caller may see, with their notifications, dashboards and WebSocket tickets.',
  Compute: 'Instances, and what belongs to them.',
} as const;

const bearer = {
  type: 'http',
  scheme: 'bearer',
  bearerFormat: 'JWT or API Key',
  description: 'A session token (JWT), or an API key (`sk-portico-…`).',
};

/** The codes of the faults that any route may have. */
const common: readonly FaultCode[] = [
  'invalid_request',
  'not_authenticated',
  'not_found',
  'rate_limited',
  'internal_error',
  'service_unavailable',
];

const integer = (description: string) => ({ type: 'integer', description });

/** The properties of `context`, for the codes that have one. */
const contexts: Partial<Record<FaultCode, Readonly<Record<string, JsonSchema>>>> = {
  conflict: {
    version: integer('The current version of the dashboard, if another was expected.'),
    quota: { type: 'string', description: 'The name of the quota, if one is used up.' },
    limit: integer('The maximum of the quota.'),
  },
  rate_limited: {
    limit: integer('The number of requests in the budget.'),
    window_seconds: integer('The length of the budget’s window in seconds.'),
    retry_after_seconds: integer('In how many seconds the budget is renewed, as in `Retry-After`.'),
  },
};

const header = (description: string, example: string, required = false) => ({
  description,
  required,
  schema: { type: 'string' },
  example,
});
const allHeaders: Readonly<Record<string, Part>> = {
  'X-Request-Id': header(
    'Identifies the request in the log: the client’s own id, if it sent a well-formed one.',
    '0d3f1c9e-6a58-4f0b-9a51-7f0c52d0b1aa',
    true,
  ),
  'RateLimit-Policy': header('The budget: the number of requests (`q`) in a window of seconds (`w`).', '"user";q=5000;w=3600'),
  RateLimit: header('The remaining requests of the budget (`r`), and in how many seconds it is renewed (`t`).', '"user";r=4999;t=3600'),
  ETag: header('The version of the dashboard, for `If-Match`.', '"2"', true),
  'Cache-Control': header('The response contains a secret and must not be stored.', 'no-store', true),
  'WWW-Authenticate': header('How to authenticate.', 'Bearer', true),
  'Retry-After': { ...header('In how many seconds to try again.', '30', true), schema: { type: 'integer', minimum: 1 }, example: 30 },
  Deprecation: header('The date since which the operation is deprecated (RFC 9745).', '@1793491200', true),
  Sunset: header('The date from which it may be removed (RFC 8594).', 'Sun, 30 Nov 2026 00:00:00 GMT', true),
};
const everyResponse = ['X-Request-Id', 'RateLimit-Policy', 'RateLimit'];
const headersOf: Partial<Record<FaultCode, readonly string[]>> = {
  not_authenticated: ['WWW-Authenticate'],
  rate_limited: ['Retry-After'],
  service_unavailable: ['Retry-After'],
};

/** The parts that operations share, each made when the first one uses it. */
class DocumentParts {
  readonly schemas = new NamedSchemas(schemaNames);
  readonly parameters: Record<string, Part> = {};
  readonly headers: Record<string, Part> = {};
  readonly responses: Record<string, Part> = {};
  readonly examples: Examples;

  constructor(examples: Examples) {
    this.examples = examples;
  }

  referHeaders(names: readonly string[]): Part {
    return Object.fromEntries(
      names.map((name) => {
        const part = allHeaders[name];
        if (!part) throw new Error(`the header ${name} is not described`);
        this.headers[name] = part;
        return [name, { $ref: `#/components/headers/${name}` }];
      }),
    );
  }

  /** A parameter of one name has that name in the document; one that differs between operations has theirs before it. */
  referParameter(operation: string, name: string, parameter: Part): Part {
    const known = this.parameters[name] ?? parameter;
    const own = JSON.stringify(known) === JSON.stringify(parameter) ? name : `${operation}_${name}`;
    this.parameters[own] = parameter;
    return { $ref: `#/components/parameters/${own}` };
  }

  /** The response to rejections that share a status. */
  referRejection(codes: readonly FaultCode[], extraHeaders: readonly string[]): Part {
    const sorted = [...codes].sort();
    const name = [sorted.map(pascal).join('Or'), ...extraHeaders].join('With');
    const bodies = sorted.map((code) => this.#referRejectionBody(code));
    const headers = [...everyResponse, ...extraHeaders, ...sorted.flatMap((code) => headersOf[code] ?? [])];
    this.responses[name] ??= {
      description: sorted.map((code) => `\`${code}\`: ${faults[code].when}.`).join('\n\n'),
      headers: this.referHeaders([...new Set(headers)]),
      content: json(bodies.length === 1 ? (bodies[0] ?? {}) : { oneOf: bodies }, pickExamples(this.examples.refusals, sorted)),
    };
    return { $ref: `#/components/responses/${name}` };
  }

  #referRejectionBody(code: FaultCode): JsonSchema {
    if (code === 'validation_failed') return this.schemas.refer('FieldErrors', fieldErrors);
    const context = contexts[code];
    const text = { type: 'string' };
    return this.schemas.refer(pascal(code), {
      type: 'object',
      description: `Rejected: ${faults[code].when}.`,
      required: ['detail', 'code', 'error', ...(context ? ['context'] : [])].sort(),
      properties: {
        detail: { ...text, description: 'The error message, for people.' },
        code: { ...text, description: 'The error code, for programs.', const: code },
        error: { ...text, description: 'The same as `detail`, for older clients.' },
        ...(context && {
          context: {
            type: 'object',
            description: 'Details.',
            // Of a conflict, what it is about.
            ...(code !== 'conflict' && { required: Object.keys(context).sort() }),
            properties: context,
          },
        }),
      },
    });
  }
}

const fieldErrors = {
  type: 'object',
  description: 'The invalid fields, each with its error messages.',
  minProperties: 1,
  additionalProperties: { type: 'array', minItems: 1, items: { type: 'string' } },
};

function describeOperation(document: DocumentParts, schema: GraphQLSchema, bound: BoundRoute): Part {
  const { route, name, operation, inputNames, headers } = bound;
  const example = document.examples.operations[name] ?? { parameters: {} };
  const isQuery = route.method === 'get';
  const body = isQuery || inputNames.length === 0 ? null : describeBody(document, bound, example);
  const type = operation.operation === 'query' ? schema.getQueryType() : schema.getMutationType();
  if (!type) throw new Error(`${name} is not an operation of the schema`);
  const { description, deprecationReason } = answeringField(type, operation.selectionSet) ?? {};
  const deprecation = route.deprecated?.reason ?? deprecationReason;
  const extraHeaders = Object.keys(headers);
  return {
    operationId: name,
    tags: [route.tag],
    summary: route.summary,
    description: [description ?? route.summary, deprecation].filter(Boolean).join(' '),
    ...(deprecation && { deprecated: true }),
    parameters: describeParameters(document, bound, example),
    ...(body && { requestBody: body }),
    responses: {
      [route.status]: describeResponse(document, shapeOf(type, operation.selectionSet), bound, example),
      ...describeRejections(document, bound, extraHeaders),
    },
  };
}

/** The field that does what the route is for: a mutation's own, or the one that is called `answer`. */
function answeringField(type: GraphQLObjectType, { selections }: SelectionSetNode): GraphQLField<unknown, unknown> | null {
  for (const node of selections) {
    if (node.kind !== Kind.FIELD) continue;
    const field = type.getFields()[node.name.value];
    if (!field || node.alias?.value === 'answer' || type.name === 'Mutation') return field ?? null;
    const below = objectTypeOf(field);
    const found = below && node.selectionSet && answeringField(below, node.selectionSet);
    if (found) return found;
  }
  return null;
}

function describeParameters(
  document: DocumentParts,
  { name: operation, route, bindings, inputNames }: BoundRoute,
  example: OperationExample,
): Part[] {
  const inPath = [...route.path.matchAll(/:(\w+)/g)].map(([, name = '']) => ({ name, place: 'path' }));
  const inQuery = route.method === 'get' ? inputNames.map((name) => ({ name, place: 'query' })) : [];
  const parameters = [...inPath, ...inQuery].map(({ name, place }) => {
    const binding = bindings.get(name);
    if (!binding) throw new Error(`${route.path}: no variable takes ${name}`);
    const { description, ...schema } = inputSchema(document.schemas, binding.type, binding.inputValue, false);
    return document.referParameter(operation, name, {
      name,
      in: place,
      required: place === 'path',
      description,
      schema,
      ...exampleOf(example.parameters[name]),
    });
  });
  const described = { ...ifMatch, ...exampleOf(example.parameters['If-Match']) };
  if (bindings.has('if_match')) parameters.push(document.referParameter(operation, 'if_match', described));
  const key = bindings.get('idempotency_key');
  if (key)
    parameters.push(
      document.referParameter(operation, 'idempotency_key', describeKey(inputSchema(document.schemas, key.type, null, false))),
    );
  return parameters;
}

const ifMatch = {
  name: 'If-Match',
  in: 'header',
  required: false,
  description:
    'The `ETag` that the dashboard must still have, or `*` for any: otherwise the request fails with 409. One tag at most, weak (`W/`) or not.',
  schema: { type: 'string' },
};

/** It has no example: whoever tries an operation twice would be answered once. */
function describeKey({ pattern }: JsonSchema): Part {
  const key = String(pattern).slice(1, -1);
  return {
    name: 'Idempotency-Key',
    in: 'header',
    required: false,
    description:
      'Makes the request safe to retry when the response was lost: within 24 hours, the same key with the same request returns the ' +
      'first response, and nothing is done twice. With another request it fails with 409. A string that nobody can guess, such as ' +
      'a random UUID, in quotation marks or without; a new one for each operation.',
    schema: { type: 'string', minLength: 16, maxLength: 257, pattern: `^(${key}|"${key}")$` },
  };
}

/** A variable of the body, and where it stands in the document. */
interface BodyField extends VariableBinding {
  readonly name: string;
}

function describeBody(document: DocumentParts, { name, bindings, inputNames }: BoundRoute, example: OperationExample): Part {
  const { schemas } = document;
  const title = `${pascal(name)}Request`;
  const fields = inputNames.flatMap((field) => {
    const binding = bindings.get(field);
    return binding ? [{ ...binding, name: field }] : [];
  });
  const schema = schemas.refer(title, chooseBody(schemas, title, fields) ?? bodySchema(schemas, fields));
  return {
    required: fields.some(({ isRequired }) => isRequired),
    content: json(schema, example.body === undefined ? {} : { demo: example.body }),
  };
}

function bodySchema(schemas: NamedSchemas, fields: readonly BodyField[]): JsonSchema {
  const required = fields.filter(({ isRequired }) => isRequired).map(({ name }) => name);
  return {
    type: 'object',
    ...(required.length > 0 && { required: required.sort() }),
    properties: Object.fromEntries(fields.map(({ name, type, inputValue }) => [name, inputSchema(schemas, type, inputValue, true)])),
  };
}

/** Where a choice of one field requires another field: a schema for each choice. Null where there is no such field. */
function chooseBody(schemas: NamedSchemas, title: string, fields: readonly BodyField[]): JsonSchema | null {
  const constraint = ({ inputValue }: BodyField) => (inputValue?.extensions as FieldConstraints | undefined)?.requiredFor;
  const chooser = fields.find(({ inputValue }) => inputValue && fields.some((field) => constraint(field)?.field === inputValue.name));
  const type = chooser && getNullableType(chooser.type);
  if (!isEnumType(type)) return null;
  const mapping = type.getValues().map(({ name: choice }) => {
    const rest = fields.filter((field) => field !== chooser);
    const needed = rest
      .filter((field) => constraint(field)?.value === choice)
      .map((field) => ({ ...field, isRequired: true, type: new GraphQLNonNull(getNullableType(field.type)) }));
    const {
      required = [],
      properties,
      ...schema
    } = bodySchema(
      schemas,
      rest.map((field) => needed.find(({ name }) => name === field.name) ?? field),
    ) as { required?: string[]; properties: object };
    const fixed = { type: 'string', description: chooser?.inputValue?.description, const: choice };
    const name = chooser?.name ?? '';
    return [
      choice,
      schemas.refer(pascal(choice) + schemas.nameOf(title), {
        ...schema,
        required: [...required, name].sort(),
        properties: { [name]: fixed, ...properties },
      }),
    ] as const;
  });
  return {
    oneOf: mapping.map(([, schema]) => schema),
    discriminator: { propertyName: chooser?.name, mapping: Object.fromEntries(mapping.map(([choice, { $ref }]) => [choice, $ref])) },
  };
}

function describeResponse(document: DocumentParts, data: Shape, { route, headers }: BoundRoute, example: OperationExample): Part {
  const response = route.response(data) as Shape | readonly Shape[] | null;
  const answered = [...everyResponse, ...Object.keys(headers), ...(route.isSecret ? ['Cache-Control'] : [])];
  if (route.status === 204 || response === null) {
    return { description: STATUS_CODES[route.status], headers: document.referHeaders(answered) };
  }
  const [schema, description] = Array.isArray(response)
    ? describeList(document.schemas, response)
    : describeObject(document.schemas, response as Shape);
  return {
    description,
    headers: document.referHeaders('etag' in response ? [...answered, 'ETag'] : answered),
    content: json(schema, example.response === undefined ? {} : { demo: example.response }),
  };
}

function describeList(schemas: NamedSchemas, [item = {}, ...others]: readonly Shape[]): readonly [JsonSchema, string] {
  const [items, description] = describeObject(schemas, item);
  const length = 1 + others.length;
  return [{ type: 'array', minItems: length, maxItems: length, items }, description];
}

/** As the binder makes it: `etag` leaves the body, and a page gets its links. */
function describeObject(schemas: NamedSchemas, shape: Shape): readonly [JsonSchema, string] {
  const object = objectOf(shape);
  if (!object) throw new Error('a route answers an object, or a list of them');
  const { name, description } = object.type;
  const additions = { omit: 'etag', ...('total_pages' in shape && { add: links }) };
  return [schemas.refer(name, objectSchema(schemas, shape, additions)), description ?? name];
}

const link = (description: string) => ({ type: ['string', 'null'], format: 'uri', description });
const links = {
  next: link('The URL of the next page; null on the last one.'),
  previous: link('The URL of the previous page; null on the first one.'),
};

/** By status; the field errors come with the other 400. */
function describeRejections(document: DocumentParts, { route, inputNames }: BoundRoute, extraHeaders: readonly string[]) {
  const codes: FaultCode[] = [...common, ...(inputNames.length > 0 ? (['validation_failed'] as const) : []), ...(route.faults ?? [])];
  const statuses = [...new Set(codes.map((code) => statusByCode[code]))];
  return Object.fromEntries(
    statuses.map((status) => [
      status,
      document.referRejection(
        codes.filter((code) => statusByCode[code] === status),
        extraHeaders,
      ),
    ]),
  );
}

function objectTypeOf(field: GraphQLField<unknown, unknown>): GraphQLObjectType | null {
  const type = getNullableType(field.type);
  return isObjectType(type) ? type : null;
}

function json(schema: JsonSchema, examples: Part): Part {
  const named = Object.entries(examples).map(([name, value]) => [name, { value }]);
  return { 'application/json': { schema, ...(named.length > 0 && { examples: Object.fromEntries(named) }) } };
}

function exampleOf(value: unknown): Part {
  return value === undefined ? {} : { examples: { demo: { value } } };
}

function pickExamples(bodies: Part, names: readonly string[]): Part {
  return Object.fromEntries(names.filter((name) => name in bodies).map((name) => [name, bodies[name]]));
}

/** `not_found` → `NotFound`. */
function pascal(name: string): string {
  return name.replace(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase());
}
