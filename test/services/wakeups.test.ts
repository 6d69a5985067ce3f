import { afterAll, beforeAll, expect, it } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { openPlainFeed, publish } from '../support/feed.ts';

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
  const feed = openPlainFeed(there);
  await feed.until(({ type }) => type === 'ready');
  const delays: number[] = [];
  for (let round = 0; round < 20; round += 1) {
    const sequence = await publish(here, `round ${round}`);
    const published = performance.now();
    await feed.until((frame) => frame.sequence === sequence);
    delays.push(performance.now() - published);
  }
  // Without wake-ups they would be spread over the 750 ms between two looks.
  delays.sort((a, b) => a - b);
  expect(delays[14]).toBeLessThan(150);
  feed.socket.close();
});

it('a read state too', async () => {
  const feed = openPlainFeed(there);
  await feed.until(({ type }) => type === 'ready');
  await publish(here, 'to be read');
  const told = feed.until(({ type, unread_count }) => type === 'read' && unread_count === 0);
  const answer = await here.ask('POST', `${here.projectPath}/notifications/read`, { body: {} });
  expect(answer.status).toBe(200);
  await told;
  feed.socket.close();
});
