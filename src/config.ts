import { isIPv6 } from 'node:net';
import { join, resolve } from 'node:path';
import proxyAddr from 'proxy-addr';
import { z } from 'zod';
import { completeAddress, findAddressProblems, hostOf, verifiesServer } from './platform/databaseurl.ts';
import { isLoopbackHost, isPort, normalizeHost } from './platform/host.ts';

const splitList = (text: string) =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter(Boolean);
const list = z.string().transform(splitList);
const MEBIBYTE = 2 ** 20;
/**
 * A URL of these schemes. Drivers decode its parts, and fail where they cannot. Without `//` it would have no host, or one that only
 * some parsers see.
 */
const url = (protocol: RegExp, schemes: string) => {
  const error = `Must be a URL that begins with ${schemes}`;
  return z
    .string()
    .regex(/^[a-z]+:\/\//i, { error, abort: true })
    .refine(hasPossiblePort, { error: 'The port must be a number from 1 to 65535', abort: true })
    .refine((text) => !/%00/.test(text), { error: 'Must have no %00', abort: true })
    .pipe(z.url({ protocol, error }).refine(isDecodable, 'A % must be written as %25'));
};
const httpUrl = url(/^https?$/, 'https:// or http://');
/** A URL whose text is printed or logged, so that no secret may be in it. */
const publicHttpUrl = httpUrl.refine((text) => !URL.canParse(text) || isWithoutUser(new URL(text)), 'Must have no user and no password');
/** An origin, also as it is copied from an address bar: with a slash at its end, which has no meaning. */
const origin = z
  .string()
  .refine((text) => !text.includes('*'), { error: '* is not supported: name each origin', abort: true })
  .pipe(httpUrl)
  .pipe(
    z.string().refine((text) => /^https?:\/\/[^/?#@\\]+\/?$/i.test(text), {
      error: ({ input }) => `Write ${new URL(String(input)).origin}: an origin has no user, no path and no query`,
    }),
  );
/** Digits: `Number` would also accept `0x10`, `1e3` and blanks. */
const digits = (pattern: RegExp, isInRange: (value: number) => boolean, rule: string) =>
  z
    .string()
    .refine((text) => pattern.test(text) && isInRange(Number(text)), `Must be ${rule}, in decimal digits`)
    .transform(Number);
const whole = (min: number, max = Number.MAX_SAFE_INTEGER) =>
  digits(/^\d+$/, (value) => value >= min && value <= max, `a whole number from ${min} to ${max}`);
const positive = (max?: number) => whole(1, max);
const DECIMAL = /^\d+(\.\d+)?$/;
const decimal = (max: number) => digits(DECIMAL, (value) => value <= max, `a number from 0 to ${max}`);
const MAX_DAYS = 36_500;
const days = digits(DECIMAL, (value) => value > 0 && value <= MAX_DAYS, `a number above 0, of ${MAX_DAYS} at most`);

/** Every setting with its default: the rows of the table in README.md. */
export const environment = z.object({
  PORT: whole(0, 65535).default(4000),
  HOST: z.string().min(1).default('0.0.0.0'),
  PUBLIC_URL: publicHttpUrl.refine((text) => !/[?#]/.test(text), 'Must have no query and no fragment').optional(),
  DATA_DIR: z.string().min(1).default('.portico'),
  DATABASE_URL: url(/^postgres(ql)?$/, 'postgresql:// and has one host').optional(),
  DATABASE_POOL: positive(1000).default(10),
  REDIS_URL: url(/^rediss?$/, 'redis:// or rediss://')
    .refine(isRedisPath, 'The path must be the number of a database, or empty')
    // The driver would take parameters for options, such as `tls`, that override ours.
    .refine((text) => !/[?#]/.test(text), 'Must have no query and no fragment')
    // The driver knows the scheme in lower case alone.
    .transform((text) => new URL(text).href)
    .optional(),
  REDIS_PREFIX: z
    .string()
    .regex(/^[\w:.-]{1,64}$/, 'Letters, digits and _ : . - only, at most 64')
    .default('portico'),
  PLAINTEXT_HOSTS: list
    .pipe(z.array(z.string().refine(isPlainHost, 'Must be names or addresses, without a scheme and a port')))
    .default([]),
  JWT_JWKS_URL: publicHttpUrl.optional(),
  JWT_ISSUER: z.string().min(1).optional(),
  JWT_AUDIENCE: z.string().min(1).optional(),
  OIDC_CLIENT_ID: z.string().min(1).optional(),
  ALLOWED_ORIGINS: list.pipe(z.array(origin)).default([]),
  TRUST_PROXY: list.pipe(z.array(z.string().refine(isProxy, 'Not an address, a subnet, loopback, linklocal or uniquelocal'))).default([]),
  NOTIFICATION_RETENTION_DAYS: days.optional(),
  CONSOLES_PER_USER: positive(1000).default(10),
  CONSOLE_IDLE_SECONDS: positive(604_800).default(1800),
  CONSOLE_RECORD_DAYS: days.optional(),
  DRAIN_SECONDS: decimal(600).default(10),
  MAX_CONNECTIONS: positive().default(20000),
  MAX_CONNECTIONS_PER_ADDRESS: positive().default(1000),
  MAX_UNREAD_MIB: positive(65_536).default(32),
  MAX_UNREAD_MIB_PER_ADDRESS: positive(65_536).default(16),
  MAX_ANSWER_BYTES: whole(65536, 268435456).default(8388608),
  DASHBOARDS_PER_PROJECT: positive(1000000).default(1000),
  NOTIFICATION_MIB_PER_PROJECT: positive(1_048_576).default(1024),
  KEYS_PER_USER: positive(1000000).default(100),
  IDEMPOTENCY_KEYS_PER_USER: positive(1000000).default(10000),
  SOCKETS_PER_USER: positive().default(1000),
  SUBSCRIPTIONS_PER_USER: positive().default(5000),
  RATE_LIMIT_ANONYMOUS: positive().default(60),
  RATE_LIMIT_USER: positive().default(5000),
  RATE_LIMIT_PAGES: positive().default(600),
  COMPRESS: z.enum(['true', 'false']).default('true'),
  TRUSTED_DOCUMENTS: z.string().min(1).optional(),
  TRUSTED_ONLY: z.enum(['true', 'false']).default('false'),
  LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info'),
});

export type Config = Readonly<ReturnType<typeof toConfig>>;

function toConfig(settings: z.output<typeof environment>) {
  const { JWT_JWKS_URL: jwksUrl, JWT_ISSUER: issuer, JWT_AUDIENCE: audience, OIDC_CLIENT_ID: clientId = null } = settings;
  return {
    port: settings.PORT,
    host: settings.HOST,
    /** The URL at which clients reach the service, without a slash at the end; null: the origin of each request. */
    publicUrl: settings.PUBLIC_URL?.replace(/\/+$/, '') ?? null,
    dataDir: resolve(settings.DATA_DIR),
    /** PostgreSQL; null: the embedded database in `dataDir`. */
    database: settings.DATABASE_URL ? { url: settings.DATABASE_URL, poolSize: settings.DATABASE_POOL } : null,
    /** Shared by the replicas: rate windows and wake-ups. Null: each process has its own. */
    redis: settings.REDIS_URL ? { url: settings.REDIS_URL, prefix: settings.REDIS_PREFIX } : null,
    /** The identity provider, and the client id of the desk; null: tokens are signed with a local key in `dataDir`. */
    identityProvider: jwksUrl && issuer && audience ? { jwksUrl, issuer, audience, clientId } : null,
    allowedOrigins: settings.ALLOWED_ORIGINS.map((origin) => new URL(origin).origin),
    /** Proxies whose X-Forwarded-For is trusted: addresses, subnets, or the names loopback, linklocal, uniquelocal. */
    trustedProxies: settings.TRUST_PROXY,
    rateLimits: {
      anonymousPerMinute: settings.RATE_LIMIT_ANONYMOUS,
      userPerHour: settings.RATE_LIMIT_USER,
      pagesPerMinute: settings.RATE_LIMIT_PAGES,
    },
    /** The age in days at which notifications are removed; null: never. */
    retentionDays: settings.NOTIFICATION_RETENTION_DAYS ?? null,
    /** How many consoles a user may have open at once, and how long one may be idle. */
    consoles: { perUser: settings.CONSOLES_PER_USER, idleMs: settings.CONSOLE_IDLE_SECONDS * 1000 },
    /** The days after its end for which the record of a console session is kept; null: as long as its project. */
    consoleRecordDays: settings.CONSOLE_RECORD_DAYS ?? null,
    /** How long a stopping process lets its clients reconnect elsewhere. */
    drainSeconds: settings.DRAIN_SECONDS,
    /** TCP connections open at once: in all, and of one client address. */
    maxConnections: settings.MAX_CONNECTIONS,
    maxConnectionsPerAddress: settings.MAX_CONNECTIONS_PER_ADDRESS,
    /** Bytes that may be buffered for peers that do not read: of one client address, and in all. */
    buffers: { perAddress: settings.MAX_UNREAD_MIB_PER_ADDRESS * MEBIBYTE, inAll: settings.MAX_UNREAD_MIB * MEBIBYTE },
    /** The largest response, in bytes of JSON text. */
    responses: { maxBytes: settings.MAX_ANSWER_BYTES },
    /** Whether large responses are compressed for clients that accept it. */
    compresses: settings.COMPRESS === 'true',
    quotas: {
      dashboardsPerProject: settings.DASHBOARDS_PER_PROJECT,
      notificationBytesPerProject: settings.NOTIFICATION_MIB_PER_PROJECT * MEBIBYTE,
      keysPerUser: settings.KEYS_PER_USER,
      idempotencyKeysPerUser: settings.IDEMPOTENCY_KEYS_PER_USER,
    },
    /** How many WebSockets and event streams a user may have open at once, in this process, and how many subscriptions over them. */
    socketsPerUser: settings.SOCKETS_PER_USER,
    subscriptionsPerUser: settings.SUBSCRIPTIONS_PER_USER,
    /** The file of trusted GraphQL documents, and whether all others are rejected; null: no file. */
    trusted: settings.TRUSTED_DOCUMENTS ? { path: resolve(settings.TRUSTED_DOCUMENTS), isOnly: settings.TRUSTED_ONLY === 'true' } : null,
    logLevel: settings.LOG_LEVEL as string,
  };
}

/** Thrown by `readConfig`: one line for each problem, naming the variable. */
export class ConfigError extends Error {}

/** Environment → Config. Throws a ConfigError that names every problem at once. No message repeats a value: it may hold a password. */
export function readConfig(env: Readonly<Record<string, string | undefined>>): Config {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined && value !== ''));
  if (given.DATABASE_URL) given.DATABASE_URL = completeAddress(given.DATABASE_URL);
  const parsed = environment.safeParse(given);
  const issues = parsed.success ? [] : parsed.error.issues.map(({ path, message }) => ({ name: String(path[0]), message }));
  const malformed = new Set(issues.map(({ name }) => name));
  const problems = [
    ...issues.map(({ name, message }) => `${name}: ${message}`),
    ...findContradictions(given, malformed),
    ...(parsed.success ? findImpossibleLimits(parsed.data) : []),
    ...findPlaintextSecrets(Object.fromEntries(Object.entries(given).filter(([name]) => !malformed.has(name)))),
  ];
  if (!parsed.success || problems.length > 0) throw new ConfigError(problems.join('\n'));
  return toConfig(parsed.data);
}

/** A response counts as unread as a whole before its first byte is sent: one beyond these limits would only break its connection. */
function findImpossibleLimits({ MAX_ANSWER_BYTES, ...settings }: z.output<typeof environment>): string[] {
  return (['MAX_UNREAD_MIB_PER_ADDRESS', 'MAX_UNREAD_MIB'] as const)
    .filter((name) => MAX_ANSWER_BYTES >= settings[name] * MEBIBYTE)
    .map((name) => `MAX_ANSWER_BYTES: Must be less than ${name}`);
}

type Given = Readonly<Record<string, string | undefined>>;

function findContradictions(given: Given, malformed: ReadonlySet<string>): string[] {
  const { JWT_JWKS_URL: jwksUrl, JWT_ISSUER: issuer, JWT_AUDIENCE: audience, OIDC_CLIENT_ID: clientId } = given;
  const hasProvider = jwksUrl && issuer && audience;
  const problems: string[] = [];
  const address = malformed.has('DATABASE_URL') ? undefined : given.DATABASE_URL;
  if (address) problems.push(...findAddressProblems(new URL(address)).map((problem) => `DATABASE_URL: ${problem}`));
  if (!hasProvider && (jwksUrl || issuer || audience)) problems.push('JWT_JWKS_URL, JWT_ISSUER, JWT_AUDIENCE: set all three, or none');
  if (clientId && !hasProvider) problems.push('OIDC_CLIENT_ID: needs JWT_JWKS_URL, JWT_ISSUER, JWT_AUDIENCE');
  if (clientId && issuer && !URL.canParse(issuer)) problems.push('OIDC_CLIENT_ID: needs a JWT_ISSUER that is a URL');
  if (given.TRUSTED_ONLY === 'true' && !given.TRUSTED_DOCUMENTS) problems.push('TRUSTED_ONLY: needs TRUSTED_DOCUMENTS');
  return problems;
}

/** Settings that would send secrets in the clear. Loopback addresses are allowed. */
function findPlaintextSecrets(given: Given): string[] {
  const plaintextHosts = splitList(given.PLAINTEXT_HOSTS ?? '').map(normalizeHost);
  const problems: string[] = [];
  const check = (name: string, text: string | undefined, findProblems: (url: URL) => Array<string | false>) => {
    if (!text || !URL.canParse(text)) return;
    const url = new URL(text);
    if (isLoopback(url)) return;
    for (const problem of findProblems(url)) if (problem) problems.push(`${name}: ${problem}`);
  };
  const isPlainHttp = (url: URL) => url.protocol === 'http:' && 'plain http is accepted on loopback addresses only';
  const needsTls = (url: URL, hasTls: boolean) =>
    !hasTls &&
    !plaintextHosts.includes(hostOf(url)) &&
    'TLS is missing or unverified; name the host in PLAINTEXT_HOSTS if its network is your own';
  check('DATABASE_URL', given.DATABASE_URL, (url) => [
    url.password === '' && !url.searchParams.has('password') && !url.searchParams.has('sslcert') && 'the password is missing',
    needsTls(url, verifiesServer(url.searchParams)),
  ]);
  check('REDIS_URL', given.REDIS_URL, (url) => [
    url.password === '' && 'the password is missing',
    needsTls(url, url.protocol === 'rediss:'),
  ]);
  check('JWT_JWKS_URL', given.JWT_JWKS_URL, (url) => [isPlainHttp(url)]);
  check('PUBLIC_URL', given.PUBLIC_URL, (url) => [isPlainHttp(url)]);
  for (const origin of splitList(given.ALLOWED_ORIGINS ?? '')) check('ALLOWED_ORIGINS', origin, (url) => [isPlainHttp(url)]);
  return problems;
}

/** Whether a URL leads to this machine, as a Unix socket does, whose folder is the host. */
function isLoopback(url: URL): boolean {
  const host = hostOf(url);
  return host === '' || host.startsWith('/') || isLoopbackHost(host);
}

function isWithoutUser({ username, password }: URL): boolean {
  return username === '' && password === '';
}

/** Whether the port of a URL, if it has one, is a port. One beyond 65535 is what makes a text no URL, and no driver connects to 0. */
function hasPossiblePort(text: string): boolean {
  const [, port = '1'] = /^[^/?#]*:\/\/[^/?#]*:(\d+)(?=[/?#]|$)/.exec(text) ?? [];
  return isPort(port);
}

function isDecodable(text: string): boolean {
  try {
    const { username, password, hostname, pathname } = new URL(text);
    for (const part of [username, password, hostname, pathname]) decodeURIComponent(part);
    return true;
  } catch {
    return !URL.canParse(text);
  }
}

/**
 * Whether `hostOf` could return the text. A text with a scheme or a port would never equal the host of a URL, so that
 * PLAINTEXT_HOSTS would silently have no effect.
 */
function isPlainHost(text: string): boolean {
  const host = normalizeHost(text);
  return isIPv6(host) || !/[/:[\]@*]/.test(host);
}

function isRedisPath(text: string): boolean {
  return !URL.canParse(text) || /^\/?\d*$/.test(new URL(text).pathname);
}

function isProxy(text: string): boolean {
  // proxy-addr reads the number 1 as the address 0.0.0.1; in Express' `trust proxy` it is the number of proxies. Neither is meant.
  if (/^\d+$/.test(text)) return false;
  try {
    proxyAddr.compile(text);
    return true;
  } catch {
    return false;
  }
}

/** The file in `dataDir` that lists the demo's addresses and credentials. */
export function demoFilePath(config: Pick<Config, 'dataDir'>): string {
  return join(config.dataDir, 'demo.json');
}
