import { tables } from '../generated/tables.ts';
import { OperatorError } from './operatorerror.ts';

/** A right on a table, or on one of its columns. */
export interface Right {
  readonly table: string;
  readonly right: string;
  readonly column: string | null;
}

/** The gateway's rights to write, by table, as the script of docs/operations.md (Roles) grants them. It may read every table. */
const writes: Readonly<Record<string, readonly string[]>> = {
  dashboards: ['INSERT', 'UPDATE', 'DELETE'],
  notification_states: ['INSERT', 'UPDATE', 'DELETE'],
  notification_reads: ['INSERT', 'UPDATE', 'DELETE'],
  api_keys: ['INSERT', 'UPDATE (last_used)', 'UPDATE (revoked)', 'DELETE'],
  websocket_tickets: ['INSERT', 'UPDATE (used_at)', 'DELETE'],
  kept_answers: ['INSERT', 'UPDATE', 'DELETE'],
  task_counters: ['DELETE'],
  console_sessions: ['INSERT', 'UPDATE'],
  console_handovers: ['INSERT', 'UPDATE', 'DELETE'],
  notifications: ['INSERT', 'DELETE'],
  notification_logs: ['UPDATE (pruned_through)'],
  projects: ['UPDATE (created)'],
};

/** The rights that a server needs. `deletesConsoleRecords`: CONSOLE_RECORD_DAYS is set. */
export function listRights({ deletesConsoleRecords }: { deletesConsoleRecords: boolean }): Right[] {
  const rights = [
    ...tables.map((table) => ({ table, right: 'SELECT', column: null })),
    ...Object.entries(writes).flatMap(([table, names]) => names.map((name) => ({ table, ...parseRight(name) }))),
  ];
  return deletesConsoleRecords ? [...rights, { table: 'console_sessions', right: 'DELETE', column: null }] : rights;
}

/** Parses a right on a table or, in brackets, on one of its columns. */
function parseRight(text: string): Omit<Right, 'table'> {
  const [, right = '', column = null] = /^(\w+)(?: \((\w+)\))?$/.exec(text) ?? [];
  return { right, column };
}

/** The rights that the role lacks. A table that is not there lacks none: `TablesCheck` reports it. */
const LACKING = `
  SELECT current_user AS role, name AS table, needed AS right, part AS column
  FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS listed (name, needed, part, position)
  LEFT JOIN pg_class ON relnamespace = to_regnamespace('public') AND relname = name
  WHERE NOT CASE WHEN part IS NULL THEN has_table_privilege(pg_class.oid, needed) ELSE has_column_privilege(pg_class.oid, part, needed) END
  ORDER BY position`;

/** How many of the missing rights are named. */
const NAMED = 3;

type RunQuery = (sql: string, values: readonly unknown[]) => Promise<Array<Record<string, unknown>>>;

/** Throws an OperatorError where the role of a connection lacks one of the rights. */
export async function requireRights(query: RunQuery, rights: readonly Right[]): Promise<void> {
  const lacking = await query(LACKING, [
    rights.map(({ table }) => table),
    rights.map(({ right }) => right),
    rights.map(({ column }) => column),
  ]);
  if (lacking.length === 0) return;
  const names = lacking.slice(0, NAMED).map(({ table, right, column }) => `${right}${column === null ? '' : ` (${column})`} on ${table}`);
  const others = lacking.length > NAMED ? [`${lacking.length - NAMED} more`] : [];
  throw new OperatorError(
    `The role ${lacking[0]?.role} lacks ${[...names, ...others].join(', ')}: run the script of docs/operations.md (Roles).`,
  );
}
