import fc from 'fast-check';
import type { DemoFile } from '../../../src/demo/file.ts';
import type { Sending } from '../crowd.ts';
import { type Operation, pathVariables, routeOperations } from '../operations.ts';
import { documentsOf, type GraphqlRequest } from './documents.ts';
import { anything, fieldsOf, type IdsOf, idOf, inputOf, nastyNumbers, text, writeJson } from './values.ts';

/** A request, and the name of the route that it is meant for, if any. */
export interface FuzzRequest extends Sending {
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly operation: string | null;
}

/** What is made for the fuzz alone, so that it may be changed and deleted. */
export interface Spare {
  readonly dashboards: readonly string[];
  readonly apiKeys: readonly string[];
}

/** Requests for all routes of the table and all of the schema, by the demo's users and others. */
export function requestsFor(demo: DemoFile, spare: Spare): fc.Arbitrary<FuzzRequest> {
  const idsOf = idsIn(demo, spare);
  // Without a credential v1 looks at nothing, while GraphQL still reads the document.
  const rest = fc.tuple(fc.oneof(...routeOperations().map((operation) => restOf(operation, idsOf))), credentialsOf(demo, 2));
  const graphql = fc.tuple(graphqlOf(documentsOf(idsOf)), credentialsOf(demo, 20));
  const other = fc.tuple(elsewhere, credentialsOf(demo, 12));
  const whole = fc.oneof({ weight: 8, arbitrary: rest }, { weight: 11, arbitrary: graphql }, { weight: 1, arbitrary: other });
  return fc.tuple(whole, oddHeaders).map(([[request, authorization], odd]) => {
    const length: Record<string, string> = request.body === undefined ? {} : { 'content-length': String(Buffer.byteLength(request.body)) };
    return { ...request, headers: { ...request.headers, ...authorization, ...odd, ...length } };
  });
}

/** By the name of the field, in either spelling of names, else by that of its owner. Ids of another tenant are among them. */
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
    [/instance/i, [...Object.values(instances), foreign.instance_id]],
    [/key/i, spare.apiKeys],
    [/project/i, projects],
  ];
  const find = (name: string) => pools.find(([pattern]) => pattern.test(name))?.[1];
  return (place) => find(place.split('.').at(-1) ?? '') ?? find(place) ?? projects;
}

function restOf({ name, route, variables }: Operation, idsOf: IdsOf): fc.Arbitrary<FuzzRequest> {
  const { method, path } = route ?? { method: 'GET', path: '/' };
  const located = pathVariables(path);
  const declared = variables.filter((variable) => !located.includes(variable.name) && variable.name !== 'if_match');
  const segments = fc.tuple(...located.map((part) => segmentOf(idsOf(part))));
  const filled = segments.map((values) =>
    located.reduce((filling, part, index) => filling.replace(`:${part}`, () => values[index] ?? ''), path),
  );
  const spoiledPath = fc
    .tuple(filled, fc.constantFrom('/', '//', '/x', '%', '%ff', '%00', '/%2e%2e', '?', ';x', 'x'.repeat(3_000)))
    .map(([whole, end]) => whole + end);
  const anyPath = fc.oneof({ weight: 20, arbitrary: filled }, { weight: 1, arbitrary: spoiledPath });
  const anyMethod = fc.oneof(
    { weight: 20, arbitrary: fc.constant(method) },
    { weight: 1, arbitrary: fc.constantFrom('GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'PROPFIND') },
  );
  const input = method === 'GET' ? queryOf(declared, idsOf) : bodyOf(declared, idsOf);
  return fc.tuple(anyMethod, anyPath, input, ifMatch).map(([chosen, location, { query, body, type }, match]) => ({
    operation: chosen === method && location.split('/').length === path.split('/').length ? name : null,
    method: chosen,
    path: query ? `${location}?${query}` : location,
    body,
    headers: { ...(type && { 'content-type': type }), ...match },
  }));
}

interface Input {
  readonly query?: string;
  readonly body?: string;
  readonly type?: string;
}

const mediaType = fc.oneof(
  { weight: 25, arbitrary: fc.constant('application/json') },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      'application/json; charset=utf-8',
      'text/plain',
      'application/json; charset=utf-16',
      'application/x-www-form-urlencoded',
      'x',
      '',
    ),
  },
);

function bodyOf(declared: Operation['variables'], idsOf: IdsOf): fc.Arbitrary<Input> {
  const object = fieldsOf(declared, 'body', idsOf).map(writeJson);
  const none = declared.length === 0 ? 10 : 1;
  const body = fc.oneof(
    { weight: 25, arbitrary: object },
    { weight: none, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: anything.map(writeJson) },
    { weight: 1, arbitrary: text },
    { weight: 1, arbitrary: fc.tuple(object, fc.nat({ max: 200 })).map(([whole, end]) => whole.slice(0, end)) },
  );
  return fc.tuple(body, mediaType).map(([content, type]) => ({ body: content?.toWellFormed(), ...(content !== undefined && { type }) }));
}

function queryOf(declared: Operation['variables'], idsOf: IdsOf): fc.Arbitrary<Input> {
  const given = declared.map(({ name, type }) =>
    fc.option(
      fc
        .oneof(
          { weight: 6, arbitrary: inputOf(type, name, idsOf).map((value) => encode(writeJson(value).replace(/^"(.*)"$/, '$1'))) },
          { weight: 1, arbitrary: fc.constantFrom(...nastyNumbers) },
          { weight: 1, arbitrary: text.map(encode) },
          { weight: 1, arbitrary: fc.constantFrom('%', '%ff', '%ed%a0%80', '%00', '1&page=2', '') },
        )
        .map((value) => `${name}=${value}`),
      { freq: 2, nil: '' },
    ),
  );
  const other = fc.oneof(
    { weight: 10, arbitrary: fc.constant('') },
    { weight: 1, arbitrary: fc.constantFrom('x=1', '%ff', '&&', '=', '__proto__=1', 'page[]=1', '?') },
  );
  return fc
    .tuple(fc.tuple(...given), other)
    .map(([parts, more]) => ({ query: [...parts, more].filter(Boolean).join('&').slice(0, 5_000) }));
}

function segmentOf(ids: readonly string[]): fc.Arbitrary<string> {
  const raw = fc.constantFrom('', '..', '%', '%ff', '%2f', '*', ':id', 'null', "'", '(', '\\');
  return fc.oneof({ weight: 15, arbitrary: idOf(ids).map(encode) }, { weight: 1, arbitrary: raw });
}

const ifMatch: fc.Arbitrary<Record<string, string>> = fc.oneof(
  { weight: 8, arbitrary: fc.constant({}) },
  {
    weight: 2,
    arbitrary: fc
      .constantFrom('*', '"1"', '"2"', '"1", "2"', 'W/"1"', '', '"x"', '"99999999999"', '\u00ff')
      .map((tag) => ({ 'if-match': tag })),
  },
);

function graphqlOf(documents: fc.Arbitrary<GraphqlRequest>): fc.Arbitrary<FuzzRequest> {
  const accept = fc.constantFrom<Record<string, string>>(
    {},
    {},
    {},
    { accept: 'application/graphql-response+json' },
    { accept: 'image/png' },
    { accept: 'application/json' },
  );
  const form = fc.constantFrom('post', 'post', 'post', 'post', 'post', 'post', 'get', 'head', 'put', 'batch');
  return fc.tuple(documents, accept, form, mediaType).map(([{ query, variables, operationName }, accepted, way, type]) => {
    const base = { operation: 'graphql', headers: { ...accepted } };
    if (way === 'get' || way === 'head') {
      const parameters = [
        `query=${encode(query)}`,
        `variables=${encode(variables)}`,
        ...(operationName ? [`operationName=${operationName}`] : []),
      ];
      return { ...base, method: way.toUpperCase(), path: `/graphql?${parameters.join('&').slice(0, 10_000)}` };
    }
    const name = operationName === null ? '' : `,"operationName":${JSON.stringify(operationName)}`;
    const body = `{"query":${JSON.stringify(query)},"variables":${variables}${name}}`;
    const method = way === 'put' ? 'PUT' : 'POST';
    return {
      ...base,
      method,
      path: '/graphql',
      body: (way === 'batch' ? `[${body}]` : body).toWellFormed(),
      headers: { ...accepted, 'content-type': type },
    };
  });
}

/** Beside the doors. */
const elsewhere: fc.Arbitrary<FuzzRequest> = fc
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

/** Percent-encoded, a lone surrogate as the bytes that it would have; short enough for a request line. */
function encode(value: string): string {
  const text = value.slice(0, 3_000);
  const encoded = text.isWellFormed() ? encodeURIComponent(text) : `%ed%a0%80${encodeURIComponent(text.toWellFormed())}`;
  return encoded.slice(0, 3_000).replace(/%.?$/, '');
}
