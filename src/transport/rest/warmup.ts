import { setImmediate } from 'node:timers/promises';
import type { Viewer } from '../../access/viewer.ts';
import { createContext } from '../../graph/context.ts';
import { Fault } from '../../kernel/fault.ts';
import { toJsonText } from '../../kernel/jsontext.ts';
import type { Pipeline } from '../../pipeline/pipeline.ts';
import type { Logger } from '../../platform/logger.ts';
import type { ContextParts } from '../http/context.ts';
import { executeChecked } from './door.ts';
import type { BoundRoute } from './route.ts';

interface WarmUpParts extends ContextParts {
  readonly pipeline: Pipeline;
  readonly log: Logger;
  /** So many requests at once, that every connection to the database is open and knows the statements. */
  readonly connections: number;
  /** How long it may take: a replica that is slow to warm up serves all the same. */
  readonly patienceMs: number;
}

/** How long the viewer of a warm-up is one. */
const SESSION_MS = 60_000;
/** So often each is read on all connections: not every one of them gets it at the first time. */
const ROUNDS_AT_ONCE = 4;

/** What a member of some project can read. */
interface Place {
  readonly user_id: string;
  readonly organization_id: string;
  readonly project_id: string;
  readonly instance_id: string | null;
  readonly dashboard_id: string | null;
}

/**
 * Reads what clients will read, as a member of some project, and throws it away: the first requests of a fresh replica would
 * otherwise wait for V8 to compile, for connections to open and for PostgreSQL to plan. Never throws: what keeps it from
 * working is for the requests to find.
 */
export async function warmUp(bound: readonly BoundRoute[], parts: WarmUpParts): Promise<void> {
  const deadline = performance.now() + parts.patienceMs;
  try {
    const place = await findPlace(parts);
    if (!place) return;
    const reads = bound.filter(({ route, idNames }) => route.method === 'get' && idNames.every((name) => place[name as keyof Place]));
    // Where only the operator's documents are run, clients send none like these.
    if (!parts.pipeline.trusted.isOnly) for (const { route } of reads) checkAsClient(parts, route.operation);
    // Many at a time for the connections, then one by one for V8: the rest of the machine has work to do.
    for (let index = 0; reads.length > 0 && performance.now() < deadline; index += 1) {
      const atOnce = index < ROUNDS_AT_ONCE * reads.length ? parts.connections : 1;
      const route = reads[index % reads.length] as BoundRoute;
      await Promise.all(Array.from({ length: atOnce }, () => read(route, place, parts)));
      await setImmediate();
    }
  } catch (failure) {
    parts.log.warn({ err: failure }, 'could not warm up');
  }
}

async function findPlace({ database }: WarmUpParts): Promise<Place | undefined> {
  const [place] = await database.query<Place>`
    SELECT member.user_id, project.organization_id, project.id AS project_id,
      (SELECT id FROM instances WHERE project_id = project.id AND status <> 'deleted' LIMIT 1) AS instance_id,
      (SELECT id FROM dashboards WHERE project_id = project.id AND is_public LIMIT 1) AS dashboard_id
    FROM project_members AS member
    JOIN projects AS project ON project.id = member.project_id
    JOIN organization_members AS within ON within.organization_id = project.organization_id AND within.user_id = member.user_id
    ORDER BY project.id DESC LIMIT 1`;
  return place;
}

/** What a client's document passes before it is executed. */
function checkAsClient({ pipeline }: WarmUpParts, text: string): void {
  const { schema, parse, validate } = pipeline.getEnveloped({ openContext: raiseUnasked });
  validate(schema, parse(text));
}

async function read(route: BoundRoute, place: Place, { pipeline, database, services, log }: WarmUpParts): Promise<void> {
  const expires = new Date(Date.now() + SESSION_MS);
  const viewer: Viewer = { userId: place.user_id, email: '', name: '', created: expires, credential: { kind: 'session', expires } };
  const openContext = () =>
    createContext({
      database,
      services,
      viewer,
      openLogger: () => log,
      onlyProject: null,
      route: route.name,
      renewCredential: raiseUnasked,
      watchAccess: raiseUnasked,
    });
  const answer = await route.serve({
    pathParameters: Object.fromEntries(route.idNames.map((name) => [name, place[name as keyof Place] ?? ''])),
    ifMatch: undefined,
    idempotencyKey: undefined,
    readUrl: () => 'http://localhost/',
    readQuery: () => new URLSearchParams(),
    readBody: raiseUnasked,
    openContext,
    execute: executeChecked(pipeline, openContext),
  });
  toJsonText(answer.body);
}

function raiseUnasked(): never {
  throw Fault.invalidRequest('Nobody has asked.');
}
