import { tables } from '../generated/tables.ts';
import { withTimeout } from '../kernel/timeout.ts';
import { PROBE_DEADLINE_MS, type Probe } from './probe.ts';

/**
 * The tables that are missing or not restored yet. pg_restore creates the tables first, then their rows, then triggers and foreign
 * keys, and grants the rights last. Every table of ours has a trigger, so one without is being restored; and while `users`, which
 * every request reads, may not be read, the rights are missing.
 */
const MISSING_TABLES = `
  SELECT name FROM unnest($1::text[]) AS name
  WHERE NOT EXISTS (
    SELECT FROM pg_class WHERE relnamespace = to_regnamespace('public') AND relname = name AND relhastriggers
      AND (name <> 'users' OR has_table_privilege(pg_class.oid, 'SELECT')))`;

/** Looks for Portico's tables, which are missing in a database that is empty, or that is being restored: that is an outage. */
export class TablesCheck {
  #missing: readonly unknown[] = [];

  constructor(private readonly probe: Pick<Probe, 'query'>) {}

  /** An error where tables were missing when they were last looked for, whose code tells its cause apart in an `OutageLog`; otherwise null. */
  get failure(): Error | null {
    const { length } = this.#missing;
    if (length === 0) return null;
    const message = `the database lacks ${length} tables of Portico, or their triggers or rights: it is being restored, or it is empty; \`npm run portico -- migrate\` creates them`;
    return Object.assign(new Error(message), { code: 'TABLES_MISSING' });
  }

  /** Looks for the tables. Throws for a database that does not answer, and as `Probe.query` does: then nothing new is known of them. */
  async run(connections: { readonly isAlone: boolean; readonly isRejected: boolean }): Promise<void> {
    this.#missing = await withTimeout(this.probe.query(MISSING_TABLES, [tables], connections), PROBE_DEADLINE_MS);
  }
}
