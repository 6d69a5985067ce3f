import { join, resolve } from 'node:path';
import proxyAddr from 'proxy-addr';
import { z } from 'zod';

const list = z.string().transform((text) =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter(Boolean),
);
const positive = z.coerce.number().int().positive();

/** Every setting, with its default: the table in README.md lists the same. */
const environment = z.object({
  PORT: z.coerce.number().int().min(0).max(65535).default(4000),
  HOST: z.string().min(1).default('0.0.0.0'),
  PUBLIC_URL: z.url({ protocol: /^https?$/ }).optional(),
  DATA_DIR: z.string().min(1).default('.portico'),
  DATABASE_URL: z.url({ protocol: /^postgres(ql)?$/ }).optional(),
  DATABASE_POOL: positive.max(1000).default(10),
  REDIS_URL: z.url({ protocol: /^rediss?$/ }).optional(),
  REDIS_PREFIX: z
    .string()
    .regex(/^[\w:.-]{1,64}$/, 'Letters, digits and _ : . - only, at most 64')
    .default('portico'),
  PLAINTEXT_HOSTS: list.default([]),
  JWT_JWKS_URL: z.url({ protocol: /^https?$/ }).optional(),
  JWT_ISSUER: z.string().min(1).optional(),
  JWT_AUDIENCE: z.string().min(1).optional(),
  ALLOWED_ORIGINS: list.pipe(z.array(z.url({ protocol: /^https?$/ }))).default([]),
  TRUST_PROXY: list.pipe(z.array(z.string().refine(isProxy, 'Not an address, a subnet, loopback, linklocal or uniquelocal'))).default([]),
  NOTIFICATION_RETENTION_DAYS: z.coerce.number().positive().optional(),
  CONSOLES_PER_USER: positive.max(1000).default(10),
  CONSOLE_IDLE_SECONDS: positive.max(604_800).default(1800),
  DRAIN_SECONDS: z.coerce.number().min(0).max(600).default(10),
  MAX_CONNECTIONS: positive.default(20000),
  RATE_LIMIT_ANONYMOUS: positive.default(60),
  RATE_LIMIT_USER: positive.default(5000),
  LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info'),
});

export interface Config {
  readonly port: number;
  readonly host: string;
  /** Where clients reach the service, without a slash at the end; null: the origin of each request. */
  readonly publicUrl: string | null;
  readonly dataDir: string;
  /** PostgreSQL; null: the embedded database in `dataDir`. */
  readonly database: { readonly url: string; readonly pool: number } | null;
  /** Shared by the replicas: rate windows and wake-ups. Null: each process has its own. */
  readonly redis: { readonly url: string; readonly prefix: string } | null;
  /** The identity provider; null: tokens are signed with a key of our own in `dataDir`. */
  readonly identityProvider: { readonly jwksUrl: string; readonly issuer: string; readonly audience: string } | null;
  readonly allowedOrigins: readonly string[];
  /** Proxies whose X-Forwarded-For counts: addresses, subnets, or the names loopback, linklocal, uniquelocal. */
  readonly trustedProxies: readonly string[];
  readonly limits: { readonly anonymousPerMinute: number; readonly userPerHour: number };
  /** After how many days notifications are removed; null: never. */
  readonly retentionDays: number | null;
  /** How many consoles a user may have open at once, and for how long nothing may pass in one. */
  readonly consoles: { readonly perUser: number; readonly idleMs: number };
  /** How long a stopping process lets its clients go elsewhere. */
  readonly drainSeconds: number;
  /** TCP connections that are open at once; one more is hung up on. */
  readonly maxConnections: number;
  readonly logLevel: string;
}

/** Thrown by `readConfig`: one line for each problem, naming the variable. */
export class ConfigError extends Error {}

/** Environment → Config. Throws a ConfigError that names every problem at once. No message repeats a value: it may hold a password. */
export function readConfig(env: Readonly<Record<string, string | undefined>>): Config {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined && value !== ''));
  const parsed = environment.safeParse(given);
  const issues = parsed.success ? [] : parsed.error.issues.map(({ path, message }) => ({ name: String(path[0]), message }));
  const malformed = new Set(issues.map(({ name }) => name));
  const problems = [
    ...issues.map(({ name, message }) => `${name}: ${message}`),
    ...findContradictions(given),
    ...findDangers(Object.fromEntries(Object.entries(given).filter(([name]) => !malformed.has(name)))),
  ];
  if (!parsed.success || problems.length > 0) throw new ConfigError(problems.join('\n'));
  const settings = parsed.data;
  return {
    port: settings.PORT,
    host: settings.HOST,
    publicUrl: settings.PUBLIC_URL?.replace(/\/+$/, '') ?? null,
    dataDir: resolve(settings.DATA_DIR),
    database: settings.DATABASE_URL ? { url: settings.DATABASE_URL, pool: settings.DATABASE_POOL } : null,
    redis: settings.REDIS_URL ? { url: settings.REDIS_URL, prefix: settings.REDIS_PREFIX } : null,
    identityProvider:
      settings.JWT_JWKS_URL && settings.JWT_ISSUER && settings.JWT_AUDIENCE
        ? { jwksUrl: settings.JWT_JWKS_URL, issuer: settings.JWT_ISSUER, audience: settings.JWT_AUDIENCE }
        : null,
    allowedOrigins: settings.ALLOWED_ORIGINS.map((origin) => new URL(origin).origin),
    trustedProxies: settings.TRUST_PROXY,
    limits: { anonymousPerMinute: settings.RATE_LIMIT_ANONYMOUS, userPerHour: settings.RATE_LIMIT_USER },
    retentionDays: settings.NOTIFICATION_RETENTION_DAYS ?? null,
    consoles: { perUser: settings.CONSOLES_PER_USER, idleMs: settings.CONSOLE_IDLE_SECONDS * 1000 },
    drainSeconds: settings.DRAIN_SECONDS,
    maxConnections: settings.MAX_CONNECTIONS,
    logLevel: settings.LOG_LEVEL,
  };
}

type Given = Readonly<Record<string, string | undefined>>;

function findContradictions(given: Given): string[] {
  const provider = [given.JWT_JWKS_URL, given.JWT_ISSUER, given.JWT_AUDIENCE];
  const isHalf = provider.some(Boolean) && !provider.every(Boolean);
  return isHalf ? ['JWT_JWKS_URL, JWT_ISSUER, JWT_AUDIENCE: set all three, or none'] : [];
}

/** What would send secrets in the clear, or let clients say who they are. This machine itself is beyond suspicion. */
function findDangers(given: Given): string[] {
  const plaintextHosts = new Set((given.PLAINTEXT_HOSTS ?? '').split(',').map((host) => host.trim().toLowerCase()));
  const problems: string[] = [];
  const check = (name: string, text: string | undefined, judge: (url: URL) => Array<string | false>) => {
    if (!text || !URL.canParse(text)) return;
    const url = new URL(text);
    if (!isLoopback(url)) for (const problem of judge(url)) if (problem) problems.push(`${name}: ${problem}`);
  };
  const isPlainHttp = (url: URL) => url.protocol === 'http:' && 'plain http is accepted on loopback addresses only';
  const needsTls = (url: URL, hasTls: boolean) =>
    !hasTls &&
    !plaintextHosts.has(hostOf(url)) &&
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
  for (const origin of (given.ALLOWED_ORIGINS ?? '').split(',')) check('ALLOWED_ORIGINS', origin.trim(), (url) => [isPlainHttp(url)]);
  return problems;
}

/** Whether node-postgres checks the server's certificate: short of libpq's ways it does in every mode that has TLS. */
function verifiesServer(parameters: URLSearchParams): boolean {
  const mode = parameters.get('sslmode');
  if (mode === null) return parameters.get('ssl') === 'true' || parameters.get('ssl') === '1';
  const likeLibpq = parameters.get('uselibpqcompat') === 'true';
  return mode === 'verify-full' || (!likeLibpq && ['prefer', 'require', 'verify-ca'].includes(mode));
}

/** Where a connection really goes: for PostgreSQL the parameter `host` counts before the URL's own. */
function hostOf(url: URL): string {
  const parameter = url.protocol.startsWith('postgres') ? url.searchParams.get('host') : null;
  return parameter || decodeURIComponent(url.hostname.toLowerCase().replace(/^\[|\]$/g, ''));
}

/** Also a Unix socket: its folder stands for the host. */
function isLoopback(url: URL): boolean {
  const host = hostOf(url);
  return host === '' || host === 'localhost' || host === '::1' || host.startsWith('/') || /^127(\.\d{1,3}){3}$/.test(host);
}

function isProxy(text: string): boolean {
  try {
    proxyAddr.compile(text);
    return true;
  } catch {
    return false;
  }
}

/** The file in `dataDir` that lists the demo's addresses and credentials. */
export function demoFile(config: Pick<Config, 'dataDir'>): string {
  return join(config.dataDir, 'demo.json');
}
