// Authentication and rate limits, shared by all peers. Each peer decides when to call them.
import { createLocalJWKSet, jwtVerify } from 'jose';
import pg from 'pg';
import { RateLimiterMemory } from 'rate-limiter-flexible';

// 64-bit counts are parsed as numbers, as all of these fit.
pg.types.setTypeParser(pg.types.builtins.INT8, Number);

const { JWKS = '', DATABASE_URL, DATABASE_POOL, RATE_LIMIT_USER } = process.env;

export const openPool = () => new pg.Pool({ connectionString: DATABASE_URL, max: Number(DATABASE_POOL), options: '-c timezone=UTC' });

/** An error response. */
export class Refusal extends Error {
  constructor(/** @type {number} */ status, /** @type {string} */ code, /** @type {string} */ detail) {
    super(detail);
    this.status = status;
    this.code = code;
  }
}

export const notFound = () => new Refusal(404, 'not_found', 'Not found.');
export const denied = () => new Refusal(403, 'permission_denied', 'You do not have permission to perform this action.');
const invalidCredential = () => new Refusal(401, 'not_authenticated', 'The credential is not valid.');

const keys = createLocalJWKSet(JSON.parse(JWKS));
const claims = { algorithms: ['EdDSA'], issuer: 'portico', audience: 'portico', requiredClaims: ['sub', 'exp'] };

/** The user and expiry of the session token in the header. @param {string | undefined} authorization */
export async function verify(authorization) {
  const token = /^Bearer (\S+)$/.exec(authorization ?? '')?.[1];
  if (!token) throw invalidCredential();
  try {
    const { payload } = await jwtVerify(token, keys, claims);
    return { userId: String(payload.sub), expires: new Date(Number(payload.exp) * 1000) };
  } catch {
    throw invalidCredential();
  }
}

const limit = Number(RATE_LIMIT_USER);
const limiter = new RateLimiterMemory({ points: limit, duration: 3600 });

/** Counts a request against the user's rate limit; returns the headers that say what remains. @param {string} userId */
export async function spend(userId) {
  try {
    const { remainingPoints, msBeforeNext } = await limiter.consume(userId);
    return {
      'RateLimit-Policy': `"user";q=${limit};w=3600`,
      RateLimit: `"user";r=${remainingPoints};t=${Math.ceil(msBeforeNext / 1000)}`,
    };
  } catch {
    throw new Refusal(429, 'rate_limited', 'Request was throttled.');
  }
}

const rank = { viewer: 0, member: 1, admin: 2 };

/** Owners and admins of an organization are admins of its projects. */
export function roleOf(/** @type {{organization_role: string, project_role: keyof typeof rank | null} | undefined} */ row) {
  const role = row && (row.organization_role === 'member' ? row.project_role : 'admin');
  if (!role) throw notFound();
  return role;
}

export function requireRole(/** @type {keyof typeof rank} */ role, /** @type {keyof typeof rank} */ least) {
  if (rank[role] < rank[least]) throw denied();
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
export const isUuid = (/** @type {unknown} */ text) => typeof text === 'string' && uuid.test(text);

const reasons = [
  'instance_not_active',
  'backup_already_enabled',
  'missing_billing_service',
  'missing_billing_client',
  'trial_already_open',
  'backup_option_unavailable',
  'unsupported_billing_cycle',
];

/** The reason why the daily backup cannot be offered; an empty string if it can. */
export function reasonOf(/** @type {Record<string, unknown>} */ facts) {
  const holds = [
    facts.status !== 'active',
    facts.daily_backup && !facts.has_open_trial,
    !facts.has_service,
    facts.has_service && !facts.has_client,
    facts.has_open_trial,
    !facts.has_option,
    facts.has_option && facts.has_service && !facts.is_cycle_sold,
  ];
  return reasons[holds.findIndex(Boolean)] ?? '';
}

/** Listens, and reports the address to the bench. @param {import('node:http').Server} server */
export function listen(server) {
  server.keepAliveTimeout = 75_000;
  server.listen(Number(process.env.PORT), process.env.HOST, () => {
    const address = /** @type {import('node:net').AddressInfo} */ (server.address());
    console.log(`listens on http://${address.address}:${address.port}`);
  });
}
