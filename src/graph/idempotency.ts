import type { ExecutionResult, GraphQLResolveInfo } from 'graphql';
import { type ProjectIds, type ProjectScope, rebindScope } from '../access/scope.ts';
import { Fault } from '../kernel/fault.ts';
import type { SqlClient } from '../platform/database.ts';
import { toFault } from '../platform/errors.ts';
import type { InputFields } from './builder.ts';
import type { Context } from './context.ts';
import { describeRequest } from './fingerprint.ts';
import { type StoredContent, StoredResponse } from './storedresponse.ts';

/** The input field of a mutation for its idempotency key. */
export function idempotencyKey(t: InputFields) {
  return t.field({
    type: 'IdempotencyKey',
    description:
      'Makes the request safe to retry: within 24 hours, the same key with the same request returns the first response, and nothing is ' +
      'done twice. With another request it fails with `idempotency_key_reused`.',
  });
}

/** The context of a write. Its statements may run in a transaction, so Prisma’s client is not part of it. */
export interface WriteContext extends Pick<Context, 'services' | 'requireViewer' | 'requireSession'> {
  readonly database: SqlClient;
  openProject(ids: ProjectIds): Promise<ProjectScope<SqlClient>>;
}

interface WriteRequest {
  readonly input: { readonly idempotencyKey?: string | null; readonly organizationId?: string; readonly projectId?: string };
  readonly context: Context;
  readonly info: GraphQLResolveInfo;
}

interface WriteOptions {
  /** Only a user session may read the response. */
  readonly needsSession?: boolean;
  /** Throws for an input that is too large to be described for its key: what one variable holds may be in it many times. */
  readonly checkSize?: () => void;
  /** Performing it twice is harmless, so that it need not share a transaction with its stored response. */
  readonly isRepeatable?: boolean;
}

/**
 * Performs a field of a mutation, with an idempotency key only once. The fields run one after another: each checks access anew, and its
 * payload is loaded after its write, though a failed field before it may still be loading. Null if the stored response replaces
 * the field. Throws `idempotency_key_reused` for a key that was sent with another request, and `conflict` beyond the quota.
 */
export async function runIdempotently<Outcome extends object>(
  request: WriteRequest,
  perform: (context: WriteContext) => Promise<Outcome>,
  options: WriteOptions = {},
): Promise<Outcome | null> {
  const { context } = request;
  context.clearLoaded();
  context.clearOpened();
  const outcome = await performOnce(request, perform, options);
  context.clearLoaded();
  return outcome;
}

/**
 * With a key, the outcome is stored in the same transaction, and the first response is stored before it is sent. Access to the project is
 * checked before the key is looked up; everything else is checked only if no response is stored. A `conflict` is stored too; any other
 * fault leaves nothing behind, and the request can be sent again.
 */
async function performOnce<Outcome extends object>(
  { input, context, info }: WriteRequest,
  perform: (context: WriteContext) => Promise<Outcome>,
  { needsSession = false, isRepeatable = false, checkSize }: WriteOptions,
): Promise<Outcome | null> {
  const { idempotencyKey: key, organizationId, projectId } = input;
  if (key === undefined || key === null) return perform(context);
  const { userId } = context.requireViewer();
  if (projectId !== undefined) await context.openProject({ organizationId, projectId });
  checkSize?.();
  const fingerprint = describeRequest(info, input, context.v1Operation);
  const stored = new StoredResponse<Outcome>(context.database, {
    userId,
    key,
    fingerprint,
    quota: context.services.quotas.idempotencyKeysPerUser,
  });
  const readStored = () => {
    if (needsSession) context.requireSession();
    return stored.read((load) => context.openResponseBudget().read(info.path, load));
  };
  const attempt = async () => (await performInTransaction(stored, context, perform)) ?? (await readStored());
  const attemptAgain = async () => {
    // A request with the key may be under way that has taken the last place, or the key has just become free.
    await stored.awaitClaim();
    return attempt();
  };
  const content = isRepeatable
    ? ((await readStored()) ?? (await performAndStore(stored, () => perform(context))) ?? (await readStored()))
    : ((await attempt()) ?? (await attemptAgain()));
  if (!content) throw stored.quotaExceeded();
  if (content.kind === 'refusal') throw new Fault('conflict', content.detail, content.context && { context: content.context });
  const name = info.path.key;
  if (content.kind === 'answer') {
    context.onResult(async (result) => replaceField(result, name, content.value));
    return null;
  }
  context.onResult(async (result) => {
    const value = result.data?.[name];
    // A response with errors is not stored: the request may be answered better when it is sent again.
    if (value === null || value === undefined || result.errors?.some(({ path }) => path?.[0] === name)) return;
    if (await stored.storeResponse(value)) return;
    const first = await stored.read((load) => load(Number.MAX_SAFE_INTEGER));
    if (first?.kind === 'answer') replaceField(result, name, first.value);
  });
  return content.outcome;
}

/** Null if the key is taken or the quota is exceeded. */
async function performInTransaction<Outcome>(
  stored: StoredResponse<Outcome>,
  context: Context,
  perform: (context: WriteContext) => Promise<Outcome>,
): Promise<StoredContent<Outcome> | null> {
  try {
    return await context.database.transact(async (query, within) => {
      if (!(await stored.claim(query))) return null;
      const outcome = await perform({
        services: context.services,
        requireViewer: context.requireViewer,
        requireSession: context.requireSession,
        database: within,
        openProject: async (ids) => rebindScope(await context.openProject(ids), within),
      });
      await stored.storeOutcome(query, outcome);
      return { kind: 'outcome', outcome };
    });
  } catch (failure) {
    // A trigger of the database may find the conflict.
    const fault = toFault(failure);
    if (fault.code !== 'conflict') throw failure;
    const rejection: StoredContent<Outcome> = { kind: 'refusal', detail: fault.message, context: fault.context };
    return (await stored.store(rejection)) ? rejection : null;
  }
}

/** Null if a concurrent request with the key was first. Throws `conflict` beyond the quota. */
async function performAndStore<Outcome>(
  stored: StoredResponse<Outcome>,
  perform: () => Promise<Outcome>,
): Promise<StoredContent<Outcome> | null> {
  await stored.requireRoom();
  const content: StoredContent<Outcome> = { kind: 'outcome', outcome: await perform() };
  return (await stored.store(content)) ? content : null;
}

function replaceField({ data }: ExecutionResult, name: string | number, value: unknown): void {
  if (data) data[name] = value;
}
