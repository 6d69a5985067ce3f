import type pg from 'pg';
import { writeDatabaseName, writeDefaults, writeSslMode } from './databaseurl.ts';

/**
 * The settings of every session, which a database or a role may have other defaults for; the backslash keeps a space. By the
 * keep-alives PostgreSQL notices within a minute, instead of two hours, that a machine has vanished. Without `array_nulls` a null
 * in an array would be the text `NULL`. A wait for a lock ends with the statement.
 */
export const sessionOptions =
  '-c timezone=UTC -c DateStyle=ISO,MDY -c search_path=public -c default_transaction_isolation=read\\ committed ' +
  '-c array_nulls=on -c lock_timeout=0 ' +
  '-c idle_session_timeout=0 -c tcp_keepalives_idle=30 -c tcp_keepalives_interval=10 -c tcp_keepalives_count=3';

/**
 * How statements are planned. JIT compilation takes longer than any statement of ours, and planning as long as most: plans are
 * reused. A reused plan must stay right when a table that was empty has grown, also within functions and foreign keys: so
 * sequential scans are off.
 */
export const planSettings = { jit: 'off', plan_cache_mode: 'force_generic_plan', enable_seqscan: 'off' } as const;

/** The settings in the form of `options`. */
export const planOptions = Object.entries(planSettings)
  .map(([name, value]) => `-c ${name}=${value}`)
  .join(' ');

/**
 * The driver's configuration for an address and the settings of a session. The driver would use `options` of the URL in place of
 * ours, so both are sent in one value; ours come last, and therefore hold.
 */
export function withSession(url: string, session: string): Pick<pg.ClientConfig, 'connectionString' | 'options'> {
  const address = new URL(url);
  const options = address.searchParams.get('options');
  address.searchParams.delete('options');
  writeDefaults(address);
  writeDatabaseName(address);
  writeSslMode(address);
  return { connectionString: address.href, options: options === null ? session : `${options} ${session}` };
}
