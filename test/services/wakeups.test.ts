import { afterAll, beforeAll, expect, it } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { type FeedSocket, openPlainFeed, publish } from '../support/feed.ts';

let here: TestApp;
let there: TestApp;
beforeAll(async () => {
  here = await startApp();
  there = await startApp({
    DATA_DIR: here.config.dataDir,
    DATABASE_URL: here.databaseUrl ?? '',
    REDIS_PREFIX: here.config.redis?.prefix ?? '',
  });
});
afterAll(async () => {
  await there.close();
  await here.close();
});

it('what one replica takes, the feeds of another tell before its next look at the database', async () => {
  // The feed of the replica that accepts the publication shows how busy the machine is.
  const feeds = [openPlainFeed(here), openPlainFeed(there)];
  await Promise.all(feeds.map((feed) => feed.until(({ type }) => type === 'ready')));
  const delays: [number[], number[]] = [[], []];
  for (let round = 0; round < 20; round += 1) {
    const sequence = await publish(here, `round ${round}`);
    const published = performance.now();
    const wait = async ({ until }: FeedSocket, which: number) => {
      await until((frame) => frame.sequence === sequence);
      delays[which]?.push(performance.now() - published);
    };
    await Promise.all(feeds.map(wait));
  }
  const [own, other] = delays.map((some) => some.sort((a, b) => a - b)[10] ?? Number.NaN);
  // Without wake-ups the delays would be spread over the 750 ms between two polls.
  expect(other).toBeLessThan(150 + (own ?? 0));
  for (const feed of feeds) feed.socket.close();
});

it('a read state too', async () => {
  const feed = openPlainFeed(there);
  await feed.until(({ type }) => type === 'ready');
  await publish(here, 'to be read');
  const told = feed.until(({ type, unread_count }) => type === 'read' && unread_count === 0);
  const response = await here.ask('POST', `${here.projectPath}/notifications/read`, { body: {} });
  expect(response.status).toBe(200);
  await told;
  feed.socket.close();
});
