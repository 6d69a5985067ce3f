import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { generateKey } from '../src/access/apikey.ts';
import { statusByCode } from '../src/kernel/fault.ts';
import { schema } from '../src/schema.ts';
import { routes } from '../src/transport/rest/routes.ts';
import { startApp, type TestApp } from './support/app.ts';
import { countCases } from './support/cases.ts';
import { type Crowd, openCrowd, type Reply } from './support/crowd.ts';
import { type FuzzRequest, requestsFor, type Spare } from './support/fuzz/requests.ts';
import { expectUnharmed } from './support/inputs.ts';
import { routeOperations } from './support/operations.ts';

const SEED = Number(process.env.FUZZ_SEED ?? 20_261_120);
const RUNS = countCases(20_000, 'FUZZ_RUNS');
const BATCH = 50;

let app: TestApp;
let crowd: Crowd;
beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_USER: '100000000', RATE_LIMIT_ANONYMOUS: '100000000', LOG_LEVEL: 'silent' });
  crowd = openCrowd(app.baseUrl, '127.0.0.1', BATCH);
});
afterAll(async () => {
  crowd.close();
  await app.close();
});

const v1Statuses = [200, 201, 204, 400, 401, 403, 404, 409];
const graphqlStatuses = [200, 204, 400, 401, 405];

/** Creates enough rows that some are left after many have been deleted. */
async function makeSpare(): Promise<Spare> {
  const { project_id: projectId, users, instances } = app.demo;
  const { dashboard, apiKey, consoleSession } = app.app.database.prisma;
  const data = Array.from({ length: 150 }, (_, index) => ({
    projectId,
    createdById: index % 2 ? users.owner.id : users.member.id,
    name: `Number ${index}`,
    isPublic: index % 3 > 0,
  }));
  const keys = Object.values(users).flatMap(({ id: userId }) =>
    Array.from({ length: 10 }, () => {
      const { key: _key, ...stored } = generateKey();
      return { ...stored, userId, name: 'spare' };
    }),
  );
  const sessions = Object.values(users).flatMap(({ id: userId, email: userEmail }) =>
    Object.entries(instances).map(([instanceName, instanceId]) => {
      const instance = { projectId, instanceId, instanceName };
      return { id: randomUUID(), ...instance, userId, userEmail, kind: 'serial' as const, owner: randomUUID(), ended: new Date() };
    }),
  );
  const [dashboards, apiKeys, consoleSessions] = [
    await dashboard.createManyAndReturn({ data }),
    await apiKey.createManyAndReturn({ data: keys }),
    await consoleSession.createManyAndReturn({ data: sessions.map((session) => ({ ...session, endReason: 'idle' as const })) }),
  ];
  const idsOf = (rows: ReadonlyArray<{ id: string }>) => rows.map(({ id }) => id);
  return { dashboards: idsOf(dashboards), apiKeys: idsOf(apiKeys), consoleSessions: idsOf(consoleSessions) };
}

/** The number of times that each kind of response was seen. */
const seen = new Map<string, number>();
const see = (what: string) => seen.set(what, (seen.get(what) ?? 0) + 1);

/** The problem with the response to a request, or null. */
function judge({ method, path, operation, body }: FuzzRequest, { status, headers, text }: Reply): string | null {
  const [place = ''] = path.split('?');
  see(`status ${status}`);
  if (operation) see(`${operation} ${status < 300 ? 'good' : 'refused'}`);
  if (status >= 500) return `status ${status}`;
  if (place.startsWith('/v1/') && !v1Statuses.includes(status)) return `status ${status} of v1`;
  if (place === '/graphql' && !graphqlStatuses.includes(status)) return `status ${status} of GraphQL`;
  if (!headers['x-request-id']) return 'no request id';
  if (method === 'HEAD' || status === 204) return text === '' ? null : 'a body that must not be';
  if (!/^application\/(graphql-response\+)?json(; charset=utf-8)?$/.test(headers['content-type'] ?? ''))
    return `the type ${headers['content-type']}`;
  const json = parse(text);
  if (json === undefined) return 'no JSON';
  if (place === '/graphql') return judgeGraphql(json);
  return status < 400 ? judgeKept(json, method, body) : judgeRefusal(json, status);
}

function judgeGraphql(json: Record<string, unknown>): string | null {
  const { data, errors, ...rest } = json as {
    data?: Record<string, unknown> | null;
    errors?: Array<{ message: unknown; extensions: { code: unknown } }>;
  };
  if (Object.keys(rest).length > 0) return 'members that GraphQL does not have';
  for (const name of Object.keys(data ?? {})) if (data?.[name] != null) see(`answered ${name.replace(/_again$/, '')}`);
  if (!errors) return data ? null : 'neither data nor errors';
  for (const { message, extensions } of errors) {
    if (typeof message !== 'string' || !(String(extensions?.code) in statusByCode)) return 'an error without a code of ours';
    if (extensions.code === 'internal_error' || extensions.code === 'service_unavailable') return `the code ${extensions.code}`;
    see(`code ${extensions.code}`);
  }
  return null;
}

function judgeRefusal(json: Record<string, unknown>, status: number): string | null {
  const { detail, error, code } = json;
  const isMessages = (value: unknown) => Array.isArray(value) && value.every((message) => typeof message === 'string');
  const isRefusal = typeof detail === 'string' && error === detail && String(code) in statusByCode;
  const isFields = status === 400 && Object.values(json).every(isMessages);
  return isRefusal || isFields ? null : 'neither a refusal nor field errors';
}

/** Checks that a dashboard is returned as it was sent. */
function judgeKept(json: Record<string, unknown>, method: string, body = ''): string | null {
  const sent = parse(body);
  if (!sent || !('created_by' in json) || !['POST', 'PUT'].includes(method)) return null;
  const names = ['name', 'description', 'widgets', 'is_default', 'is_public'].filter((name) => Object.hasOwn(sent, name));
  const changed = names.filter((name) => JSON.stringify(sent[name]) !== JSON.stringify(json[name]));
  if (names.length > 0) see('kept');
  return changed.length > 0 ? `${changed} came back changed` : null;
}

function parse(text: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

async function attempt(request: FuzzRequest): Promise<string | null> {
  const outcome = await crowd.send(request).then(
    (reply) => ({ reply, problem: judge(request, reply) }),
    (failure) => ({ reply: null, problem: String(failure) }),
  );
  if (!outcome.problem) return null;
  return `${outcome.problem}\n  ${JSON.stringify(request)}\n  ${JSON.stringify(outcome.reply)?.slice(0, 2_000)}`;
}

it(`${RUNS} requests of seed ${SEED}: no 5xx, nothing but JSON, nothing changed in silence`, {
  timeout: Math.max(300_000, RUNS * 15),
}, async () => {
  console.info(`FUZZ_SEED=${SEED} FUZZ_RUNS=${RUNS}`);
  let sent = 0;
  const batches = fc.array(requestsFor(app.demo, await makeSpare()), { minLength: BATCH, maxLength: BATCH });
  const property = fc.asyncProperty(batches, async (requests) => {
    sent += requests.length;
    const problems = await Promise.all(requests.map(attempt));
    const found = problems.filter((problem) => problem !== null);
    if (found.length > 0) throw new Error(found.join('\n'));
  });
  const outcome = await fc.check(property, { seed: SEED, numRuns: Math.ceil(RUNS / BATCH), endOnFailure: true });
  if (outcome.failed)
    expect.fail(`FUZZ_SEED=${SEED}\n${outcome.errorInstance instanceof Error ? outcome.errorInstance.message : 'interrupted'}`);
  expect(sent).toBeGreaterThanOrEqual(RUNS);
  await expectUnharmed(app);
  if (RUNS >= 20_000) expectEverywhere();
});

/** Root fields that are answered only on a WebSocket. */
const onSockets = ['renewCredential'];

/** Checks that every route and every root field was both granted and rejected: a fuzz test that fails the first check tests nothing. */
function expectEverywhere(): void {
  const missing = (names: readonly string[]) => names.filter((name) => !seen.get(name));
  expect(missing([200, 201, 204, 400, 401, 403, 404, 409].map((status) => `status ${status}`).concat('kept'))).toEqual([]);
  expect(missing(routeOperations().flatMap(({ name }) => [`${name} good`, `${name} refused`]))).toEqual([]);
  expect(routes).toHaveLength(routeOperations().length);
  const roots = [schema.getQueryType(), schema.getMutationType()].flatMap((type) => Object.keys(type?.getFields() ?? {}));
  expect(missing(roots.filter((name) => !onSockets.includes(name)).map((name) => `answered ${name}`))).toEqual([]);
  expect(
    missing(['invalid_request', 'validation_failed', 'not_authenticated', 'permission_denied', 'not_found'].map((code) => `code ${code}`)),
  ).toEqual([]);
}
