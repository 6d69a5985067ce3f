import { afterAll, beforeAll, expect, test } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { countCases } from '../support/cases.ts';
import { type Random, seededRandom } from '../support/random.ts';
import { type Connection, openConnection } from '../support/sql.ts';

let app: TestApp;
let connection: Connection;

beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_USER: '1000000' });
  connection = await openConnection(app);
});
afterAll(async () => {
  await connection.close();
  await app.close();
});

const kinds = ['k0', 'k1', 'rare'];
const severities = ['info', 'warning', 'critical'];

interface Entry {
  readonly sequence: number;
  readonly kind: string;
  readonly severity: string;
  readonly read: boolean;
  readonly data: unknown;
}

/** A log as the owner sees it, the newest first, without what was pruned. */
interface Log {
  readonly projectId: string;
  readonly entries: readonly Entry[];
  readonly last: number;
}

/** Makes a log, marks some of it, and prunes it: a watermark, single reads above it, or neither, wherever the log begins. */
async function drawLog(random: Random): Promise<Log> {
  const projectId = random.uuid();
  const { organization_id: organizationId, users } = app.demo;
  await connection.run(`INSERT INTO projects (id, organization_id, name) VALUES ('${projectId}', '${organizationId}', 'lists')`);
  const last = random.below(30);
  const drawn = Array.from({ length: last }, (_, index) => ({
    sequence: index + 1,
    kind: random.chance(0.1) ? 'rare' : random.pick(['k0', 'k1']),
    severity: random.pick(severities),
    data: { number: index + 1 },
  }));
  const rows = drawn.map(({ kind, severity, data }) => `('${projectId}', '${kind}', '${severity}', 't', '${JSON.stringify(data)}')`);
  if (last > 0) await connection.run(`INSERT INTO notifications (project_id, kind, severity, title, data) VALUES ${rows.join(', ')}`);
  const read = new Set<number>();
  const mark = async (user: string, singles: readonly number[], through: number) => {
    // Without any ids the function would mark all.
    const ids = `SELECT coalesce(array_agg(id), '{}') FROM notifications WHERE project_id = $1::uuid AND sequence = ANY ($3::bigint[])`;
    const values = [projectId, user, singles];
    if (through > 0)
      await connection.run(`SELECT marked FROM mark_notifications_read($1::uuid, $2::uuid, NULL, ${through})`, values.slice(0, 2));
    if (singles.length > 0) await connection.run(`SELECT marked FROM mark_notifications_read($1::uuid, $2::uuid, (${ids}), NULL)`, values);
  };
  const drawSingles = () => drawn.map(({ sequence }) => sequence).filter(() => random.chance(0.2));
  const prune = async (through: number) => {
    await connection.run(`UPDATE notification_logs SET pruned_through = ${through} WHERE project_id = '${projectId}'`);
    await connection.run(`DELETE FROM notifications WHERE project_id = '${projectId}' AND sequence <= ${through}`);
  };
  const prunedThrough = random.chance(0.5) ? random.below(last + 1) : 0;
  // What is pruned before it is marked has no single read; what is pruned afterwards may keep one for a time.
  const isPrunedFirst = random.chance(0.3);
  if (isPrunedFirst) await prune(prunedThrough);
  if (random.chance(0.8)) {
    const through = random.chance(0.6) ? random.below(last + 1) : 0;
    const singles = random.chance(0.7) ? drawSingles() : [];
    await mark(users.owner.id, singles, through);
    for (const { sequence } of drawn) if (sequence <= through || singles.includes(sequence)) read.add(sequence);
  }
  await mark(users.admin.id, drawSingles(), random.below(last + 1));
  if (!isPrunedFirst) await prune(prunedThrough);
  const entries = drawn.filter(({ sequence }) => sequence > prunedThrough).map((entry) => ({ ...entry, read: read.has(entry.sequence) }));
  return { projectId, entries: entries.reverse(), last };
}

interface Filter {
  readonly unread?: boolean;
  readonly kind?: string;
  readonly severity?: string;
}

const pick = (log: Log, { unread, kind, severity }: Filter) =>
  log.entries.filter(
    (entry) =>
      (unread === undefined || entry.read !== unread) &&
      (kind === undefined || entry.kind === kind) &&
      (severity === undefined || entry.severity === severity),
  );

const filters: readonly Filter[] = [true, false, undefined].flatMap((unread) =>
  [undefined, ...kinds].flatMap((kind) => [undefined, 'warning'].map((severity) => ({ unread, kind, severity }))),
);

interface Slice {
  readonly filter: Filter;
  readonly first?: number;
  readonly last?: number;
  readonly after?: number;
  readonly before?: number;
}

const show = ({ sequence, kind, severity, read, data }: Entry) => ({ sequence, kind, severity, read, data });
const shown = '{ sequence kind severity read data }';
const toCursor = (sequence: number) => Buffer.from(String(sequence)).toString('base64url');

/** What a slice has according to the model. */
function takeSlice(log: Log, { filter, first, last, after, before }: Slice): Entry[] {
  const within = pick(log, filter).filter(
    ({ sequence }) => (after === undefined || sequence < after) && (before === undefined || sequence > before),
  );
  return first === undefined ? within.slice(-(last ?? 0)) : within.slice(0, first);
}

function drawSlice(random: Random, filter: Filter, length: number): Slice {
  const size = 1 + random.below(6);
  const draw = () => (random.chance(0.5) ? 1 + random.below(length + 2) : undefined);
  return { filter, after: draw(), before: draw(), ...(random.chance(0.5) ? { first: size } : { last: size }) };
}

const literal = (value: object) =>
  JSON.stringify(value)
    .replace(/"(\w+)":/g, '$1:')
    .replace(/severity:"(\w+)"/, 'severity:$1');

function writeSlice({ filter, first, last, after, before }: Slice): string {
  const cursors = { after: after === undefined ? undefined : toCursor(after), before: before === undefined ? undefined : toCursor(before) };
  return `notifications(${literal({ filter, first, last, ...cursors }).slice(1, -1)}) { nodes ${shown} }`;
}

const pageOf = (log: Log, { filter, page, size }: { filter: Filter; page: number; size: number }) => {
  const all = pick(log, filter);
  const results = all.slice((page - 1) * size, page * size).map(show);
  return page > 1 && results.length === 0 ? null : { count: all.length, results };
};

async function query(document: string) {
  const { json } = await app.graphql(document);
  expect(json.errors).toBeUndefined();
  return json.data;
}

const seeds = Array.from({ length: countCases(80) }, (_, index) => index + 1);

test.each(seeds)('every list equals a plain computation, with any read state and pruning: seed %i', async (seed) => {
  const random = seededRandom(seed * 7_919);
  const logs = [await drawLog(random), await drawLog(random)] as const;
  const length = Math.max(...logs.map(({ last }) => last));
  const slices = filters.flatMap((filter) => Array.from({ length: 2 }, () => drawSlice(random, filter, length)));
  const pages = filters.map((filter) => ({ filter, page: 1 + random.below(4), size: 1 + random.below(8) }));
  const alone = slices.map((slice, index) => `s${index}: ${writeSlice(slice)}`).join(' ');
  // A page past the end is an error, and no project.
  const existing = pages.filter((page) => logs.every((log) => pageOf(log, page)));
  const together = existing.map(({ filter, page, size }, index) => {
    const given = literal({ filter, page, pageSize: size }).slice(1, -1);
    return `p${index}: notificationPage(${given}) { count results ${shown} }`;
  });
  const expected = (log: Log) =>
    Object.fromEntries(slices.map((slice, index) => [`s${index}`, { nodes: takeSlice(log, slice).map(show) }]));
  for (const log of logs) expect((await query(`{ project(id: "${log.projectId}") { ${alone} } }`)).project).toEqual(expected(log));

  const ids = logs.map(({ projectId }) => `"${projectId}"`);
  const both = async (fields: string) => (await query(`{ nodes(ids: [${ids}]) { ... on Project { ${fields} } } }`)).nodes;
  expect(await both(alone)).toEqual(logs.map(expected));
  expect(await both(together.join(' '))).toEqual(
    logs.map((log) => Object.fromEntries(existing.map((page, index) => [`p${index}`, pageOf(log, page)]))),
  );
  const [{ projectId }] = logs;
  // Any four seeds look at all of the pages.
  for (const page of pages.filter((_, index) => index % 4 === seed % 4)) {
    const search = new URLSearchParams({ page: String(page.page), page_size: String(page.size) });
    for (const [name, value] of Object.entries(page.filter)) if (value !== undefined) search.set(name, String(value));
    const path = `/v1/organizations/${app.demo.organization_id}/projects/${projectId}/notifications?${search}`;
    const { status, json } = await app.ask('GET', path);
    const found = status === 404 ? null : { count: json.count, results: json.results.map(show) };
    expect(found, path).toEqual(pageOf(logs[0], page));
  }
});
