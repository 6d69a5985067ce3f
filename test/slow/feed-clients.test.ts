import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ApolloClient, gql, InMemoryCache } from '@apollo/client';
import { GraphQLWsLink } from '@apollo/client/link/subscriptions';
import { createClient } from 'graphql-ws';
import { connect } from 'portico-client';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import WebSocket from 'ws';
import { type DemoFile, refreshDemoFile } from '../../demo/file.ts';
import { seedDemo } from '../../demo/seed.ts';
import { type App, createApp } from '../../src/app.ts';
import { type Config, demoFilePath, readConfig } from '../../src/config.ts';
import { createLogger } from '../../src/platform/logger.ts';
import { copyTemplate } from '../support/copies.ts';
import type { Frame } from '../support/feed.ts';
import { checkHistory, type Entry } from '../support/history.ts';
import { followPlainFeed } from '../support/plain-feed.ts';

const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

let config: Config;
let app: App;
let port = 0;
let demo: DemoFile;

async function start(): Promise<void> {
  app = await createApp(config, { log: createLogger('error') });
  port = (await app.listen(port, '127.0.0.1')).port;
}

beforeAll(async () => {
  const origin = inject('origin');
  config = readConfig({
    DATA_DIR: mkdtempSync(join(tmpdir(), 'portico-test-')),
    DRAIN_SECONDS: '0.2',
    RATE_LIMIT_USER: '100000000',
    ...('template' in origin && { DATABASE_URL: await copyTemplate(origin) }),
  });
  await start();
  await seedDemo(app.database);
  const baseUrl = `http://127.0.0.1:${port}`;
  const file = await refreshDemoFile({ database: app.database, tokens: app.tokens, baseUrl, path: demoFilePath(config) });
  if (!file) throw new Error('the database has no demo');
  demo = file;
});
afterAll(async () => {
  await app.close();
  rmSync(config.dataDir, { recursive: true, force: true });
});

/** Publishes `count` notifications, and restarts the server twice on the way. */
async function publishThroughRestarts(count: number): Promise<Entry[]> {
  for (let index = 0; index < count; index += 1) {
    if (index === Math.floor(count / 3) || index === Math.floor((2 * count) / 3)) {
      await app.close();
      await start();
    }
    await app.database.prisma.$executeRaw`
      INSERT INTO notifications (project_id, kind, severity, title) VALUES (${demo.project_id}::uuid, 'test.sql', 'info', ${`no. ${index}`})`;
    await sleep(Math.random() * 60);
  }
  return app.database.prisma.$queryRaw`
    SELECT sequence::int AS sequence, id::text AS id FROM notifications WHERE project_id = ${demo.project_id}::uuid ORDER BY sequence`;
}

type Follow = (onEvent: (event: Frame) => void, after: number) => () => unknown;

function fail(why: unknown): never {
  throw new Error(`the feed has ended: ${JSON.stringify(why)}`);
}

function followPackage(onEvent: (event: Frame) => void, after: number): () => unknown {
  const leaving = new AbortController();
  const client = connect({ url: demo.base_url, credential: demo.users.member.api_key });
  const read = async () => {
    for await (const event of client.feed({ project: demo.project_id, after, signal: leaving.signal })) onEvent(event);
  };
  const reading = read();
  return () => {
    leaving.abort();
    return reading;
  };
}

const followPlain: Follow = (onEvent, after) =>
  followPlainFeed({
    baseUrl: demo.base_url,
    token: demo.users.member.token ?? '',
    organizationId: demo.organization_id,
    projectId: demo.project_id,
    after,
    onEvent,
    onEnd: fail,
  });

function followApollo(onEvent: (event: Frame) => void, after: number): () => unknown {
  let cursor = after;
  const link = new GraphQLWsLink(
    createClient({
      url: `${demo.base_url.replace('http', 'ws')}/graphql`,
      webSocketImpl: WebSocket,
      connectionParams: { authorization: `Bearer ${demo.users.member.token}` },
      shouldRetry: () => true,
      retryAttempts: Number.POSITIVE_INFINITY,
      // Apollo gives the variables once; at each connection the cursor of the moment takes their place.
      jsonMessageReplacer: (key, value) => (key === 'after' ? cursor : value),
    }),
  );
  const client = new ApolloClient({ link, cache: new InMemoryCache() });
  const query = gql`
    subscription Feed($organizationId: ID!, $projectId: ID!, $after: Int) {
      notificationFeed(organizationId: $organizationId, projectId: $projectId, after: $after) {
        ... on FeedReady { type sequence }
        ... on NotificationAdded { type sequence notification { id title } }
        ... on FeedGap { type from to }
      }
    }
  `;
  const variables = { organizationId: demo.organization_id, projectId: demo.project_id, after };
  const subscription = client.subscribe<{ notificationFeed: Frame }>({ query, variables, fetchPolicy: 'no-cache' }).subscribe({
    next({ data }) {
      const event = data?.notificationFeed;
      cursor = event.sequence ?? cursor;
      onEvent(event);
    },
  });
  return () => {
    subscription.unsubscribe();
    client.stop();
  };
}

it.each<[string, Follow]>([
  ['The client package', followPackage],
  ['A follower of plain JSON', followPlain],
  ['Apollo Client', followApollo],
])('%s reconnects after restarts of the server, and misses nothing', async (_name, follow) => {
  const from = 145;
  const received: Entry[] = [];
  const gaps: Frame[] = [];
  const end = follow((event) => {
    if (event.type === 'gap') gaps.push(event);
    if (event.type === 'notification') received.push({ sequence: event.sequence, id: event.notification.id });
  }, from);
  const committed = await publishThroughRestarts(60);
  const deadline = Date.now() + 60_000;
  while (received.length < committed.length - from && Date.now() < deadline) await sleep(50);
  await end();
  expect(gaps).toEqual([]);
  expect(checkHistory({ committed, from, received })).toEqual([]);
});
