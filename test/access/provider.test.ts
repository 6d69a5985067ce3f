import { createPublicKey, createSecretKey } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { SignJWT } from 'jose';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { startApp, type TestApp, type TestResponse } from '../support/app.ts';
import { expectGraphql, expectRest, graphqlRefusal, notValid, refusal } from '../support/inputs.ts';
import { makeKey, openProvider, type Provider, type ProviderKey } from '../support/provider.ts';

const unavailable = refusal('service_unavailable', 'The service is temporarily unavailable.');

let provider: Provider;
let keys: Record<'RS256' | 'ES256' | 'EdDSA', ProviderKey>;
beforeAll(async () => {
  provider = await openProvider();
  keys = { RS256: await makeKey('RS256', 'rsa'), ES256: await makeKey('ES256', 'ec'), EdDSA: await makeKey('EdDSA', 'ed') };
});
afterAll(() => provider.close());
afterEach(() => void vi.useRealTimers());

const startWith = ({ url, issuer, audience }: Pick<Provider, 'url' | 'issuer' | 'audience'>, anonymous = '10000') =>
  startApp({ JWT_JWKS_URL: url, JWT_ISSUER: issuer, JWT_AUDIENCE: audience, RATE_LIMIT_ANONYMOUS: anonymous });

const ask = (app: TestApp, bearer: string): Promise<TestResponse> =>
  app.ask('GET', `${app.projectPath}/compute/overview`, { as: { bearer } });
const askViewer = (app: TestApp, bearer: string): Promise<TestResponse> => app.graphql('{ viewer { id } }', {}, { as: { bearer } });

async function expectTaken(app: TestApp, token: string): Promise<void> {
  const response = await ask(app, token);
  expect(response.status, response.text).toBe(200);
  expectGraphql(await askViewer(app, token), 200, { data: { viewer: { id: app.demo.users.owner.id } } });
}

async function expectRefused(app: TestApp, token: string): Promise<void> {
  expectRest(await ask(app, token), 401, notValid);
  expectGraphql(await askViewer(app, token), 401, graphqlRefusal('not_authenticated', notValid.detail));
}

async function expectUnavailable(app: TestApp, token: string): Promise<void> {
  const [rest, graphql] = await Promise.all([ask(app, token), askViewer(app, token)]);
  expectRest(rest, 503, unavailable);
  expectGraphql(graphql, 503, graphqlRefusal('service_unavailable', unavailable.detail));
  for (const { headers } of [rest, graphql]) expect(headers['retry-after']).toMatch(/^[1-9]\d*$/);
}

describe('tokens of the provider', () => {
  let app: TestApp;
  let owner: string;
  let otherKeys: Record<'PS256' | 'RS512' | 'ES384', ProviderKey>;
  beforeAll(async () => {
    otherKeys = { PS256: await makeKey('PS256', 'ps'), RS512: await makeKey('RS512', 'rs'), ES384: await makeKey('ES384', 'es') };
    provider.show(...Object.values(keys), ...Object.values(otherKeys));
    app = await startWith(provider);
    owner = app.demo.users.owner.id;
  });
  afterAll(() => app.close());

  it.each(['RS256', 'ES256', 'EdDSA'] as const)('in %s are accepted', async (algorithm) => {
    await expectTaken(app, await provider.sign(keys[algorithm], owner));
  });

  it.each(['PS256', 'RS512', 'ES384'] as const)('in %s are refused, although the provider serves their key', async (algorithm) => {
    await expectRefused(app, await provider.sign(otherKeys[algorithm], owner));
  });

  it('can be exchanged for a ticket', async () => {
    const as = { bearer: await provider.sign(keys.ES256, owner) };
    expect((await app.ask('POST', `${app.projectPath}/websocket-tickets`, { as, body: { target: 'notifications' } })).status).toBe(201);
  });

  it.each([{ iss: 'portico' }, { aud: 'portico' }, { sub: 'owner@portico.example' }, { exp: 1 }, { exp: undefined }])(
    'with %j are refused',
    async (claims) => {
      await expectRefused(app, await provider.sign(keys.RS256, owner, claims));
    },
  );

  it('of the app’s own issuer are refused: the app signs nothing itself', async () => {
    const [local, own] = [await makeKey('EdDSA', 'ed'), { iss: 'portico', aud: 'portico' }];
    await expectRefused(app, await provider.sign(local, owner, own));
    await expectRefused(app, await provider.sign(local, owner));
    expect(app.demo.users.owner.token).toBeUndefined();
    expect((await app.ask('GET', '/.well-known/jwks.json', { as: null })).status).toBe(404);
  });

  it('in HS256, with a public key as its secret, are refused', async () => {
    const pem = createPublicKey({ key: keys.RS256.jwk as never, format: 'jwk' }).export({ format: 'pem', type: 'spki' });
    for (const kid of ['rsa', 'ec', 'ed']) {
      const claims = { iss: provider.issuer, aud: provider.audience, sub: owner };
      const token = new SignJWT(claims).setProtectedHeader({ alg: 'HS256', kid }).setExpirationTime('5m');
      await expectRefused(app, await token.sign(createSecretKey(Buffer.from(pem))));
    }
  });

  it('under the kid of another key are refused', async () => {
    const { privateKey } = await makeKey('ES256', 'x');
    await expectRefused(app, await provider.sign({ ...keys.ES256, privateKey }, owner));
    await expectRefused(app, await provider.sign({ ...keys.ES256, jwk: keys.RS256.jwk }, owner));
  });

  it('are accepted while the provider is away, once its keys are known', async () => {
    provider.answer((request) => request.socket.destroy());
    await expectTaken(app, await provider.sign(keys.RS256, owner));
    provider.show(...Object.values(keys));
  });

  it('of a new key are accepted without a restart, and those of the old one no longer', async () => {
    const [oldToken, rotated] = [await provider.sign(keys.EdDSA, owner), await makeKey('ES256', 'rotated')];
    await expectTaken(app, oldToken);
    provider.show(rotated);
    vi.useFakeTimers({ toFake: ['Date'] });
    vi.setSystemTime(Date.now() + 6_000);
    await expectTaken(app, await provider.sign(rotated, owner));
    await expectRefused(app, oldToken);
  });

  it('of a key that is withdrawn while they are being checked are refused from then on', async () => {
    const [withdrawn, successor] = [await makeKey('RS256', 'withdrawn'), await makeKey('ES256', 'successor')];
    const advance = (seconds: number) => vi.setSystemTime(Date.now() + seconds * 1000);
    vi.useFakeTimers({ toFake: ['Date'] });
    advance(8);
    provider.show(withdrawn);
    await app.app.tokens.verify(await provider.sign(withdrawn, owner));
    advance(2);
    const tokens = await Promise.all(Array.from({ length: 64 }, (_, index) => provider.sign(withdrawn, owner, { jti: String(index) })));
    let isFetching = false;
    provider.answer((_request, response) => {
      isFetching = true;
      setTimeout(() => response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ keys: [successor.jwk] })), 50);
    });
    const fetched = app.app.tokens.verify(await provider.sign(successor, owner));
    await vi.waitUntil(() => isFetching);
    const checkUntilRefused = async (first: number) => {
      for (let at = first; ; at += 1) await app.app.tokens.verify(tokens[at % tokens.length] as string);
    };
    await Promise.allSettled([0, 8, 16, 24, 32, 40, 48, 56].map(checkUntilRefused));
    await fetched;
    for (const token of tokens) await expect(app.app.tokens.verify(token)).rejects.toMatchObject({ code: 'not_authenticated' });
  });

  it('of a key that cannot be fetched are 503, and the provider is shown as away until it is back', async () => {
    const isAway = async () => (await app.ask('GET', '/health/ready', { as: null })).json.checks.identity_provider;
    const late = await makeKey('ES256', 'late');
    expect(await isAway()).toBe('up');
    provider.answer((_request, response) => void response.writeHead(500).end());
    vi.useFakeTimers({ toFake: ['Date'] });
    vi.setSystemTime(Date.now() + 12_000);
    await expectUnavailable(app, await provider.sign(late, owner));
    expect(await isAway()).toBe('down');
    provider.show(late);
    await expect.poll(isAway).toBe('up');
    await expectTaken(app, await provider.sign(late, owner));
  });

  it('that were verified are not verified again because others name an unknown kid', async () => {
    const { tokens } = app.app;
    vi.useFakeTimers({ toFake: ['Date'] });
    vi.setSystemTime(Date.now() + 20_000);
    const known = await makeKey('ES256', 'known');
    provider.show(known);
    const token = await provider.sign(known, owner);
    for (let times = 0; times < 2; times += 1) await tokens.verify(token);
    const claims = await tokens.verify(token);
    vi.setSystemTime(Date.now() + 2_000);
    const asked = provider.asked();
    await expect(tokens.verify(await provider.sign(await makeKey('ES256', 'nobody’s'), owner))).rejects.toThrow();
    expect(provider.asked()).toBe(asked + 1);
    expect(await tokens.verify(token)).toBe(claims);
  });

  it('under many unknown kids cause one request to the provider at most', async () => {
    const before = provider.asked();
    const unknown = await makeKey('EdDSA', 'unknown');
    const tokens = await Promise.all(
      Array.from({ length: 50 }, (_, index) => provider.sign({ ...unknown, jwk: { ...unknown.jwk, kid: `x${index}` } }, owner)),
    );
    for (const response of await Promise.all(tokens.map((token) => ask(app, token)))) expectRest(response, 401, notValid);
    expect(provider.asked() - before).toBeLessThanOrEqual(1);
  });
});

describe('a provider that does not answer as it should, and no key is known', () => {
  const faults: Array<[string, Parameters<Provider['answer']>[0]]> = [
    ['hangs up', (request) => request.socket.destroy()],
    ['fails', (_request, response) => void response.writeHead(500).end()],
    ['is overloaded', (_request, response) => void response.writeHead(503, { 'retry-after': '60' }).end()],
    ['has no keys there', (_request, response) => void response.writeHead(404).end()],
    ['sends a page', (_request, response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Sign in</h1>')],
    ['sends half of it', (_request, response) => void response.writeHead(200, { 'content-length': '500' }).end('{"keys":[')],
    ['sends no key set', (_request, response) => void response.writeHead(200, { 'content-type': 'application/json' }).end('{"keys":5}')],
    [
      'sends more than a megabyte',
      (_request, response) =>
        void response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(JSON.stringify({ keys: Object.values(keys).map(({ jwk }) => jwk), padding: 'x'.repeat(1024 * 1024) })),
    ],
    ['never answers', () => {}],
  ];

  let app: TestApp;
  let token: string;
  beforeAll(async () => {
    // Keys stay valid until others are fetched, so this app must never have fetched any.
    provider.answer((request) => request.socket.destroy());
    app = await startWith(provider);
    token = await provider.sign(keys.RS256, app.demo.users.owner.id);
  });
  afterAll(() => app.close());

  it.each(faults)('%s: 503', async (_label, listener) => {
    const asked = provider.asked();
    provider.answer(listener);
    // While the provider is away, no request has it asked.
    await expect.poll(() => provider.asked(), { timeout: 5_000 }).toBeGreaterThan(asked);
    const began = Date.now();
    await expectUnavailable(app, token);
    expect(Date.now() - began).toBeLessThan(20_000);
    // A malformed token needs no key, and an API key needs no provider.
    await expectRefused(app, 'no.token.this');
    await expectTaken(app, app.demo.users.owner.api_key);
  });

  it.each(faults.filter(([label]) => ['sends a page', 'sends no key set', 'sends more than a megabyte'].includes(label)))(
    '%s: it is away all the time, which the log says once',
    async (_label, listener) => {
      provider.answer(listener);
      const health = async () => (await app.ask('GET', '/health/ready', { as: null })).json.checks.identity_provider;
      await expect.poll(health).toBe('down');
      const [asked, lines] = [provider.asked(), app.logLines.length];
      const states = new Set<string>();
      while (provider.asked() < asked + 2) {
        states.add(await health());
        await sleep(10);
      }
      expect([...states]).toEqual(['down']);
      const told = app.logLines.slice(lines).filter((line) => line.includes('"a dependency is'));
      expect(told.filter((line) => line.includes('"a dependency is back"'))).toEqual([]);
      expect(told.length).toBeLessThanOrEqual(1);
    },
  );

  it('recovers: tokens are accepted without a restart', async () => {
    provider.show(keys.RS256);
    // A request that waits for the answer of a moment ago is refused with it.
    await expect.poll(async () => (await ask(app, token)).status).toBe(200);
    await expectTaken(app, token);
    expect(app.logLines.filter((line) => /"level":"(error|fatal)"/.test(line))).toEqual([]);
  });

  it('is absent: 503, until it starts', async () => {
    const gone = await openProvider();
    await gone.close();
    const other = await startWith(gone);
    const early = await gone.sign(keys.ES256, other.demo.users.owner.id);
    await expectUnavailable(other, early);
    const back = await openProvider(Number(new URL(gone.url).port));
    back.show(keys.ES256);
    await expect.poll(async () => (await ask(other, early)).status, { timeout: 5_000 }).toBe(200);
    await other.close();
    await back.close();
  });
});

it('unknown kids during an outage of the provider spend the budget of their address, without requests or log lines', async () => {
  provider.answer((_request, response) => void response.writeHead(500).end());
  const app = await startWith(provider, '60');
  const unknown = await makeKey('EdDSA', 'unknown');
  const token = await provider.sign(unknown, app.demo.users.owner.id);
  const [asked, began] = [provider.asked(), performance.now()];
  const responses: TestResponse[] = [];
  for (let turn = 0; turn < 100; turn += 1) responses.push(await ask(app, token));
  expect(provider.asked() - asked).toBeLessThanOrEqual(2 + (performance.now() - began) / 1_000);
  expect(responses.map(({ status }) => status)).toEqual([...Array(60).fill(503), ...Array(40).fill(429)]);
  expect(responses[0]?.headers).toMatchObject({ 'ratelimit-policy': '"anonymous";q=60;w=60', 'retry-after': '1' });
  const told = app.logLines.map((line) => JSON.parse(line)).filter(({ msg }) => ['a dependency is away', 'unavailable'].includes(msg));
  expect(told.map(({ msg, dependency }) => [msg, dependency])).toEqual([['a dependency is away', 'identity_provider']]);
  await app.close();
});
