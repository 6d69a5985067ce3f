import { expect } from 'vitest';
import { schema } from '../../src/schema.ts';
import type { TestApp, TestResponse } from './app.ts';
import { anyMoment, anyUuid } from './exact.ts';

export type Fields = Readonly<Record<string, readonly string[]>>;

/** The v1 body of a refusal (§7). */
export function refusal(code: string, detail: string) {
  return { detail, code, error: detail };
}

export const invalid = (detail: string) => refusal('invalid_request', detail);
export const notFound = refusal('not_found', 'Not found.');
export const notProvided = refusal('not_authenticated', 'Authentication credentials were not provided.');
export const notValid = refusal('not_authenticated', 'The credential is not valid.');

/** The GraphQL body of a request rejected before execution. */
export function graphqlRefusal(code: string, message: string, places: Record<string, unknown> = {}) {
  return { errors: [{ message, ...places, extensions: { code } }] };
}

export const graphqlInvalid = (message: string, places?: Record<string, unknown>) => graphqlRefusal('invalid_request', message, places);

export function graphqlFields(fields: Fields) {
  return { errors: [{ message: 'Some fields are not valid.', extensions: { code: 'validation_failed', fields } }] };
}

/** Names of GraphQL types must not reach a client of v1, except UUID and JSON, which are also plain English. */
const typeNames = Object.keys(schema.getTypeMap()).filter((name) => name !== 'UUID' && name !== 'JSON');
const typeName = new RegExp(`\\b(${typeNames.join('|')})\\b`);

/** Checks the status and the body, byte for byte. */
export function expectRest(response: TestResponse, status: number, body: unknown): void {
  expectText(response, status, JSON.stringify(body));
  if (status < 400) return;
  const messages = Object.entries(body as Record<string, unknown>).flatMap(([name, value]) => (name === 'context' ? [] : value));
  for (const message of messages) expect(message).not.toMatch(typeName);
}

/** Checks the status and the whole body; the order of its fields does not matter. */
export function expectGraphql(response: TestResponse, status: number, body: unknown): void {
  expect(response.status, response.text.slice(0, 2_000)).toBe(status);
  expect(response.json).toStrictEqual(body);
  expect(response.headers['content-type']).toMatch(/^application\/json(; charset=utf-8)?$/);
}

function expectText(response: TestResponse, status: number, text: string): void {
  // A value may be a megabyte, and a diff of two such values is useless, so they are shortened.
  const shorten = (whole: string) => (whole.length > 4_000 ? `${whole.slice(0, 2_000)} … ${whole.length}` : whole);
  expect({ status: response.status, text: shorten(response.text) }).toEqual({ status, text: shorten(text) });
  expect(response.text === text).toBe(true);
  expect(response.headers['content-type']).toBe('application/json');
}

export interface Content {
  readonly name: string;
  readonly description?: string;
  readonly widgets?: unknown;
  /** The exact expected text of the widgets, where it differs from the output of `JSON.stringify`. */
  readonly widgetsText?: string;
  readonly is_default?: boolean;
  readonly is_public?: boolean;
}

/** Checks v1's response with a dashboard of the main project, byte for byte; any id and times are accepted. */
export function expectDashboard(
  { demo }: TestApp,
  response: TestResponse,
  status: number,
  content: Content,
  createdBy = demo.users.owner.id,
): void {
  expect(response.json, response.text).toMatchObject({ id: anyUuid, created: anyMoment, modified: anyMoment });
  const { id, created, modified } = response.json;
  const { name, description = '', widgets = [], is_default = false, is_public = false } = content;
  const place = { organization: demo.organization_id, created_by: createdBy, created, modified };
  const head = JSON.stringify({ id, name, ...place, description, project: demo.project_id });
  const { widgetsText = JSON.stringify(widgets) } = content;
  expectText(response, status, `${head.slice(0, -1)},"widgets":${widgetsText},"is_default":${is_default},"is_public":${is_public}}`);
}

/**
 * Checks that the requests did no harm: the server still answers and has logged no warning or error, except of what took long, as
 * the machine may be busy, and of the first request with a header of a proxy.
 */
export async function expectUnharmed(app: TestApp): Promise<void> {
  const response = await app.ask('GET', `${app.projectPath}/compute/overview`, { as: { bearer: app.demo.users.owner.api_key } });
  expect(response.status, response.text).toBe(200);
  // On a busy machine statements take long, and Redis answers late.
  const expected = /"msg":"(a (slow|long) |X-Forwarded-For of a peer)|"dependency":"redis"/;
  const alarms = app.logLines.filter((line) => /"level":"(warn|error|fatal)"/.test(line) && !expected.test(line));
  expect({ alarms: alarms.length, first: alarms[0] }).toEqual({ alarms: 0, first: undefined });
}

/** The GraphQL spelling of a v1 name. */
export function camel(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
