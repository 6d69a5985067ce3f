import type pg from 'pg';
import { writeDatabaseName, writeSslMode } from './address.ts';

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
 * Connects to PostgreSQL with the settings of a session. The driver prefers `options` of the URL to ours: they are sent together,
 * ours last, which therefore hold.
 */
export function withSession(url: string, session: string): Pick<pg.ClientConfig, 'connectionString' | 'options'> {
  const address = new URL(url);
  const options = address.searchParams.get('options');
  address.searchParams.delete('options');
  writeDatabaseName(address);
  writeSslMode(address);
  return { connectionString: address.href, options: options === null ? session : `${options} ${session}` };
}
