import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { asPostgres, type Cluster } from './cluster.ts';
import { findLowPort } from './ports.ts';
import { execute } from './sql.ts';

/** A PostgreSQL standby that follows a primary by streaming replication, read-only until it is promoted. */
export interface Standby {
  readonly url: string;
  /** Pauses replay: later commits are received, but not visible. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Makes it a primary; resolves once it takes writes. */
  promote(): Promise<void>;
  /** Whether it has replayed the primary's log up to a position; waits at most `patienceMs`. */
  reaches(position: string, patienceMs: number): Promise<boolean>;
  close(): Promise<void>;
}

const POLL_INTERVAL_MS = 10;

export async function openStandby({ host, port, url }: Pick<Cluster, 'host' | 'port' | 'url'>): Promise<Standby> {
  const folder = mkdtempSync(join(tmpdir(), 'portico-standby-'));
  const data = join(folder, 'data');
  const ownPort = await findLowPort();
  const run = await asPostgres(folder);
  const own = new URL(url);
  own.port = String(ownPort);
  const ask = async (expression: string) => {
    const [row] = await execute(own.href, `SELECT (${expression})::text AS value`);
    return row?.value;
  };
  const waitFor = async (expression: string, expected: string, patienceMs: number) => {
    for (const deadline = performance.now() + patienceMs; ; await sleep(POLL_INTERVAL_MS)) {
      if ((await ask(expression)) === expected) return true;
      if (performance.now() > deadline) return false;
    }
  };
  const close = async () => {
    if (existsSync(join(data, 'postmaster.pid'))) await run('pg_ctl', ['-D', data, '-w', '-m', 'immediate', 'stop']);
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const source = ['-h', host, '-p', String(port), '-U', 'postgres'];
    await run('pg_basebackup', [...source, '-D', data, '--write-recovery-conf', '--checkpoint=fast', '--no-sync']);
    // The copy has the primary's settings; a later line overrides an earlier one.
    writeFileSync(join(data, 'postgresql.conf'), `port = ${ownPort}\n`, { flag: 'a' });
    await run('pg_ctl', ['-D', data, '-w', '-t', '60', '-l', join(folder, 'log'), 'start']);
  } catch (failure) {
    await close();
    throw failure;
  }
  return {
    url: own.href,
    async pause() {
      await ask('pg_wal_replay_pause()');
      // The pause is only requested here: the record being replayed still becomes visible.
      if (!(await waitFor('pg_get_wal_replay_pause_state()', 'paused', 10_000))) throw new Error('the standby does not pause');
    },
    resume: async () => void (await ask('pg_wal_replay_resume()')),
    promote: async () => void (await run('pg_ctl', ['-D', data, '-w', '-t', '60', 'promote'])),
    reaches: (position, patienceMs) => waitFor(`pg_last_wal_replay_lsn() >= '${position}'::pg_lsn`, 'true', patienceMs),
    close,
  };
}

/** The position in the primary's log after everything committed so far. */
export async function positionOf(primaryUrl: string): Promise<string> {
  const [row] = await execute(primaryUrl, 'SELECT pg_current_wal_insert_lsn()::text AS position');
  return String(row?.position);
}
