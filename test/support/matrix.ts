import { randomUUID } from 'node:crypto';
import type { ProjectRole } from '../../src/generated/prisma/enums.ts';
import { type FaultCode, statusByCode } from '../../src/kernel/fault.ts';
import type { TestApp, TestResponse } from './app.ts';
import { isPicked } from './cases.ts';
import { homeOf } from './doors.ts';
import { isList, isLocator, type Operation, pathVariables, type Variable, variantsOf } from './operations.ts';
import type { Caller, Place, Target, World } from './tenancy.ts';

/** One request of the matrix, and its expected outcome. */
export interface Case {
  readonly caller: Caller;
  readonly target: Target;
  readonly operation: Operation;
  readonly label: string;
  readonly values: Readonly<Record<string, unknown>>;
  readonly expected: FaultCode | 'granted';
  /** Refusals of one kind must be identical: the responses to all cases of a kind are compared. */
  readonly kind: string;
}

/** An id inside the target, with its origin and whether the caller may find it there. */
interface Resource {
  readonly label: string;
  readonly id: string;
  readonly isThere: boolean;
  readonly isMalformed?: boolean;
  readonly isOthers?: boolean;
}

/** Ids of existing rows: of every model by place, of dashboards by place and kind, of API keys by user. */
export interface Inventory {
  readonly rows: ReadonlyMap<string, string>;
  /** A dashboard of the caller, or a public or private one of somebody else; `isFresh`: not shared with another case. */
  dashboard(place: Place, kind: DashboardKind, caller: Caller, isFresh: boolean): Promise<string>;
}

const dashboardKinds = ['mine', 'public', 'private'] as const;
type DashboardKind = (typeof dashboardKinds)[number];

/** Looks up one row of each table that has a `project_id`, by place: `own instance` → id. */
export async function takeInventory(world: World, userIds: Readonly<Record<string, string>>): Promise<Inventory> {
  const rows = new Map<string, string>();
  const tables = await world.query(
    `SELECT table_name::text AS name FROM information_schema.columns WHERE table_schema = 'public' AND column_name IN ('id', 'project_id')
     GROUP BY table_name HAVING count(*) = 2`,
  );
  for (const place of Object.values(world.places)) {
    for (const { name } of tables) {
      const [row] = await world.query(`SELECT id::text FROM "${name}" WHERE project_id = $1::uuid ORDER BY id LIMIT 1`, place.projectId);
      if (row) rows.set(`${place.name} ${String(name).replace(/s$/, '')}`, String(row.id));
    }
  }
  for (const [user, id] of Object.entries(userIds)) {
    const key = randomUUID();
    await world.query(
      `INSERT INTO api_keys (id, user_id, name, hint, secret_hash)
       VALUES ($1::uuid, $2::uuid, $3::text, 'hint', sha256(convert_to($3::text, 'UTF8')))`,
      key,
      id,
      `key to list ${key}`,
    );
    rows.set(`${user} api_key`, key);
  }
  const sessions = await world.query('SELECT id::text, project_id::text, user_id::text FROM console_sessions');
  for (const { id, project_id, user_id } of sessions) {
    const place = Object.values(world.places).find(({ projectId }) => projectId === project_id);
    const [user] = Object.entries(userIds).find(([, own]) => own === user_id) ?? [];
    rows.set(`${place?.name} console_session of ${user}`, String(id));
  }
  const shared = new Map<string, Promise<string>>();
  return {
    rows,
    dashboard(place, kind, { name, user }, isFresh) {
      const creator = kind === 'mine' ? user : user === 'owner' ? 'admin' : 'owner';
      const make = async () => {
        const id = randomUUID();
        await world.query(
          'INSERT INTO dashboards (id, project_id, created_by, name, is_public) VALUES ($1::uuid, $2::uuid, $3::uuid, $4, $5)',
          id,
          place.projectId,
          userIds[creator ?? 'owner'],
          `${kind} of ${name} ${id}`,
          kind === 'public',
        );
        return id;
      };
      const key = `${place.name} ${kind} ${creator}`;
      const dashboard = isFresh ? make() : (shared.get(key) ?? make());
      if (!isFresh) shared.set(key, dashboard);
      return dashboard;
    },
  };
}

/** An operation, and its index among all operations. */
export interface Numbered {
  readonly operation: Operation;
  readonly number: number;
}

/** The targets of an operation: all places for a caller with a valid credential, and a selection of the other combinations. */
export function targetsOf(world: World, caller: Caller, { operation, number }: Numbered): readonly Target[] {
  // The caller's own data does not depend on the target.
  const targets = operation.scope === 'viewer' ? world.targets.slice(0, 1) : world.targets;
  const who = world.callers.indexOf(caller);
  return targets.filter(({ place }, where) => (caller.user && place) || isPicked(who, number, where));
}

/** The cases of one caller and one operation. */
export async function listCases(world: World, inventory: Inventory, caller: Caller, numbered: Numbered): Promise<Case[]> {
  const { operation, number } = numbered;
  const who = world.callers.indexOf(caller);
  const cases: Case[] = [];
  const places = Object.values(world.places);
  for (const target of targetsOf(world, caller, numbered)) {
    // The value of a filter matters only if the caller can read the project; the sibling behaves like the own project.
    const isReached = roleOf(caller, target) !== undefined && target.name !== 'sibling';
    const [base, ...others] = variantsOf(operation);
    const variants = [...(base ? [base] : []), ...(isReached ? others.filter((_, which) => isPicked(who, number, which)) : [])];
    for (const variant of variants) {
      const resources = await listResources(inventory, caller, target, operation, places);
      for (const resource of variant.label === 'base' && caller.user ? resources : resources.slice(0, 1)) {
        const expected = predictOutcome({ caller, target, operation }, resource, variant.values, places);
        const isWrite = operation.isMutation && expected === 'granted' && resource?.kind;
        const id =
          isWrite && target.place ? await inventory.dashboard(target.place, resource.kind as DashboardKind, caller, true) : resource?.id;
        cases.push({
          caller,
          target,
          operation,
          label: [variant.label, resource?.label].filter(Boolean).join(', '),
          values: { ...variant.values, ...fillIds(operation, target, id) },
          expected,
          kind: kindOf(caller, target, operation, expected),
        });
      }
    }
  }
  return cases;
}

type Candidate = Resource & { readonly kind?: DashboardKind };

/** The resources that the operation's id may name, for one target; a single `undefined` if the operation has no such id. */
async function listResources(
  inventory: Inventory,
  caller: Caller,
  target: Target,
  operation: Operation,
  places: readonly Place[],
): Promise<Array<Candidate | undefined>> {
  const model = resourceOf(operation)?.model;
  if (!model) return [undefined];
  const absent = { label: 'absent', id: randomUUID(), isThere: false };
  const malformed = { label: 'malformed', id: 'not-an-id', isThere: false, isMalformed: true };
  if (model === 'api_key') {
    const keyOf = (user: string) => inventory.rows.get(`${user} api_key`) ?? absent.id;
    const other = caller.user === 'owner' ? 'admin' : 'owner';
    const mine = { label: 'mine', id: keyOf(caller.user ?? 'viewer'), isThere: caller.user !== null };
    return [mine, { label: `the ${other}'s`, id: keyOf(other), isThere: false }, absent, malformed];
  }
  if (model === 'console_session' && target.place) {
    const { place } = target;
    const ofUser = (user: string, at = place) => inventory.rows.get(`${at.name} console_session of ${user}`) ?? absent.id;
    const other = Object.keys(place.roles).find((user) => user !== caller.user) ?? 'owner';
    const isAdmin = roleOf(caller, target) === 'admin';
    const elsewhere = places.filter((one) => one !== place && roleOf(caller, { ...target, place: one }));
    return [
      { label: 'mine', id: ofUser(caller.user ?? ''), isThere: roleOf(caller, target) !== undefined },
      { label: `the ${other}'s`, id: ofUser(other), isThere: isAdmin && other !== caller.user && other in place.roles },
      ...elsewhere.map((one) => ({ label: `mine of ${one.name}`, id: ofUser(caller.user ?? '', one), isThere: false })),
      absent,
      malformed,
    ];
  }
  const find = async (place: Place, kind: DashboardKind) =>
    model === 'dashboard' ? inventory.dashboard(place, kind, caller, false) : inventory.rows.get(`${place.name} ${model}`);
  const inside: Candidate[] = [];
  const { contents } = target;
  for (const kind of contents && model === 'dashboard' ? dashboardKinds : []) {
    const isSeen = kind !== 'private' || roleOf(caller, target) === 'admin';
    const id = await inventory.dashboard(contents as Place, kind, caller, false);
    inside.push({ label: kind, id, isThere: isSeen, isOthers: kind !== 'mine', kind });
  }
  const id = contents && model !== 'dashboard' ? await find(contents, 'public') : undefined;
  if (id) inside.push({ label: 'inside', id, isThere: true });
  if (!target.place) return [inside[0] ?? absent];
  const elsewhere = await Promise.all(
    places.filter((place) => place !== target.place).map(async (place) => ({ place, id: (await find(place, 'public')) ?? absent.id })),
  );
  return [...inside, ...elsewhere.map(({ place, id }) => ({ label: `of ${place.name}`, id, isThere: false })), absent, malformed];
}

/** The variable that names a resource inside the project or one of the caller's own. */
function resourceOf({ variables }: Operation): Variable | undefined {
  return variables.find(({ model }) => model !== null && !['organization', 'project', 'session'].includes(model));
}

function fillIds(operation: Operation, target: Target, resourceId: string | undefined): Record<string, unknown> {
  const filled: Record<string, unknown> = {};
  for (const variable of operation.variables) {
    if (variable.name === 'organization_id') filled[variable.name] = target.organizationId;
    if (variable.name === 'project_id') filled[variable.name] = target.projectId;
    if (variable === resourceOf(operation)) filled[variable.name] = isList(variable) ? [resourceId] : resourceId;
  }
  return filled;
}

const rank: Readonly<Record<ProjectRole, number>> = { viewer: 0, member: 1, admin: 2 };

export function roleOf({ user }: Caller, { place }: Target): ProjectRole | undefined {
  return (user && place?.roles[user]) || undefined;
}

/** Whether an API key is refused. */
export const needsSession = ({ descriptions }: Operation): boolean => descriptions.includes('Only for a user session.');

/** Derives the outcome from the descriptions of the schema, in the order in which the gateway makes its checks. */
function predictOutcome(
  { caller, target, operation }: Pick<Case, 'caller' | 'target' | 'operation'>,
  resource: Candidate | undefined,
  values: Case['values'],
  places: readonly Place[],
): Case['expected'] {
  const { descriptions, scope, isMutation } = operation;
  const variable = resourceOf(operation);
  const isForSockets = descriptions.includes('On a WebSocket');
  const isConsole = values.target === 'console';
  if (!caller.user) return isPublic(caller, operation) ? 'granted' : 'not_authenticated';
  const role = roleOf(caller, target);
  if (scope === 'project' && !role) return 'not_found';
  if (scope === 'organization' && !places.some((place) => isMember(caller, target, place))) return 'not_found';
  if (resource?.isMalformed && variable && !isLocator(variable)) return 'validation_failed';
  if (isForSockets) return 'invalid_request';
  if (scope === 'viewer' && needsSession(operation) && !caller.isSession) return 'session_required';
  if (variable && resource && !resource.isThere && (isLocator(variable) || isConsole)) return 'not_found';
  if (needsSession(operation) && !caller.isSession) return 'session_required';
  const [, own, others] = /Needs the role `(\w+)`(?:[^.]* `(\w+)` for others)?/.exec(descriptions) ?? [];
  const needed = (resource?.isOthers && others) || own || (isConsole && 'member') || 'viewer';
  return isMutation && role && rank[role] < rank[needed as ProjectRole] ? 'permission_denied' : 'granted';
}

/** Whether a request without a credential is answered: only GraphQL's `viewer` is, with null. */
function isPublic(caller: Caller, { route, scope, isMutation }: Operation): boolean {
  return caller.bearer === null && !route && scope === 'viewer' && !isMutation;
}

/** Whether the caller is a member of the target's organization, regardless of the project. */
export function isMember({ user }: Caller, { organizationId }: Target, place: Place): boolean {
  return place.organizationId === organizationId && user !== null && place.people.includes(user);
}

/** A v1 refusal is the same on every route; a GraphQL refusal also names its field, so it differs by operation and level. */
function kindOf(caller: Caller, target: Target, operation: Operation, expected: Case['expected']): string {
  if (operation.route || (expected === 'not_authenticated' && caller.bearer !== null))
    return `${operation.route ? 'v1' : 'graphql'} ${expected}`;
  const level = operation.scope === 'project' && !roleOf(caller, target) ? 'project' : 'resource';
  return `${operation.name} ${level} ${expected}`;
}

/** Sends a case through its API. */
export function send(
  { ask }: TestApp,
  { caller, operation, values }: Pick<Case, 'caller' | 'operation' | 'values'>,
): Promise<TestResponse> {
  const as = caller.bearer === null ? null : { bearer: caller.bearer };
  const { route, document } = operation;
  if (!route) return ask('POST', '/graphql', { as, body: { query: document, variables: values } });
  const inPath = pathVariables(route.path);
  const path = inPath.reduce((text, name) => text.replace(`:${name}`, encodeURIComponent(String(values[name]))), route.path);
  const given = Object.entries(values).filter(([name]) => !inPath.includes(name));
  const { if_match: version, idempotency_key: key, ...rest } = Object.fromEntries(given);
  const headers = {
    ...(version !== undefined && { 'If-Match': `"${version}"` }),
    ...(key !== undefined && { 'Idempotency-Key': String(key) }),
  };
  if (route.method !== 'GET') return ask(route.method, path, { as, headers, body: Object.keys(rest).length > 0 ? rest : undefined });
  const query = new URLSearchParams(Object.entries(rest).map(([name, value]) => [name, String(value)]));
  return ask('GET', `${path}?${query}`, { as, headers });
}

/** The fault code of a response of either API; null if the request was granted, undefined if the response is malformed. */
export function codeOf({ route }: Operation, { status, json }: TestResponse): FaultCode | null | undefined {
  if (!route) return json?.errors ? json.errors[0].extensions.code : status === 200 ? null : undefined;
  if (status === route.status) return null;
  const code: FaultCode | undefined = json && 'code' in json ? json.code : json && status === 400 ? 'validation_failed' : undefined;
  return code && statusByCode[code] === status ? code : undefined;
}

/** Sends an operation as a user of the demo, about the demo's own project, with ids of what is in it. Throws if it is refused. */
export async function sendInDemo(
  app: TestApp,
  user: 'owner' | 'member',
  operation: Operation,
  values: Readonly<Record<string, unknown>>,
): Promise<TestResponse> {
  const { demo } = app;
  const ids: Record<string, unknown> = { ...homeOf(app), instance_id: demo.instances.trial_already_open, ...values };
  const located = Object.fromEntries(operation.variables.filter(({ name }) => name in ids).map(({ name }) => [name, ids[name]]));
  const caller = { name: user, bearer: demo.users[user].token ?? '', user, isSession: true };
  const response = await send(app, { caller, operation, values: { ...values, ...located } });
  if (codeOf(operation, response) !== null) throw new Error(`${operation.name}: ${response.text.slice(0, 300)}`);
  return response;
}
