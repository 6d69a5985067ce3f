import { expect } from 'vitest';
import { schema } from '../../src/schema.ts';
import type { Answer, TestApp } from './app.ts';
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

/** The GraphQL body of a refusal before anything was executed. */
export function graphqlRefusal(code: string, message: string, places: Record<string, unknown> = {}) {
  return { errors: [{ message, ...places, extensions: { code } }] };
}

export const graphqlInvalid = (message: string, places?: Record<string, unknown>) => graphqlRefusal('invalid_request', message, places);

export function graphqlFields(fields: Fields) {
  return { errors: [{ message: 'Some fields are not valid.', extensions: { code: 'validation_failed', fields } }] };
}

/** UUID and JSON are also words of English; all other names of types must not reach a client of v1. */
const typeNames = Object.keys(schema.getTypeMap()).filter((name) => name !== 'UUID' && name !== 'JSON');
const typeName = new RegExp(`\\b(${typeNames.join('|')})\\b`);

/** The status and the body, to the byte. */
export function expectRest(answer: Answer, status: number, body: unknown): void {
  expectText(answer, status, JSON.stringify(body));
  if (status < 400) return;
  const messages = Object.entries(body as Record<string, unknown>).flatMap(([name, value]) => (name === 'context' ? [] : value));
  for (const message of messages) expect(message).not.toMatch(typeName);
}

/** The status and the whole body; in which order the fields of a refusal stand says nothing. */
export function expectGraphql(answer: Answer, status: number, body: unknown): void {
  expect(answer.status, answer.text.slice(0, 2_000)).toBe(status);
  expect(answer.json).toStrictEqual(body);
  expect(answer.headers['content-type']).toMatch(/^application\/json(; charset=utf-8)?$/);
}

function expectText(answer: Answer, status: number, text: string): void {
  // Shortened, since a value may be a megabyte, and a difference between two such is of use to nobody.
  const shorten = (whole: string) => (whole.length > 4_000 ? `${whole.slice(0, 2_000)} … ${whole.length}` : whole);
  expect({ status: answer.status, text: shorten(answer.text) }).toEqual({ status, text: shorten(text) });
  expect(answer.text === text).toBe(true);
  expect(answer.headers['content-type']).toBe('application/json');
}

export interface Content {
  readonly name: string;
  readonly description?: string;
  readonly widgets?: unknown;
  /** As they are expected to the byte, where that is not what `JSON.stringify` makes of them. */
  readonly widgetsText?: string;
  readonly is_default?: boolean;
  readonly is_public?: boolean;
}

/** A dashboard of the main project as v1 answers it, to the byte, whatever its id and times are. */
export function expectDashboard(
  { demo }: TestApp,
  answer: Answer,
  status: number,
  content: Content,
  createdBy = demo.users.owner.id,
): void {
  expect(answer.json, answer.text).toMatchObject({ id: anyUuid, created: anyMoment, modified: anyMoment });
  const { id, created, modified } = answer.json;
  const { name, description = '', widgets = [], is_default = false, is_public = false } = content;
  const place = { organization: demo.organization_id, created_by: createdBy, created, modified };
  const head = JSON.stringify({ id, name, ...place, description, project: demo.project_id });
  const { widgetsText = JSON.stringify(widgets) } = content;
  expectText(answer, status, `${head.slice(0, -1)},"widgets":${widgetsText},"is_default":${is_default},"is_public":${is_public}}`);
}

/** Nothing that came was too much: the server still answers, and had nothing to hide in its log. */
export async function expectUnharmed(app: TestApp): Promise<void> {
  const answer = await app.ask('GET', `${app.projectPath}/compute/overview`, { as: { bearer: app.demo.users.owner.api_key } });
  expect(answer.status, answer.text).toBe(200);
  const alarms = app.logLines.filter((line) => /"level":"(warn|error|fatal)"/.test(line));
  expect({ alarms: alarms.length, first: alarms[0] }).toEqual({ alarms: 0, first: undefined });
}

/** v1's name as GraphQL has it. */
export function camel(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
