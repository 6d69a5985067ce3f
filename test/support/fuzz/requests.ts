import fc from 'fast-check';
import type { DemoFile } from '../../../demo/file.ts';
import type { Sending } from '../crowd.ts';
import { type Operation, pathVariables, routeOperations } from '../operations.ts';
import { documentsOf, type GraphqlRequest } from './documents.ts';
import { anything, type IdsOf, makeValues, mixOf, nastyNumbers, text, type Values, writeJson } from './values.ts';

/** A request, and the name of the operation that it is meant for, if any. */
export interface FuzzRequest extends Sending {
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly operation: string | null;
}

/** Ids of rows created for the fuzz test alone, which requests may change and delete. */
export interface Spare {
  readonly dashboards: readonly string[];
  readonly apiKeys: readonly string[];
  readonly consoleSessions: readonly string[];
}

/** Requests for every v1 route and the whole GraphQL schema, with credentials of the demo's users and others. */
export function requestsFor(demo: DemoFile, spare: Spare): fc.Arbitrary<FuzzRequest> {
  const idsOf = idsIn(demo, spare);
  // Most bugs are found by a request with a single flaw, and some by a valid one.
  const generators = [0, 0.2, 0.5, 1].map((wildness) => {
    const values = makeValues(idsOf, wildness);
    const ofRoutes = fc.oneof(...routeOperations().map((operation) => restOf(operation, values, wildness)));
    return { ofRoutes, ofSchema: graphqlOf(documentsOf(values, wildness), wildness) };
  });
  // Without a credential v1 inspects nothing of the request, while GraphQL still parses the document.
  const rest = fc.tuple(fc.oneof(...generators.map(({ ofRoutes }) => ofRoutes)), credentialsOf(demo, 2));
  const graphql = fc.tuple(fc.oneof(...generators.map(({ ofSchema }) => ofSchema)), credentialsOf(demo, 20));
  const other = fc.tuple(otherPaths, credentialsOf(demo, 12));
  const whole = fc.oneof({ weight: 8, arbitrary: rest }, { weight: 11, arbitrary: graphql }, { weight: 1, arbitrary: other });
  return fc.tuple(whole, oddHeaders).map(([[request, authorization], odd]) => {
    const length: Record<string, string> = request.body === undefined ? {} : { 'content-length': String(Buffer.byteLength(request.body)) };
    return { ...request, headers: { ...request.headers, ...authorization, ...odd, ...length } };
  });
}

/** Chooses ids by the name of the field, in snake_case or camelCase, else by that of its owner. Some belong to another tenant. */
function idsIn(
  { organization_id, project_id, empty_project_id, foreign, instances, dashboards, notification_ids }: DemoFile,
  spare: Spare,
): IdsOf {
  const mostly = (id: string, ...others: string[]) => [...Array<string>(8).fill(id), ...others];
  const projects = mostly(project_id, empty_project_id, foreign.project_id);
  const pools: Array<readonly [RegExp, readonly string[]]> = [
    [/organization/i, mostly(organization_id, foreign.organization_id)],
    [/notification/i, notification_ids.slice(0, 50)],
    [/dashboard/i, [...spare.dashboards, ...Object.values(dashboards), foreign.dashboard_id]],
    [/session/i, spare.consoleSessions],
    [/instance/i, [...Object.values(instances), foreign.instance_id]],
    [/key/i, spare.apiKeys],
    [/project/i, projects],
  ];
  const find = (name: string) => pools.find(([pattern]) => pattern.test(name))?.[1];
  return (place) => find(place.split('.').at(-1) ?? '') ?? find(place) ?? projects;
}

function restOf({ name, route, variables }: Operation, values: Values, wildness: number): fc.Arbitrary<FuzzRequest> {
  const { method, path } = route ?? { method: 'GET', path: '/' };
  const mostly = mixOf(wildness);
  const located = pathVariables(path);
  const inHeaders = ['if_match', 'idempotency_key'];
  const declared = variables.filter(({ name: variable }) => !located.includes(variable) && !inHeaders.includes(variable));
  const segments = fc.tuple(...located.map((part) => mostly(values.id(part).map(encode), 3, fc.constantFrom(...nastySegments))));
  const filled = segments.map((given) =>
    located.reduce((filling, part, index) => filling.replace(`:${part}`, () => given[index] ?? ''), path),
  );
  const spoiled = fc.tuple(filled, fc.constantFrom(...nastyEnds)).map(([whole, end]) => whole + end);
  const input = method === 'GET' ? queryOf(declared, values, wildness) : bodyOf(declared, values, wildness);
  const anyMethod = mostly(fc.constant(method), 4, fc.constantFrom(...methods));
  const tags = fc
    .constantFrom('*', '"1"', '"2"', '"1", "2"', 'W/"1"', '', '"x"', '"99999999999"', '\u00ff')
    .map((tag) => ({ 'if-match': tag }));
  const keys = fc
    .constantFrom(
      'a key of two or more words',
      '"the first of them"',
      'the-first-of-them',
      '"the-first-of-them"',
      'the-other-of-them',
      '',
      '\u00ff',
      '"',
      'x'.repeat(256),
    )
    .map((key) => ({ 'idempotency-key': key }));
  const match: fc.Arbitrary<Record<string, string>> = mostly(fc.constant({}), 20, fc.oneof(tags, keys));
  return fc.tuple(anyMethod, mostly(filled, 4, spoiled), input, match).map(([chosen, location, { query, body, type }, tag]) => ({
    operation: chosen === method && location.split('/').length === path.split('/').length ? name : null,
    method: chosen,
    path: query ? `${location}?${query}` : location,
    body,
    headers: { ...(type && { 'content-type': type }), ...tag },
  }));
}

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'PROPFIND'];
const nastySegments = ['', '..', '%', '%ff', '%2f', '*', ':id', 'null', "'", '(', '\\'];
const nastyEnds = ['/', '//', '/x', '%', '%ff', '%00', '/%2e%2e', '?', ';x', 'x'.repeat(3_000)];
const nastyTypes = [
  'application/json; charset=utf-8',
  'text/plain',
  'application/json; charset=utf-16',
  'application/x-www-form-urlencoded',
  'x',
  '',
];
const typeOf = (wildness: number) => mixOf(wildness)(fc.constant('application/json'), 4, fc.constantFrom(...nastyTypes));

interface Input {
  readonly query?: string;
  readonly body?: string;
  readonly type?: string;
}

function bodyOf(declared: Operation['variables'], values: Values, wildness: number): fc.Arbitrary<Input> {
  const object = values.fields(declared, 'body').map(writeJson);
  const cut = fc.tuple(object, fc.nat({ max: 200 })).map(([whole, end]) => whole.slice(0, end));
  const body = mixOf(wildness)(object, 12, fc.oneof(fc.constant(undefined), anything.map(writeJson), text, cut));
  return fc
    .tuple(body, typeOf(wildness))
    .map(([content, type]) => ({ body: content?.toWellFormed(), ...(content !== undefined && { type }) }));
}

function queryOf(declared: Operation['variables'], values: Values, wildness: number): fc.Arbitrary<Input> {
  const mostly = mixOf(wildness);
  const nasty = fc.oneof(text.map(encode), fc.constantFrom(...nastyNumbers, '%', '%ff', '%ed%a0%80', '%00', '1&page=2', ''));
  const given = declared.map(({ name, type }) => {
    const fitting = values.input(type, name).map((value) => encode(writeJson(value).replace(/^"(.*)"$/, '$1')));
    return fc.oneof(
      fc.constant(''),
      mostly(fitting, 30, nasty).map((value) => `${name}=${value}`),
    );
  });
  const other = mostly(fc.constant(''), 10, fc.constantFrom('x=1', '%ff', '&&', '=', '__proto__=1', 'page[]=1', '?'));
  return fc
    .tuple(fc.tuple(...given), other)
    .map(([parts, more]) => ({ query: [...parts, more].filter(Boolean).join('&').slice(0, 5_000) }));
}

function graphqlOf(documents: fc.Arbitrary<GraphqlRequest>, wildness: number): fc.Arbitrary<FuzzRequest> {
  const mostly = mixOf(wildness);
  const accepts = fc.constantFrom<Record<string, string>>(
    { accept: 'application/graphql-response+json' },
    { accept: 'image/png' },
    { accept: 'text/html' },
    { accept: 'application/json' },
  );
  const accept: fc.Arbitrary<Record<string, string>> = mostly(fc.constant({}), 40, accepts);
  const form = mostly(fc.constant('POST'), 30, fc.constantFrom('GET', 'HEAD', 'PUT', 'batch'));
  return fc.tuple(documents, accept, form, typeOf(wildness)).map(([{ query, variables, operationName }, accepted, way, type]) => {
    if (way === 'GET' || way === 'HEAD') {
      const named = operationName === null ? '' : `&operationName=${operationName}`;
      const path = `/graphql?query=${encode(query)}&variables=${encode(variables)}${named}`;
      return { operation: 'graphql', method: way, path, headers: accepted };
    }
    const named = operationName === null ? '' : `,"operationName":${JSON.stringify(operationName)}`;
    const one = `{"query":${JSON.stringify(query)},"variables":${variables}${named}}`.toWellFormed();
    const [method, body] = way === 'batch' ? ['POST', `[${one},${one}]`] : [way, one];
    return { operation: 'graphql', method, path: '/graphql', body, headers: { ...accepted, 'content-type': type } };
  });
}

/** Requests to paths outside the APIs. */
const otherPaths: fc.Arbitrary<FuzzRequest> = fc
  .tuple(
    fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'HEAD', 'PATCH'),
    fc.array(fc.oneof(text.map(encode), fc.constantFrom('v1', 'graphql', '..', '%ff', '.well-known')), { maxLength: 4 }),
  )
  .map(([method, segments]) => ({ operation: null, method, path: `/${segments.join('/')}`, headers: {} }));

function credentialsOf({ users }: DemoFile, anonymousWeight: number): fc.Arbitrary<Record<string, string>> {
  const good = Object.values(users).flatMap(({ token, api_key }) => [token, api_key].filter((credential) => credential !== undefined));
  const bad = [
    'Bearer',
    'Bearer x',
    'Basic eDp4',
    `Bearer ${'a'.repeat(2_000)}`,
    'Bearer sk-portico-0',
    `Bearer ${good[0]}x`,
    '\u00ff',
    '',
  ];
  return fc.oneof(
    { weight: 12, arbitrary: fc.constantFrom(...good).map((credential) => ({ authorization: `Bearer ${credential}` })) },
    { weight: anonymousWeight, arbitrary: fc.constant({}) },
    { weight: 1, arbitrary: fc.constantFrom(...bad).map((authorization) => ({ authorization })) },
  );
}

const headerText = fc.stringMatching(/^[ -~\u00a1-\u00ff]{0,40}$/);
const oddHeaders: fc.Arbitrary<Record<string, string>> = fc.oneof(
  { weight: 10, arbitrary: fc.constant({}) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(
        fc.constantFrom(
          'x-request-id',
          'origin',
          'cookie',
          'x-forwarded-for',
          'accept-encoding',
          'range',
          'if-none-match',
          'accept-language',
          'referer',
        ),
        headerText,
      )
      .map(([name, value]) => ({ [name]: value })),
  },
);

/** Percent-encodes a value, with a lone surrogate as its invalid UTF-8 bytes, and truncates it to fit a request line. */
function encode(value: string): string {
  const text = value.slice(0, 3_000);
  const encoded = text.isWellFormed() ? encodeURIComponent(text) : `%ed%a0%80${encodeURIComponent(text.toWellFormed())}`;
  return encoded.slice(0, 3_000).replace(/%.?$/, '');
}
