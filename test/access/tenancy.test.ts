import { randomUUID } from 'node:crypto';
import { getIntrospectionQuery, printSchema } from 'graphql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseUuid } from '../../src/kernel/uuid.ts';
import { schema } from '../../src/schema.ts';
import { isPostgres, startApp, type TestApp, type TestResponse } from '../support/app.ts';
import { withoutLinks } from '../support/links.ts';
import {
  type Case,
  codeOf,
  type Inventory,
  isMember,
  listCases,
  type Numbered,
  needsSession,
  roleOf,
  send,
  takeInventory,
  targetsOf,
} from '../support/matrix.ts';
import { graphqlOperations, type Operation, routeOperations } from '../support/operations.ts';
import {
  anyUuid,
  type Caller,
  checksums,
  findSecrets,
  type Place,
  prepareWorld,
  readRows,
  type Target,
  visibility,
  type World,
} from '../support/tenancy.ts';

const operations = [...routeOperations(), ...graphqlOperations()];
const numbered = operations.map((operation, number) => ({ operation, number }));
const vocabulary = printSchema(schema) + operations.map(({ document }) => document).join();
const badCallers = ['garbage', 'expired token of the owner', 'revoked key of the owner'];
const callerNames = ['no credential', ...badCallers, 'outsider', 'viewer', 'member', 'admin', 'owner', 'API key of the member'];

interface Exchange {
  readonly asked: Case;
  readonly response: TestResponse;
}

let app: TestApp;
let world: World;
let inventory: Inventory;
let userIds: World['userIds'];
/** All exchanges, by caller. */
const exchanges = new Map<string, Exchange[]>();
/** All cases, by caller. */
const casesOf = new Map<string, Case[]>();
/** The checksums after the previous requests. */
let left: Record<string, string>;

beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_ANONYMOUS: '1000000', RATE_LIMIT_USER: '1000000' });
  world = await prepareWorld(app);
  userIds = world.userIds;
  inventory = await takeInventory(world, userIds);
  for (const caller of world.callers) {
    const lists = await Promise.all(numbered.map(async (one) => chooseCases(caller, one, await listCases(world, inventory, caller, one))));
    casesOf.set(caller.name, lists.flat());
  }
  left = await checksums(world);
});

afterAll(() => app.close());

describe.each(callerNames)('%s', (name) => {
  const casesExpected = (isGranted: boolean) => (casesOf.get(name) ?? []).filter(({ expected }) => (expected === 'granted') === isGranted);

  test('is refused with the right code, the same for foreign and absent, and changes nothing', async () => {
    const before = left;
    const responses = await sendAll(casesExpected(false));
    expect(unexpected(responses)).toEqual([]);
    left = await checksums(world);
    expect(left).toEqual(before);
    const looks = new Map<string, string>();
    for (const { asked, response } of responses) {
      // Field errors are not compared, because they name the field.
      if (asked.expected === 'validation_failed') continue;
      const look = looks.get(asked.kind) ?? appearance(response);
      looks.set(asked.kind, look);
      expect(appearance(response), describeCase(asked)).toBe(look);
    }
  });

  test('changes and sees only what it may', async () => {
    for (const place of [...Object.values(world.places), null]) {
      const granted = casesExpected(true).filter(
        ({ target, operation }) => (operation.scope === 'project' ? target.place : null) === place,
      );
      if (granted.length === 0) continue;
      const before = left;
      expect(unexpected(await sendAll(granted))).toEqual([]);
      left = await checksums(world);
      const changed = [...new Set([...Object.keys(before), ...Object.keys(left)])].filter((key) => before[key] !== left[key]);
      const owner = place ? place.projectId : userIds[callerOf(name).user ?? 'owner'];
      expect(changed.filter((key) => !key.endsWith(` ${owner}`))).toEqual([]);
      // Every role may mark notifications as read, and every session may create a key, so a lack of change means a broken comparison.
      if (place || callerOf(name).isSession) expect(changed).not.toEqual([]);
    }
    const all = exchanges.get(name) ?? [];
    expect(await findLeaks(all, callerOf(name))).toEqual([]);
  });
});

test('every operation is tried by every caller, or by an equivalent one, on every target', () => {
  const tried = new Set(
    [...exchanges.values()].flat().map(({ asked }) => `${asked.caller.name} / ${asked.operation.name} / ${asked.target.name}`),
  );
  const missing = world.callers.flatMap((caller) =>
    numbered.flatMap((one) =>
      targetsOf(world, caller, one)
        .filter((target) => isSender(caller, target, one))
        .map((target) => `${caller.name} / ${one.operation.name} / ${target.name}`)
        .filter((combination) => !tried.has(combination)),
    ),
  );
  expect(missing).toEqual([]);
  expect(world.callers.map(({ name }) => name)).toEqual(callerNames);
  expect([...exchanges.values()].flat().length).toBeGreaterThan(isPostgres ? 2_000 : 1_000);
});

test('the search for leaks finds what one caller may see and another may not', async () => {
  const ofAdmins = ['owner', 'admin'].flatMap((name) => exchanges.get(name) ?? []);
  const bySibling = ofAdmins.filter(({ asked }) => asked.target.name === 'sibling');
  const leaks = await findLeaks(bySibling, callerOf('viewer'));
  for (const text of [
    'sibling-instance-1',
    'sibling error 2',
    'Sibling title 3',
    'Sibling dashboard 1',
    'sibling failure',
    'once called sibling by owner',
  ]) {
    expect(leaks.some((leak) => leak.endsWith(` shows ${text}`))).toBe(true);
  }
  expect(await findLeaks(exchanges.get('outsider') ?? [], callerOf('owner'))).not.toEqual([]);
});

test('without a credential, GraphQL answers introspection and nothing else', async () => {
  const ask = (query: string) => app.graphql(query, {}, { as: null });
  const introspection = await ask(getIntrospectionQuery());
  expect([introspection.status, introspection.json.errors]).toEqual([200, undefined]);
  expect(introspection.json.data.__schema.queryType).toMatchObject({ name: 'Query' });
  expect((await ask('{ __typename }')).json).toEqual({ data: { __typename: 'Query' } });
  expect((await ask('{ viewer { id email apiKeys { nodes { id } } } }')).json).toEqual({ data: { viewer: null } });
});

test.each(badCallers)('%s is 401 over every transport, before anything else is checked', async (name) => {
  const as = { bearer: callerOf(name).bearer ?? '' };
  const detail = 'The credential is not valid.';
  const refused = { detail, code: 'not_authenticated', error: detail };
  for (const path of [`${app.projectPath}/compute/overview`, '/v1/nothing/here']) {
    const response = await app.ask('GET', path, { as });
    expect([response.status, response.json, response.headers['www-authenticate']]).toEqual([401, refused, 'Bearer']);
  }
  for (const query of ['{ __typename }', '{ viewer { id } }', '{ nonsense']) {
    const response = await app.graphql(query, {}, { as });
    const errors = [{ message: detail, extensions: { code: 'not_authenticated' } }];
    expect([response.status, response.json, response.headers['www-authenticate']]).toEqual([401, { errors }, 'Bearer']);
  }
});

test('a project is found by its id alone as by both ids, and foreign ones look absent', async () => {
  const document = 'query ($id: ID!) { project(id: $id) { id organizationId name role } }';
  const absent = new Set<string>();
  for (const { name, bearer, user } of world.callers.filter((caller) => caller.user)) {
    const ask = (id: string) => app.graphql(document, { id }, { as: { bearer: bearer ?? '' } });
    for (const id of [randomUUID(), 'production', `{${world.places.own.projectId}}`]) absent.add(appearance(await ask(id)));
    for (const { organizationId, projectId, roles } of Object.values(world.places)) {
      const response = await ask(projectId);
      const role = user && roles[user];
      if (role) expect(response.json.data.project, name).toEqual({ id: projectId, organizationId, name: expect.any(String), role });
      else absent.add(appearance(response));
    }
  }
  expect([...absent].map((look) => JSON.parse(JSON.parse(look).text).errors[0].extensions.code)).toEqual(['not_found']);
});

test('a dashboard cannot be moved to a project in which the caller may not edit, with the same refusal as for an absent one', async () => {
  const { own, sibling, foreign } = world.places;
  const path = `${app.projectPath}/monitoring/dashboards/${await inventory.dashboard(own, 'mine', callerOf('member'), true)}`;
  const before = await checksums(world);
  for (const project of [sibling.projectId, foreign.projectId, randomUUID()]) {
    const response = await app.ask('PUT', path, { as: 'member', body: { name: 'moved', project } });
    expect([response.status, response.json]).toEqual([400, { project: ['Not a project that the dashboard can be moved to.'] }]);
  }
  expect(await checksums(world)).toEqual(before);
});

test('the ids of other projects’ notifications mark nothing as read', async () => {
  const rows = await world.query('SELECT id::text FROM notifications WHERE project_id = ANY ($1::uuid[])', [
    world.places.sibling.projectId,
    world.places.foreign.projectId,
  ]);
  const notification_ids = rows.map(({ id }) => String(id));
  expect(notification_ids.length).toBeGreaterThan(9);
  await app.app.database.prisma.notification.create({
    data: { projectId: world.places.own.projectId, kind: 'test', severity: 'info', title: 'Unread' },
  });
  const response = await app.ask('POST', `${app.projectPath}/notifications/read`, { as: 'viewer', body: { notification_ids } });
  expect(response.json).toEqual({ marked: 0, unread_count: expect.any(Number) });
  expect(response.json.unread_count).toBeGreaterThan(0);
});

/** What decides what a user may do with an operation on a place: the same for callers who must be treated alike. */
function standingOf(caller: Caller, target: Target, place: Place, operation: Operation): string {
  const relation = roleOf(caller, target) ?? (isMember(caller, target, place) ? 'colleague' : 'stranger');
  return `${relation} ${caller.isSession && needsSession(operation)}`;
}

/** Whether the caller is the one of those treated alike who sends the operation to a target; each is for some of the operations. */
function isSender(caller: Caller, target: Target, { operation, number }: Numbered): boolean {
  const { place } = target;
  if (isPostgres || !caller.user || !place || operation.scope === 'viewer') return true;
  const standing = standingOf(caller, target, place, operation);
  const peers = world.callers.filter((other) => other.user && standingOf(other, target, place, operation) === standing);
  return peers[number % peers.length] === caller;
}

/**
 * All cases on PostgreSQL. On PGlite, where a request takes several times as long, those of one sender; and what each item of a
 * list leads to is read by the case without a filter or an order, which only decide what is listed.
 */
function chooseCases(caller: Caller, one: Numbered, cases: readonly Case[]): Case[] {
  if (isPostgres) return [...cases];
  const isBase = ({ label }: Case) => label.startsWith('base');
  const brief = one.operation.isMutation || one.operation.route ? one.operation : withoutLinks(one.operation);
  return cases
    .filter((asked) => !isBase(asked) || isSender(caller, asked.target, one))
    .map((asked) => (isBase(asked) ? asked : { ...asked, operation: brief }));
}

function callerOf(name: string): Caller {
  const caller = world.callers.find((one) => one.name === name);
  if (!caller) throw new Error(`no caller is called ${name}`);
  return caller;
}

async function sendAll(cases: readonly Case[]): Promise<Exchange[]> {
  const responses: Exchange[] = [];
  const queue = [...cases];
  const work = async () => {
    for (let asked = queue.shift(); asked; asked = queue.shift()) responses.push({ asked, response: await send(app, asked) });
  };
  await Promise.all(Array.from({ length: 8 }, work));
  const name = cases[0]?.caller.name ?? '';
  exchanges.set(name, [...(exchanges.get(name) ?? []), ...responses]);
  return responses;
}

function unexpected(responses: readonly Exchange[]): string[] {
  return responses.flatMap(({ asked, response }) => {
    const code = codeOf(asked.operation, response);
    const isAsExpected = asked.expected === 'granted' ? code === null : code === asked.expected;
    return isAsExpected
      ? []
      : [`${describeCase(asked)}: expected ${asked.expected}, got ${response.status} ${response.text.slice(0, 300)}`];
  });
}

function describeCase({ target, operation, label }: Case): string {
  return `${operation.name} (${label}) on ${target.name}`;
}

/** A response without the parts that differ between requests. */
function appearance({ status, headers, text }: TestResponse): string {
  const { date, 'x-request-id': _id, ratelimit, 'ratelimit-policy': _policy, ...rest } = headers;
  return JSON.stringify({ status, rest, text });
}

const jsonString = /"(?:[^"\\]|\\.)*"/g;

/** Texts in the responses that the caller may not see at all, or not in a response about the given project. */
async function findLeaks(shown: readonly Exchange[], caller: Caller): Promise<string[]> {
  const rows = await readRows(world);
  const userId = caller.user && userIds[caller.user];
  const found: string[] = [];
  const search = (responses: readonly Exchange[], secrets: readonly string[]) => {
    expect(secrets.length).toBeGreaterThan(100);
    const ids = new Set(secrets.filter((secret) => parseUuid(secret)));
    const others = secrets.filter((secret) => !ids.has(secret));
    // The same strings occur in many responses, so each is searched once.
    const texts = new Map(
      responses.flatMap(({ asked, response }) => (response.text.match(jsonString) ?? []).map((text) => [text, asked] as const)),
    );
    const whole = [...texts.keys()].join('\n');
    const leaked = others.filter((secret) => whole.includes(secret));
    for (const [text, asked] of texts) {
      const seen = [...(text.match(anyUuid) ?? []).filter((id) => ids.has(id)), ...leaked.filter((secret) => text.includes(secret))];
      found.push(...seen.map((secret) => `${describeCase(asked)} shows ${secret}`));
    }
  };
  search(shown, findSecrets(rows, visibility(world, caller, userId), vocabulary));
  for (const place of Object.values(world.places)) {
    // Only `project.organization` leads out of a project, to other projects that the caller may see, so it is left out.
    const inPlace = shown.filter(
      ({ asked: { operation, target } }) =>
        operation.scope === 'project' && operation.name !== 'query project.organization' && target.place === place,
    );
    search(inPlace, findSecrets(rows, visibility(world, caller, userId, [place]), vocabulary));
  }
  return found;
}
