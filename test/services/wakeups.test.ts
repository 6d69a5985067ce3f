import { afterAll, beforeAll, expect, it } from 'vitest';
import { startRestingApp, type TestApp } from '../support/app.ts';
import { openPlainFeed, publish } from '../support/feed.ts';

// Neither replica polls, so that only a wake-up tells a feed of anything.
let here: TestApp;
let there: TestApp;
beforeAll(async () => {
  here = await startRestingApp();
  there = await startRestingApp({
    DATA_DIR: here.config.dataDir,
    DATABASE_URL: here.databaseUrl ?? '',
    REDIS_PREFIX: here.config.redis?.prefix ?? '',
  });
});
afterAll(async () => {
  await there.close();
  await here.close();
});

it('a notification of one replica is delivered by the feeds of another, though it does not poll', async () => {
  const feeds = [openPlainFeed(here), openPlainFeed(there)];
  await Promise.all(feeds.map((feed) => feed.until(({ type }) => type === 'ready')));
  for (let round = 0; round < 20; round += 1) {
    const sequence = await publish(here, `round ${round}`);
    const told = await Promise.all(feeds.map(({ until }) => until((frame) => frame.sequence === sequence)));
    expect(told.map(({ type }) => type)).toEqual(['notification', 'notification']);
  }
  for (const feed of feeds) feed.socket.close();
});

it('a read state of one replica is delivered by the feeds of another, though it does not poll', async () => {
  const feed = openPlainFeed(there);
  await feed.until(({ type }) => type === 'ready');
  await publish(here, 'to be read');
  const told = feed.until(({ type, unread_count }) => type === 'read' && unread_count === 0);
  const response = await here.ask('POST', `${here.projectPath}/notifications/read`, { body: {} });
  expect(response.status).toBe(200);
  await told;
  feed.socket.close();
});
