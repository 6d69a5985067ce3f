import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ApolloClient, gql, HttpLink, InMemoryCache } from '@apollo/client';
import { PersistedQueryLink } from '@apollo/client/link/persisted-queries';
import { addTypenameToDocument } from '@apollo/client/utilities';
import { print } from 'graphql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import WebSocket from 'ws';
import { OperatorError } from '../../src/platform/operatorerror.ts';
import { startApp, type TestApp } from '../support/app.ts';

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const asExtension = (hash: string) => ({ persistedQuery: { version: 1, sha256Hash: hash } });

const document = gql`
  query Who {
    viewer {
      id
      email
    }
  }
`;
const who = print(document);
const feed = 'subscription Feed($o: ID!, $p: ID!) { notificationFeed(organizationId: $o, projectId: $p) { __typename } }';
const mark =
  'mutation Mark($o: ID!, $p: ID!) { markNotificationsRead(input: { organizationId: $o, projectId: $p, notificationIds: [] }) { marked } }';
// Of which the cost depends on the variables.
const paged = `query Paged($n: Int!, $ids: [ID!]!, $field: InstanceOrderField!) { nodes(ids: $ids) { id } viewer { organizations(first: $n) {
  nodes { projects(first: $n) { nodes { instances(first: $n, orderBy: { field: $field }) { nodes { id } } } } } } } }`;
const other = 'query Other { viewer { name } }';
// graphql-codegen begins a hash by the name of its algorithm; Relay's compiler and others do not.
const texts = {
  [`sha256:${sha256(who)}`]: who,
  ...Object.fromEntries([feed, mark, paged, print(addTypenameToDocument(document))].map((text) => [sha256(text), text])),
};

const folder = mkdtempSync(join(tmpdir(), 'portico-trusted-'));
const path = join(folder, 'documents.json');

/** Apps without trusted documents, with some, and with trusted documents only. */
let apps: { readonly none: TestApp; readonly some: TestApp; readonly only: TestApp };
beforeAll(async () => {
  writeFileSync(path, JSON.stringify(texts));
  apps = {
    none: await startApp({ RATE_LIMIT_ANONYMOUS: '1000' }),
    some: await startApp({ TRUSTED_DOCUMENTS: path }),
    only: await startApp({ TRUSTED_DOCUMENTS: path, TRUSTED_ONLY: 'true' }),
  };
});
afterAll(async () => {
  for (const app of Object.values(apps)) await app.close();
  rmSync(folder, { recursive: true });
});

interface Params {
  readonly query?: string;
  readonly extensions?: unknown;
  readonly variables?: Record<string, unknown>;
}

interface Result {
  // biome-ignore lint/suspicious/noExplicitAny: data of any query
  readonly data?: any;
  readonly errors?: ReadonlyArray<{ message: string; extensions: { code: string } }>;
}

const placeOf = ({ demo }: TestApp) => ({ o: demo.organization_id, p: demo.project_id });
const bearerOf = ({ demo }: TestApp) => `Bearer ${demo.users.owner.token}`;

async function askGet(app: TestApp, { query, extensions, variables }: Params): Promise<Result> {
  const search = new URLSearchParams({
    ...(query !== undefined && { query }),
    ...(extensions !== undefined && { extensions: JSON.stringify(extensions) }),
    ...(variables && { variables: JSON.stringify(variables) }),
  });
  return (await app.ask('GET', `/graphql?${search}`)).json;
}

/** The first event of a stream. */
async function askStream(app: TestApp, params: Params): Promise<Result> {
  const response = await fetch(`${app.baseUrl}/graphql`, {
    method: 'POST',
    headers: { authorization: bearerOf(app), 'content-type': 'application/json', accept: 'text/event-stream' },
    body: JSON.stringify({ ...params, variables: placeOf(app) }),
  });
  let text = '';
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    text += Buffer.from(chunk).toString('utf8');
    const found = /^data: (\{.*\})$/m.exec(text);
    if (found) return JSON.parse(found[1] ?? '');
  }
  throw new Error(`no event in ${response.status} ${text}`);
}

/** The first message about an operation of graphql-transport-ws. */
async function askSocket(app: TestApp, { query = '', ...params }: Params): Promise<Result> {
  const socket = new WebSocket(`${app.baseUrl.replace('http', 'ws')}/graphql`, 'graphql-transport-ws', {
    headers: { authorization: bearerOf(app) },
  });
  await once(socket, 'open');
  socket.send('{"type":"connection_init"}');
  await once(socket, 'message');
  socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload: { query, ...params, variables: placeOf(app) } }));
  const [text] = await once(socket, 'message');
  socket.terminate();
  const { payload } = JSON.parse(String(text));
  return Array.isArray(payload) ? { errors: payload } : payload;
}

const doors = {
  POST: async (app: TestApp, params: Params): Promise<Result> => (await app.ask('POST', '/graphql', { body: params })).json,
  'POST, with what Yoga reads': async (app: TestApp, params: Params): Promise<Result> =>
    (await app.ask('POST', '/graphql?', { body: params })).json,
  GET: askGet,
  'a WebSocket': askSocket,
};

describe.each(Object.entries(doors))('%s', (_name, ask) => {
  it('answers that hashes are not supported where there are no trusted documents', async () => {
    const { data, errors } = await ask(apps.none, { extensions: asExtension(sha256(who)) });
    expect(data).toBeUndefined();
    expect(errors).toEqual([{ message: 'PersistedQueryNotSupported', extensions: { code: 'PERSISTED_QUERY_NOT_SUPPORTED' } }]);
  });

  it('runs a trusted document by its hash', async () => {
    for (const app of [apps.some, apps.only]) {
      for (const hash of [sha256(who), `sha256:${sha256(who)}`])
        expect(await ask(app, { extensions: asExtension(hash) })).toEqual({
          data: { viewer: { id: app.demo.users.owner.id, email: 'owner@acme.example' } },
        });
    }
  });

  it('refuses an unknown hash', async () => {
    for (const app of [apps.some, apps.only]) {
      for (const hash of [sha256(other), '', '__proto__', 'x'.repeat(10_000)]) {
        const { errors } = await ask(app, { extensions: asExtension(hash) });
        expect(errors, hash).toEqual([{ message: 'PersistedQueryNotFound', extensions: { code: 'PERSISTED_QUERY_NOT_FOUND' } }]);
      }
    }
  });

  it('runs other texts unless only trusted ones are run, with or without a hash', async () => {
    for (const extensions of [undefined, asExtension(sha256(other)), asExtension(sha256(who))]) {
      expect((await ask(apps.some, { query: other, extensions })).data).toEqual({ viewer: { name: 'Olivia Okafor' } });
      for (let time = 0; time < 3; time += 1) {
        const { data, errors } = await ask(apps.only, { query: other, extensions });
        expect([data ?? null, errors?.map(({ message, extensions: { code } }) => [message, code])]).toEqual([
          null,
          [['Only documents that the operator trusts are run here.', 'invalid_request']],
        ]);
      }
    }
  });

  it('accepts the text of a trusted document', async () => {
    expect((await ask(apps.only, { query: who })).data.viewer.email).toBe('owner@acme.example');
    expect((await ask(apps.only, { query: `${who} ` })).errors).toHaveLength(1);
  });
});

describe('a subscription', () => {
  it.each(Object.entries({ 'a stream': askStream, 'a WebSocket': askSocket }))('begins by its hash over %s', async (_name, ask) => {
    for (const app of [apps.some, apps.only]) {
      const { data } = await ask(app, { extensions: asExtension(sha256(feed)) });
      expect(data.notificationFeed.__typename).toMatch(/^(NotificationAdded|FeedReady)$/);
    }
  });

  it('is refused over a stream if it is not trusted', async () => {
    const { errors } = await askStream(apps.only, { query: `${feed} ` });
    expect(errors?.map(({ extensions: { code } }) => code)).toEqual(['invalid_request']);
    const absent = await askStream(apps.only, { extensions: asExtension(sha256(`${feed} `)) });
    expect(absent.errors?.map(({ message }) => message)).toEqual(['PersistedQueryNotFound']);
  });
});

describe('where only trusted documents are run', () => {
  it('a mutation by its hash is one by POST alone', async () => {
    const params = { extensions: asExtension(sha256(mark)), variables: placeOf(apps.only) };
    expect((await doors.POST(apps.only, params)).data).toEqual({ markNotificationsRead: { marked: expect.any(Number) } });
    expect((await askGet(apps.only, params)).errors).toHaveLength(1);
  });

  it('v1 and its feed work', async () => {
    const app = apps.only;
    expect((await app.ask('GET', `${app.projectPath}/compute/overview`)).status).toBe(200);
    expect((await app.ask('GET', `${app.projectPath}/notifications`)).status).toBe(200);
    expect((await app.ask('POST', `${app.projectPath}/notifications/read`, { body: {} })).status).toBe(200);
    const socket = new WebSocket(`${app.baseUrl.replace('http', 'ws')}${app.projectPath}/notifications/ws?after=149`, {
      headers: { authorization: bearerOf(app) },
    });
    const [text] = await once(socket, 'message');
    socket.terminate();
    expect(JSON.parse(String(text))).toMatchObject({ type: 'notification' });
  });

  it('introspection is a document like any other', async () => {
    const { json } = await apps.only.graphql('{ __schema { queryType { name } } }');
    expect(json.errors).toHaveLength(1);
  });
});

describe('Apollo’s link', () => {
  it.each([
    ['none', false],
    ['none', true],
    ['some', false],
    ['some', true],
  ] as const)('gets its responses, with %s trusted; hashes by GET: %s', async (which, useGETForHashedQueries) => {
    const app = apps[which];
    const bodies: string[] = [];
    const client = new ApolloClient({
      cache: new InMemoryCache(),
      defaultOptions: { query: { fetchPolicy: 'no-cache' } },
      link: new PersistedQueryLink({ sha256, useGETForHashedQueries }).concat(
        new HttpLink({
          uri: `${app.baseUrl}/graphql`,
          headers: { authorization: bearerOf(app) },
          fetch: (url, options) => {
            const { query, extensions } = options?.body
              ? JSON.parse(String(options.body))
              : Object.fromEntries(new URL(String(url)).searchParams);
            bodies.push([query && 'text', extensions && 'extensions', options?.method].filter(Boolean).join(' '));
            return fetch(url, options);
          },
        }),
      ),
    });
    for (const query of [document, gql(other)]) {
      const { data } = await client.query<{ viewer: unknown }>({ query });
      expect(data?.viewer).toBeTruthy();
    }
    const asked = useGETForHashedQueries ? 'extensions GET' : 'extensions POST';
    // If hashes are not supported, the client stops sending them; if one is not found, it sends the text.
    const text = expect.stringMatching(/^text .*POST$/);
    expect(bodies).toEqual(
      which === 'none' ? [asked, expect.stringMatching(/^text/), expect.stringMatching(/^text/)] : [asked, asked, text],
    );
  });
});

describe('an invalid file', () => {
  const hash = sha256(who);
  const invalid = '{ nothing }';
  const aliases = `{ viewer { ${'a: id '.repeat(60)} } }`;
  const named = '{ id name role created organizationId organization { id } }';
  const costly = `{ viewer { organizations(first: 100) { nodes { projects(first: 100) { nodes ${named} } } } } }`;
  const literal = '{ viewer { organizations(first: -1) { totalCount } } }';
  const levels = (text: string) => text.repeat(6);
  const deep = `query ($n: Int!) { viewer { organizations(first: $n) { nodes {
    ${levels('projects(first: $n) { nodes { organization { ')} id ${levels('} } } ')} } } } }`;
  const one = (text: string) => JSON.stringify({ [sha256(text)]: text });
  it.each([
    ['{', /in JSON/],
    ['[]', /It is not a JSON object\.$/],
    ['{}', /There is no document in it\.$/],
    [JSON.stringify({ [hash]: 5 }), new RegExp(`What ${hash} names is not a string\\.$`)],
    [JSON.stringify({ [hash]: other }), new RegExp(`${hash} is not the SHA-256 of its document\\.$`)],
    [JSON.stringify({ [sha256('{')]: '{' }), new RegExp(`The document ${sha256('{')} is refused: Syntax Error`)],
    [
      JSON.stringify({ [hash]: who, [sha256(invalid)]: invalid }),
      new RegExp(`The document ${sha256(invalid)} is refused: Cannot query field`),
    ],
    [one(aliases), /is refused: Syntax Error: Aliases limit/],
    [one(`${who} query Costly ${costly}`), /is refused: The document is too large: complexity 80202, at most 50000\.$/],
    [one(deep), /is refused: The document is too large: depth 22, at most 20\.$/],
    [one(literal), /is refused: first: Ensure this value is greater than or equal to 0\.$/],
  ])('%.40s: refused at the start with a message that names it', async (text, message) => {
    const broken = join(folder, 'broken.json');
    writeFileSync(broken, text);
    const starting = startApp({ TRUSTED_DOCUMENTS: broken });
    await expect(starting).rejects.toThrow(OperatorError);
    await expect(starting).rejects.toThrow(message);
    await expect(starting).rejects.toThrow(`TRUSTED_DOCUMENTS: ${broken} cannot be used.`);
  });

  it('absent', async () => {
    await expect(startApp({ TRUSTED_DOCUMENTS: join(folder, 'absent.json') })).rejects.toThrow(
      /TRUSTED_DOCUMENTS: .*absent\.json cannot be used\. ENOENT/,
    );
  });
});
