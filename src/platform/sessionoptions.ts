import type pg from 'pg';
import { writeDatabaseName, writeDefaults, writeSslMode } from './address.ts';

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
