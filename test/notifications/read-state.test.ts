import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isPostgres, startApp, type TestApp } from '../support/app.ts';
import { countCases } from '../support/cases.ts';
import { type Random, seededRandom } from '../support/random.ts';
import { type Connection, countBlocks, openConnection } from '../support/sql.ts';

const users = ['owner', 'admin'] as const;
type User = (typeof users)[number];

let portico: TestApp;
let connection: Connection;

beforeAll(async () => {
  portico = await startApp();
  connection = await openConnection(portico);
});
afterAll(async () => {
  await connection.close();
  await portico.close();
});

/** A project with its log, and the test's model of it. */
interface Log {
  readonly projectId: string;
  readonly path: string;
  /** The id of sequence 1, 2, 3, … */
  readonly ids: string[];
  prunedThrough: number;
  /** The sequences that each user has read. */
  readonly read: Readonly<Record<User, Set<number>>>;
}

async function openLog(random: Random, count = 0): Promise<Log> {
  const projectId = random.uuid();
  const { organization_id } = portico.demo;
  await connection.run(`INSERT INTO projects (id, organization_id, name) VALUES ('${projectId}', '${organization_id}', 'read')`);
  const path = `/v1/organizations/${organization_id}/projects/${projectId}/notifications`;
  const log: Log = { projectId, path, ids: [], prunedThrough: 0, read: { owner: new Set(), admin: new Set() } };
  if (count > 0) await publish(log, random, count);
  return log;
}

/** The kind and the severity of the entry with a sequence. */
const describeEntry = (sequence: number) => ({ kind: `k${sequence % 2}`, severity: ['info', 'warning', 'critical'][sequence % 3] });

async function publish(log: Log, random: Random, count: number): Promise<void> {
  const ids = Array.from({ length: count }, () => random.uuid());
  const rows = ids.map((id, index) => {
    const { kind, severity } = describeEntry(log.ids.length + index + 1);
    return `('${id}', '${log.projectId}', '${kind}', '${severity}', 't')`;
  });
  await connection.run(`INSERT INTO notifications (id, project_id, kind, severity, title) VALUES ${rows.join(', ')}`);
  log.ids.push(...ids);
}

async function prune({ projectId }: Log, through: number): Promise<void> {
  await connection.run(`UPDATE notification_logs SET pruned_through = ${through} WHERE project_id = '${projectId}'`);
  await connection.run(`DELETE FROM notifications WHERE project_id = '${projectId}' AND sequence <= ${through}`);
}

/** Marks the given ids as read through REST, or all notifications if none are given. */
async function mark(log: Log, user: User, notification_ids?: readonly string[]) {
  const { status, json } = await portico.ask('POST', `${log.path}/read`, { as: user, body: { notification_ids } });
  expect(status).toBe(200);
  return json as { marked: number; unread_count: number };
}

async function markThrough({ projectId }: Log, user: User, throughSequence: number) {
  const mutation = `mutation ($input: MarkNotificationsReadInput!) {
    markNotificationsRead(input: $input) { marked unread_count: unreadCount }
  }`;
  const input = { organizationId: portico.demo.organization_id, projectId, throughSequence };
  const { json } = await portico.graphql(mutation, { input }, { as: user });
  return json.data.markNotificationsRead as { marked: number; unread_count: number };
}

function countUnread({ ids, prunedThrough, read }: Log, user: User): number {
  return ids.filter((_, index) => index + 1 > prunedThrough && !read[user].has(index + 1)).length;
}

/** Marks the sequences as read in the model; returns how many of them were unread. */
function markInModel(log: Log, user: User, sequences: Iterable<number>): number {
  const before = countUnread(log, user);
  for (const sequence of sequences) log.read[user].add(sequence);
  return before - countUnread(log, user);
}

/** Checks that the user's read state equals the model in every API that shows it. */
async function expectAsModel(log: Log, user: User) {
  const seen: Array<[number, string, boolean]> = [];
  for (let page = 1, pages = 1; page <= pages; page += 1) {
    const { json } = await portico.ask('GET', `${log.path}?page=${page}&page_size=100`, { as: user });
    for (const { sequence, id, read } of json.results) seen.push([sequence, id, read]);
    pages = json.total_pages;
  }
  const expected = log.ids.map((id, index) => [index + 1, id, log.read[user].has(index + 1)] as [number, string, boolean]);
  expect(seen).toEqual(expected.slice(log.prunedThrough).reverse());

  const unread = countUnread(log, user);
  const list = await portico.ask('GET', `${log.path}?unread=true&page_size=100`, { as: user });
  expect([list.json.count, list.json.results.length]).toEqual([unread, Math.min(unread, 100)]);
  const query = `{ project(organizationId: "${portico.demo.organization_id}", id: "${log.projectId}") { unreadNotificationCount } }`;
  expect((await portico.graphql(query, undefined, { as: user })).json.data.project).toEqual({ unreadNotificationCount: unread });
}

/** The rows of single reads, which the watermark does not cover. */
async function readSingles({ projectId }: Log, user: User): Promise<number[]> {
  const rows = await connection.run(`
    SELECT sequence::int FROM notification_reads
    WHERE project_id = '${projectId}' AND user_id = '${portico.demo.users[user].id}' ORDER BY sequence`);
  return rows.map(({ sequence }) => Number(sequence));
}

/** The model's single reads: those above the first that is unread. */
function singlesOf({ ids, prunedThrough, read }: Log, user: User): number[] {
  const above = ids.map((_, index) => index + 1).filter((sequence) => sequence > prunedThrough);
  const first = above.findIndex((sequence) => !read[user].has(sequence));
  return first < 0 ? [] : above.slice(first).filter((sequence) => read[user].has(sequence));
}

/** Some ids of the log, including pruned ones, and odd ones: unknown, of another project, repeated, in capitals. */
function nameSome({ ids }: Log, random: Random, count: number): string[] {
  const named = Array.from({ length: count }, () => random.pick(ids));
  if (random.chance(0.3)) named.push(random.uuid(), portico.demo.notification_ids[3] ?? '');
  if (random.chance(0.3)) named.push(...named.slice(0, 2));
  return named.map((id) => (random.chance(0.1) ? id.toUpperCase() : id));
}

async function takeStep(log: Log, random: Random): Promise<void> {
  const user = random.pick(users);
  const known = new Map(log.ids.map((id, index) => [id, index + 1]));
  const step = random.below(100);
  let expected = 0;
  let result: { marked: number; unread_count: number };
  if (step < 25 || log.ids.length === 0) return publish(log, random, 1 + random.below(5));
  if (step < 30) {
    log.prunedThrough = Math.min(log.ids.length, log.prunedThrough + random.below(8));
    return prune(log, log.prunedThrough);
  }
  if (step < 80) {
    const named = nameSome(log, random, step < 50 ? 1 : 1 + random.below(12));
    expected = markInModel(
      log,
      user,
      named.flatMap((id) => known.get(id.toLowerCase()) ?? []),
    );
    result = await mark(log, user, named);
  } else if (step < 95) {
    const through = random.below(log.ids.length + 10) - 3;
    expected = markInModel(
      log,
      user,
      [...known.values()].filter((sequence) => sequence <= through),
    );
    result = await markThrough(log, user, through);
  } else {
    expected = markInModel(log, user, known.values());
    result = await mark(log, user, random.chance(0.5) ? [] : undefined);
  }
  expect(result).toEqual({ marked: expected, unread_count: countUnread(log, user) });
  if (result.marked > 0) expect(await readSingles(log, user)).toEqual(singlesOf(log, user));
}

const seeds = Array.from({ length: countCases(20) }, (_, index) => index + 1);

describe('read state', () => {
  test.each(seeds)('of two users equals a set of numbers each, after random steps: seed %i', async (seed) => {
    const random = seededRandom(seed);
    const log = await openLog(random);
    for (let step = 1; step <= 120; step += 1) {
      await takeStep(log, random);
      if (step % 30 === 0) for (const user of users) await expectAsModel(log, user);
    }
    expect(log.prunedThrough).toBeGreaterThan(0);
  });

  test('marking all leaves unread what arrives later', async () => {
    const random = seededRandom(1_127);
    const log = await openLog(random, 30);
    expect(await mark(log, 'owner')).toEqual({ marked: 30, unread_count: 0 });
    await publish(log, random, 3);
    markInModel(
      log,
      'owner',
      Array.from({ length: 30 }, (_, index) => index + 1),
    );
    await expectAsModel(log, 'owner');
    await expectAsModel(log, 'admin');
    expect(countUnread(log, 'owner')).toBe(3);
  });

  test('single reads that adjoin the watermark fold into it', async () => {
    const random = seededRandom(12);
    const log = await openLog(random, 16);
    const shuffled = random.shuffle(log.ids);
    for (const id of shuffled.filter((id) => id !== log.ids[0])) await mark(log, 'owner', [id]);
    expect(await readSingles(log, 'owner')).toHaveLength(15);
    expect(await mark(log, 'owner', [log.ids[0] ?? ''])).toEqual({ marked: 1, unread_count: 0 });
    expect(await readSingles(log, 'owner')).toEqual([]);
    const state = await connection.run(
      `SELECT read_through::int AS through FROM notification_states WHERE project_id = '${log.projectId}'`,
    );
    expect(state).toEqual([{ through: 16 }]);
    for (const id of log.ids) await mark(log, 'admin', [id]);
    expect(await readSingles(log, 'admin')).toEqual([]);
  });

  test('pruned entries are neither unread nor read, and marking them counts nothing', async () => {
    const random = seededRandom(13);
    const log = await openLog(random, 20);
    await mark(log, 'owner', log.ids.slice(4, 8));
    await prune(log, 6);
    expect(await mark(log, 'owner', log.ids.slice(0, 6))).toEqual({ marked: 0, unread_count: 12 });
    expect(await markThrough(log, 'owner', 6)).toEqual({ marked: 0, unread_count: 12 });
    expect(await mark(log, 'owner', log.ids.slice(8, 9))).toEqual({ marked: 1, unread_count: 11 });
    expect(await readSingles(log, 'owner')).toEqual([]);
    expect(await mark(log, 'admin')).toEqual({ marked: 14, unread_count: 0 });
    await prune(log, 20);
    expect(await mark(log, 'owner')).toEqual({ marked: 0, unread_count: 0 });
    const { status, json } = await portico.ask('GET', log.path);
    expect([status, json.count, json.results]).toEqual([200, 0, []]);
  });
});

describe('the read state of a user', () => {
  const filters = [undefined, 'k0'].flatMap((kind) =>
    [undefined, 'warning'].flatMap((severity) => [undefined, true, false].map((unread) => ({ kind, severity, unread }))),
  );
  const fields = filters.map((_, index) => {
    const filter = `filter: $f${index}`;
    return `c${index}: notifications(first: 30, ${filter}) { totalCount nodes { sequence read } }
      l${index}: notifications(last: 2, ${filter}) { nodes { sequence } }
      p${index}: notificationPage(page: 1, pageSize: 4, ${filter}) { count results { sequence read } }`;
  });
  const declared = filters.map((_, index) => `$f${index}: NotificationFilter`);
  const variables = Object.fromEntries(filters.map((filter, index) => [`f${index}`, filter]));

  /** The response to `fields` according to the model. */
  const listsOf = ({ ids, read }: Log, user: User) => {
    const entries = ids.map((_, index) => ({ sequence: index + 1, read: read[user].has(index + 1) })).reverse();
    const lists = filters.flatMap(({ kind, severity, unread }, index) => {
      const nodes = entries.filter(({ sequence, read: isRead }) => {
        const entry = describeEntry(sequence);
        return (!kind || entry.kind === kind) && (!severity || entry.severity === severity) && isRead !== unread;
      });
      return [
        [`c${index}`, { totalCount: nodes.length, nodes }],
        [`l${index}`, { nodes: nodes.slice(-2).map(({ sequence }) => ({ sequence })) }],
        [`p${index}`, { count: nodes.length, results: nodes.slice(0, 4) }],
      ];
    });
    return Object.fromEntries(lists);
  };

  test('determines every list, with every filter, in one project and in several, and the changes of a mark', async () => {
    const random = seededRandom(31);
    const logs = [await openLog(random, 20), await openLog(random, 20)] as [Log, Log];
    const marks: ReadonlyArray<[Log, User, number, number[]]> = [
      [logs[0], 'owner', 3, [6, 9, 14]],
      [logs[0], 'admin', 5, [8, 11, 16]],
      [logs[1], 'owner', 2, [7, 10, 13]],
      [logs[1], 'admin', 1, [4, 12, 17, 19]],
    ];
    for (const [log, user, through, singles] of marks) {
      const ids = singles.map((sequence) => log.ids[sequence - 1] ?? '');
      markInModel(log, user, [...Array.from({ length: through }, (_, index) => index + 1), ...singles]);
      await markThrough(log, user, through);
      await mark(log, user, ids);
    }
    for (const user of users) {
      const ask = async (selection: string, given = {}) => {
        const { json } = await portico.graphql(selection, given, { as: user });
        expect(json.errors).toBeUndefined();
        return json.data;
      };
      const projects = logs.map(({ projectId }) => `"${projectId}"`);
      const document = `query (${declared}) { nodes(ids: [${projects}]) { ... on Project { ${fields.join(' ')} } } }`;
      expect((await ask(document, variables)).nodes).toEqual(logs.map((log) => listsOf(log, user)));
      // On PGlite the list of each is read once, one user's of either log.
      for (const log of isPostgres ? logs : logs.slice(users.indexOf(user)).slice(0, 1)) {
        const alone = await ask(`query (${declared}) { project(id: "${log.projectId}") { ${fields.join(' ')} } }`, variables);
        expect(alone.project).toEqual(listsOf(log, user));
        const { nodes } = await ask('query ($ids: [ID!]!) { nodes(ids: $ids) { ... on Notification { read } } }', { ids: log.ids });
        expect(nodes).toEqual(log.ids.map((_, index) => ({ read: log.read[user].has(index + 1) })));
      }
    }
    const [{ projectId, ids }, other] = logs;
    const input = {
      organizationId: portico.demo.organization_id,
      projectId,
      notificationIds: [ids[1], ids[5], ids[7], ids[10], ids[18], other.ids[18]],
    };
    const mutation =
      'mutation ($input: MarkNotificationsReadInput!) { markNotificationsRead(input: $input) { notifications { sequence } } }';
    const { data } = (await portico.graphql(mutation, { input })).json;
    expect(data.markNotificationsRead.notifications).toEqual([8, 11, 19].map((sequence) => ({ sequence })));
  });
});

describe('marks at once', () => {
  /** On PGlite, which has one connection, only the requests are under way at once. */
  const rounds = isPostgres ? 5 : 2;
  const sum = (results: ReadonlyArray<{ readonly marked: number }>) => results.reduce((total, { marked }) => total + marked, 0);

  test('of one user, on lists that overlap, count nothing twice', async () => {
    const random = seededRandom(21);
    const log = await openLog(random, 100);
    for (let round = 0; round < rounds; round += 1) {
      const lists = Array.from({ length: 16 }, () => Array.from({ length: 12 }, () => random.pick(log.ids)));
      const expected = markInModel(
        log,
        'owner',
        lists.flat().map((id) => log.ids.indexOf(id) + 1),
      );
      const results = await Promise.all(lists.map((list) => mark(log, 'owner', list)));
      expect(sum(results)).toBe(expected);
    }
    await expectAsModel(log, 'owner');
    await expectAsModel(log, 'admin');
  });

  test('of one user, by list, up to a number and all, while others arrive', async () => {
    const random = seededRandom(22);
    for (let round = 0; round < rounds; round += 1) {
      const log = await openLog(random, 60);
      const { ids } = log;
      const arriving = Array.from({ length: 5 }, () => publish(log, random, 3));
      const marking = [
        ...Array.from({ length: 6 }, () => mark(log, 'owner', [...ids].slice(random.below(50)))),
        ...Array.from({ length: 6 }, () => markThrough(log, 'owner', random.below(60))),
        ...Array.from({ length: round % 2 }, () => mark(log, 'owner')),
      ];
      const results = await Promise.all(marking);
      await Promise.all(arriving);
      const last = await mark(log, 'owner');
      expect([sum(results) + last.marked, last.unread_count]).toEqual([75, 0]);
    }
  });
});

test('a list of read notifications does not read the unread ones, however many there are', async () => {
  const { organization_id: organizationId } = portico.demo;
  const { id: projectId } = await portico.app.database.prisma.project.create({ data: { name: 'long', organizationId } });
  const path = `/v1/organizations/${organizationId}/projects/${projectId}/notifications`;
  const [last, few] = [6_000, 60];
  await connection.run(
    `INSERT INTO notifications (project_id, kind, severity, title) SELECT '${projectId}', 'k', 'info', 't' FROM generate_series(1, ${last})`,
  );
  await connection.run('ANALYZE notifications');
  const log = () => `SELECT sequence, kind, severity, title FROM notifications WHERE project_id = '${projectId}' ORDER BY sequence DESC`;
  expect(await countBlocks(connection, log)).toBeGreaterThan(few);
  const singles = [last - 5, last - 10];
  const rows = await connection.run(`SELECT id FROM notifications WHERE project_id = '${projectId}' AND sequence IN (${singles})`);
  await portico.ask('POST', `${path}/read`, { body: { notification_ids: rows.map(({ id }) => id) } });
  const statements: Array<{ sql: string; values: readonly unknown[] }> = [];
  portico.listen((sql, values) => void statements.push({ sql, values }));
  const filters = [
    'unread: false',
    'unread: false, kind: "k"',
    'unread: false, severity: info',
    'unread: false, kind: "k", severity: info',
  ];
  const lists = filters.flatMap((filter) => [
    `notifications(first: 20, filter: { ${filter} }) { items: nodes { sequence } }`,
    `notifications(last: 20, filter: { ${filter} }) { items: nodes { sequence } }`,
    `notificationPage(filter: { ${filter} }) { items: results { sequence } }`,
  ]);
  const expectList = async (expected: readonly number[], turn: number) => {
    for (const [index, list] of lists.entries()) {
      const both = [[projectId], [projectId, portico.demo.project_id]];
      // On PGlite each list is read alone at one time and together with another at the other.
      for (const ids of isPostgres ? both : [both[(index + turn) % 2]]) {
        statements.length = 0;
        const document = `query ($ids: [ID!]!) { nodes(ids: $ids) { ... on Project { list: ${list} } } }`;
        const { json } = await portico.graphql(document, { ids });
        expect(json.data.nodes[0].list.items.map(({ sequence }: { sequence: number }) => sequence)).toEqual(expected);
        const listing = statements.filter(({ sql }) => /ORDER BY (listed\.)?sequence( DESC)?$/.test(sql));
        expect(listing).toHaveLength(1);
        for (const { sql, values } of listing) expect(await countBlocks(connection, () => sql, values), list).toBeLessThan(few);
      }
    }
  };
  await expectList(singles, 0);
  await connection.run(`SELECT marked FROM mark_notifications_read($1::uuid, $2::uuid, NULL, 5)`, [projectId, portico.demo.users.owner.id]);
  await expectList([...singles, 5, 4, 3, 2, 1], 1);
});

test.runIf(isPostgres)('a user may have 100,000 single reads above an unread one: beyond them only all can be marked', async () => {
  const random = seededRandom(99);
  const log = await openLog(random, 5);
  const { owner } = portico.demo.users;
  await mark(log, 'owner', log.ids.slice(1, 2));
  await connection.run(`UPDATE notification_logs SET last_sequence = 200000 WHERE project_id = '${log.projectId}'`);
  await connection.run(
    `INSERT INTO notification_reads (project_id, user_id, sequence, version)
     SELECT '${log.projectId}', '${owner.id}', number, 1 FROM generate_series(11, 100008) AS number`,
  );
  expect(await mark(log, 'owner', log.ids.slice(2, 3))).toEqual({ marked: 1, unread_count: 100_000 });
  const quota = { quota: 'single_reads_per_project', limit: 100_000 };
  const beyond = log.ids.slice(3);
  const refused = await portico.ask('POST', `${log.path}/read`, { body: { notification_ids: beyond } });
  expect([refused.status, refused.json.code, refused.json.context]).toEqual([409, 'conflict', quota]);
  const mutation = 'mutation ($input: MarkNotificationsReadInput!) { markNotificationsRead(input: $input) { marked } }';
  const input = { organizationId: portico.demo.organization_id, projectId: log.projectId, notificationIds: beyond };
  const { json } = await portico.graphql(mutation, { input });
  expect(json.errors[0].extensions).toEqual({ code: 'conflict', context: quota });
  expect(await mark(log, 'owner', log.ids.slice(1, 3))).toEqual({ marked: 0, unread_count: 100_000 });
  expect(await mark(log, 'admin', beyond)).toMatchObject({ marked: 2 });
  const headers = { 'idempotency-key': randomUUID() };
  const keyed = () => portico.ask('POST', `${log.path}/read`, { body: { notification_ids: beyond }, headers });
  const first = await keyed();
  expect([first.status, first.json.context]).toEqual([409, quota]);
  // The watermark moves over the first three: fewer are read one by one than before.
  expect(await mark(log, 'owner', log.ids.slice(0, 1))).toEqual({ marked: 1, unread_count: 99_999 });
  expect(await mark(log, 'owner', log.ids.slice(3, 4))).toMatchObject({ marked: 1 });
  const again = await keyed();
  expect([again.status, again.text]).toEqual([409, first.text]);
  expect(await mark(log, 'owner')).toMatchObject({ unread_count: 0 });
});
