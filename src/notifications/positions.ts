import type { Database } from '../platform/database.ts';
import type { ReadStateKey } from './readstate.ts';

/** How far a project's log reaches. */
export interface LogPosition {
  readonly projectId: string;
  readonly last: number;
  /** The last sequence that retention has removed. */
  readonly prunedThrough: number;
}

/** The version of a user's read state. */
interface ReadStateVersion extends ReadStateKey {
  readonly version: number;
}

interface Positions {
  readonly logs: LogPosition[];
  readonly readStates: ReadStateVersion[];
}

/** The positions of logs and the versions of read states, as far as they exist, in one statement. */
export async function loadPositions(database: Database, projectIds: readonly string[], keys: readonly ReadStateKey[]): Promise<Positions> {
  const projects = [...projectIds, ...keys.map(({ projectId }) => projectId)];
  const users = [...projectIds.map(() => null), ...keys.map(({ userId }) => userId)];
  const rows = await database.query<LogPosition & { userId: string | null; version: number | null }>`
    SELECT log.project_id AS "projectId", log.last_sequence AS last, log.pruned_through AS "prunedThrough",
      state.user_id AS "userId", state.version
    FROM unnest(${projects}::uuid[], ${users}::uuid[]) AS wanted (project_id, user_id)
    JOIN notification_logs AS log ON log.project_id = wanted.project_id
    LEFT JOIN notification_states AS state ON state.project_id = wanted.project_id AND state.user_id = wanted.user_id
    WHERE wanted.user_id IS NULL OR state.user_id IS NOT NULL`;
  return {
    logs: rows.filter(({ userId }) => userId === null),
    readStates: rows.flatMap(({ projectId, userId, version }) =>
      userId === null || version === null ? [] : [{ projectId, userId, version }],
    ),
  };
}

/** The version of a user's read state; 0 before its first change. */
export async function loadVersion(database: Database, key: ReadStateKey): Promise<number> {
  const { readStates } = await loadPositions(database, [], [key]);
  return readStates[0]?.version ?? 0;
}
