import type { InputFieldBuilder } from '@pothos/core';
import type { ExecutionResult, GraphQLResolveInfo } from 'graphql';
import { moveScope, type ProjectIds, type ProjectScope } from '../access/scope.ts';
import { Fault } from '../kernel/fault.ts';
import type { Statements } from '../platform/database.ts';
import type { ReadWeighed } from './answer.ts';
import type { builder } from './builder.ts';
import type { Context } from './context.ts';
import { describeRequest } from './fingerprint.ts';
import { type AnswerQuota, type Content, KeptAnswer } from './kept.ts';

declare module './context.ts' {
  interface Services {
    readonly keptAnswers: AnswerQuota;
  }
}

/** The field of a mutation's input that lets the request be sent twice. */
export function idempotencyKey(t: InputFieldBuilder<typeof builder.$inferSchemaTypes, 'InputObject'>) {
  return t.field({
    type: 'IdempotencyKey',
    description:
      'Lets the request be sent again: within 24 hours the same key with the same request is answered as the first time, and nothing is ' +
      'done twice; with another request it is `idempotency_key_reused`.',
  });
}

/** What a write may use of the context: its statements may be within a transaction, so that Prisma’s client is no part of it. */
export interface WriteContext extends Pick<Context, 'services' | 'requireViewer' | 'requireSession'> {
  readonly database: Statements;
  openProject(ids: ProjectIds): Promise<ProjectScope<Statements>>;
}

interface WriteRequest {
  readonly input: { readonly idempotencyKey?: string | null; readonly organizationId?: string; readonly projectId?: string };
  readonly context: Context;
  readonly info: GraphQLResolveInfo;
}

interface WriteOptions {
  /** Its answer is for a user session alone. */
  readonly needsSession?: boolean;
  /** Does no harm when it is done twice, so that it need not be one transaction with what is kept of it. */
  readonly isRepeatable?: boolean;
}

/**
 * Performs a mutation, with an idempotency key once: what it has done is kept in the same transaction, and the first answer
 * that is made of it is kept before it is sent. The access to the project is checked before a key counts, all else of the
 * mutation only where there is no answer yet. A `conflict` is kept, too; any other refusal leaves nothing behind, and the
 * request can be sent again. Null where the first answer is put in place of the field.
 */
export async function once<Outcome extends object>(
  { input, context, info }: WriteRequest,
  perform: (context: WriteContext) => Promise<Outcome>,
  { needsSession = false, isRepeatable = false }: WriteOptions = {},
): Promise<Outcome | null> {
  const { idempotencyKey: key, organizationId, projectId } = input;
  if (key === undefined || key === null) return perform(context);
  const { userId } = context.requireViewer();
  if (projectId !== undefined) await context.openProject({ organizationId, projectId });
  const request = describeRequest(info, input, context.route);
  const kept = new KeptAnswer<Outcome>(context.database, { userId, key, request, quota: context.services.keptAnswers });
  const read: ReadWeighed = (load) => context.openAnswerBudget().read(info.path, load);
  const readKept = () => {
    if (needsSession) context.requireSession();
    return kept.read(read);
  };
  const content = isRepeatable
    ? ((await readKept()) ?? (await repeat(kept, () => perform(context))) ?? (await readKept()))
    : ((await write(kept, context, perform)) ?? (await readKept()));
  if (!content) throw kept.refuseMore();
  if (content.kind === 'refusal') throw new Fault('conflict', content.detail, content.context && { context: content.context });
  const { key: name } = info.path;
  if (content.kind === 'answer') {
    context.onResult(async (result) => putAnswer(result, name, content.value));
    return null;
  }
  context.onResult(async (result) => {
    const value = result.data?.[name];
    // An answer with an error in it is not the last word.
    if (value === null || value === undefined || result.errors?.some(({ path }) => path?.[0] === name)) return;
    if (await kept.keepAnswer(value)) return;
    const first = await kept.read((load) => load(Number.MAX_SAFE_INTEGER));
    if (first?.kind === 'answer') putAnswer(result, name, first.value);
  });
  return content.outcome;
}

/** Null where the key is taken. */
async function write<Outcome>(
  kept: KeptAnswer<Outcome>,
  context: Context,
  perform: (context: WriteContext) => Promise<Outcome>,
): Promise<Content<Outcome> | null> {
  try {
    return await context.database.transact(async (query, within) => {
      if (!(await kept.claim(query))) return null;
      const outcome = await perform({
        ...context,
        database: within,
        openProject: async (ids) => moveScope(await context.openProject(ids), within),
      });
      await kept.keepOutcome(query, outcome);
      return { kind: 'outcome', outcome };
    });
  } catch (failure) {
    if (!(failure instanceof Fault) || failure.code !== 'conflict') throw failure;
    const refusal: Content<Outcome> = { kind: 'refusal', detail: failure.message, context: failure.context };
    return (await kept.enter(refusal)) ? refusal : null;
  }
}

/** Null where another request with the key was quicker. */
async function repeat<Outcome>(kept: KeptAnswer<Outcome>, perform: () => Promise<Outcome>): Promise<Content<Outcome> | null> {
  await kept.requireRoom();
  const content: Content<Outcome> = { kind: 'outcome', outcome: await perform() };
  return (await kept.enter(content)) ? content : null;
}

function putAnswer({ data }: ExecutionResult, name: string | number, value: unknown): void {
  if (data) data[name] = value;
}
