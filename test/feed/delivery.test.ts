import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { isPostgres, startApp, type TestApp } from '../support/app.ts';
import { countCases } from '../support/cases.ts';
import { openPlainFeed, publish, readLog } from '../support/feed.ts';
import { checkHistory, type Entry } from '../support/history.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_USER: '100000000', LOG_LEVEL: 'error' });
});
afterAll(() => app.close());

const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/**
 * Reads the feed from a cursor on, breaking off and coming back at random, until it has all up to `last()`, which is known when
 * `written` resolves.
 */
async function subscribe(from: number, last: () => number, written: Promise<unknown>): Promise<Entry[]> {
  const received: Entry[] = [];
  let cursor = from;
  while (cursor < last()) {
    const feed = openPlainFeed(app, { after: cursor });
    const stopAfter = Math.random() < 0.3 ? Math.floor(Math.random() * 20) : Math.floor(Math.random() * 800);
    await new Promise<void>((resolve) => {
      let count = 0;
      const stop = () => {
        feed.socket.removeAllListeners('message');
        feed.socket.terminate();
      };
      // A break may also fall between two frames, or before the first.
      const timer = setTimeout(stop, 50 + Math.random() * 3_000);
      // What is committed last may have come before it is known to be the last.
      written.then(() => cursor >= last() && stop());
      feed.socket.removeAllListeners('message');
      feed.socket.on('message', (data) => {
        const frame = JSON.parse(String(data));
        if (frame.type === 'gap') received.push({ sequence: -1, id: 'a gap' });
        if (frame.type === 'notification') {
          received.push({ sequence: frame.sequence, id: frame.notification.id });
          cursor = frame.sequence;
          count += 1;
        }
        if (count >= stopAfter || cursor >= last()) stop();
      });
      feed.closed.then(() => {
        clearTimeout(timer);
        resolve();
      });
    });
    await sleep(Math.random() * 30);
  }
  return received;
}

/** Writers of every kind: by the API, by SQL alone, in transactions that commit out of order, and rolled back. */
function startWriters(perWriter: number): Promise<unknown> {
  const { project_id } = app.demo;
  const insert = `INSERT INTO notifications (project_id, kind, severity, title) VALUES ('${project_id}', 'test.sql', 'info', $1)`;
  const byApi = async (writer: number) => {
    for (let index = 0; index < perWriter; index += 1) await publish(app, `api ${writer} ${index}`);
  };
  const bySql = async (writer: number) => {
    const client = new pg.Client({ connectionString: app.databaseUrl ?? '' });
    await client.connect();
    for (let index = 0; index < perWriter; index += 1) {
      const isRolledBack = writer % 3 === 0 && Math.random() < 0.3;
      await client.query('BEGIN');
      if (writer % 2 === 0) await sleep(Math.random() * 4);
      await client.query(insert, [`sql ${writer} ${index}`]);
      if (Math.random() < 0.2) await client.query(insert, [`sql ${writer} ${index} again`]);
      if (writer % 2 === 1) await sleep(Math.random() * 3);
      await client.query(isRolledBack ? 'ROLLBACK' : 'COMMIT');
    }
    await client.end();
  };
  return Promise.all(Array.from({ length: 8 }, (_, writer) => (isPostgres && writer >= 2 ? bySql(writer) : byApi(writer))));
}

it('subscribers receive every committed notification once and in order, across disconnects', { timeout: 240_000 }, async () => {
  const subscribers = isPostgres ? 50 : 10;
  let last = Number.POSITIVE_INFINITY;
  const froms = Array.from({ length: subscribers }, () => Math.floor(Math.random() * 150));
  const writing = startWriters(isPostgres ? countCases(280) : 12).then(async () => {
    const committed = await readLog(app);
    last = committed.length;
    return committed;
  });
  const histories = await Promise.all(froms.map((from) => subscribe(from, () => last, writing)));
  const committed = await writing;
  const problems = histories.flatMap((received, index) => checkHistory({ committed, from: froms[index] ?? 0, received }));
  const deliveries = histories.reduce((sum, received) => sum + received.length, 0);
  console.log(`${deliveries} deliveries of ${committed.length} notifications to ${subscribers} subscribers`);
  expect(problems).toEqual([]);
  expect(deliveries).toBeGreaterThan(isPostgres ? countCases(100_000) : 1_000);
});

it('notifications of one call are delivered in the given order, among concurrent publications', async () => {
  const { organization_id: organizationId, project_id: projectId } = app.demo;
  const document =
    'mutation ($input: PublishNotificationsInput!) { publishNotifications(input: $input) { notifications { sequence title } } }';
  const from = (await readLog(app)).length;
  const feeds = [openPlainFeed(app, { after: from }), openPlainFeed(app, { after: from, as: 'viewer' })];
  const publishMany = async (call: number) => {
    const notifications = Array.from({ length: 100 }, (_, index) => ({ kind: 'test', severity: 'info', title: `${call} of ${index}` }));
    const { json } = await app.graphql(document, { input: { organizationId, projectId, notifications } });
    return json.data.publishNotifications.notifications as Array<{ sequence: number; title: string }>;
  };
  const [published] = await Promise.all([
    Promise.all([0, 1, 2, 3].map(publishMany)),
    ...Array.from({ length: 20 }, (_, index) => publish(app, `beside ${index}`)),
  ]);
  const last = from + 420;
  for (const { frames, socket, until } of feeds) {
    await until(({ type, sequence }) => type === 'notification' && sequence === last);
    socket.terminate();
    const told = frames.filter(({ type }) => type === 'notification');
    expect(told.map(({ sequence }) => sequence)).toEqual(Array.from({ length: 420 }, (_, index) => from + 1 + index));
    const titles = new Map(told.map(({ sequence, notification }) => [sequence, notification.title]));
    for (const { sequence, title } of published.flat()) expect(titles.get(sequence)).toBe(title);
  }
  for (const [call, rows] of published.entries())
    expect(rows.map(({ title }) => title)).toEqual(rows.map((_, index) => `${call} of ${index}`));
});

it('the boundary between replayed and live entries has no gap and no duplicate', { timeout: 240_000 }, async () => {
  const runs = isPostgres ? countCases(1_000) : 24;
  const problems: string[] = [];
  const one = async (run: number) => {
    const committed = await readLog(app);
    const from = committed.length - 3;
    const feed = openPlainFeed(app, { after: from });
    const published = sleep(Math.random() * 12).then(() => publish(app, `boundary ${run}`));
    const sequence = await published;
    await feed.until((frame) => frame.type === 'notification' && frame.sequence === sequence);
    await feed.until((frame) => frame.type === 'ready');
    const received = feed.frames
      .filter(({ type }) => type === 'notification')
      .map(({ sequence, notification }) => ({ sequence, id: notification.id }));
    feed.socket.terminate();
    const log = (await readLog(app)).slice(0, sequence);
    problems.push(...checkHistory({ committed: log, from, received: received.filter((entry) => entry.sequence <= sequence) }));
    if (feed.frames.filter(({ type }) => type === 'ready').length !== 1) problems.push('not one ready');
  };
  // A few at a time: their publications fall into one another's boundaries.
  let next = 0;
  const lane = async () => {
    while (next < runs) await one(next++);
  };
  await Promise.all(Array.from({ length: 8 }, lane));
  expect(problems).toEqual([]);
});
