import { afterAll, beforeAll, expect, it } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { countCases } from '../support/cases.ts';
import { camelize, isAnonymous, type OperationName, operations, type Place } from '../support/contract.ts';
import { type Case, credentialOf, homeOf, sendRest, type Who } from '../support/doors.ts';
import { ABSENT_ID } from '../support/fixtures.ts';
import { type Random, seededRandom } from '../support/random.ts';

/** `CASES=32000 npx vitest run test/inputs/drawn.test.ts` takes some minutes. */
const CASES = countCases(3_000, 'CASES');
const SEED = Number(process.env.DRAWN_SEED ?? 20261122);

/** Two installations of the same demo: v1 is asked at one, GraphQL at the other, so that both see the same state. */
let twins: { readonly rest: TestApp; readonly graphql: TestApp };
beforeAll(async () => {
  const env = { RATE_LIMIT_USER: '1000000', RATE_LIMIT_ANONYMOUS: '1000000', DASHBOARDS_PER_PROJECT: '40' };
  twins = { rest: await startApp(env), graphql: await startApp(env) };
});
afterAll(async () => {
  await twins?.rest.close();
  await twins?.graphql.close();
});

const whos: readonly Who[] = ['owner', 'admin', 'member', 'viewer', 'outsider', 'owner by key', 'viewer by key', 'nobody', 'garbage'];
const names = Object.keys(operations) as OperationName[];

/** The dashboards that were made in both, each by its id there. */
const made: Array<{ readonly rest: string; readonly graphql: string }> = [];

const texts = ['', ' ', 'Plain', '  trimmed  ', 'a\nb', 'n'.repeat(255), 'n'.repeat(256), '\u0000', '\ud800', 'é😀', '\u2028', '__proto__'];
const others: readonly unknown[] = [null, true, false, 0, -0, 1, -1, 1.5, 2 ** 31, 1e21, 'true', '1', [], [1], [[]], {}, { a: null }];
const json: readonly unknown[] = [...others, [{ type: 'line', values: [1, 2.5, null] }], { deep: { deeper: [[[]]] } }, 'x'.repeat(70_000)];

/** What a field of a body is given: often something good, sometimes anything at all. */
function drawValue(random: Random, good: readonly unknown[]): unknown {
  return random.chance(0.85) ? random.pick(good) : random.chance(0.5) ? random.pick(texts) : random.pick(others);
}

function drawFields(random: Random, fields: Readonly<Record<string, readonly unknown[]>>): Record<string, unknown> {
  const drawn = Object.entries(fields).filter(() => random.chance(0.6));
  return Object.fromEntries(drawn.map(([name, good]) => [name, drawValue(random, good)]));
}

const page = { page: [1, 1, 2, 3, 0, -1, 99, 2_147_483_647], page_size: [1, 5, 20, 100, 101, 0, -5] };
const content = {
  name: [...Array(20).fill('Drawn'), 'Other', ...texts],
  description: ['', 'Some text', 'd'.repeat(10_000), 'd'.repeat(10_001)],
  widgets: [...json, ...Array(10).fill([])],
  is_default: [true, false],
  is_public: [true, true, false],
};

function drawInput(random: Random, operation: OperationName, app: TestApp): Record<string, unknown> | undefined {
  switch (operation) {
    case 'list_organizations':
    case 'list_projects':
    case 'list_dashboards':
      return drawQuery(random, page);
    case 'list_instances':
      return drawQuery(random, { ...page, status: ['active', 'active', 'suspended', 'deleted', 'lost', ''] });
    case 'list_tasks':
      return drawQuery(random, { ...page, status: ['failed', 'failed', 'running', 'lost', ''] });
    case 'list_notifications':
      return drawQuery(random, {
        ...page,
        unread: [true, false],
        severity: ['info', 'warning', 'loud', ''],
        kind: ['task.failed', 'x', ''],
      });
    case 'create_dashboard':
      return { name: 'Drawn', ...drawFields(random, content) };
    case 'update_dashboard': {
      const projects = [app.demo.project_id, app.demo.foreign.project_id, ABSENT_ID, 'x'];
      const fields = random.chance(0.2) ? { ...content, project: projects } : content;
      return { ...(random.chance(0.9) && { name: 'Put' }), ...drawFields(random, fields) };
    }
    case 'create_websocket_ticket':
      return drawFields(random, {
        target: ['notifications', 'notifications', 'console', 'ssh'],
        instance_id: [app.demo.instances.eligible, ABSENT_ID, 'x'],
        session_id: [ABSENT_ID, 'x'],
      });
    case 'mark_notifications_read': {
      const lists = [
        [],
        [ABSENT_ID],
        [ABSENT_ID, ABSENT_ID],
        ['x'],
        [null],
        [1],
        Array(200).fill(ABSENT_ID),
        Array(201).fill(ABSENT_ID),
        null,
        ABSENT_ID,
        5,
        {},
      ];
      return random.chance(0.3) ? {} : { notification_ids: random.pick(lists) };
    }
    case 'get_dashboard':
    case 'delete_dashboard':
    case 'get_instance':
    case 'backup_trial_state':
    case 'compute_overview':
      return undefined;
    default:
      return operation satisfies never;
  }
}

/** What a URL can say of a number or of yes and no, both APIs take: v1 as text, GraphQL as the value that it stands for. */
function drawQuery(random: Random, fields: Readonly<Record<string, readonly unknown[]>>): Record<string, unknown> | undefined {
  const drawn = Object.entries(fields).filter(() => random.chance(0.4));
  return drawn.length === 0 ? undefined : Object.fromEntries(drawn.map(([name, good]) => [name, random.pick(good)]));
}

interface Drawn {
  readonly row: Case;
  readonly place: Partial<Place>;
  /** Which of the dashboards that were made here it is about; null: the one that the place names. */
  readonly one: number | null;
}

function draw(random: Random): Drawn {
  const { demo } = twins.rest;
  const operation = random.pick(names);
  const ids = (good: string, ...more: string[]) =>
    random.chance(0.85) ? good : random.pick([ABSENT_ID, 'x', '{}', good.toUpperCase(), `${good} `, ...more]);
  const place: Place = {
    organization_id: ids(demo.organization_id, demo.foreign.organization_id),
    project_id: ids(demo.project_id, demo.foreign.project_id),
    instance_id: ids(random.pick([demo.instances.eligible, ...Object.values(demo.instances)]), demo.foreign.dashboard_id),
    dashboard_id: ids(random.pick([demo.dashboards.public, demo.dashboards.private]), demo.foreign.dashboard_id),
  };
  // What is deleted does not come back, and the demo has few dashboards.
  const isLast = operation === 'delete_dashboard' || random.chance(0.6);
  const one = made.length > 0 && isLast && random.chance(0.9) ? random.below(made.length) : null;
  const hasVersion = (operation === 'update_dashboard' || operation === 'delete_dashboard') && random.chance(0.5);
  const version = hasVersion ? random.pick([1, 1, 2, 3, 99]) : undefined;
  const as = random.chance(0.5) ? 'owner' : random.pick(whos);
  return { row: { name: '', operation, status: 200, as, input: drawInput(random, operation, twins.rest), version } as Case, place, one };
}

/** The ids of what was made in one installation are not those of the other, nor are its moments and its secrets. */
function comparable(value: unknown, door: 'rest' | 'graphql'): unknown {
  let text = JSON.stringify(value) ?? 'undefined';
  for (const [index, ids] of made.entries()) text = text.replaceAll(ids[door], `made ${index}`);
  return JSON.parse(
    text
      .replace(/"(created|modified)":"[^"]+"/g, '"$1":"…"')
      .replace(/"ticket":"[^"]+"/g, '"ticket":"…"')
      .replace(/ticket=[\w.~-]+/g, 'ticket=…'),
  );
}

interface Verdict {
  readonly code: string | null;
  readonly fields?: unknown;
  readonly context?: unknown;
  readonly data?: unknown;
}

async function askRest({ row, place, one }: Drawn): Promise<{ verdict: Verdict; id: string | null }> {
  const app = twins.rest;
  const whole = { ...homeOf(app), ...place, ...(one !== null && { dashboard_id: made[one]?.rest }) } as Place;
  const { status, json: body, headers } = await sendRest(app, row, whole);
  if (status >= 300) {
    if (typeof body.code !== 'string') return { verdict: { code: 'validation_failed', fields: camelize(body) }, id: null };
    return { verdict: { code: body.code, ...(body.context && { context: body.context }) }, id: null };
  }
  const etag = headers.etag === undefined ? undefined : Number(String(headers.etag).slice(1, -1));
  const { data } = operations[row.operation];
  const call = { place: whole, input: row.input ?? {}, version: row.version, etag };
  return { verdict: { code: null, data: data(body, call) }, id: row.operation === 'create_dashboard' ? body.id : null };
}

async function askGraphql({ row, place, one }: Drawn): Promise<{ verdict: Verdict; id: string | null }> {
  const app = twins.graphql;
  const whole = { ...homeOf(app), ...place, ...(one !== null && { dashboard_id: made[one]?.graphql }) } as Place;
  const { document, variables } = operations[row.operation];
  const sent = variables({ place: whole, input: row.input ?? {}, version: row.version });
  const { json: body } = await app.graphql(document, sent, { as: credentialOf(app, row.as ?? 'owner') });
  const [error] = body.errors ?? [];
  if (!error && isAnonymous(body.data)) return { verdict: { code: 'not_authenticated' }, id: null };
  if (!error) return { verdict: { code: null, data: body.data }, id: body.data.answer?.dashboard?.id ?? null };
  const { code, fields, context } = error.extensions;
  return { verdict: { code, ...(fields && { fields }), ...(context && { context }) }, id: null };
}

it(`${CASES} drawn requests of seed ${SEED} are answered the same by v1 and by GraphQL`, { timeout: 120_000 + CASES * 60 }, async () => {
  const random = seededRandom(SEED);
  const outcomes = new Map<string, number>();
  const differences: string[] = [];
  for (let index = 0; index < CASES; index += 1) {
    const drawn = draw(random);
    const [rest, graphql] = await Promise.all([askRest(drawn), askGraphql(drawn)]);
    if (drawn.row.operation === 'create_dashboard' && rest.id && graphql.id) made.push({ rest: rest.id, graphql: graphql.id });
    const [theirs, ours] = [comparable(rest.verdict, 'rest'), comparable(graphql.verdict, 'graphql')];
    const outcome = `${drawn.row.operation} ${rest.verdict.code ?? 'done'}`;
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    try {
      expect(ours).toEqual(theirs);
    } catch {
      const { row, place, one } = drawn;
      const cut = (value: unknown) => JSON.stringify(value)?.slice(0, 700);
      differences.push(
        `${index} ${row.operation} as ${row.as} ${cut({ place, one, input: row.input, version: row.version })}\n  v1      ${cut(theirs)}\n  GraphQL ${cut(ours)}`,
      );
    }
  }
  if (CASES > 10_000)
    console.log(
      [...outcomes]
        .sort()
        .map(([outcome, count]) => `${outcome}: ${count}`)
        .join('\n'),
    );
  expect(differences.slice(0, 20).join('\n'), `${differences.length} of ${CASES} differ`).toBe('');
  // A draw that reaches nothing shows nothing.
  if (CASES >= 1_500) {
    for (const name of names) expect([...outcomes.keys()], name).toContain(`${name} done`);
    for (const code of ['validation_failed', 'not_found', 'permission_denied', 'conflict', 'not_authenticated'])
      expect(
        [...outcomes.keys()].some((outcome) => outcome.endsWith(` ${code}`)),
        code,
      ).toBe(true);
  }
});

it('the APIs differ as docs/v1.md lists, by the specification of GraphQL', async () => {
  const { rest, graphql } = twins;
  const ids = { organizationId: rest.demo.organization_id, projectId: rest.demo.project_id };
  // A field that is not declared is refused.
  const body = { notification_ids: [ABSENT_ID], colour: 'red' };
  expect((await rest.ask('POST', `${rest.projectPath}/notifications/read`, { body })).status).toBe(200);
  const mark = 'mutation ($input: MarkNotificationsReadInput!) { markNotificationsRead(input: $input) { marked } }';
  const { json: refusal } = await graphql.graphql(mark, { input: { ...ids, notificationIds: [ABSENT_ID], colour: 'red' } });
  expect(refusal.errors).toHaveLength(1);
  expect(refusal.data?.markNotificationsRead ?? null).toBeNull();
  // What an ID is named by may be a number.
  const project = 'query ($o: ID!, $p: ID!) { project(organizationId: $o, id: $p) { id } }';
  expect((await graphql.graphql(project, { o: 1, p: 1 })).json.errors[0].extensions.code).toBe('not_found');
});
