import { describe, expect, it } from 'vitest';
import type { DemoRole } from '../../demo/people.ts';
import type { Ask, TestApp, TestResponse } from './app.ts';
import { camelize, isAnonymous, type Operation, type OperationName, operations, type Place } from './contract.ts';
import { anyUuid, expectExact } from './exact.ts';

/** A user of the demo, by session or by API key; `nobody` sends no credential and `garbage` an invalid one. */
export type Who = DemoRole | `${DemoRole} by key` | 'nobody' | 'garbage';

export interface Refusal {
  readonly detail: string;
  readonly code: string;
  readonly context?: Readonly<Record<string, unknown>>;
}

/** A request and its expected response, in v1's terms. */
export interface Attempt {
  readonly as?: Who;
  /** Ids that replace those of the demo's main project. */
  readonly place?: Partial<Place>;
  /** The body, or the query parameters of a GET; if omitted, none is sent. */
  readonly input?: Readonly<Record<string, unknown>>;
  readonly version?: number;
  /** A raw body that is sent through REST unchanged; such a case is not run through GraphQL. */
  readonly text?: string;
  /** The expected response is one of three: `body`, `fields` (the field errors) or `refusal`. */
  readonly body?: unknown;
  readonly fields?: Readonly<Record<string, readonly string[]>>;
  readonly refusal?: Refusal;
  /** The version of the dashboard in the response. */
  readonly etag?: number;
}

/** One row of the contract, which both APIs answer alike. */
export interface Case extends Attempt {
  readonly name: string;
  readonly operation: OperationName;
  readonly status: 200 | 201 | 204 | 400 | 401 | 403 | 404 | 409 | 429;
  /** Creates the data of the case, anew for each API; the fields it returns override those of the row. */
  prepare?(app: TestApp): Promise<Attempt>;
  /** Checks the effects of the call; `answered` is the returned object, with the names of its API. */
  check?(app: TestApp, attempt: Attempt, answered: Readonly<Record<string, unknown>>): Promise<void>;
}

export const refusals = {
  anonymous: { detail: 'Authentication credentials were not provided.', code: 'not_authenticated' },
  garbage: { detail: 'The credential is not valid.', code: 'not_authenticated' },
  notFound: { detail: 'Not found.', code: 'not_found' },
  forbidden: { detail: 'You do not have permission to perform this action.', code: 'permission_denied' },
} as const satisfies Record<string, Refusal>;

/** Declares the tests of a table: each row is run through REST and through GraphQL. */
export function runCases(openApp: () => TestApp, cases: readonly Case[]): void {
  for (const row of cases) {
    describe(`${row.operation} ${row.status}: ${row.name}`, () => {
      it('by REST', () => run(openApp(), row, askRest));
      if (row.text === undefined) it('by GraphQL', () => run(openApp(), row, askGraphql));
    });
  }
}

type Door = (app: TestApp, row: Case, operation: Operation, place: Place) => Promise<Readonly<Record<string, unknown>>>;

async function run(app: TestApp, row: Case, door: Door): Promise<void> {
  const whole = { ...row, ...(await row.prepare?.(app)) };
  const answered = await door(app, whole, operations[row.operation], { ...homeOf(app), ...whole.place });
  await row.check?.(app, whole, answered);
}

/** The ids of the demo's main project. */
export function homeOf({ demo }: TestApp): Place {
  return {
    organization_id: demo.organization_id,
    project_id: demo.project_id,
    instance_id: demo.instances.eligible,
    dashboard_id: demo.dashboards.public,
  };
}

export function credentialOf({ demo }: TestApp, who: Who): Ask['as'] {
  if (who === 'nobody') return null;
  if (who === 'garbage') return { bearer: 'no-token' };
  const [role, byKey] = who.split(' ', 2) as [DemoRole, string | undefined];
  return byKey ? { bearer: demo.users[role].api_key } : role;
}

/** Sends a case through v1 without checking the response. */
export function sendRest(app: TestApp, { operation, input, text, version, as = 'owner' }: Case, place: Place): Promise<TestResponse> {
  const { method, path } = operations[operation];
  const target = path.replace(/:(\w+)/g, (_, name: keyof Place) => encodeURIComponent(place[name]));
  // Node sets no Content-Length on a DELETE, and the body would then not be valid HTTP.
  const length = text === undefined ? {} : { 'content-length': Buffer.byteLength(text) };
  const headers = { ...length, ...(version !== undefined && { 'if-match': `"${version}"` }) };
  const search = new URLSearchParams(Object.entries(input ?? {}).map(([name, value]) => [name, String(value)]));
  return method === 'get'
    ? app.ask('GET', input ? `${target}?${search}` : target, { as: credentialOf(app, as) })
    : app.ask(method.toUpperCase(), target, { as: credentialOf(app, as), headers, body: text ?? input });
}

const askRest: Door = async (app, row, _operation, place) => {
  const response = await sendRest(app, row, place);
  expect(response.status, response.text).toBe(row.status);
  if (row.status === 204) expect(response.text).toBe('');
  else if (row.fields) expect(response.json).toStrictEqual(row.fields);
  else expectExact(response.json, expandRefusal(row.refusal) ?? row.body);
  if (response.json !== undefined) expect(response.text).toBe(JSON.stringify(response.json));
  const { headers } = response;
  expect(headers['content-type']).toBe(row.status === 204 ? undefined : 'application/json');
  expect(headers.etag).toBe(row.etag === undefined ? undefined : `"${row.etag}"`);
  expect(headers['cache-control']).toBe(row.operation === 'create_websocket_ticket' && row.status === 201 ? 'no-store' : undefined);
  expect(headers['www-authenticate']).toBe(row.status === 401 ? 'Bearer' : undefined);
  expect(headers['retry-after']).toBe(row.status === 429 ? String(row.refusal?.context?.retry_after_seconds) : undefined);
  expectHeadersOfAll(response, row);
  return response.json;
};

const askGraphql: Door = async (app, row, { document, variables, data }, place) => {
  const { as = 'owner', input = {}, version, etag } = row;
  const response = await app.graphql(document, variables({ place, input, version }), { as: credentialOf(app, as) });
  const isRefusedByTransport = row.status === 429 || as === 'garbage';
  expect(response.status, response.text).toBe(isRefusedByTransport ? row.status : 200);
  expectHeadersOfAll(response, row);
  if (row.status === 401 && isAnonymous(response.json.data)) {
    expect(response.json).toEqual({ data: { viewer: null } });
    return {};
  }
  if (row.status < 300) {
    expectExact(response.json, { data: data(row.body, { place, input, version, etag }) });
    const { answer: answered } = response.json.data;
    return answered?.dashboard ?? answered ?? {};
  }
  const { errors, data: nothing, ...rest } = response.json;
  expect(rest).toEqual({});
  expect(leaves(nothing).every((leaf) => leaf === null)).toBe(true);
  const { locations: _locations, path: _path, ...error } = errors[0];
  expect(errors).toHaveLength(1);
  expect(error).toStrictEqual(expectedError(row));
  return {};
};

function expectedError({ refusal, fields }: Case) {
  if (!refusal) {
    return { message: 'Some fields are not valid.', extensions: { code: 'validation_failed', fields: camelize(fields) } };
  }
  const { detail, code, context } = refusal;
  return { message: detail, extensions: { code, ...(context && { context }) } };
}

/** The v1 body of a refusal (§7.1 to §7.3). */
export function expandRefusal(refusal: Refusal | undefined) {
  if (!refusal) return undefined;
  const { detail, code, context } = refusal;
  return { detail, code, error: detail, ...(context && { context }) };
}

/** Checks the headers that every rate-limited response carries, whatever its status. */
export function expectHeadersOfAll({ headers }: TestResponse, { as = 'owner' }: { as?: Who }): void {
  expect(headers['x-request-id']).toEqual(anyUuid);
  const policy = as === 'nobody' || as === 'garbage' ? 'anonymous' : 'user';
  expect(headers['ratelimit-policy']).toMatch(policy === 'user' ? /^"user";q=\d+;w=3600$/ : /^"anonymous";q=\d+;w=60$/);
  expect(headers.ratelimit).toMatch(new RegExp(`^"${policy}";r=\\d+;t=\\d+$`));
  expectSecurityHeaders(headers);
}

export function expectSecurityHeaders(headers: TestResponse['headers']): void {
  expect(headers).toMatchObject({
    'strict-transport-security': 'max-age=31536000; includeSubDomains',
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'SAMEORIGIN',
    'referrer-policy': 'no-referrer',
    'cross-origin-resource-policy': 'cross-origin',
  });
  expect(headers).not.toHaveProperty('x-powered-by');
}

function leaves(value: unknown): unknown[] {
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(leaves) : value === undefined ? [] : [value];
}
