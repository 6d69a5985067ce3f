import {
  type ASTNode,
  type ASTVisitor,
  createSourceEventStream,
  type DocumentNode,
  type ExecutionArgs,
  type ExecutionResult,
  executeSync,
  type GraphQLSchema,
  getArgumentValues,
  getOperationAST,
  getVariableValues,
  Kind,
  type OperationDefinitionNode,
  visit,
} from 'graphql';
import type { Context } from '../../graph/context.ts';
import { type Shareable, Source } from '../../graph/source.ts';
import { createTextCache } from '../../kernel/cache.ts';
import { getOrInsert } from '../../kernel/map.ts';
import { checkEventSize } from '../../pipeline/responselimits.ts';
import { cacheText } from './texts.ts';

/** The source of a subscription's events, before they are executed; or the result with errors of the subscription itself. */
export async function openSource(args: ExecutionArgs): Promise<Source | ExecutionResult> {
  const stream = await createSourceEventStream(args);
  if (!(Symbol.asyncIterator in stream)) return stream;
  if (stream instanceof Source) return stream;
  throw new Error('a subscription is resolved to a Source');
}

/** Serializes a result as the text that is sent. */
export type FormatResult = (result: ExecutionResult, context: Context) => string;

/**
 * The renderer of a subscription's events: a document, the variables that affect them, and the format of a transport. An event
 * that many subscribers share is executed and serialized once for all of them with the same renderer; the domain shares only
 * events that are the same for every viewer. An event contains all its fields, so that they resolve synchronously.
 */
export class EventRenderer {
  readonly #args: Omit<ExecutionArgs, 'contextValue' | 'rootValue'>;
  readonly #texts = new WeakMap<object, Buffer>();
  /** How long the last call of `render` took, in milliseconds; 0 if the text had been rendered for another subscriber. */
  lastTookMs = 0;

  constructor(
    { schema, document, operationName, variableValues }: ExecutionArgs,
    private readonly formatResult: FormatResult,
  ) {
    this.#args = { schema, document, operationName, variableValues };
  }

  /** One event's text, in UTF-8. Throws what `formatResult` throws, and `invalid_request` for an event that would be too large. */
  render(event: Shareable, openContext: () => Context): Buffer {
    const cached = this.#texts.get(event);
    this.lastTookMs = 0;
    if (cached) return cached;
    const startedAt = performance.now();
    const context = openContext();
    const result = executeSync({ ...this.#args, rootValue: event, contextValue: context });
    checkEventSize(result);
    const text = Buffer.from(this.formatResult(result, context));
    this.lastTookMs = performance.now() - startedAt;
    // An error may concern this subscriber alone.
    if (event.isShared && !result.errors) cacheText(this.#texts, event, text);
    return text;
  }
}

/** The shared renderers. A renderer that is evicted is no longer shared. */
export class RendererCache {
  readonly #cache = createTextCache<EventRenderer>();

  /** The renderer of a client's subscription: shared by all subscriptions whose events have the same texts, to the byte. */
  forSubscription(args: ExecutionArgs, formatResult: FormatResult): EventRenderer {
    const key = rendererKey(args);
    const create = () => new EventRenderer(args, formatResult);
    return key === null ? create() : getOrInsert<string, EventRenderer>(this.#cache, key, create);
  }
}

/**
 * The key of a subscription's renderer: the document, the name of the operation, and the coerced variables, where an omitted
 * one differs from null. Variables that are used only in the arguments of the subscribed field (the cursor, the ids) do not
 * affect an event, so the key omits them. Null for a subscription whose events are rendered for itself alone.
 */
function rendererKey({ schema, document, operationName, variableValues }: ExecutionArgs): string | null {
  const operation = getOperationAST(document, operationName);
  const text = document.loc?.source.body;
  if (!operation || text === undefined) return null;
  const { coerced } = getVariableValues(schema, operation.variableDefinitions ?? [], variableValues ?? {});
  if (!coerced || !hasValidArguments(schema, operation, coerced)) return null;
  const used = namesInEvents(document, operation);
  // The object of coerced variables lacks a variable with this name.
  if (used.has('__proto__')) return null;
  const relevant = [...used].sort().map((name) => (Object.hasOwn(coerced, name) ? [name, coerced[name]] : [name]));
  return JSON.stringify([text, operation.name?.value ?? null, relevant]);
}

/** The names of the variables that a document uses anywhere but in the arguments of the subscribed field. */
function namesInEvents({ definitions }: DocumentNode, { selectionSet }: OperationDefinitionNode): ReadonlySet<string> {
  const names = new Set<string>();
  const collect: ASTVisitor = { Variable: ({ name }) => void names.add(name.value) };
  for (const selection of selectionSet.selections) {
    for (const [key, part] of Object.entries(selection)) if (key !== 'arguments') visitPart(part, collect);
  }
  for (const definition of definitions) if (definition.kind === Kind.FRAGMENT_DEFINITION) visit(definition, collect);
  return names;
}

function visitPart(part: unknown, visitor: ASTVisitor): void {
  if (Array.isArray(part)) for (const item of part) visitPart(item, visitor);
  else if (typeof part === 'object' && part !== null && 'kind' in part) visit(part as ASTNode, visitor);
}

/** Whether the arguments of the subscribed field are valid: otherwise each event is rendered as an error. */
function hasValidArguments(schema: GraphQLSchema, { selectionSet }: OperationDefinitionNode, coerced: Record<string, unknown>): boolean {
  const fields = schema.getSubscriptionType()?.getFields() ?? {};
  try {
    for (const selection of selectionSet.selections) {
      const field = selection.kind === Kind.FIELD ? fields[selection.name.value] : undefined;
      if (field && selection.kind === Kind.FIELD) getArgumentValues(field, selection, coerced);
    }
    return true;
  } catch {
    return false;
  }
}
