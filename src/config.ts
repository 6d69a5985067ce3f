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
  DATABASE_POOL: positive.default(10),
  JWT_JWKS_URL: z.url({ protocol: /^https?$/ }).optional(),
  JWT_ISSUER: z.string().min(1).optional(),
  JWT_AUDIENCE: z.string().min(1).optional(),
  ALLOWED_ORIGINS: list.pipe(z.array(z.url({ protocol: /^https?$/ }))).default([]),
  TRUST_PROXY: list.pipe(z.array(z.string().refine(isProxy, 'Not an address, a subnet, loopback, linklocal or uniquelocal'))).default([]),
  NOTIFICATION_RETENTION_DAYS: z.coerce.number().positive().optional(),
  DRAIN_SECONDS: z.coerce.number().min(0).max(600).default(10),
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
  /** The identity provider; null: tokens are signed with a key of our own in `dataDir`. */
  readonly identityProvider: { readonly jwksUrl: string; readonly issuer: string; readonly audience: string } | null;
  readonly allowedOrigins: readonly string[];
  /** Proxies whose X-Forwarded-For counts: addresses, subnets, or the names loopback, linklocal, uniquelocal. */
  readonly trustedProxies: readonly string[];
  readonly limits: { readonly anonymousPerMinute: number; readonly userPerHour: number };
  /** After how many days notifications are removed; null: never. */
  readonly retentionDays: number | null;
  /** How long a stopping process takes to send its sockets away. */
  readonly drainSeconds: number;
  readonly logLevel: string;
}

/** Thrown by `readConfig`: one line for each problem, naming the variable. */
export class ConfigError extends Error {}

/** Environment → Config. Throws a ConfigError that names every problem at once. */
export function readConfig(env: Readonly<Record<string, string | undefined>>): Config {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined && value !== ''));
  const parsed = environment.safeParse(given);
  const problems = parsed.success ? [] : parsed.error.issues.map((issue) => `${issue.path[0]?.toString()}: ${issue.message}`);
  const provider = [given.JWT_JWKS_URL, given.JWT_ISSUER, given.JWT_AUDIENCE];
  if (provider.some(Boolean) && !provider.every(Boolean)) {
    problems.push('JWT_JWKS_URL, JWT_ISSUER, JWT_AUDIENCE: set all three, or none');
  }
  if (!parsed.success || problems.length > 0) throw new ConfigError(problems.join('\n'));
  const settings = parsed.data;
  return {
    port: settings.PORT,
    host: settings.HOST,
    publicUrl: settings.PUBLIC_URL?.replace(/\/+$/, '') ?? null,
    dataDir: resolve(settings.DATA_DIR),
    database: settings.DATABASE_URL ? { url: settings.DATABASE_URL, pool: settings.DATABASE_POOL } : null,
    identityProvider:
      settings.JWT_JWKS_URL && settings.JWT_ISSUER && settings.JWT_AUDIENCE
        ? { jwksUrl: settings.JWT_JWKS_URL, issuer: settings.JWT_ISSUER, audience: settings.JWT_AUDIENCE }
        : null,
    allowedOrigins: settings.ALLOWED_ORIGINS.map((origin) => new URL(origin).origin),
    trustedProxies: settings.TRUST_PROXY,
    limits: { anonymousPerMinute: settings.RATE_LIMIT_ANONYMOUS, userPerHour: settings.RATE_LIMIT_USER },
    retentionDays: settings.NOTIFICATION_RETENTION_DAYS ?? null,
    drainSeconds: settings.DRAIN_SECONDS,
    logLevel: settings.LOG_LEVEL,
  };
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
