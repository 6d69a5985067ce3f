import { userInfo } from 'node:os';
import { isPort, normalizeHost } from './host.ts';

/** The parameters that may be in DATABASE_URL, with a test for the values that the driver takes. */
const parameters: Readonly<Record<string, Pick<RegExp, 'test'>>> = {
  host: /./,
  port: { test: isPort },
  user: /./,
  password: /./,
  options: /./,
  sslmode: /^(disable|prefer|require|verify-ca|verify-full|no-verify)$/,
  sslrootcert: /./,
  sslcert: /./,
  sslkey: /./,
  sslnegotiation: /^(postgres|direct)$/,
  ssl: /^(true|1|0|no-verify)$/,
  uselibpqcompat: /^(true|false)$/,
  schema: /^public$/,
};

const TIMEOUTS = 'the timeouts are fixed';
const PRIMARY = 'the one host has to lead to the primary';
const POOLER = 'a pooler has to support prepared statements';

/** The advice for some parameters that are not supported. */
const advice: Readonly<Record<string, string>> = {
  application_name: 'connections are named portico',
  connect_timeout: TIMEOUTS,
  connection_limit: 'set DATABASE_POOL',
  dbname: 'name the database in the path',
  hostaddr: 'name the host alone',
  idle_in_transaction_session_timeout: TIMEOUTS,
  load_balance_hosts: PRIMARY,
  lock_timeout: TIMEOUTS,
  pgbouncer: POOLER,
  pool_timeout: TIMEOUTS,
  query_timeout: TIMEOUTS,
  socket_timeout: TIMEOUTS,
  sslaccept: 'use sslmode',
  sslidentity: 'use sslcert and sslkey',
  statement_cache_size: POOLER,
  statement_timeout: TIMEOUTS,
  target_session_attrs: PRIMARY,
};

/** The other parameters of libpq, Prisma and the driver, which are not supported either. */
const others = `
  binary channel_binding client_encoding encoding fallback_application_name gssdelegation gssencmode gsslib keepalives
  keepalives_count keepalives_idle keepalives_interval krbsrvname max_connection_lifetime max_idle_connection_lifetime
  max_protocol_version min_protocol_version passfile replication require_auth requirepeer requiressl scram_client_key
  scram_server_key service servicefile single_use_connections ssl_max_protocol_version ssl_min_protocol_version sslcertmode
  sslcompression sslcrl sslcrldir sslkeylogfile sslpassword sslsni tcp_user_timeout`
  .trim()
  .split(/\s+/);

/**
 * Adds the host `localhost` to an address that has none, as libpq allows. The standard of URLs does not where there is a user, and the
 * driver would take the host from the environment (`PGHOST`).
 */
export function completeAddress(text: string): string {
  return text.replace(/^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)(?=[/?]|$)/i, '$1localhost');
}

/** The problems of a DATABASE_URL: what it says without effect, or with another one. None repeats what may be a part of a password. */
export function findAddressProblems(address: URL): string[] {
  // libpq allows several; the driver would take them for one name.
  if (hostOf(address).includes(',')) return ['Must have one host, which leads to the primary'];
  const problems = [...address.searchParams.keys()].map((name) => findParameterProblem(name, address.searchParams.getAll(name)));
  if (address.hash !== '') problems.push('A # must be written as %23');
  // The driver does not decode these two, which cannot be written in another way.
  if (/%(3f|23)/i.test(databaseOf(address))) problems.push('A database with a ? or a # in its name is not supported');
  return [...new Set(problems)].filter((problem) => problem !== null);
}

/** The name of the database, encoded: without one, it is that of the user. */
function databaseOf({ pathname, searchParams, username }: URL): string {
  if (pathname.length > 1) return pathname.slice(1);
  return encodeURIComponent(searchParams.get('user') ?? decodeURIComponent(username));
}

function findParameterProblem(name: string, [value = '', ...more]: string[]): string | null {
  const pattern = Object.hasOwn(parameters, name) ? parameters[name] : undefined;
  if (!pattern && Object.hasOwn(advice, name)) return `The parameter ${name} is not supported: ${advice[name]}`;
  if (!pattern && others.includes(name)) return `The parameter ${name} is not supported: leave it out`;
  if (!pattern) return `A parameter is not one of ${Object.keys(parameters).join(', ')}`;
  if (more.length > 0) return `The parameter ${name} is set twice`;
  return pattern.test(value) ? null : `The parameter ${name} has a value that is not supported`;
}

/** The host of a connection: for PostgreSQL the parameter `host` takes precedence over the URL's own. */
export function hostOf(url: URL): string {
  const parameter = url.protocol.startsWith('postgres') ? url.searchParams.get('host') : null;
  return normalizeHost(parameter || decodeURIComponent(url.hostname));
}

/** Whether node-postgres verifies the server's certificate. Without `uselibpqcompat`, it also does in modes where libpq does not. */
export function verifiesServer(parameters: URLSearchParams): boolean {
  const mode = parameters.get('sslmode');
  if (mode === null) return parameters.get('ssl') === 'true' || parameters.get('ssl') === '1';
  const isLibpqCompatible = parameters.get('uselibpqcompat') === 'true';
  return mode === 'verify-full' || (!isLibpqCompatible && ['prefer', 'require', 'verify-ca'].includes(mode));
}

/** The server that DATABASE_URL names, for messages: without the user, the password and the database. */
export function describeServer(address: URL): string {
  const host = address.searchParams.get('host') ?? decodeURIComponent(address.hostname);
  const port = address.searchParams.get('port') ?? (address.port || '5432');
  return host.startsWith('/') ? `${host}/.s.PGSQL.${port}` : `${host}:${port}`;
}

/**
 * Replaces `prefer`, `require` and `verify-ca` by `verify-full`, unless the driver is to be compatible with libpq: it treats them so,
 * and would warn.
 */
export function writeSslMode({ searchParams }: URL): void {
  const isStrict = searchParams.get('uselibpqcompat') !== 'true';
  if (isStrict && /^(prefer|require|verify-ca)$/.test(searchParams.get('sslmode') ?? '')) searchParams.set('sslmode', 'verify-full');
}

/**
 * Writes where the address leads and as whom, as far as it does not say so: libpq's defaults, which the driver would otherwise take
 * from variables for other programs (`PGPORT`, `PGUSER`, `PGDATABASE`, `PGSSLMODE`, `PGSSLNEGOTIATION`).
 */
export function writeDefaults(address: URL): void {
  const { searchParams } = address;
  if (address.port === '' && !searchParams.has('port')) address.port = '5432';
  if (address.username === '' && !searchParams.has('user')) searchParams.set('user', findOwnName());
  address.pathname = databaseOf(address);
  const isDirect = searchParams.get('sslnegotiation') === 'direct';
  const saysTls = isDirect || ['ssl', 'sslmode', 'sslcert', 'sslkey', 'sslrootcert'].some((name) => searchParams.has(name));
  if (!saysTls) searchParams.set('sslmode', 'disable');
  if (!isDirect) searchParams.set('sslnegotiation', 'postgres');
}

/** The name of the user whom the process runs as, which a container may have no entry for. */
function findOwnName(): string {
  try {
    return userInfo().username;
  } catch (failure) {
    throw new Error('it names no user, and that of this process has no name', { cause: failure });
  }
}

/** Writes the name of the database as the driver reads it, which decodes `%20`, but not `%2F` and others that have a meaning in URLs. */
export function writeDatabaseName(address: URL): void {
  address.pathname = encodeURI(decodeURIComponent(address.pathname));
}
