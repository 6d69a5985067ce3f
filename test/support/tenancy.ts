import { randomUUID } from 'node:crypto';
import type { DemoRole } from '../../demo/people.ts';
import type { ProjectRole } from '../../src/generated/prisma/enums.ts';
import { parseUuid } from '../../src/kernel/uuid.ts';
import type { TestApp } from './app.ts';

/** The sender of a request: `user` is the authenticated user, or null if the credential is missing or invalid. */
export interface Caller {
  readonly name: string;
  readonly bearer: string | null;
  readonly user: DemoRole | null;
  readonly isSession: boolean;
}

/** An existing project, and the roles in it. */
export interface Place {
  readonly name: string;
  readonly organizationId: string;
  readonly projectId: string;
  readonly roles: Readonly<Partial<Record<DemoRole, ProjectRole>>>;
  /** The members of its organization, who may lack access to the project. */
  readonly people: readonly DemoRole[];
}

/** The pair of ids that a request names: those of a place, or a pair that names none. */
export interface Target {
  readonly name: string;
  readonly organizationId: string;
  readonly projectId: string;
  readonly place: Place | null;
  /** The place whose resources are named inside it. */
  readonly contents: Place | null;
}

export interface World {
  readonly places: Readonly<Record<'own' | 'sibling' | 'foreign', Place>>;
  readonly targets: readonly Target[];
  readonly callers: readonly Caller[];
  readonly userIds: Readonly<Record<DemoRole, string>>;
  /** Every row of the database: `name` of its table, `owner`, `content`. */
  readonly owned: string;
  query(sql: string, ...values: unknown[]): Promise<Array<Record<string, unknown>>>;
}

/** Prepares the demo with data in the project that only the organization's owner and admin can access, and with all callers. */
export async function prepareWorld(test: TestApp): Promise<World> {
  const { demo } = test;
  const query: World['query'] = (sql, ...values) => test.app.database.prisma.$queryRawUnsafe(sql, ...values);
  const acme = ['owner', 'admin', 'member', 'viewer'] as const;
  const ids = { organizationId: demo.organization_id, projectId: demo.project_id };
  const own: Place = { name: 'own', ...ids, roles: { owner: 'admin', admin: 'admin', member: 'member', viewer: 'viewer' }, people: acme };
  const sibling: Place = { ...own, name: 'sibling', projectId: demo.empty_project_id, roles: { owner: 'admin', admin: 'admin' } };
  const { organization_id: organizationId, project_id: projectId } = demo.foreign;
  const foreign: Place = { name: 'foreign', organizationId, projectId, roles: { outsider: 'admin' }, people: ['outsider'] };
  await fillSibling(query, sibling, demo.users.owner.id);
  for (const place of [own, sibling, foreign]) await fillConsoles(test, query, place);
  return {
    places: { own, sibling, foreign },
    targets: listTargets(own, sibling, foreign),
    callers: await listCallers(test),
    userIds: Object.fromEntries(Object.entries(demo.users).map(([user, { id }]) => [user, id])) as World['userIds'],
    query,
    owned: await selectOwned(query),
  };
}

async function fillSibling(query: World['query'], { projectId }: Place, creatorId: string): Promise<void> {
  const rows = 'FROM generate_series(1, 3) AS number';
  // Someone is listed, so that a condition without the user would let in everybody.
  await query(`INSERT INTO project_members (project_id, user_id, role) VALUES ($1::uuid, $2::uuid, 'admin')`, projectId, creatorId);
  await query(
    `INSERT INTO instances (project_id, name, status, plan, region, vcpu, ram_mb, storage_gb, hypervisor)
     SELECT $1::uuid, 'sibling-instance-' || number, 'active', 'vps-m', 'eu-sibling-1', 1, 1024, 10, 'hv-sibling-' || number ${rows}`,
    projectId,
  );
  await query(
    `INSERT INTO tasks (project_id, kind, status, error, finished)
     SELECT $1::uuid, 'sibling.task.' || number, 'failed', 'sibling error ' || number, now() ${rows}`,
    projectId,
  );
  await query(
    `INSERT INTO notifications (project_id, kind, severity, title, body)
     SELECT $1::uuid, 'sibling.event.' || number, 'critical', 'Sibling title ' || number, 'Sibling body ' || number ${rows}`,
    projectId,
  );
  await query(
    `INSERT INTO dashboards (project_id, created_by, name, is_public)
     SELECT $1::uuid, $2::uuid, 'Sibling dashboard ' || number, true ${rows}`,
    projectId,
    creatorId,
  );
  await query(
    `INSERT INTO backup_trials (instance_id, instance_name, status, source, cycle, monthly_price, cycle_price, failure_reason)
     SELECT id, name, 'failed', 'sibling-panel', 'monthly', 4, 4, 'sibling failure' FROM instances WHERE project_id = $1::uuid`,
    projectId,
  );
}

/** Adds console addresses, and an ended console session for every user with a role. */
async function fillConsoles({ demo }: TestApp, query: World['query'], { name, projectId, roles }: Place): Promise<void> {
  await query(
    `INSERT INTO console_endpoints (instance_id, kind, host, port)
     SELECT id, 'serial', 'console-of-' || name || '.internal', 4555 FROM instances WHERE project_id = $1::uuid`,
    projectId,
  );
  for (const user of Object.keys(roles) as DemoRole[]) {
    await query(
      `INSERT INTO console_sessions (id, project_id, instance_id, instance_name, user_id, user_email, kind, client_addresses, owner, ended, end_reason)
       SELECT uuid_v7(), $1::uuid, id, $2, $3::uuid, $4, 'serial', ARRAY[$5], uuid_v7(), now(), 'idle'
       FROM instances WHERE project_id = $1::uuid ORDER BY id LIMIT 1`,
      projectId,
      `once called ${name} by ${user}`,
      demo.users[user].id,
      demo.users[user].email,
      `console address of ${user} in ${name}`,
    );
  }
}

/** The three places, and pairs of ids that name none, which must look absent to every caller. */
function listTargets(own: Place, sibling: Place, foreign: Place): Target[] {
  const none = (name: string, organizationId: string, projectId: string, contents: Place | null): Target => ({
    name,
    organizationId,
    projectId,
    place: null,
    contents,
  });
  return [
    ...[own, sibling, foreign].map((place) => ({ ...place, place, contents: place })),
    none('absent project', own.organizationId, randomUUID(), own),
    none('absent pair', randomUUID(), randomUUID(), null),
    none('own organization, foreign project', own.organizationId, foreign.projectId, foreign),
    none('foreign organization, own project', foreign.organizationId, own.projectId, own),
    none('absent organization, own project', randomUUID(), own.projectId, own),
    none('malformed project', own.organizationId, 'production', own),
    none('malformed organization', 'acme cloud', own.projectId, own),
    none('project in braces', own.organizationId, `{${own.projectId}}`, own),
    none('project without hyphens', own.organizationId, own.projectId.replaceAll('-', ''), own),
  ];
}

async function listCallers(test: TestApp): Promise<Caller[]> {
  const { users } = test.demo;
  const nobody = (name: string, bearer: string | null): Caller => ({ name, bearer, user: null, isSession: false });
  const session = (user: DemoRole): Caller => ({ name: user, bearer: users[user].token ?? '', user, isSession: true });
  const expired = (await test.app.tokens.local?.sign(users.owner.id, -10)) ?? '';
  return [
    nobody('no credential', null),
    nobody('garbage', 'garbage'),
    nobody('expired token of the owner', expired),
    nobody('revoked key of the owner', await makeRevokedKey(test)),
    ...(['outsider', 'viewer', 'member', 'admin', 'owner'] as const).map(session),
    { name: 'API key of the member', bearer: users.member.api_key, user: 'member', isSession: false },
  ];
}

async function makeRevokedKey({ graphql }: TestApp): Promise<string> {
  const made = await graphql('mutation { createApiKey(input: { name: "to revoke" }) { key apiKey { id } } }');
  const { key, apiKey } = made.json.data.createApiKey;
  const revoked = await graphql('mutation($id: ID!) { revokeApiKey(input: { id: $id }) { apiKey { revoked } } }', { id: apiKey.id });
  if (!revoked.json.data.revokeApiKey.apiKey.revoked) throw new Error('the key was not revoked');
  return key;
}

/** A row with the id of its owner: a project, a user or an organization; '' if it belongs to everyone. */
interface OwnedRow {
  readonly table: string;
  readonly owner: string;
  readonly content: Readonly<Record<string, unknown>>;
}

/**
 * SQL that selects every row of every table with its owner; new tables are included by themselves. `last_used` of a key is
 * left out, as it is neither a secret nor a write.
 */
async function selectOwned(query: World['query']): Promise<string> {
  const columns = await query(
    `SELECT table_name::text, column_name::text FROM information_schema.columns
     WHERE table_schema = 'public' AND table_name <> '_prisma_migrations' ORDER BY 1, 2`,
  );
  const tables = new Map<string, string[]>();
  for (const { table_name, column_name } of columns) {
    tables.set(String(table_name), [...(tables.get(String(table_name)) ?? []), String(column_name)]);
  }
  const owner = (table: string, has: (name: string) => boolean) => {
    if (has('project_id')) return 'project_id';
    if (has('instance_id')) return '(SELECT project_id FROM instances WHERE instances.id = instance_id)';
    if (has('user_id')) return 'user_id';
    if (['projects', 'users', 'organizations'].includes(table)) return 'id';
    return has('organization_id') ? 'organization_id' : "''";
  };
  const parts = [...tables].map(([table, names]) => {
    const expression = owner(table, (name) => names.includes(name));
    return `SELECT '${table}' AS name, (${expression})::text AS owner, to_jsonb(t) - 'last_used' AS content FROM "${table}" AS t`;
  });
  return parts.join(' UNION ALL ');
}

/** A checksum for every table and owner, with keys such as `dashboards 019b…`. */
export async function checksums(world: World): Promise<Record<string, string>> {
  const rows = await world.query(
    `SELECT name || ' ' || owner AS key, md5(string_agg(content::text, ',' ORDER BY content::text)) AS sum
     FROM (${world.owned}) AS owned GROUP BY name, owner ORDER BY name, owner`,
  );
  return Object.fromEntries(rows.map(({ key, sum }) => [String(key), String(sum)]));
}

/** Every row of the database, with its owner. */
export async function readRows(world: World): Promise<OwnedRow[]> {
  const rows = await world.query(`SELECT name, owner, content::text FROM (${world.owned}) AS owned`);
  return rows.map(({ name, owner, content }) => ({ table: String(name), owner: String(owner), content: JSON.parse(String(content)) }));
}

/**
 * The texts, including ids, that occur only in rows that are not visible: a response that contains one has leaked somebody
 * else's data. `vocabulary` is text that everyone knows.
 */
export function findSecrets(rows: readonly OwnedRow[], isVisible: (row: OwnedRow) => boolean, vocabulary: string): string[] {
  const hidden = new Set<string>();
  const seen: string[] = [vocabulary];
  for (const row of rows) {
    if (isVisible(row)) seen.push(JSON.stringify(row.content));
    else collectTexts(row.content, hidden);
  }
  const known = seen.join('\n');
  const knownIds = new Set(known.match(anyUuid));
  const isKnown = (text: string) => (parseUuid(text) ? knownIds.has(text) : known.includes(text));
  return [...hidden].filter((text) => text.length >= 6 && !inOtherWords.test(text) && !isKnown(text));
}

/** Matches every id in a text. */
export const anyUuid = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

/** Timestamps and hashes in the database's format, in which no response contains them. */
const inOtherWords = /^(\d{4}-\d\d-\d\dT|\\x)/;

function collectTexts(value: unknown, found: Set<string>): void {
  if (typeof value === 'string') found.add(value);
  else if (typeof value === 'object' && value !== null) for (const part of Object.values(value)) collectTexts(part, found);
}

/** Whether a user may see a row: the user's own, those of the places the user can access, and those that belong to everyone. */
export function visibility(world: World, { user }: Caller, userId: string | null, places = Object.values(world.places)) {
  const reached = places.filter(({ roles }) => user && roles[user]);
  const organizations = Object.values(world.places).filter(({ people }) => user && people.includes(user));
  const owners = new Set(['', userId, ...reached.map(({ projectId }) => projectId), ...organizations.map((place) => place.organizationId)]);
  const adminOf = new Set(reached.filter(({ roles }) => user && roles[user] === 'admin').map(({ projectId }) => projectId));
  return ({ table, owner, content }: OwnedRow): boolean => {
    const isPrivateBoard = table === 'dashboards' && content.is_public === false && content.created_by !== userId;
    const isOthersSession = table === 'console_sessions' && content.user_id !== userId;
    const isPrivate = (isPrivateBoard || isOthersSession) && !adminOf.has(owner);
    // Members of an organization may see each other.
    if (table === 'users' && organizations.some(({ people }) => people.some((person) => world.userIds[person] === owner))) return true;
    // The addresses of consoles are visible to nobody.
    return owners.has(owner) && !isPrivate && table !== 'console_endpoints';
  };
}
