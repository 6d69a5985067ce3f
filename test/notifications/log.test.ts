import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { countSingleReads, loadReadState } from '../../src/notifications/readstate.ts';
import { pruneNotifications } from '../../src/notifications/retention.ts';
import { isPostgres, startApp, type TestApp } from '../support/app.ts';
import { passSeconds } from '../support/clock.ts';
import { publish as publishByApp } from '../support/feed.ts';
import { seededRandom } from '../support/random.ts';
import { type Connection, countBlocks, openConnection, sqlState } from '../support/sql.ts';

const random = seededRandom(7);

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
afterEach(() => void vi.useRealTimers());

async function createProject(): Promise<string> {
  const id = random.uuid();
  await connection.run(`INSERT INTO projects (id, organization_id, name) VALUES ('${id}', '${portico.demo.organization_id}', 'logged')`);
  return id;
}

/** The statement that adds notifications with these ids to a log. */
function insertion(projectId: string, ids: readonly string[], ending = ''): string {
  const rows = ids.map((id) => `('${id}', '${projectId}', 'test.inserted', 'info', 'inserted')`);
  return `INSERT INTO notifications (id, project_id, kind, severity, title) VALUES ${rows.join(', ')} ${ending}`;
}

const someIds = (count: number) => Array.from({ length: count }, () => random.uuid());

async function readLog(projectId: string): Promise<Array<{ id: string; sequence: number }>> {
  const rows = await connection.run(`SELECT id, sequence::int FROM notifications WHERE project_id = '${projectId}' ORDER BY sequence`);
  return rows as Array<{ id: string; sequence: number }>;
}

/** Checks that the sequences are 1, 2, 3, … up to the log's last one. Returns their number. */
async function expectGapless(projectId: string): Promise<number> {
  const sequences = (await readLog(projectId)).map(({ sequence }) => sequence);
  const [log] = await connection.run(`SELECT last_sequence::int AS last FROM notification_logs WHERE project_id = '${projectId}'`);
  expect(sequences).toEqual(Array.from({ length: Number(log?.last) }, (_, index) => index + 1));
  return sequences.length;
}

async function publish(projectId: string, title = 'published') {
  const { json } = await portico.graphql(
    'mutation ($input: PublishNotificationInput!) { publishNotification(input: $input) { notification { id sequence } } }',
    { input: { organizationId: portico.demo.organization_id, projectId, kind: 'test.published', severity: 'info', title } },
  );
  return json.data.publishNotification.notification as { id: string; sequence: number };
}

describe('one writer', () => {
  test('rows are numbered in the order of the statement, regardless of a given number', async () => {
    const projectId = await createProject();
    const ids = someIds(5);
    await connection.run(insertion(projectId, ids));
    const asked = random.uuid();
    await connection.run(`
      INSERT INTO notifications (id, project_id, sequence, kind, severity, title)
      VALUES ('${asked}', '${projectId}', 900, 'k', 'info', 't')`);
    const published = await publish(projectId);
    const expected = [...ids, asked, published.id].map((id, index) => ({ id, sequence: index + 1 }));
    expect(await readLog(projectId)).toEqual(expected);
    expect(published.sequence).toBe(7);
  });

  test('a rolled back row takes no number', async () => {
    const projectId = await createProject();
    await connection.run(insertion(projectId, someIds(2)));
    await connection.run('BEGIN');
    await connection.run(insertion(projectId, someIds(3)));
    await connection.run('SAVEPOINT before');
    await connection.run(insertion(projectId, someIds(3)));
    await connection.run('ROLLBACK TO SAVEPOINT before');
    await connection.run('COMMIT');
    await connection.run('BEGIN');
    await connection.run(insertion(projectId, someIds(4)));
    await connection.run('ROLLBACK');
    await connection.run(insertion(projectId, someIds(1)));
    expect(await expectGapless(projectId)).toBe(6);
  });

  test('a repeated id takes no number: an insert that is tried again, and one that names an id twice', async () => {
    const projectId = await createProject();
    const [first = '', second = '', third = ''] = someIds(3);
    await connection.run(insertion(projectId, [first, second]));
    const again = insertion(projectId, [second, third, first, third], 'ON CONFLICT DO NOTHING RETURNING id');
    expect(await connection.run(again)).toEqual([{ id: third }]);
    expect(await connection.run(again)).toEqual([]);
    await expect(connection.run(insertion(projectId, [first]))).rejects.toSatisfy((failure) => sqlState(failure) === '23505');
    const upsert = insertion(projectId, [first, random.uuid()], "ON CONFLICT (id) DO UPDATE SET title = 'told again'");
    await connection.run(upsert);
    expect(await expectGapless(projectId)).toBe(4);
    expect((await readLog(projectId)).slice(0, 3)).toEqual([first, second, third].map((id, index) => ({ id, sequence: index + 1 })));
  });

  test('the rows that another trigger publishes for each of several rows have the next numbers, at the end of the log', async () => {
    const projectId = await createProject();
    await connection.run(`
      CREATE FUNCTION publish_echo() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        INSERT INTO notifications (project_id, kind, severity, title) VALUES (NEW.project_id, 'test.echo', 'info', 'echo');
        RETURN NULL;
      END
      $$`);
    await connection.run(`
      CREATE TRIGGER publish_echo AFTER INSERT ON notifications FOR EACH ROW
      WHEN (NEW.project_id = '${projectId}' AND NEW.kind <> 'test.echo') EXECUTE FUNCTION publish_echo()`);
    try {
      await connection.run(insertion(projectId, someIds(2)));
      expect(await expectGapless(projectId)).toBe(4);
    } finally {
      await connection.run('DROP TRIGGER publish_echo ON notifications');
      await connection.run('DROP FUNCTION publish_echo()');
    }
  });

  test('a notification keeps its id, project and number, and stays until the watermark has passed it', async () => {
    const projectId = await createProject();
    const other = await createProject();
    await connection.run(insertion(projectId, someIds(4)));
    const before = await readLog(projectId);
    for (const statement of [
      `UPDATE notifications SET sequence = sequence + 10 WHERE project_id = '${projectId}'`,
      `UPDATE notifications SET id = uuid_v7() WHERE project_id = '${projectId}' AND sequence = 4`,
      `UPDATE notifications SET project_id = '${other}' WHERE project_id = '${projectId}'`,
      `DELETE FROM notifications WHERE project_id = '${projectId}' AND sequence = 1`,
      `DELETE FROM notifications WHERE project_id = '${projectId}'`,
    ]) {
      await expect(connection.run(statement), statement).rejects.toSatisfy((failure) => sqlState(failure) === '23000');
    }
    await connection.run(`UPDATE notifications SET title = 'corrected' WHERE project_id = '${projectId}'`);
    expect(await readLog(projectId)).toEqual(before);
    await connection.run(`UPDATE notification_logs SET pruned_through = 2 WHERE project_id = '${projectId}'`);
    await expect(connection.run(`DELETE FROM notifications WHERE project_id = '${projectId}' AND sequence = 3`)).rejects.toThrow();
    await connection.run(`DELETE FROM notifications WHERE project_id = '${projectId}' AND sequence <= 2`);
    expect(await readLog(projectId)).toEqual(before.slice(2));
    await connection.run(`DELETE FROM projects WHERE id = '${projectId}'`);
    expect(await readLog(projectId)).toEqual([]);
  });
});

describe('writers at once', () => {
  /** Follows the log: polls for entries above its position and advances to the last. */
  async function follow(projectId: string, until: () => boolean) {
    const reader = await openConnection(portico);
    let position = 0;
    for (let isLast = false; !isLast; ) {
      isLast = until();
      const rows = await reader.run(
        `SELECT sequence::int FROM notifications WHERE project_id = '${projectId}' AND sequence > ${position} ORDER BY sequence`,
      );
      for (const { sequence } of rows) {
        // If sequences were not in commit order, a later commit could add one below the position, which would be a gap here.
        expect(sequence).toBe((position += 1));
      }
    }
    await reader.close();
    return position;
  }

  async function write(projectId: string, seed: number, shared: readonly string[]) {
    const writer = await openConnection(portico);
    const own = seededRandom(seed);
    let written = 0;
    for (let step = 0; step < 40; step += 1) {
      const ids = Array.from({ length: 1 + own.below(4) }, () => (own.chance(0.2) ? own.pick(shared) : own.uuid()));
      await writer.run('BEGIN');
      const rows = await writer.run(insertion(projectId, ids, 'ON CONFLICT DO NOTHING RETURNING id'));
      const isKept = own.chance(0.7);
      await writer.run(isKept ? 'COMMIT' : 'ROLLBACK');
      if (isKept) written += rows.length;
    }
    await writer.close();
    return written;
  }

  test('numbers have no gaps and come in commit order: transactions, rollbacks, repeated ids, and publishing', async () => {
    const projectId = await createProject();
    const shared = someIds(10);
    let isOver = false;
    const publishAll = async () => (await Promise.all(Array.from({ length: 20 }, () => publish(projectId)))).length;
    const series = [
      publishAll,
      ...Array.from({ length: isPostgres ? 8 : 1 }, (_, index) => () => write(projectId, index, shared)),
      publishAll,
    ];
    const written: number[] = [];
    // PGlite has one connection, so a transaction would include the statements of all writers.
    if (isPostgres) {
      const following = follow(projectId, () => isOver);
      written.push(...(await Promise.all(series.map((act) => act()))));
      isOver = true;
      expect(await following).toBe(written.reduce((sum, count) => sum + count));
    } else {
      for (const act of series) written.push(await act());
    }
    expect(await expectGapless(projectId)).toBe(written.reduce((sum, count) => sum + count));
  });

  if (isPostgres) {
    test('an id that is inserted into two logs at once takes a number in one of them', async () => {
      const [here, there] = [await createProject(), await createProject()];
      const [first, second] = [await openConnection(portico), await openConnection(portico)];
      const shared = someIds(1);
      await first.run('BEGIN');
      await first.run(insertion(here, shared));
      const later = second.run(insertion(there, [...someIds(1), ...shared, ...someIds(1)], 'ON CONFLICT DO NOTHING'));
      await new Promise((resolve) => setTimeout(resolve, 100));
      await first.run('COMMIT');
      await later;
      expect([await expectGapless(here), await expectGapless(there)]).toEqual([1, 2]);
      await Promise.all([first.close(), second.close()]);
    });

    test('a second writer waits for the first, and takes the number of a rolled back row', async () => {
      const projectId = await createProject();
      const [first, second] = [await openConnection(portico), await openConnection(portico)];
      for (const [ending, sequence] of [
        ['ROLLBACK', 1],
        ['COMMIT', 3],
      ] as const) {
        await first.run('BEGIN');
        await first.run(insertion(projectId, someIds(1)));
        const later = second.run(insertion(projectId, someIds(1), 'RETURNING sequence::int'));
        const isFirst = await Promise.race([later.then(() => false), new Promise((resolve) => setTimeout(() => resolve(true), 100))]);
        expect(isFirst).toBe(true);
        await first.run(ending);
        expect(await later).toEqual([{ sequence }]);
      }
      await Promise.all([first.close(), second.close()]);
    });
  }
});

describe('edge cases', () => {
  const stateOf = (work: Promise<unknown>) => work.then(() => 'done', sqlState);
  const insertAt = (projectId: string, created: string) =>
    connection.run(
      `INSERT INTO notifications (project_id, kind, severity, title, created) VALUES ('${projectId}', 'test.edge', 'info', 'edge', '${created}')
       RETURNING created < now() + interval '1 second' AS "isPast", created > now() - interval '1 minute' AS "isRecent"`,
    );

  test('no entry is newer than its insertion, or older than all time', async () => {
    const projectId = await createProject();
    for (const future of ['infinity', '2300-01-01']) expect(await insertAt(projectId, future)).toEqual([{ isPast: true, isRecent: true }]);
    expect(await insertAt(projectId, '2020-01-01')).toEqual([{ isPast: true, isRecent: false }]);
    expect(await stateOf(insertAt(projectId, '-infinity'))).toBe('22008');
    expect(await expectGapless(projectId)).toBe(3);
  });

  // The embedded database has the clock of its process.
  test.runIf(isPostgres)(
    'the age of an entry is by the clock of the database, not by that of the replica that publishes or removes',
    async () => {
      const projectId = await createProject();
      await insertAt(projectId, '2020-01-01');
      await insertAt(projectId, 'infinity');
      passSeconds(2 * 86_400);
      expect(await pruneNotifications(portico.app.database, 1)).toBeGreaterThan(0);
      expect(await readLog(projectId)).toMatchObject([{ sequence: 2 }]);
      vi.useRealTimers();
      passSeconds(-600);
      const sequence = await publishByApp(portico, 'published');
      const published = `project_id = '${portico.demo.project_id}' AND sequence = ${sequence}`;
      expect(
        await connection.run(`SELECT created > now() - interval '5 minutes' AS "isRecent" FROM notifications WHERE ${published}`),
      ).toEqual([{ isRecent: true }]);
    },
  );

  test('publishing to an absent project, and marking in one, violates the foreign key', async () => {
    expect(await stateOf(connection.run(insertion(random.uuid(), someIds(1))))).toBe('23503');
    const mark = `SELECT * FROM mark_notifications_read('${random.uuid()}', '${portico.demo.users.owner.id}', NULL, NULL)`;
    expect(await stateOf(connection.run(mark))).toBe('23503');
  });

  test('a project keeps its id', async () => {
    const projectId = await createProject();
    await connection.run(`UPDATE projects SET id = '${projectId}', name = 'renamed' WHERE id = '${projectId}'`);
    expect(await stateOf(connection.run(`UPDATE projects SET id = '${random.uuid()}' WHERE id = '${projectId}'`))).toBe('23000');
  });

  test('pruning removes from the beginning, up to the first entry that is young', async () => {
    const projectId = await createProject();
    for (const year of [2018, 2018, 2018, 2020, 2018, 2020]) await insertAt(projectId, `${year}-01-01`);
    const prune = async (before: string, most: number) => {
      const removed = await connection.run(`SELECT prune_notification_log('${projectId}', '${before}', ${most})::int AS count`);
      const logs = await connection.run(`SELECT pruned_through::int AS through FROM notification_logs WHERE project_id = '${projectId}'`);
      const left = (await readLog(projectId)).map(({ sequence }) => sequence);
      return [removed[0]?.count, logs[0]?.through, left];
    };
    expect(await prune('2018-01-01', 10)).toEqual([0, 0, [1, 2, 3, 4, 5, 6]]);
    expect(await prune('2019-01-01', 1)).toEqual([1, 1, [2, 3, 4, 5, 6]]);
    expect(await prune('2019-01-01', 10)).toEqual([2, 3, [4, 5, 6]]);
    expect(await prune('2019-01-01', 10)).toEqual([0, 3, [4, 5, 6]]);
    expect(await prune('2021-01-01', 10)).toEqual([3, 6, []]);
    expect(await prune('2021-01-01', 10)).toEqual([0, 6, []]);
  });

  test('the single reads of removed entries are deleted for all users, and count nowhere before that', async () => {
    const projectId = await createProject();
    await connection.run(
      `INSERT INTO notifications (project_id, kind, severity, title, created)
       SELECT $1::uuid, 'test', 'info', 'Title', CASE WHEN number > 1400 THEN now() ELSE '2020-01-01' END FROM generate_series(1, 1500) AS number`,
      [projectId],
    );
    const { owner, admin, viewer } = portico.demo.users;
    for (const { id } of [owner, admin, viewer]) {
      // The first is unread, so that the watermark does not pass the others.
      await connection.run(
        `SELECT * FROM mark_notifications_read($1, $2, (SELECT array_agg(id) FROM notifications WHERE project_id = $1 AND sequence > 1), NULL)`,
        [projectId, id],
      );
    }
    const readsOf = async (table: string) =>
      (await connection.run(`SELECT count(*)::int AS count FROM notification_reads WHERE project_id = $1 ${table}`, [projectId]))[0]?.count;
    expect(await readsOf('')).toBe(3 * 1_499);
    // The function alone leaves them.
    await connection.run(`SELECT prune_notification_log($1, '2021-01-01', 700)`, [projectId]);
    expect(await readsOf('')).toBe(3 * 1_499);
    const reader = { projectId, userId: owner.id };
    const { database } = portico.app;
    expect(await loadReadState(database, { ...reader, sinceVersion: 0 })).toMatchObject({ prunedThrough: 700, unread: 0 });
    expect(await countSingleReads(database, { ...reader, sinceVersion: 0, upToVersion: 9 })).toBe(800);
    expect(await pruneNotifications(database, 365)).toBe(700);
    expect([await readsOf(''), await readsOf('AND sequence <= 1400')]).toEqual([300, 0]);
    expect(await countSingleReads(database, { ...reader, sinceVersion: 0, upToVersion: 9 })).toBe(100);
  });

  test.runIf(isPostgres)('a single read that its user has locked is left for the next run', async () => {
    const projectId = await createProject();
    for (let index = 0; index < 3; index += 1) await insertAt(projectId, '2020-01-01');
    const { id } = portico.demo.users.owner;
    await connection.run(
      `SELECT * FROM mark_notifications_read($1, $2, (SELECT array_agg(id) FROM notifications WHERE project_id = $1 AND sequence > 1), NULL)`,
      [projectId, id],
    );
    const listReads = () => connection.run('SELECT sequence::int FROM notification_reads WHERE project_id = $1', [projectId]);
    await connection.run('BEGIN');
    await connection.run('SELECT FROM notification_reads WHERE project_id = $1 AND sequence = 2 FOR UPDATE', [projectId]);
    await pruneNotifications(portico.app.database, 365).finally(() => connection.run('ROLLBACK'));
    expect(await listReads()).toEqual([{ sequence: 2 }]);
    // A run looks only into logs that have something to remove.
    await insertAt(projectId, '2020-01-01');
    await pruneNotifications(portico.app.database, 365);
    expect(await listReads()).toEqual([]);
  });

  test('a log that cannot be pruned does not hold up the others', async () => {
    const [stuck, free] = [await createProject(), await createProject()].sort() as [string, string];
    for (const projectId of [stuck, free]) await insertAt(projectId, '2020-01-01');
    await connection.run(`CREATE FUNCTION refuse_deletion() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'stuck'; END $$`);
    await connection.run(
      `CREATE TRIGGER refuse_deletion BEFORE DELETE ON notifications FOR EACH ROW WHEN (OLD.project_id = '${stuck}')
       EXECUTE FUNCTION refuse_deletion()`,
    );
    await expect(pruneNotifications(portico.app.database, 365)).rejects.toThrow('stuck');
    await connection.run('DROP TRIGGER refuse_deletion ON notifications');
    expect([(await readLog(stuck)).length, (await readLog(free)).length]).toEqual([1, 0]);
  });

  test.runIf(isPostgres)('pruned entries, which stay in the index until the next vacuum, are not read again', async () => {
    const projectId = await createProject();
    await connection.run('ALTER TABLE notifications SET (autovacuum_enabled = off)');
    await connection.run(
      `INSERT INTO notifications (project_id, kind, severity, title, created)
       SELECT '${projectId}', 'test.old', 'info', 'old', '2020-01-01' FROM generate_series(1, 20000)`,
    );
    await connection.run('ANALYZE notifications');
    // Single reads far above, of which there may be many times as many as entries.
    await connection.run(
      `WITH reader AS (INSERT INTO users (email, name) SELECT number || '@many.example', 'Many' FROM generate_series(1, 2000) AS number RETURNING id),
         state AS (INSERT INTO notification_states (project_id, user_id) SELECT $1::uuid, id FROM reader RETURNING user_id)
       INSERT INTO notification_reads (project_id, user_id, sequence, version)
       SELECT $1::uuid, user_id, 100000 + number, 1 FROM state CROSS JOIN generate_series(1, 10) AS number`,
      [projectId],
    );
    await connection.run('ANALYZE notification_reads');
    const blocksOf = (toSql: () => string, values?: readonly unknown[]) => countBlocks(connection, toSql, values);
    const prune = (most: number) => `SELECT prune_notification_log('${projectId}', '2021-01-01', ${most})`;
    await connection.run(prune(19_990));
    const blocks: Record<string, number> = { prune: await blocksOf(() => prune(1)) };
    const statements: Array<{ sql: string; values: readonly unknown[] }> = [];
    portico.listen((sql, values) => void statements.push({ sql, values }));
    await pruneNotifications(portico.app.database, 36_500);
    const [look] = statements.filter(({ sql }) => sql.includes('"isDue"'));
    blocks.isDue = await blocksOf(() => look?.sql ?? '', look?.values);
    await connection.run(prune(20));
    blocks.isDueOfNothing = await blocksOf(() => look?.sql ?? '', look?.values);
    blocks.publish = await blocksOf(() => insertion(projectId, someIds(1)));
    expect(await readLog(projectId)).toMatchObject([{ sequence: 20_001 }, { sequence: 20_002 }]);
    await connection.run(`DELETE FROM users WHERE email LIKE '%@many.example'`);
    // Some 190 and 470 if every dead entry is read. PostgreSQL's planner reads up to 100 of their pages itself, where a trigger's
    // statement is planned anew while an older snapshot is open anywhere.
    for (const [name, count] of Object.entries(blocks)) expect(count, name).toBeLessThan(150);
  });

  if (isPostgres) {
    const expectWaiting = (start: string) =>
      expect
        .poll(() =>
          connection.run(
            `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '${start}%'`,
          ),
        )
        .toHaveLength(1);

    test('marking as read while the project is deleted is not found', async () => {
      const projectId = await createProject();
      await connection.run(insertion(projectId, someIds(3)));
      const mark = (upTo: number) =>
        `SELECT * FROM mark_notifications_read('${projectId}', '${portico.demo.users.owner.id}', NULL, ${upTo})`;
      await connection.run(mark(1));
      const [first, second, third] = [await openConnection(portico), await openConnection(portico), await openConnection(portico)];
      await first.run('BEGIN');
      await first.run(`SELECT version FROM notification_states WHERE project_id = '${projectId}' FOR UPDATE`);
      const deleted = second.run(`DELETE FROM projects WHERE id = '${projectId}'`);
      await expectWaiting('DELETE FROM projects');
      const marked = stateOf(third.run(mark(3)));
      await expectWaiting('SELECT * FROM mark');
      await first.run('COMMIT');
      await deleted;
      expect(await marked).toBe('23503');
      await Promise.all([first.close(), second.close(), third.close()]);
    });

    test('an infinite timestamp, which another program has stored, is the end of the calendar', async () => {
      const { eligible } = portico.demo.instances;
      await connection.run(`UPDATE instances SET cancellation_at = 'infinity' WHERE id = '${eligible}'`);
      const path = `${portico.projectPath}/compute/instances/${eligible}`;
      expect((await portico.ask('GET', path)).json.cancellation_at).toBe('9999-12-31T23:59:59.999Z');
      const { json } = await portico.graphql(
        'query ($o: ID!, $p: ID!) { project(organizationId: $o, id: $p) { instances(first: 100) { nodes { id cancellationAt } } } }',
        { o: portico.demo.organization_id, p: portico.demo.project_id },
      );
      const found = json.data.project.instances.nodes.find(({ id }: { id: string }) => id === eligible);
      expect(found?.cancellationAt).toBe('9999-12-31T23:59:59.999Z');
    });
  }
});
