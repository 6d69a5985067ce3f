import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { copyTemplate } from '../support/app.ts';
import { type Crowd, openCrowd } from '../support/crowd.ts';
import { seededRandom } from '../support/random.ts';
import { openRedis, type RedisServer } from '../support/redis.ts';
import { type Fleet, findInternalErrors, openFleet } from '../support/replicas.ts';
import { connectTo, execute } from '../support/sql.ts';

const WRITERS = 100;
const seed = Number(process.env.RACES_SEED ?? Date.now() % 1_000_000);

let databaseUrl: string;
let redis: RedisServer;
let fleet: Fleet;
let crowds: Crowd[];
beforeAll(async () => {
  databaseUrl = await copyTemplate();
  redis = await openRedis();
  fleet = await openFleet({ count: 2, databaseUrl, redisUrl: redis.url, env: { LOG_LEVEL: 'error' } });
  crowds = fleet.replicas.map(({ baseUrl }) => openCrowd(baseUrl, '127.0.0.1', WRITERS));
});
afterAll(async () => {
  for (const crowd of crowds ?? []) crowd.close();
  await fleet?.close();
  await redis?.close();
});

/** Internal failures in any race: 5xx responses, and deadlocks that aborted a transaction. */
const surfaced: string[] = [];
afterEach(async () => {
  expect(surfaced.splice(0), findInternalErrors(fleet).slice(0, 3).join('\n')).toEqual([]);
  expect(await execute(databaseUrl, 'SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()')).toEqual([
    { deadlocks: 0 },
  ]);
});

interface TestResponse {
  readonly status: number;
  readonly etag: string;
  // biome-ignore lint/suspicious/noExplicitAny: responses of every shape
  readonly json: any;
}

/** Sends a request to a replica chosen by number. */
async function send(
  which: number,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<TestResponse> {
  const crowd = crowds[which % crowds.length] as Crowd;
  const all = {
    authorization: `Bearer ${fleet.demo.users.owner.token}`,
    ...(body !== undefined && { 'content-type': 'application/json' }),
    ...headers,
  };
  const {
    status,
    headers: given,
    text,
  } = await crowd.send({ method, path, headers: all, body: body === undefined ? undefined : JSON.stringify(body) });
  if (status >= 500 || text.includes('service_unavailable') || text.includes('internal_error'))
    surfaced.push(`${method} ${path}: ${status} ${text}`);
  return { status, etag: String(given.etag), json: text === '' ? undefined : JSON.parse(text) };
}

const dashboards = () => `${fleet.projectPath}/monitoring/dashboards`;

async function createDashboard(content: object = {}): Promise<string> {
  const { status, json } = await send(0, 'POST', dashboards(), { name: 'raced', ...content });
  expect(status).toBe(201);
  return json.id;
}

function atOnce<Result>(count: number, act: (index: number) => Promise<Result>): Promise<Result[]> {
  return Promise.all(Array.from({ length: count }, (_, index) => act(index)));
}

function tally(responses: readonly TestResponse[]): Record<number, number> {
  const counts: Record<number, number> = {};
  for (const { status } of responses) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

it(`${WRITERS} concurrent writers of one dashboard with If-Match lose no update`, async () => {
  const id = await createDashboard({ description: '' });
  const path = `${dashboards()}/${id}`;
  let conflicts = 0;
  await atOnce(WRITERS, async (index) => {
    for (;;) {
      const { json, etag } = await send(index, 'GET', path);
      const body = { name: 'raced', description: `${json.description}<${index}>` };
      const { status, json: refusal } = await send(index + 1, 'PUT', path, body, { 'if-match': etag });
      if (status === 200) return;
      expect([status, refusal.code]).toEqual([409, 'conflict']);
      conflicts += 1;
      await sleep(Math.random() * 1_000);
    }
  });
  const { json, etag } = await send(0, 'GET', path);
  const marks = [...String(json.description).matchAll(/<(\d+)>/g)].map(([, mark]) => Number(mark)).sort((a, b) => a - b);
  expect(marks).toEqual(Array.from({ length: WRITERS }, (_, index) => index));
  expect(etag).toBe(`"${WRITERS + 1}"`);
  expect(conflicts).toBeGreaterThan(0);
});

it(`${WRITERS} concurrent writers with and without If-Match: each success counts once`, async () => {
  const path = `${dashboards()}/${await createDashboard()}`;
  const responses = await atOnce(WRITERS, (index) =>
    send(index, 'PUT', path, { name: `writer ${index}` }, index % 2 === 0 ? { 'if-match': '"1"' } : {}),
  );
  const { 200: written = 0, 409: refused = 0 } = tally(responses);
  expect(written + refused).toBe(WRITERS);
  expect(written).toBeGreaterThanOrEqual(WRITERS / 2);
  expect(written).toBeLessThanOrEqual(WRITERS / 2 + 1);
  const versions = responses.filter(({ status }) => status === 200).map(({ etag }) => Number(etag.replaceAll('"', '')));
  expect(versions.sort((a, b) => a - b)).toEqual(Array.from({ length: written }, (_, index) => index + 2));
});

it(`${WRITERS} concurrent writers that set, create and delete defaults leave one default at most, the last that stays`, async () => {
  const random = seededRandom(seed);
  for (let round = 0; round < 3; round += 1) {
    const ids = await atOnce(20, () => createDashboard());
    const responses = await atOnce(WRITERS, (index) => {
      const path = `${dashboards()}/${ids[random.below(ids.length)]}`;
      const step = random.below(10);
      if (step < 6) return send(index, 'PUT', path, { name: 'set', is_default: true });
      if (step < 8) return send(index, 'POST', dashboards(), { name: 'made', is_default: true });
      if (step < 9) return send(index, 'PUT', path, { name: 'unset', is_default: false });
      return send(index, 'DELETE', path);
    });
    expect(
      Object.keys(tally(responses)).filter((status) => !['200', '201', '204', '404'].includes(status)),
      `RACES_SEED=${seed}`,
    ).toEqual([]);
    const last = await send(0, 'POST', dashboards(), { name: 'last', is_default: true });
    const defaults = await execute(
      databaseUrl,
      `SELECT id::text FROM dashboards WHERE project_id = '${fleet.demo.project_id}' AND is_default`,
    );
    expect(defaults, `RACES_SEED=${seed}`).toEqual([{ id: last.json.id }]);
  }
});

it('marking as read against publishing, at two replicas: each notification is marked once', async () => {
  const { demo, projectPath } = fleet;
  const [{ unread: before } = { unread: 0 }] = (await execute(
    databaseUrl,
    `SELECT unread_notifications('${demo.project_id}', '${demo.users.owner.id}')::int AS unread`,
  )) as Array<{ unread: number }>;
  const query = 'mutation ($input: PublishNotificationInput!) { publishNotification(input: $input) { notification { id sequence } } }';
  const markThrough = 'mutation ($input: MarkNotificationsReadInput!) { markNotificationsRead(input: $input) { marked } }';
  const scope = { organizationId: demo.organization_id, projectId: demo.project_id };
  const published: Array<{ id: string; sequence: number }> = [];
  let marked = 0;
  await atOnce(40, async (index) => {
    for (let step = 0; step < 10; step += 1) {
      if (index % 2 === 0) {
        const input = { ...scope, kind: 'test.race', severity: 'info', title: `${index}, ${step}` };
        const { json } = await send(index / 2, 'POST', '/graphql', { query, variables: { input } });
        published.push(json.data.publishNotification.notification);
      } else if (step % 3 === 0) {
        const { json } = await send((index - 1) / 2, 'POST', `${projectPath}/notifications/read`, {
          notification_ids: published.slice(-20).map(({ id }) => id),
        });
        marked += json.marked;
      } else {
        const input = { ...scope, throughSequence: published.at(-1)?.sequence ?? 0 };
        const { json } = await send((index - 1) / 2, 'POST', '/graphql', { query: markThrough, variables: { input } });
        marked += json.data.markNotificationsRead.marked;
      }
    }
  });
  const { json } = await send(0, 'POST', `${projectPath}/notifications/read`, {});
  expect([published.length, marked + json.marked, json.unread_count]).toEqual([200, before + 200, 0]);
  const sequences = published.map(({ sequence }) => sequence).sort((a, b) => a - b);
  expect(new Set(sequences).size).toBe(200);
  expect((sequences.at(-1) ?? 0) - (sequences[0] ?? 0)).toBe(199);
});

it('the overview against writers: what it shows adds up at every moment, and is right at the end', async () => {
  const { demo, projectPath } = fleet;
  const random = seededRandom(seed);
  let isOver = false;
  const writing = atOnce(8, async (index) => {
    const client = await connectTo(databaseUrl);
    for (let step = 0; step < 60; step += 1) {
      const choice = random.below(3);
      if (choice === 0)
        await client.query(
          `INSERT INTO instances (project_id, name, status, plan, region, vcpu, ram_mb, storage_gb)
           SELECT $1, 'raced-' || $2 || '-' || n, 'active', 'vps-m', 'eu-central-1', 2, 2048, 20 FROM generate_series(1, 5) AS n`,
          [demo.project_id, `${index}-${step}`],
        );
      if (choice === 1)
        await client.query(
          `UPDATE instances SET status = (ARRAY['active', 'stopped', 'suspended'])[1 + $2 % 3]::instance_status
          WHERE project_id = $1 AND name LIKE $3`,
          [demo.project_id, step, `raced-${index}-%`],
        );
      if (choice === 2)
        await client.query('DELETE FROM instances WHERE project_id = $1 AND name LIKE $2', [
          demo.project_id,
          `raced-${index}-${step - 3}-%`,
        ]);
    }
    await client.end();
  }).finally(() => {
    isOver = true;
  });
  let looks = 0;
  await atOnce(10, async (index) => {
    while (!isOver) {
      const { status, json } = await send(index, 'GET', `${projectPath}/compute/overview`);
      const [overview] = json;
      const sum = overview.instances_by_status.reduce((total: number, { count }: { count: number }) => total + count, 0);
      expect([status, sum], `RACES_SEED=${seed}`).toEqual([200, overview.instances_total]);
      looks += 1;
    }
  });
  await writing;
  const { json } = await send(1, 'GET', `${projectPath}/compute/overview`);
  const rows = await execute(
    databaseUrl,
    `SELECT status::text, count(*)::int FROM instances WHERE project_id = '${demo.project_id}' GROUP BY status ORDER BY status::text`,
  );
  const shown = json[0].instances_by_status.filter(({ count }: Row) => count > 0);
  const byStatus = (a: Row, b: Row) => a.status.localeCompare(b.status);
  expect(shown.sort(byStatus)).toEqual((rows as unknown as Row[]).filter(({ status }) => status !== 'deleted').sort(byStatus));
  expect(looks).toBeGreaterThan(20);
});

interface Row {
  readonly status: string;
  readonly count: number;
}

it('concurrent writers never exceed a quota, by any operation', { timeout: 300_000 }, async () => {
  const { organization_id, users } = fleet.demo;
  const [made] = await execute(
    databaseUrl,
    `INSERT INTO projects (organization_id, name) VALUES ('${organization_id}', 'Nearly full') RETURNING id::text`,
  );
  const projectId = String(made?.id);
  await execute(
    databaseUrl,
    `INSERT INTO dashboards (project_id, created_by, name)
     SELECT '${projectId}', '${users.owner.id}', 'One of many' FROM generate_series(1, 980)`,
  );
  const movable = await atOnce(30, () => createDashboard());
  const full = `/v1/organizations/${organization_id}/projects/${projectId}/monitoring/dashboards`;
  const responses = await atOnce(90, (index) =>
    index < 30
      ? send(index, 'PUT', `${dashboards()}/${movable[index]}`, { name: 'moved', project: projectId, is_default: index % 3 === 0 })
      : send(index, 'POST', full, { name: 'raced', is_default: index % 3 === 0 }),
  );
  expect(responses.filter(({ status }) => status < 300)).toHaveLength(20);
  expect(responses.filter(({ status }) => status === 409)).toHaveLength(70);
  expect(await execute(databaseUrl, `SELECT count(*)::int AS count FROM dashboards WHERE project_id = '${projectId}'`)).toEqual([
    { count: 1000 },
  ]);

  await execute(databaseUrl, `UPDATE api_keys SET revoked = now() WHERE user_id = '${users.owner.id}'`);
  await execute(
    databaseUrl,
    `INSERT INTO api_keys (user_id, name, hint, secret_hash)
     SELECT '${users.owner.id}', 'One of many', 'x', sha256(convert_to('quota' || number, 'UTF8')) FROM generate_series(1, 90) AS number`,
  );
  const query = 'mutation { createApiKey(input: {name: "raced"}) { apiKey { id } } }';
  const keys = await atOnce(50, (index) => send(index, 'POST', '/graphql', { query }));
  expect(keys.filter(({ json }) => json.data?.createApiKey)).toHaveLength(10);
  expect(keys.filter(({ json }) => json.errors?.[0].extensions.code === 'conflict')).toHaveLength(40);
});
