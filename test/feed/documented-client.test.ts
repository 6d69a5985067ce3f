import { readFileSync } from 'node:fs';
import { type ClientOptions, createClient, type Client as GraphqlClient } from 'graphql-ws';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { WebSocket } from 'ws';
import { packageRoot } from '../../src/platform/packageroot.ts';
import { startApp, type TestApp } from '../support/app.ts';
import { publish } from '../support/feed.ts';
import { openProxy, type TcpProxy } from '../support/proxy.ts';

let app: TestApp;
let proxy: TcpProxy;
beforeAll(async () => {
  app = await startApp();
  proxy = await openProxy({ host: '127.0.0.1', port: Number(new URL(app.baseUrl).port) });
});
afterAll(async () => {
  await proxy.close();
  await app.close();
});

/** The client of docs/graphql.md, with the options that it has and the moments at which it connects. */
function openDocumented(getToken: () => string | undefined) {
  const page = readFileSync(new URL('docs/graphql.md', packageRoot), 'utf8');
  const [, text = ''] = /```js\n(const resuming[\s\S]+?)\nnew GraphQLWsLink\(resuming\(client\)\)/.exec(page) ?? [];
  let options: ClientOptions | undefined;
  const attempts: number[] = [];
  const create = (given: ClientOptions) => {
    options = given;
    const client = createClient({ ...given, webSocketImpl: WebSocket });
    client.on('connecting', () => attempts.push(performance.now()));
    return client;
  };
  const url = `ws://127.0.0.1:${proxy.port}/graphql`;
  const open = new Function('createClient', 'url', 'getToken', `${text}\nreturn resuming(client);`);
  const client = open(create, url, getToken) as GraphqlClient;
  return { client, options: options as ClientOptions, attempts };
}

function follow(client: GraphqlClient, after: number) {
  const { organization_id: organizationId, project_id: projectId } = app.demo;
  const query = `subscription ($organizationId: ID!, $projectId: ID!, $after: Int) {
    notificationFeed(organizationId: $organizationId, projectId: $projectId, after: $after) {
      __typename ... on FeedReady { sequence } ... on NotificationAdded { sequence }
    }
  }`;
  type Event = { readonly __typename: string; readonly sequence?: number };
  const followed = { sequences: [] as number[], ready: 0, failure: null as unknown, stop: () => {} };
  followed.stop = client.subscribe<{ notificationFeed: Event }>(
    { query, variables: { organizationId, projectId, after } },
    {
      next({ data }) {
        const event = data?.notificationFeed;
        if (event?.__typename === 'FeedReady') followed.ready += 1;
        if (event?.__typename === 'NotificationAdded') followed.sequences.push(event.sequence ?? 0);
      },
      error(failure) {
        followed.failure = failure;
      },
      complete: () => {},
    },
  );
  return followed;
}

it('the documented client resumes after an outage, and gets each notification once', async () => {
  const { client, attempts } = openDocumented(() => app.demo.users.member.token);
  const before = await publish(app, 'before');
  const feed = follow(client, before - 1);
  await expect.poll(() => feed.ready).toBe(1);
  await proxy.refuse();
  const missed = await publish(app, 'missed');
  await expect.poll(() => attempts.length).toBeGreaterThanOrEqual(4);
  await proxy.mend();
  await expect.poll(() => feed.ready).toBe(2);
  expect([feed.sequences, feed.failure]).toEqual([[before, missed], null]);
  // Some 0.1 s before the second attempt, and each time twice as long.
  const waits = attempts.slice(1, 4).map((at, index) => at - (attempts[index] ?? 0));
  for (const [index, wait] of waits.slice(1).entries()) {
    expect(wait).toBeGreaterThan(95 * 2 ** index);
  }
  feed.stop();
});

it('the documented client gives up a credential that is rejected twice, and no other', async () => {
  const bad = openDocumented(() => 'sk-portico-0000');
  const rejected = follow(bad.client, 0);
  await expect.poll(() => rejected.failure).toMatchObject({ code: 4403, reason: 'not_authenticated' });
  expect(bad.attempts).toHaveLength(2);

  // Two subscriptions share the connection, whose first credential has expired.
  const tokens = ['sk-portico-0000'];
  const good = openDocumented(() => tokens.pop() ?? app.demo.users.member.token);
  const feeds = [follow(good.client, 0), follow(good.client, 0)];
  await expect.poll(() => feeds.map(({ ready }) => ready)).toEqual([1, 1]);
  expect([good.attempts.length, ...feeds.map(({ failure }) => failure)]).toEqual([2, null, null]);
  for (const { stop } of feeds) stop();
});

it('the documented client waits for at most ten seconds', async () => {
  const { options } = openDocumented(() => '');
  vi.useFakeTimers();
  try {
    for (const [retries, most] of [
      [0, 100],
      [3, 800],
      [30, 10_000],
      [5_000, 10_000],
    ] as const) {
      let isOver = false;
      void options.retryWait?.(retries).then(() => {
        isOver = true;
      });
      await vi.advanceTimersByTimeAsync(most / 2 - 1);
      expect(isOver).toBe(false);
      await vi.advanceTimersByTimeAsync(most / 2 + 1);
      expect(isOver).toBe(true);
    }
  } finally {
    vi.useRealTimers();
  }
});
