import { setImmediate } from 'node:timers/promises';
import type { Viewer } from '../../access/viewer.ts';
import { createContext } from '../../graph/context.ts';
import { Fault } from '../../kernel/fault.ts';
import { stringifyJson } from '../../kernel/json/text.ts';
import type { Lifecycle } from '../../kernel/lifecycle.ts';
import type { Pipeline } from '../../pipeline/pipeline.ts';
import type { Logger } from '../../platform/logger.ts';
import type { ContextDependencies } from '../http/context.ts';
import type { BoundRoute } from './route.ts';
import { createExecutor } from './router.ts';

interface WarmUpDependencies extends ContextDependencies {
  readonly pipeline: Pipeline;
  readonly log: Logger;
  readonly lifecycle: Lifecycle;
  /** How often each route is read, and by how many requests at once. */
  readonly rounds: number;
  readonly atOnce: number;
  /** The time limit: a replica that is slow to warm up serves nevertheless. */
  readonly patienceMs: number;
}

/** The validity of the warm-up's session. */
const SESSION_MS = 60_000;

/** The ids of a project, one of its members, and an instance and a dashboard that the member can read. */
interface Sample {
  readonly user_id: string;
  readonly organization_id: string;
  readonly project_id: string;
  readonly instance_id: string | null;
  readonly dashboard_id: string | null;
}

/**
 * Serves reads as a member of some project, and discards the responses: the first requests of a new replica would otherwise wait
 * for V8 to compile, for connections to open and for PostgreSQL to plan. Never throws: the requests of clients will report
 * what is wrong.
 */
export async function warmUp(bound: readonly BoundRoute[], dependencies: WarmUpDependencies): Promise<void> {
  const { lifecycle, rounds, atOnce, patienceMs } = dependencies;
  if (lifecycle.isClosing) return;
  const deadline = performance.now() + patienceMs;
  try {
    const sample = await findSample(dependencies);
    if (!sample) return;
    const reads = bound.filter(({ route, pathNames }) => route.method === 'get' && pathNames.every((name) => sample[name as keyof Sample]));
    // Where only the operator's documents are accepted, clients send none like these.
    if (!dependencies.pipeline.trusted.isOnly) for (const { route } of reads) validateAsClient(dependencies, route.operation);
    for (let index = 0; index < rounds * reads.length && performance.now() < deadline && !lifecycle.isClosing; index += 1) {
      const route = reads[index % reads.length] as BoundRoute;
      await Promise.all(Array.from({ length: atOnce }, () => read(route, sample, dependencies)));
      await setImmediate();
    }
  } catch (failure) {
    // A start that fails, or is stopped, closes the database under it.
    if (!lifecycle.isClosing) dependencies.log.warn({ err: failure }, 'could not warm up');
  }
}

/** Of the newest projects one that has an instance and a dashboard, if there is one: a route whose ids are not there is not read. */
async function findSample({ database }: WarmUpDependencies): Promise<Sample | undefined> {
  const [sample] = await database.query<Sample>`
    SELECT member.user_id, project.organization_id, project.id AS project_id,
      (SELECT id FROM instances WHERE project_id = project.id AND status <> 'deleted' LIMIT 1) AS instance_id,
      (SELECT id FROM dashboards WHERE project_id = project.id AND is_public LIMIT 1) AS dashboard_id
    FROM (SELECT id, organization_id FROM projects ORDER BY id DESC LIMIT 100) AS project
    JOIN project_members AS member ON member.project_id = project.id
    JOIN organization_members AS within ON within.organization_id = project.organization_id AND within.user_id = member.user_id
    ORDER BY EXISTS (SELECT FROM instances WHERE project_id = project.id AND status <> 'deleted') DESC,
      EXISTS (SELECT FROM dashboards WHERE project_id = project.id AND is_public) DESC, project.id DESC
    LIMIT 1`;
  return sample;
}

/** Takes a document through the steps before its execution, as if a client had sent it. */
function validateAsClient({ pipeline }: WarmUpDependencies, text: string): void {
  const { schema, parse, validate } = pipeline.getEnveloped({ openContext: throwUnused });
  validate(schema, parse(text));
}

async function read(route: BoundRoute, sample: Sample, { pipeline, database, services, log }: WarmUpDependencies): Promise<void> {
  const expires = new Date(Date.now() + SESSION_MS);
  const viewer: Viewer = { userId: sample.user_id, email: '', name: '', created: expires, credential: { kind: 'session', expires } };
  const openContext = () =>
    createContext({
      database,
      services,
      viewer,
      openLogger: () => log,
      onlyProject: null,
      v1Operation: route.name,
      renewCredential: throwUnused,
      watchAccess: throwUnused,
    });
  const { body } = await route.serve({
    pathParameters: Object.fromEntries(route.pathNames.map((name) => [name, sample[name as keyof Sample] ?? ''])),
    ifMatch: undefined,
    idempotencyKey: undefined,
    readUrl: () => 'http://localhost/',
    readQuery: () => new URLSearchParams(),
    readBody: throwUnused,
    openContext,
    execute: createExecutor(pipeline, openContext),
  });
  stringifyJson(body);
}

/** Replaces the functions that a read never calls. */
function throwUnused(): never {
  throw Fault.invalidRequest('Nobody has asked.');
}
