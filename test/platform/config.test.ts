import { readFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join, resolve } from 'node:path';
import pg from 'pg';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { ConfigError, demoFilePath, environment, readConfig } from '../../src/config.ts';
import { withSession } from '../../src/platform/sessionoptions.ts';

/** The settings that are numbers. */
const numeric = Object.keys(environment.shape).filter((name) =>
  ['500', '70000'].some((text) => typeof environment.safeParse({ [name]: text }).data?.[name as 'PORT'] === 'number'),
);

/** The lines of the error message. */
function problemsOf(env: Record<string, string>): string[] {
  try {
    readConfig(env);
  } catch (failure) {
    expect(failure).toBeInstanceOf(ConfigError);
    return (failure as ConfigError).message.split('\n');
  }
  return [];
}

const provider = { JWT_JWKS_URL: 'https://login.example/jwks', JWT_ISSUER: 'https://login.example', JWT_AUDIENCE: 'portico' };

describe('what is set', () => {
  test('nothing: the defaults', () => {
    expect(readConfig({})).toEqual({
      port: 4000,
      host: '0.0.0.0',
      publicUrl: null,
      dataDir: resolve('.portico'),
      database: null,
      redis: null,
      identityProvider: null,
      allowedOrigins: [],
      trustedProxies: [],
      rateLimits: { anonymousPerMinute: 60, userPerHour: 5000, pagesPerMinute: 600 },
      retentionDays: null,
      consoleRecordDays: null,
      consoles: { perUser: 10, idleMs: 1_800_000 },
      drainSeconds: 10,
      maxConnections: 20_000,
      maxConnectionsPerAddress: 1_000,
      buffers: { inAll: 32 * 2 ** 20, perAddress: 16 * 2 ** 20 },
      responses: { maxBytes: 8_388_608 },
      quotas: { dashboardsPerProject: 1000, notificationBytesPerProject: 2 ** 30, keysPerUser: 100, idempotencyKeysPerUser: 10_000 },
      socketsPerUser: 1_000,
      subscriptionsPerUser: 5_000,
      trusted: null,
      compresses: true,
      logLevel: 'info',
    });
  });

  test('everything', () => {
    const config = readConfig({
      PORT: '0',
      HOST: '::1',
      PUBLIC_URL: 'https://api.example/portico//',
      DATA_DIR: '/var/lib/portico',
      DATABASE_URL: 'postgresql://portico:pw@db.example:5433/portico?sslmode=require',
      DATABASE_POOL: '40',
      REDIS_URL: 'rediss://:pw@redis.example',
      REDIS_PREFIX: 'staging',
      ...provider,
      OIDC_CLIENT_ID: 'portico-desk',
      ALLOWED_ORIGINS: ' HTTPS://Panel.example:443/, http://localhost:3000 ,',
      TRUST_PROXY: 'loopback, 10.0.0.0/8,2001:db8::1',
      NOTIFICATION_RETENTION_DAYS: '30.5',
      CONSOLES_PER_USER: '3',
      CONSOLE_IDLE_SECONDS: '600',
      CONSOLE_RECORD_DAYS: '400',
      DRAIN_SECONDS: '0',
      MAX_CONNECTIONS: '7',
      MAX_CONNECTIONS_PER_ADDRESS: '5',
      MAX_UNREAD_MIB: '8',
      MAX_UNREAD_MIB_PER_ADDRESS: '2',
      MAX_ANSWER_BYTES: '65536',
      DASHBOARDS_PER_PROJECT: '5',
      NOTIFICATION_MIB_PER_PROJECT: '7',
      KEYS_PER_USER: '2',
      IDEMPOTENCY_KEYS_PER_USER: '60',
      SOCKETS_PER_USER: '70',
      SUBSCRIPTIONS_PER_USER: '80',
      RATE_LIMIT_ANONYMOUS: '6',
      RATE_LIMIT_USER: '500',
      RATE_LIMIT_PAGES: '50',
      COMPRESS: 'false',
      TRUSTED_DOCUMENTS: '/etc/portico/documents.json',
      TRUSTED_ONLY: 'true',
      LOG_LEVEL: 'warn',
    });
    expect(config).toEqual({
      port: 0,
      host: '::1',
      publicUrl: 'https://api.example/portico',
      dataDir: '/var/lib/portico',
      database: { url: 'postgresql://portico:pw@db.example:5433/portico?sslmode=require', poolSize: 40 },
      redis: { url: 'rediss://:pw@redis.example', prefix: 'staging' },
      identityProvider: {
        jwksUrl: 'https://login.example/jwks',
        issuer: 'https://login.example',
        audience: 'portico',
        clientId: 'portico-desk',
      },
      allowedOrigins: ['https://panel.example', 'http://localhost:3000'],
      trustedProxies: ['loopback', '10.0.0.0/8', '2001:db8::1'],
      rateLimits: { anonymousPerMinute: 6, userPerHour: 500, pagesPerMinute: 50 },
      retentionDays: 30.5,
      consoleRecordDays: 400,
      consoles: { perUser: 3, idleMs: 600_000 },
      drainSeconds: 0,
      maxConnections: 7,
      maxConnectionsPerAddress: 5,
      buffers: { inAll: 8 * 2 ** 20, perAddress: 2 * 2 ** 20 },
      responses: { maxBytes: 65_536 },
      quotas: { dashboardsPerProject: 5, notificationBytesPerProject: 7 * 2 ** 20, keysPerUser: 2, idempotencyKeysPerUser: 60 },
      socketsPerUser: 70,
      subscriptionsPerUser: 80,
      compresses: false,
      trusted: { path: '/etc/portico/documents.json', isOnly: true },
      logLevel: 'warn',
    });
    expect(demoFilePath(config)).toBe(join('/var/lib/portico', 'demo.json'));
  });

  test('an empty variable is one that is not set', () => {
    const names = ['PORT', 'DATA_DIR', 'DATABASE_URL', 'JWT_JWKS_URL', 'ALLOWED_ORIGINS', 'TRUST_PROXY', 'LOG_LEVEL', 'RATE_LIMIT_USER'];
    expect(readConfig(Object.fromEntries(names.map((name) => [name, ''])))).toEqual(readConfig({}));
  });
});

describe('what is wrong', () => {
  test.each([
    ['PORT', 'http'],
    ['PORT', '65536'],
    ['PORT', '40.5'],
    ['PUBLIC_URL', 'api.example'],
    ['PUBLIC_URL', 'ftp://api.example'],
    ['DATABASE_URL', 'mysql://db.example/portico'],
    ['DATABASE_URL', 'postgresql:portico'],
    ['DATABASE_URL', 'postgresql://a%3Fb:p@127.0.0.1/'],
    ['PLAINTEXT_HOSTS', '[]'],
    ['PLAINTEXT_HOSTS', '[a]'],
    ['DATABASE_URL', 'postgresql:/portico'],
    ['REDIS_URL', 'redis:6379'],
    ['PUBLIC_URL', 'https:api.example'],
    ['DATABASE_POOL', '0'],
    ['ALLOWED_ORIGINS', 'https://panel.example,*'],
    ['TRUST_PROXY', 'true'],
    ['TRUST_PROXY', '1'],
    ['PUBLIC_URL', 'https://api.example/?a=b'],
    ['PUBLIC_URL', 'https://api.example/#a'],
    ['PUBLIC_URL', 'https://u:secret@api.example'],
    ['REDIS_URL', 'redis://127.0.0.1/abc'],
    ['REDIS_URL', 'rediss://:pw@redis.example?tls='],
    ['REDIS_URL', 'rediss://:pw@redis.example?path=/x'],
    ['DATABASE_URL', 'postgresql://u:p@a%zz/b'],
    ['REDIS_URL', 'redis://:p%ZZ@127.0.0.1'],
    ['DATABASE_URL', 'postgresql://a:p%ZZ@127.0.0.1/b'],
    ['DATABASE_URL', 'postgresql://a:b@db1,db2/c?sslmode=verify-full'],
    ['DATABASE_URL', 'postgresql://a:b@db1:5432,db2:5432/c?target_session_attrs=read-write'],
    ['DATABASE_URL', 'postgresql://a:b@/c?host=db1,db2&sslmode=verify-full'],
    ['TRUST_PROXY', '10.0.0.0/8, 10.0.0.0/99'],
    ['NOTIFICATION_RETENTION_DAYS', '0'],
    ['NOTIFICATION_RETENTION_DAYS', '40000'],
    ['MAX_ANSWER_BYTES', '65535'],
    ['DASHBOARDS_PER_PROJECT', '0'],
    ['NOTIFICATION_MIB_PER_PROJECT', '0'],
    ['KEYS_PER_USER', '-1'],
    ['CONSOLES_PER_USER', '0'],
    ['CONSOLE_IDLE_SECONDS', '0'],
    ['CONSOLE_RECORD_DAYS', '0'],
    ['DRAIN_SECONDS', '-1'],
    ['IDEMPOTENCY_KEYS_PER_USER', '0'],
    ['SOCKETS_PER_USER', '0'],
    ['RATE_LIMIT_ANONYMOUS', '0'],
    ['RATE_LIMIT_USER', '1.5'],
    ['LOG_LEVEL', 'loud'],
  ])('%s=%s is named in one line', (name, value) => {
    const problems = problemsOf({ [name]: value });
    expect(problems).toEqual([expect.stringMatching(new RegExp(`^${name}: .+`))]);
  });

  test.each(numeric)('%s in anything but decimal digits', (name) => {
    const values = ['0x10', '0b11', '1e3', '+5', '-5', ' 5', '5 ', '5.', '.5', '5,5', '\u0665', 'Infinity', 'NaN', 'true', '9'.repeat(400)];
    for (const value of values) {
      const problems = problemsOf({ [name]: value });
      expect([value, problems]).toEqual([value, [expect.stringMatching(new RegExp(`^${name}: .+`))]]);
    }
  });

  test('all settings that are numbers are known to be such', () => {
    expect(numeric).toEqual(expect.arrayContaining(['PORT', 'DRAIN_SECONDS', 'MAX_ANSWER_BYTES', 'CONSOLE_RECORD_DAYS']));
  });

  test.each(['//', '/app', '?', '?a=b', '#a', '\\'])('an origin that ends with %s is named as it has to be written', (end) => {
    const problem = 'ALLOWED_ORIGINS: Write https://panel.example: an origin has no user, no path and no query';
    expect(problemsOf({ ALLOWED_ORIGINS: `http://localhost:3000, https://panel.example${end}` })).toEqual([problem]);
    expect(problemsOf({ ALLOWED_ORIGINS: `https://user:hunter2@panel.example${end}` })).toEqual([problem]);
  });

  test.each([
    ['PORT', '99999', 'Must be a whole number from 0 to 65535, in decimal digits'],
    ['PORT', '-1', 'Must be a whole number from 0 to 65535, in decimal digits'],
    ['DATABASE_POOL', '0', 'Must be a whole number from 1 to 1000, in decimal digits'],
    ['DRAIN_SECONDS', '-5', 'Must be a number from 0 to 600, in decimal digits'],
    ['DRAIN_SECONDS', '601', 'Must be a number from 0 to 600, in decimal digits'],
    ['NOTIFICATION_RETENTION_DAYS', '0', 'Must be a number above 0, of 36500 at most, in decimal digits'],
    ['NOTIFICATION_RETENTION_DAYS', '-1', 'Must be a number above 0, of 36500 at most, in decimal digits'],
    ['ALLOWED_ORIGINS', '*', '* is not supported: name each origin'],
    ['ALLOWED_ORIGINS', 'https://good.example, https://*.panel.example', '* is not supported: name each origin'],
  ])('%s=%s says what it may be', (name, value, problem) => expect(problemsOf({ [name]: value })).toEqual([`${name}: ${problem}`]));

  test('every problem at once', () => {
    const problems = problemsOf({
      PORT: 'x',
      LOG_LEVEL: 'loud',
      TRUST_PROXY: 'all',
      ALLOWED_ORIGINS: '*',
      JWT_ISSUER: 'me',
      DATABASE_POOL: '-1',
    });
    expect(problems.map((problem) => problem.split(':')[0]).sort()).toEqual([
      'ALLOWED_ORIGINS',
      'DATABASE_POOL',
      'JWT_JWKS_URL, JWT_ISSUER, JWT_AUDIENCE',
      'LOG_LEVEL',
      'PORT',
      'TRUST_PROXY',
    ]);
  });

  test.each(Object.keys(provider))('the identity provider without %s', (missing) => {
    expect(problemsOf({ ...provider, [missing]: '' })).toEqual(['JWT_JWKS_URL, JWT_ISSUER, JWT_AUDIENCE: set all three, or none']);
  });

  test('responses larger than what may wait for the clients of an address, or for all of them', () => {
    expect(problemsOf({ MAX_UNREAD_MIB_PER_ADDRESS: '8' })).toEqual(['MAX_ANSWER_BYTES: Must be less than MAX_UNREAD_MIB_PER_ADDRESS']);
    expect(problemsOf({ MAX_ANSWER_BYTES: '33554432' })).toEqual([
      'MAX_ANSWER_BYTES: Must be less than MAX_UNREAD_MIB_PER_ADDRESS',
      'MAX_ANSWER_BYTES: Must be less than MAX_UNREAD_MIB',
    ]);
  });

  test('a client of no identity provider, or of one that has no address', () => {
    expect(problemsOf({ OIDC_CLIENT_ID: 'desk' })).toEqual(['OIDC_CLIENT_ID: needs JWT_JWKS_URL, JWT_ISSUER, JWT_AUDIENCE']);
    expect(problemsOf({ ...provider, OIDC_CLIENT_ID: 'desk', JWT_ISSUER: 'login' })).toEqual([
      'OIDC_CLIENT_ID: needs a JWT_ISSUER that is a URL',
    ]);
  });

  test.each([
    ['DATABASE_URL', 'postgresql://u:hunter2@127.0.0.1:65536/p'],
    ['DATABASE_URL', 'postgresql://u:hunter2@127.0.0.1:0/p'],
    ['DATABASE_URL', 'postgresql://u:hunter2@[::1]:65536?sslmode=disable'],
    ['REDIS_URL', 'redis://:hunter2@127.0.0.1:65536'],
    ['REDIS_URL', 'redis://:hunter2@127.0.0.1:0/1'],
    ['PUBLIC_URL', 'https://api.example:123456/hunter2'],
    ['ALLOWED_ORIGINS', 'https://hunter2.example:0'],
  ])('%s=%s has a port that does not exist', (name, value) => {
    expect(problemsOf({ [name]: value })).toEqual([`${name}: The port must be a number from 1 to 65535`]);
  });

  test.each([
    ['DATABASE_URL', 'postgresql://u:hunter2%00@127.0.0.1/p'],
    ['DATABASE_URL', 'postgresql://u:hunter2@127.0.0.1%00/p'],
    ['DATABASE_URL', 'postgresql://u:hunter2@127.0.0.1/p%00'],
    ['DATABASE_URL', 'postgresql://u@127.0.0.1/p?password=hunter2%00'],
    ['REDIS_URL', 'redis://:hunter2%00@127.0.0.1'],
    ['REDIS_URL', 'redis://:hunter2@127.0.0.1%00'],
  ])('%s=%s has a null character, which no server takes', (name, value) => {
    expect(problemsOf({ [name]: value })).toEqual([`${name}: Must have no %00`]);
  });

  test('a port may be the last one, and what is like a port may be in a password', () => {
    expect(problemsOf({ DATABASE_URL: 'postgresql://u:99999@127.0.0.1:65535/p', REDIS_URL: 'redis://:0@127.0.0.1:1' })).toEqual([]);
  });

  test('a password in an address is not repeated', () => {
    expect(problemsOf({ DATABASE_URL: 'mysql://portico:hunter2@db/portico' }).join('\n')).not.toContain('hunter2');
  });
});

describe('DATABASE_URL', () => {
  const url = 'postgresql://a:b@127.0.0.1/c';
  const problemsOfUrl = (text: string) => problemsOf({ DATABASE_URL: text });

  test.each([
    ['%ZZ', 'A % must be written as %25'],
    ['#d', 'A # must be written as %23'],
    ['%23d', 'A database with a ? or a # in its name is not supported'],
    ['%3fd', 'A database with a ? or a # in its name is not supported'],
    ['?schema=portico', 'The parameter schema has a value that is not supported'],
    ['?sslmode=verify_full', 'The parameter sslmode has a value that is not supported'],
    ['?ssl=false', 'The parameter ssl has a value that is not supported'],
    ['?port=5432,5433', 'The parameter port has a value that is not supported'],
    ['?port=65536', 'The parameter port has a value that is not supported'],
    ['?port=0', 'The parameter port has a value that is not supported'],
    ['?sslmode=verify-full&sslmode=disable', 'The parameter sslmode is set twice'],
    ['?connection_limit=5', 'The parameter connection_limit is not supported: set DATABASE_POOL'],
    ['?connect_timeout=10', 'The parameter connect_timeout is not supported: the timeouts are fixed'],
    ['?application_name=x', 'The parameter application_name is not supported: connections are named portico'],
    ['?target_session_attrs=any', 'The parameter target_session_attrs is not supported: the one host has to lead to the primary'],
    ['?pgbouncer=true', 'The parameter pgbouncer is not supported: a pooler has to support prepared statements'],
    ['?channel_binding=require', 'The parameter channel_binding is not supported: leave it out'],
  ])('with %s is refused', (end, problem) => {
    expect(problemsOfUrl(url + end)).toEqual([`DATABASE_URL: ${problem}`]);
  });

  test.each(['hunter2=x', 'constructor', '__proto__=1', '='])(
    'with the unknown parameter %s is refused, and does not repeat it',
    (parameter) => {
      expect(problemsOfUrl(`${url}?${parameter}`)).toEqual([
        'DATABASE_URL: A parameter is not one of host, port, user, password, options, sslmode, sslrootcert, sslcert, sslkey, sslnegotiation, ssl, uselibpqcompat, schema',
      ]);
    },
  );

  const defaults = { host: 'localhost', port: 5432, user: 'u', password: null, database: 'p', ssl: false };
  test.each([
    ['postgresql://u@/p?host=/folder', { host: '/folder' }],
    ['postgres://u:x%40@?host=/folder&port=5433', { host: '/folder', port: 5433, password: 'x@', database: 'u' }],
    ['postgresql://u@%2Ffolder/p', { host: '/folder' }],
    ['postgresql:///p?user=u&password=x%26y&host=127.0.0.2', { host: '127.0.0.2', password: 'x&y' }],
    ['postgresql://u@/p?schema=public', {}],
    ['postgresql://u@127.0.0.1/p?sslmode=verify-full', { host: '127.0.0.1', ssl: {} }],
    ['postgresql://u@127.0.0.1/p?ssl=no-verify', { host: '127.0.0.1', ssl: { rejectUnauthorized: false } }],
    ['postgresql://u@[::1]/a%20b%2Fc%40d%26e%3Df%25g%2Bh%3Bi%2Cj%24k%C3%BC', { host: '::1', database: 'a b/c@d&e=f%g+h;i,j$kü' }],
    ['postgresql://u@[::1]/a b/c@d&e=f%25', { host: '::1', database: 'a b/c@d&e=f%' }],
    ['postgresql://u@[::1]/a%2F?options=-c%20work_mem%3D8MB', { host: '::1', database: 'a/' }],
    ['postgresql://u@127.0.0.1/p?sslmode=require', { host: '127.0.0.1', ssl: {} }],
    ['postgresql://u@127.0.0.1/p?sslmode=prefer', { host: '127.0.0.1', ssl: {} }],
    ['postgresql://u@127.0.0.1/p?sslmode=no-verify', { host: '127.0.0.1', ssl: { rejectUnauthorized: false } }],
    ['postgresql://u@127.0.0.1/p?sslmode=require&uselibpqcompat=true', { host: '127.0.0.1', ssl: { rejectUnauthorized: false } }],
  ])('%s leads where it says, without a warning of the driver', (text, expected) => {
    const warn = vi.spyOn(process, 'emitWarning');
    const { host, port, user, password, database, ssl } = new pg.Client(
      withSession(readConfig({ DATABASE_URL: text }).database?.url ?? '', ''),
    );
    expect({ host, port, user, password, database, ssl }).toEqual({ ...defaults, ...expected });
    expect(warn).not.toHaveBeenCalled();
    warn.mockRestore();
  });
});

test('a DATABASE_URL is not changed by the PG variables of the environment', () => {
  const others = {
    HOST: 'elsewhere.example',
    PORT: '7777',
    USER: 'somebody',
    DATABASE: 'other',
    SSLMODE: 'require',
    SSLNEGOTIATION: 'direct',
  };
  for (const [name, value] of Object.entries(others)) vi.stubEnv(`PG${name}`, value);
  onTestFinished(() => void vi.unstubAllEnvs());
  const open = (url: string) => new pg.Client(withSession(readConfig({ DATABASE_URL: url }).database?.url ?? '', ''));
  const expected = { host: 'localhost', port: 5432, user: 'u', database: 'p', ssl: false };
  for (const url of ['postgresql:///p?user=u', 'postgresql://u@localhost/p', 'postgresql://u@/p'])
    expect(open(url)).toMatchObject(expected);
  expect(open('postgresql://u@/p?host=/folder')).toMatchObject({ ...expected, host: '/folder' });
  expect(open('postgresql://u@/p?sslmode=verify-full')).toMatchObject({ ...expected, ssl: {} });
  // Without a user it is that of the process, and without a database the one with the name of the user.
  const { username } = userInfo();
  expect(open('postgresql://localhost/p')).toMatchObject({ ...expected, user: username });
  expect(open('postgresql://localhost')).toMatchObject({ ...expected, user: username, database: username });
  expect(open('postgresql://a%2Fb@localhost/')).toMatchObject({ ...expected, user: 'a/b', database: 'a/b' });
});

test('a scheme in capitals is TLS too: the driver knows it in lower case alone', () => {
  expect(readConfig({ REDIS_URL: 'REDISS://:pw@redis.example' }).redis?.url).toBe('rediss://:pw@redis.example');
});

test('the table of the README lists every setting, and its default', () => {
  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
  const defaults: Record<string, unknown> = environment.parse({});
  const rows = readme.split('\n').filter((line) => line.startsWith('| `'));
  for (const name of Object.keys(environment.shape)) {
    const row = rows.find((line) => line.split('|')[1]?.includes(`\`${name}\``));
    expect(row, `${name} has no row in the table of README.md`).toBeDefined();
    const value = String(defaults[name] ?? '');
    if (value) expect(row?.split('|')[2], name).toContain(`\`${value}\``);
  }
});

describe('unsafe settings are refused', () => {
  const tls = 'TLS is missing or unverified; name the host in PLAINTEXT_HOSTS if its network is your own';
  const http = 'plain http is accepted on loopback addresses only';

  test.each([
    ['DATABASE_URL', 'postgresql://u@db.example/p?sslmode=verify-full', ['the password is missing']],
    ['DATABASE_URL', 'postgresql://u:pw@db.example/p', [tls]],
    ['DATABASE_URL', 'postgresql://u:pw@10.1.2.3/p?sslmode=disable', [tls]],
    ['DATABASE_URL', 'postgresql://u:pw@db.example/p?sslmode=no-verify', [tls]],
    ['DATABASE_URL', 'postgresql://u:pw@db.example/p?sslmode=require&uselibpqcompat=true', [tls]],
    ['DATABASE_URL', 'postgresql://db.example/p', ['the password is missing', tls]],
    ['DATABASE_URL', 'postgresql://u:pw@[2001:db8::1]/p', [tls]],
    ['DATABASE_URL', 'postgresql://u:pw@h/p?host=fe80::1%25br-lan', [tls]],
    ['DATABASE_URL', 'postgresql://u:pw@127.0.0.1.example/p', [tls]],
    ['REDIS_URL', 'redis://redis.example', ['the password is missing', tls]],
    ['REDIS_URL', 'redis://:pw@redis.example', [tls]],
    ['REDIS_URL', 'rediss://redis.example', ['the password is missing']],
    ['PUBLIC_URL', 'http://api.example', [http]],
    ['PUBLIC_URL', 'http://127.example', [http]],
    ['ALLOWED_ORIGINS', 'https://good.example,http://panel.example', [http]],
    ['TRUST_PROXY', '10.0.0.0/8,0.0.0.0/0', ['Not an address, a subnet, loopback, linklocal or uniquelocal']],
    ['TRUST_PROXY', '::/0', ['Not an address, a subnet, loopback, linklocal or uniquelocal']],
  ])('%s=%s', (name, value, problems) => {
    expect(problemsOf({ [name]: value })).toEqual(problems.map((problem) => `${name}: ${problem}`));
  });

  test('a password in the address of the key set, which the log names in an outage', () => {
    const problems = problemsOf({ ...provider, JWT_JWKS_URL: 'https://gateway:hunter2@login.example/jwks' });
    expect(problems).toEqual(['JWT_JWKS_URL: Must have no user and no password']);
  });

  test('plain http to the key set', () => {
    expect(problemsOf({ ...provider, JWT_JWKS_URL: 'http://login.example/jwks' })).toEqual([`JWT_JWKS_URL: ${http}`]);
  });

  test('every problem at once, and no value in any: it may be a password', () => {
    const problems = problemsOf({
      PORT: 'high',
      DATABASE_URL: 'postgresql://u:hunter2@db.example/p',
      REDIS_URL: 'redis://:hunter2@redis.example',
      PUBLIC_URL: 'http://hunter2.example',
      JWT_ISSUER: 'hunter2',
    });
    expect(problems.map((line) => line.split(':')[0])).toEqual([
      'PORT',
      'JWT_JWKS_URL, JWT_ISSUER, JWT_AUDIENCE',
      'DATABASE_URL',
      'REDIS_URL',
      'PUBLIC_URL',
    ]);
    expect(problems.join()).not.toContain('hunter2');
  });

  test.each([
    ['DATABASE_URL', 'postgresql://postgres@127.0.0.1/p'],
    ['DATABASE_URL', 'postgresql://postgres@[::1]:5432/p'],
    ['DATABASE_URL', 'postgresql://localhost/p'],
    ['DATABASE_URL', 'postgresql:///p?host=/var/run/postgresql'],
    ['DATABASE_URL', 'postgresql://u:pw@db.example/p?ssl=true'],
    ['DATABASE_URL', 'postgresql://u@db.example/p?sslmode=verify-full&sslcert=c&sslkey=k'],
    ['REDIS_URL', 'redis://127.3.2.1:6379/4'],
    ['REDIS_URL', 'rediss://user:pw@redis.example'],
    ['PUBLIC_URL', 'http://localhost:8080'],
    ['ALLOWED_ORIGINS', 'http://[::1]:3000'],
  ])('but not %s=%s', (name, value) => {
    expect(problemsOf({ [name]: value })).toEqual([]);
  });

  test('a host of a network of our own may be named', () => {
    const urls = { DATABASE_URL: 'postgresql://u:pw@postgres/p', REDIS_URL: 'redis://:pw@Redis' };
    expect(problemsOf(urls)).toHaveLength(2);
    expect(problemsOf({ ...urls, PLAINTEXT_HOSTS: 'postgres, redis' })).toEqual([]);
  });

  test('a host that is named with more than itself, which would never match', () => {
    const problem = 'PLAINTEXT_HOSTS: Must be names or addresses, without a scheme and a port';
    for (const host of ['db.example:5432', 'http://db.example', '[fd00::1]:5432', 'fd00::1, db.example:5432', '*.example', 'u@db.example'])
      expect([host, problemsOf({ PLAINTEXT_HOSTS: host })]).toEqual([host, [problem]]);
    expect(problemsOf({ PLAINTEXT_HOSTS: 'fd00::1, 10.0.0.5, DB.example, postgres' })).toEqual([]);
  });

  test.each([
    ['DB.example', 'postgresql://u:pw@db.Example/p'],
    ['db.example', 'postgresql://u:pw@/p?host=DB.example'],
    ['DB.example', 'postgresql://u:pw@/p?host=db.example'],
    ['fd00::1', 'postgresql://u:pw@[fd00::1]/p'],
    ['[fd00::1]', 'postgresql://u:pw@[FD00:0::1]/p'],
    ['FD00:0:0::1', 'postgresql://u:pw@[fd00::1]/p'],
    ['fd00::1', 'postgresql://u:pw@/p?host=FD00:0::1'],
  ])('a host has several spellings: PLAINTEXT_HOSTS=%s names that of %s', (host, url) => {
    expect(problemsOf({ DATABASE_URL: url })).toEqual([`DATABASE_URL: ${tls}`]);
    expect(problemsOf({ DATABASE_URL: url, PLAINTEXT_HOSTS: `redis, ${host}` })).toEqual([]);
  });

  test('loopback addresses have several spellings, too', () => {
    for (const host of ['LOCALHOST', '0:0:0:0:0:0:0:1', '::ffff:127.0.0.1'])
      expect([host, problemsOf({ DATABASE_URL: `postgresql://u@/p?host=${host}` })]).toEqual([host, []]);
  });
});
