import { createHash, generateKeyPairSync, randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { generateKey } from '../../src/access/apikey.ts';
import { startApp, type TestApp } from '../support/app.ts';
import { passSeconds, stopClock } from '../support/clock.ts';
import { encode, type Forge, openForge } from '../support/forgery.ts';
import { expectGraphql, expectRest, expectUnharmed, graphqlRefusal, invalid, notValid } from '../support/inputs.ts';

let app: TestApp;
let forge: Forge;
let path: string;
beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_ANONYMOUS: '100000' });
  forge = openForge(app);
  path = `${app.projectPath}/compute/overview`;
});
afterAll(() => app.close());
afterEach(() => void vi.useRealTimers());

const now = () => Math.floor(Date.now() / 1000);

/** Checks that both APIs answer 401 with the usual message, and that each attempt is charged to the address. */
async function expectRefused(credential: string): Promise<void> {
  const as = { bearer: credential };
  const before = await remaining();
  const rest = await app.ask('GET', path, { as });
  expectRest(rest, 401, notValid);
  const graphql = await app.graphql('{ viewer { id } }', {}, { as });
  expectGraphql(graphql, 401, graphqlRefusal('not_authenticated', notValid.detail));
  for (const { headers } of [rest, graphql]) expect(headers['www-authenticate']).toBe('Bearer');
  expect(rest.headers.ratelimit).toMatch(new RegExp(`^"anonymous";r=${before - 1};`));
  expect(graphql.headers.ratelimit).toMatch(new RegExp(`^"anonymous";r=${before - 2};`));
}

/** The rest of the address's budget; this request costs one. */
async function remaining(): Promise<number> {
  const { headers } = await app.ask('GET', '/nothing', { as: null });
  return Number(/^"anonymous";r=(\d+);/.exec(String(headers.ratelimit))?.[1]);
}

async function expectTaken(credential: string): Promise<void> {
  const as = { bearer: credential };
  const rest = await app.ask('GET', path, { as });
  expect(rest.status, rest.text).toBe(200);
  expect(rest.headers.ratelimit).toMatch(/^"user";/);
  expectGraphql(await app.graphql('{ viewer { id } }', {}, { as }), 200, { data: { viewer: { id: app.demo.users.owner.id } } });
}

describe('an accepted token', () => {
  it.each<[string, () => string]>([
    ['as the app makes it', () => forge.sign()],
    ['without a kid: there is one key', () => forge.sign({ header: { kid: undefined } })],
    ['with its user in capitals', () => forge.sign({ claims: { sub: app.demo.users.owner.id.toUpperCase() } })],
    ['for several', () => forge.sign({ claims: { aud: ['other', 'portico'] } })],
    ['without iat', () => forge.sign({ claims: { iat: undefined } })],
    ['of a clock that is 30 s ahead', () => forge.sign({ claims: { iat: now() + 30, nbf: now() + 30 } })],
    ['until the end of the year 9999', () => forge.sign({ claims: { exp: 253_402_300_799 } })],
    ['of 8,000 characters', () => forge.sign({ claims: { padding: 'a'.repeat(8_000) } })],
  ])('%s', (_label, make) => expectTaken(make()));

  it('may expire on the last representable day, also for a ticket', async () => {
    const as = { bearer: forge.sign({ claims: { exp: 253_402_300_799 } }) };
    const { status, text } = await app.ask('POST', `${app.projectPath}/websocket-tickets`, { as, body: { target: 'notifications' } });
    expect(status, text).toBe(201);
  });

  it('is trusted for a day at a time: its connections do not outlast its key by more', async () => {
    const as = { bearer: forge.sign({ claims: { exp: 253_402_300_799 } }) };
    await app.ask('POST', `${app.projectPath}/websocket-tickets`, { as, body: { target: 'notifications' } });
    const { sessionExpires } = await app.app.database.prisma.websocketTicket.findFirstOrThrow({ orderBy: { created: 'desc' } });
    expect(Math.abs((sessionExpires?.getTime() ?? 0) - (Date.now() + 86_400_000))).toBeLessThan(60_000);
  });

  it('is accepted until it expires, and not after, regardless of its use before', async () => {
    const token = forge.sign({ claims: { exp: now() + 60 } });
    await expectTaken(token);
    passSeconds(61);
    await expectRefused(token);
  });
});

describe('an algorithm', () => {
  const unsigned = (alg: string) => `${encode(JSON.stringify({ alg, kid: forge.kid }))}.${encode(JSON.stringify(forge.goodClaims()))}.`;
  it.each(['none', 'None', 'NONE', 'nOnE', ''])('%j without a signature', (alg) => expectRefused(unsigned(alg)));
  it('none with the signature of another', () => expectRefused(unsigned('none') + forge.sign().split('.')[2]));

  const secrets: Record<string, () => string | Buffer> = {
    'the key as PEM': () => forge.publicPem,
    'the key as PEM, trimmed': () => forge.publicPem.trim(),
    'the key as DER': () => Buffer.from(forge.publicPem.replace(/-----.*-----|\n/g, ''), 'base64'),
    'the key as JWK': () => JSON.stringify(forge.publicJwk),
    'the bytes of x': () => Buffer.from(String(forge.publicJwk.x), 'base64url'),
    'x as text': () => String(forge.publicJwk.x),
    'the key set': () => JSON.stringify({ keys: [forge.publicJwk] }),
    nothing: () => '',
  };
  it.each(Object.entries(secrets))('HS256 with %s as its secret', (_label, secret) =>
    expectRefused(forge.hmac(secret(), { header: { alg: 'HS256' } })),
  );
  it('HMAC under the name of our own', () => expectRefused(forge.hmac(forge.publicPem)));

  it.each(['HS256', 'HS512', 'RS256', 'PS256', 'ES256', 'Ed25519', 'eddsa', 'EdDSA '])('%s over our own signature', (alg) =>
    expectRefused(forge.sign({ header: { alg } })),
  );
  it.each([5, null, ['EdDSA'], { alg: 'EdDSA' }, undefined])('%j is not a name', (alg) => expectRefused(forge.sign({ header: { alg } })));
});

describe('a key', () => {
  const ed25519 = generateKeyPairSync('ed25519');
  const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const own = ed25519.publicKey.export({ format: 'jwk' });

  it('of another, under our kid', () => expectRefused(forge.signWith(ed25519.privateKey)));
  it('of another, under no kid', () => expectRefused(forge.signWith(ed25519.privateKey, { header: { kid: undefined } })));
  it('of another, in ES256', () => expectRefused(forge.signWith(p256.privateKey, { header: { alg: 'ES256' } })));
  it.each(['jku', 'x5u'])('of another, to be fetched from %s', (name) =>
    expectRefused(forge.signWith(ed25519.privateKey, { header: { [name]: `${app.baseUrl}/.well-known/jwks.json`, kid: 'own' } })),
  );
  it('of another, in the header', () => expectRefused(forge.signWith(ed25519.privateKey, { header: { jwk: own } })));
  it('of another, in the header under our kid', () =>
    expectRefused(forge.signWith(ed25519.privateKey, { header: { jwk: { ...own, kid: forge.kid } } })));
  it('of another, as a certificate', () => expectRefused(forge.signWith(ed25519.privateKey, { header: { x5c: ['MIIB'], x5t: 'AAAA' } })));

  it.each<unknown>([
    'unknown',
    '',
    '../../dev/null',
    '/dev/null',
    'file:///etc/passwd',
    'key.json',
    "' OR 1=1 --",
    "x'; DROP TABLE users; --",
    '$(id)',
    '__proto__',
    'constructor',
    '\u0000',
    'x'.repeat(5_000),
    5,
    true,
    null,
    {},
    [],
  ])('under the kid %j', (kid) => expectRefused(forge.sign({ header: { kid } })));
  it('under our kid with a blank behind it', () => expectRefused(forge.sign({ header: { kid: `${forge.kid} ` } })));

  it.each([
    { crit: ['x'], x: 1 },
    { crit: ['exp'], exp: 1 },
    { crit: [] },
    { crit: 'x' },
    { crit: ['b64'], b64: false },
    { crit: ['b64'], b64: 'no' },
  ])('with what must be understood: %j', (header) => expectRefused(forge.sign({ header })));
});

describe('a claim', () => {
  const time = now();
  it.each<[string, Record<string, unknown>]>([
    ['no exp', { exp: undefined }],
    ['exp as text', { exp: String(time + 60) }],
    ['exp null', { exp: null }],
    ['exp in a list', { exp: [time + 60] }],
    ['exp 0', { exp: 0 }],
    ['exp below 0', { exp: -1 }],
    ['expired by 1 s', { exp: time - 1 }],
    ['expired for a year', { exp: time - 31_536_000 }],
    ['exp in milliseconds', { exp: (time + 60) * 1000 }],
    ['exp beyond the year 9999', { exp: 253_402_300_800 }],
    ['nbf in the future', { nbf: time + 120 }],
    ['nbf as text', { nbf: String(time) }],
    ['iat in the future', { iat: time + 3_600 }],
    ['iat as text', { iat: String(time) }],
    ['iat null', { iat: null }],
    ['no sub', { sub: undefined }],
    ['sub null', { sub: null }],
    ['sub a number', { sub: 5 }],
    ['sub a list', { sub: ['019b76da-a800-7128-b0c7-9a8f670a0adf'] }],
    ['sub an object', { sub: { id: '019b76da-a800-7128-b0c7-9a8f670a0adf' } }],
    ['sub empty', { sub: '' }],
    ['sub an address', { sub: 'owner@portico.example' }],
    ['sub in braces', { sub: '{019b76da-a800-7128-b0c7-9a8f670a0adf}' }],
    ['sub without hyphens', { sub: '019b76daa8007128b0c79a8f670a0adf' }],
    ['sub of nobody', { sub: randomUUID() }],
    ['no iss', { iss: undefined }],
    ['another iss', { iss: 'https://portico' }],
    ['iss in a list', { iss: ['portico'] }],
    ['iss in capitals', { iss: 'Portico' }],
    ['no aud', { aud: undefined }],
    ['another aud', { aud: 'portico-admin' }],
    ['aud for others', { aud: ['a', 'b'] }],
    ['aud for nobody', { aud: [] }],
    ['aud in an object', { aud: { portico: true } }],
  ])('%s', (_label, claims) => expectRefused(forge.sign({ claims })));

  it.each<[string, (claims: string) => string]>([
    ['exp 1e400', (claims) => claims.replace(/"exp":\d+/, '"exp":1e400')],
    ['exp -1e400', (claims) => claims.replace(/"exp":\d+/, '"exp":-1e400')],
    ['iat 1e400', (claims) => claims.replace(/"iat":\d+/, '"iat":1e400')],
    ['nbf 1e400', (claims) => claims.replace('{', '{"nbf":1e400,')],
    ['exp given twice, the last expired', (claims) => claims.replace('}', ',"exp":1}')],
    ['all behind __proto__', (claims) => `{"__proto__":${claims}}`],
    ['in a list', (claims) => `[${claims}]`],
    ['as text', (claims) => JSON.stringify(claims)],
    ['nothing', () => ''],
    ['null', () => 'null'],
    ['not JSON', (claims) => claims.slice(0, -1)],
  ])('%s, as raw JSON', (_label, spoil) => expectRefused(forge.sign({ claims: spoil(JSON.stringify(forge.goodClaims())) })));

  it('of a user who is disabled, accepted again once they are enabled', async () => {
    const { id } = app.demo.users.owner;
    const disable = (disabledAt: Date | null) => app.app.database.prisma.user.update({ where: { id }, data: { disabledAt } });
    await disable(new Date());
    await expectRefused(forge.sign());
    await expectRefused(app.demo.users.owner.api_key);
    await disable(null);
    await expectTaken(forge.sign());
  });
});

describe('a form', () => {
  const other = (token: string) => (token.at(-2) === 'A' ? 'Q' : 'A');
  it.each<[string, (token: string) => string]>([
    ['a signature that ends too soon', (token) => token.slice(0, -4)],
    ['a signature with another end', (token) => token.slice(0, -2) + other(token) + token.slice(-1)],
    ['a signature of nothing', (token) => token.replace(/[^.]*$/, '')],
    ['no signature', (token) => token.split('.').slice(0, 2).join('.')],
    ['a part too many', (token) => `${token}.x`],
    [
      'other claims under the same signature',
      (token) => token.replace(/\.[^.]*\./, `.${encode(JSON.stringify({ ...forge.goodClaims(), sub: app.demo.users.admin.id }))}.`),
    ],
    ['half a padding', (token) => `${token}=`],
    ['a blank inside', (token) => `${token.slice(0, 50)} ${token.slice(50)}`],
    ['a tab inside', (token) => `${token.slice(0, 50)}\t${token.slice(50)}`],
    ['another alphabet', (token) => `${token.replaceAll('-', '+').replaceAll('_', '/')}+/`],
    ['five parts', () => 'a.b.c.d.e'],
    ['dots', () => '...'],
    ['a header of 3,000 levels', () => `${encode(`{"alg":${'['.repeat(3_000)}${']'.repeat(3_000)}}`)}.e30.x`],
    ['a header that is not JSON', () => `${encode('alg=EdDSA')}.e30.x`],
    ['a header that is not UTF-8', () => `${Buffer.from('{"alg":"\xff"}', 'latin1').toString('base64url')}.e30.x`],
    ['12,000 characters', () => 'a'.repeat(12_000)],
    ['a word', () => 'undefined'],
  ])('%s', (_label, spoil) => expectRefused(spoil(forge.sign())));

  it('100 KB is longer than all headers may be', async () => {
    const as = { bearer: forge.sign({ claims: { padding: 'a'.repeat(100_000) } }) };
    const refused = invalid('The request line and headers are too large.');
    expectRest(await app.ask('GET', path, { as }), 400, refused);
    expectRest(await app.ask('GET', '/graphql?query={__typename}', { as }), 400, refused);
  });
});

describe('an API key', () => {
  const key = () => app.demo.users.owner.api_key;
  const turn = (text: string, at: number) => text.slice(0, at) + (text[at] === '0' ? '1' : '0') + text.slice(at + 1);

  it('is accepted as it was issued', () => expectTaken(key()));

  const mistyped: Record<string, (key: string) => string> = {
    'a wrong checksum': (text) => turn(text, text.length - 1),
    'a wrong letter': (text) => turn(text, 20),
    'two letters exchanged': (text) => text.replace(/([0-9a-f])(?!\1)([0-9a-f])(\2*)$/, '$2$1$3'),
    'a letter less': (text) => text.slice(0, -1),
    'a letter more': (text) => `${text}0`,
    'another service': (text) => text.replace('sk-portico-', 'sk-other-'),
    'no service': (text) => text.replace('sk-portico-', 'sk-'),
    'a prefix alone': () => 'sk-portico-',
    capitals: (text) => text.replace(/[0-9a-f]+$/, (hex) => hex.toUpperCase()),
    'a prefix in capitals': (text) => text.replace('sk-portico-', 'SK-PORTICO-'),
    'a hash for a key': (text) => `sk-portico-${createHash('sha256').update(text).digest('hex')}`,
    'two keys': (text) => text + text,
    'a dot behind it': (text) => `${text}.`,
    'a secret of SQL': () => "sk-portico-'OR'1'='1",
  };
  it.each(Object.entries(mistyped))('mistyped (%s) is refused without a statement', async (_label, mistype) => {
    const before = app.statements.length;
    await expectRefused(mistype(key()));
    expect(app.statements.slice(before)).toEqual([]);
  });

  it('well formed, but unknown', () => expectRefused(generateKey().key));

  it('revoked, or expired', async () => {
    for (const change of [{ revoked: new Date() }, { expires: new Date() }, { expires: new Date(Date.now() - 86_400_000) }]) {
      const { key: made, ...stored } = generateKey();
      const { id } = await app.app.database.prisma.apiKey.create({ data: { ...stored, userId: app.demo.users.owner.id, name: 'test' } });
      await expectTaken(made);
      await app.app.database.prisma.apiKey.update({ where: { id }, data: change });
      await expectRefused(made);
    }
  });

  it('is not a session: no ticket, no keys', async () => {
    const as = { bearer: key() };
    const { status, json } = await app.ask('POST', `${app.projectPath}/websocket-tickets`, { as, body: { target: 'notifications' } });
    expect({ status, code: json.code }).toEqual({ status: 403, code: 'session_required' });
    const response = await app.graphql('mutation { createApiKey(input: {name: "x"}) { key } }', {}, { as });
    expect(response.json.errors[0].extensions.code).toBe('session_required');
  });
});

it('a token that was verified long ago is valid for as long as a new one', async () => {
  const token = (await app.app.tokens.local?.sign(app.demo.users.owner.id, 3 * 86_400)) ?? '';
  const setTime = stopClock();
  const leftHours = async (atHours: number) => {
    setTime(atHours * 3_600_000);
    const { expires } = await app.app.tokens.verify(token);
    return (expires.getTime() - Date.now()) / 3_600_000;
  };
  expect(await leftHours(0)).toBe(24);
  for (const at of [0.9, 2, 23.5, 47]) expect(await leftHours(at)).toBeGreaterThan(22.9);
  expect(await leftHours(71)).toBeCloseTo(1, 2);
});

it('leaves the server unharmed', () => expectUnharmed(app));
