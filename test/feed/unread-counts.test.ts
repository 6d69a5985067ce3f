import { afterAll, beforeAll, expect, it } from 'vitest';
import { isPostgres, startApp, type TestApp } from '../support/app.ts';
import { type Frame, openPlainFeed, publish, readLog } from '../support/feed.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_USER: '100000000', LOG_LEVEL: 'error' });
});
afterAll(() => app.close());

const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** What a client knows that follows the feed from the beginning on, counted anew at each event that tells a count. */
function recount(frames: readonly Frame[], from: number): string[] {
  const problems: string[] = [];
  const sequenceOf = new Map<string, number>();
  const singles = new Set<string>();
  let position = from;
  for (const frame of frames) {
    if (frame.type === 'notification') {
      position = frame.sequence;
      sequenceOf.set(frame.notification.id, frame.sequence);
    }
    if (frame.type !== 'read' && frame.type !== 'ready') continue;
    for (const id of frame.notification_ids ?? []) singles.add(id);
    let unread = Math.max(0, position - frame.read_through);
    for (const id of singles) {
      const sequence = sequenceOf.get(id) ?? 0;
      if (sequence > frame.read_through && sequence <= position) unread -= 1;
    }
    if (unread !== frame.unread_count) problems.push(`${frame.type} at ${position}: ${frame.unread_count}, counted ${unread}`);
  }
  return problems;
}

it('the delivered unread counts equal a recount, while writers and readers race', async () => {
  // The admin of the demo has read nothing yet.
  const feeds = Array.from({ length: 5 }, () => openPlainFeed(app, { as: 'admin', after: 0 }));
  await Promise.all(feeds.map((feed) => feed.until(({ type }) => type === 'ready')));
  const [writes, reads] = isPostgres ? [60, 40] : [30, 30];
  const post = (body: unknown) => app.ask('POST', `${app.projectPath}/notifications/read`, { as: 'admin', body });
  const write = async () => {
    for (let index = 0; index < writes; index += 1) {
      await publish(app, `unread ${index}`);
      await sleep(Math.random() * 8);
    }
  };
  const read = async (reader: number) => {
    for (let index = 0; index < reads; index += 1) {
      const log = await readLog(app);
      const picked = Array.from({ length: 3 }, () => log[Math.floor(log.length * (1 - Math.random() ** 2))]?.id ?? log[0]?.id);
      if (reader === 0 && index % 20 === 19) await post({});
      else if (reader === 1 && index % 10 === 9) {
        const input = {
          organizationId: app.demo.organization_id,
          projectId: app.demo.project_id,
          throughSequence: Math.floor(log.length * 0.7),
        };
        const document = 'mutation ($input: MarkNotificationsReadInput!) { markNotificationsRead(input: $input) { marked } }';
        await app.graphql(document, { input }, { as: 'admin' });
      } else await post({ notification_ids: picked });
      await sleep(Math.random() * 10);
    }
  };
  await Promise.all([write(), write(), read(0), read(1), read(2)]);
  const last = (await readLog(app)).length;
  const { json } = await post({});
  expect(json.unread_count).toBe(0);
  for (const feed of feeds) await feed.until((frame) => frame.type === 'read' && frame.read_through === last);
  for (const { frames } of feeds) {
    expect(recount(frames, 0)).toEqual([]);
    expect(frames.filter(({ type }) => type === 'read').length).toBeGreaterThan(3);
    expect(frames.at(-1)).toMatchObject({ type: 'read', unread_count: 0 });
  }
  for (const { socket } of feeds) socket.terminate();
});
