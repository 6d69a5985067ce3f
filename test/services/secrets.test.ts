import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import WebSocket from 'ws';
import { copyTemplate } from '../support/app.ts';
import { type Crowd, openCrowd, type Sending } from '../support/crowd.ts';
import { openRedis, type RedisServer } from '../support/redis.ts';
import { type Fleet, openFleet } from '../support/replicas.ts';
import { execute } from '../support/sql.ts';
import { ask } from '../support/traffic.ts';

let databaseUrl: string;
let redis: RedisServer;
let fleet: Fleet;
let crowds: Crowd[];
beforeAll(async () => {
  databaseUrl = await copyTemplate();
  redis = await openRedis();
  const env = { LOG_LEVEL: 'trace', ALLOWED_ORIGINS: 'https://console.example' };
  fleet = await openFleet({ count: 2, databaseUrl, redisUrl: redis.url, env });
  crowds = fleet.replicas.map(({ baseUrl }) => openCrowd(baseUrl, '127.0.0.1', 20));
});
afterAll(async () => {
  for (const crowd of crowds ?? []) crowd.close();
  await fleet?.close();
  await redis?.close();
});

/** Every secret used, by a description of it. */
const secrets = new Map<string, string>();
/** The responses to rejected requests. */
const refusals: string[] = [];

function keep(name: string, secret: string): string {
  secrets.set(name, secret);
  return secret;
}

/** A text in the form of a secret that is none. It must not leak either, because it may differ from a secret by a typing error. */
const canary = (name: string, prefix = '') => keep(name, `${prefix}${randomBytes(24).toString('hex')}`);

/** The parts by which a truncated secret can still be recognized. */
const partsOf = (secret: string) => {
  // All session tokens begin alike; the end of the payload and the signature distinguish them.
  const parts = secret.split('.').filter((part) => part.length >= 16);
  const distinct = parts.length === 3 ? parts.slice(2) : [secret.replace(/^sk-portico-/, '')];
  const texts = distinct.flatMap((part) => [part.slice(0, 16), part.slice(-16)]);
  // Bytes are shown as hexadecimal digits.
  return texts.flatMap((text) => [text, Buffer.from(text).toString('hex')]);
};

/** The number of requests so far, which are sent to the replicas in rotation; rejections are recorded. */
let turn = 0;
async function send(sending: Sending): Promise<{ status: number; text: string }> {
  turn += 1;
  const { status, text } = await ask(crowds[turn % crowds.length] as Crowd, sending);
  if (status === 0) throw new Error(`${sending.method ?? 'GET'} ${sending.path}: ${text}`);
  if (status >= 400 || text.includes('"errors"')) refusals.push(text);
  return { status, text };
}

const json = { 'content-type': 'application/json' };
const graphql = (query: string, variables: object | undefined, headers: Record<string, string>): Sending => ({
  method: 'POST',
  path: '/graphql',
  headers: { ...json, ...headers },
  body: JSON.stringify({ query, variables }),
});

/** Uses the valid secrets as intended. */
async function useWell(): Promise<void> {
  const { users } = fleet.demo;
  for (const [role, { token = '', api_key }] of Object.entries(users)) {
    keep(`${role}'s token`, token);
    keep(`${role}'s key`, api_key);
    for (const credential of [token, api_key]) {
      await send({ path: `${fleet.projectPath}/compute/overview`, headers: { authorization: `Bearer ${credential}` } });
    }
  }
  const owner = { authorization: `Bearer ${users.owner.token}` };
  // The stored response contains the secret, and anyone with the idempotency key can read it.
  const make = 'mutation ($key: IdempotencyKey!) { createApiKey(input: { name: "canary", idempotencyKey: $key }) { key } }';
  const idempotencyKey = canary('the idempotency key of a new key');
  const { text } = await send(graphql(make, { key: idempotencyKey }, owner));
  keep('a new key', JSON.parse(text).data.createApiKey.key);
  expect((await send(graphql(make, { key: idempotencyKey }, owner))).text).toBe(text);
  for (let index = 0; index < 6; index += 1) {
    const taken = await send({
      method: 'POST',
      path: `${fleet.projectPath}/websocket-tickets`,
      headers: { ...json, ...owner, 'idempotency-key': canary(`the idempotency key of ticket ${index}`) },
      body: '{"target":"notifications"}',
    });
    const { ticket, path } = JSON.parse(taken.text);
    keep(`ticket ${index}`, ticket);
    // The ticket is used where it is valid, once more, and in the wrong place.
    if (index < 3) await openSocket(`${path}?ticket=${ticket}`);
    await openSocket(`${index % 2 === 0 ? path : '/graphql'}?ticket=${ticket}`, index % 2 === 0 ? [] : ['graphql-transport-ws']);
  }
  const cookie = `session=${users.viewer.token}`;
  await openSocket(`${fleet.projectPath}/notifications/ws`, [], { cookie, origin: 'https://console.example' });
  await openGraphqlSocket({ authorization: `Bearer ${users.member.token}` }, users.member.token ?? '');
}

/** Sends valid and invalid secrets in every place where a client might put them by mistake. */
async function useBadly(): Promise<void> {
  const { users, organization_id, project_id } = fleet.demo;
  const project = fleet.projectPath;
  const good = users.owner.token ?? '';
  const key = users.admin.api_key;
  const values = [
    good,
    key,
    canary('a key that never was', 'sk-portico-'),
    canary('a key of another service', 'sk-other-'),
    `${good.slice(0, -8)}${keep('the end of a broken token', randomBytes(16).toString('hex'))}`,
    canary('a ticket that never was'),
  ];
  const authorized = { authorization: `Bearer ${users.viewer.token}` };
  for (const value of values) {
    const encoded = encodeURIComponent(value);
    const sendings: Sending[] = [
      { path: `${project}/compute/overview`, headers: { authorization: `Bearer ${value}x` } },
      { path: `${project}/compute/overview`, headers: { authorization: value } },
      { path: `${project}/compute/overview`, headers: { authorization: `Basic ${value}` } },
      { path: `${project}/compute/overview`, headers: { cookie: `session=${value}; other=${value}` } },
      // A text without a secret's prefix may be a legitimate request id.
      {
        path: `${project}/compute/overview`,
        headers: { ...authorized, 'x-request-id': /^(sk-|eyJ)/.test(value) ? value.slice(0, 128) : '' },
      },
      {
        path: `${project}/compute/overview`,
        headers: { ...authorized, 'x-api-key': value, 'x-forwarded-for': value, origin: `https://${value.slice(-20)}` },
      },
      { path: `${project}/compute/overview?token=${encoded}&api_key=${encoded}&ticket=${encoded}`, headers: authorized },
      { path: `${project}/notifications?page=${encoded}&severity=${encoded}`, headers: authorized },
      { path: `/v1/${encoded}`, headers: authorized },
      { path: `${project}/monitoring/dashboards/${encoded}`, headers: authorized },
      { path: `/nowhere/${encoded}?access_token=${encoded}` },
      { path: `/graphql?query=${encoded}&variables=${encoded}`, headers: authorized },
      { path: `/graphql?query=%7B__typename%7D&token=${encoded}`, headers: authorized },
      {
        method: 'POST',
        path: `${project}/websocket-tickets`,
        headers: { ...json, ...authorized },
        body: JSON.stringify({ target: value }),
      },
      {
        method: 'POST',
        path: `${project}/websocket-tickets`,
        headers: { ...json, ...authorized },
        body: JSON.stringify({ target: 'console', instance_id: value }),
      },
      {
        method: 'POST',
        path: `${project}/notifications/read`,
        headers: { ...json, ...authorized },
        body: JSON.stringify({ notification_ids: [value] }),
      },
      {
        method: 'POST',
        path: `${project}/notifications/read`,
        headers: { ...json, ...authorized },
        body: JSON.stringify({ [value]: value }),
      },
      { method: 'POST', path: `${project}/notifications/read`, headers: { ...json, ...authorized }, body: `{"token": "${value}"` },
      ...[value, `${value} ${value}`].map((key) => ({
        method: 'POST',
        path: `${project}/notifications/read`,
        headers: { ...json, ...authorized, 'idempotency-key': key },
        body: '{}',
      })),
      graphql(
        'mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { apiKey { id } } }',
        { input: { name: 'x', idempotencyKey: [value] } },
        authorized,
      ),
      { method: 'POST', path: `${project}/notifications/read`, headers: { ...authorized, 'content-type': value }, body: value },
      {
        method: 'PUT',
        path: `${project}/monitoring/dashboards/${fleet.demo.dashboards.public}`,
        headers: { ...json, ...authorized },
        body: JSON.stringify({ name: value }),
      },
      graphql('{ viewer { name } }', undefined, { authorization: `Bearer ${value}x` }),
      graphql(`query { organization(id: "${value}") { name } }`, undefined, authorized),
      graphql(`{ viewer { name } } # ${value}`, undefined, authorized),
      graphql('query ($id: ID!) { organization(id: $id) { name } }', { id: value }, authorized),
      graphql('query ($id: ID!) { organization(id: $id) { name } }', { id: { token: value } }, authorized),
      graphql('query ($id: Int!) { organization(id: $id) { name } }', { id: value, token: value }, authorized),
      graphql('mutation ($token: Text!) { renewCredential(input: { token: $token }) { expires } }', { token: value }, authorized),
      graphql('mutation ($id: ID!) { revokeApiKey(input: { id: $id }) { apiKey { id } } }', { id: value }, authorized),
      graphql(
        'mutation ($input: PublishNotificationInput!) { publishNotification(input: $input) { notification { id } } }',
        { input: { organizationId: organization_id, projectId: project_id, kind: value, severity: value, title: 7, token: value } },
        authorized,
      ),
      {
        method: 'POST',
        path: '/graphql',
        headers: { ...json, ...authorized },
        body: `{"query": "{ viewer { name } }", "token": "${value}", ${value}`,
      },
      {
        method: 'POST',
        path: '/graphql',
        headers: { ...json, ...authorized },
        body: JSON.stringify({ query: '{ viewer { name } }', operationName: value, extensions: { token: value } }),
      },
    ];
    for (const sending of sendings) await send(sending);
    // GraphQL's own errors quote the document; they are returned to its author and must not appear elsewhere.
    for (const document of [`{ ${value} }`, `{ "${value}" }`, `{ ${value.replace(/\W/g, '_')} }`]) {
      await ask(crowds[0] as Crowd, graphql(document, undefined, authorized));
    }
    await openSocket(`${project}/notifications/ws?ticket=${encoded}`);
    await openSocket(`${project}/notifications/ws?ticket=${encoded}&ticket=${encoded}&after=${encoded}`);
    await openSocket(`/graphql?ticket=${encoded}`, ['graphql-transport-ws']);
    await openSocket(`/nowhere?ticket=${encoded}`);
    await openSocket(`${project}/notifications/ws?after=${encoded}`, [], { authorization: `Bearer ${users.viewer.token}` });
    await openSocket(`${project}/notifications/ws`, [], { authorization: `Bearer ${value}x` });
    await openSocket(`${project}/notifications/ws`, [], { cookie: `session=${value}x`, origin: 'https://console.example' });
    await openSocket(`${project}/notifications/ws`, [value.replace(/\W/g, '')], { authorization: `Bearer ${users.viewer.token}` });
    await openGraphqlSocket({ authorization: `Bearer ${value}x` }, value);
    await openGraphqlSocket({ authorization: { token: value }, token: value }, value);
  }
}

/** Opens a socket and waits for the outcome; a rejection is recorded. */
function openSocket(path: string, protocols: string[] = [], headers: Record<string, string> = {}): Promise<void> {
  turn += 1;
  const { baseUrl = '' } = fleet.replicas[turn % fleet.replicas.length] ?? {};
  const socket = new WebSocket(baseUrl.replace('http', 'ws') + path, protocols, { headers });
  return new Promise<void>((resolve) => {
    socket.on('error', () => resolve());
    socket.on('unexpected-response', (_request, response) => {
      let text = '';
      response.on('data', (chunk) => {
        text += chunk;
      });
      response.on('end', () => {
        refusals.push(text);
        resolve();
      });
    });
    socket.on('message', () => resolve());
    socket.on('open', () => protocols.length > 0 && setTimeout(resolve, 50));
    socket.on('close', (_code, reason) => {
      refusals.push(String(reason));
      resolve();
    });
  }).finally(() => socket.terminate());
}

/** Sends the secret in messages of graphql-transport-ws: in `connection_init`, in a query, in its variables, in garbage. */
async function openGraphqlSocket(payload: object, secret: string): Promise<void> {
  turn += 1;
  const { baseUrl = '' } = fleet.replicas[turn % fleet.replicas.length] ?? {};
  const socket = new WebSocket(`${baseUrl.replace('http', 'ws')}/graphql`, ['graphql-transport-ws']);
  const say = (message: unknown) => socket.send(typeof message === 'string' ? message : JSON.stringify(message));
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, 2_000);
    const end = () => {
      clearTimeout(timer);
      resolve();
    };
    socket.on('error', end);
    socket.on('open', () => say({ type: 'connection_init', payload }));
    socket.on('close', (_code, reason) => {
      refusals.push(String(reason));
      end();
    });
    socket.on('message', (data) => {
      const message = JSON.parse(String(data));
      refusals.push(String(data));
      if (message.type === 'connection_ack') {
        say({ id: '1', type: 'subscribe', payload: { query: `{ organization(id: "${secret}") { name } }` } });
        say({
          id: '2',
          type: 'subscribe',
          payload: { query: 'query ($id: ID!) { organization(id: $id) { name } }', variables: { id: secret } },
        });
        setTimeout(() => socket.readyState === WebSocket.OPEN && say(`{"token": "${secret}`), 100);
      }
    });
  });
  socket.terminate();
}

async function readTables(): Promise<Array<readonly [string, string]>> {
  const tables = await execute(
    databaseUrl,
    `SELECT relname AS name FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace`,
  );
  const rows: Array<readonly [string, string]> = [];
  for (const { name } of tables) {
    for (const { row } of await execute(databaseUrl, `SELECT t::text AS row FROM "${name}" AS t`))
      rows.push([`table ${name}`, String(row)]);
  }
  return rows;
}

async function readRedis(): Promise<Array<readonly [string, string]>> {
  const keys = await redis.run('--scan');
  const values = await Promise.all(
    keys.map(async (key) => [`Redis ${key}`, `${key} ${(await redis.run('DUMP', key)).join(' ')}`] as const),
  );
  return values;
}

it('tickets, tokens, keys and cookies are in no log, metric, refusal or table, nor in Redis', { timeout: 240_000 }, async () => {
  await useWell();
  await useBadly();
  const metrics = await Promise.all(crowds.map(async (crowd) => (await crowd.send({ path: '/metrics' })).text));
  const inRedis = await readRedis();
  const inTables = await readTables();
  for (const replica of fleet.replicas) await replica.stop();
  const places: Array<readonly [string, string]> = [
    ...fleet.replicas.flatMap(({ name, lines }) => lines.map((line) => [`log of ${name}`, line] as const)),
    ...metrics.map((text) => ['metrics', text] as const),
    ...refusals.map((text) => ['a refusal', text] as const),
    ...inRedis,
    ...inTables,
  ];
  console.log(
    `${secrets.size} secrets, ${fleet.replicas.reduce((sum, { lines }) => sum + lines.length, 0)} lines of logs, ${refusals.length} refusals, ` +
      `${inRedis.length} keys in Redis, ${inTables.length} rows`,
  );
  const found = new Set<string>();
  for (const [name, secret] of secrets) {
    for (const part of partsOf(secret)) {
      for (const [place, text] of places) if (text.includes(part)) found.add(`${name} in ${place}: ${text.slice(0, 300)}`);
    }
  }
  expect([...found].slice(0, 20)).toEqual([]);
  // The searched places have content, so that the search means something.
  expect(secrets.size).toBeGreaterThan(20);
  expect(inRedis.length).toBeGreaterThan(0);
  for (const { lines } of fleet.replicas) expect(lines.length).toBeGreaterThan(100);
  for (const text of metrics) expect(text).toMatch(/^portico_/m);
  const { id } = fleet.demo.users.owner;
  for (const [kind, where] of [
    ['log', /^log/],
    ['table', /^table/],
  ] as const) {
    expect([kind, places.some(([place, text]) => where.test(place) && text.includes(id))]).toEqual([kind, true]);
  }
});
