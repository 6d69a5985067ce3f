import {
  createSourceEventStream,
  type ExecutionArgs,
  type ExecutionResult,
  executeSync,
  Kind,
  type OperationDefinitionNode,
  visit,
} from 'graphql';
import type { Context } from '../graph/context.ts';
import { Source } from '../graph/source.ts';
import { keepByText } from './kept.ts';

/** The events of a subscription, before they are executed; or the errors that it begins with. */
export async function openSource(args: ExecutionArgs): Promise<Source | ExecutionResult> {
  const stream = await createSourceEventStream(args);
  if (!(Symbol.asyncIterator in stream)) return stream;
  if (stream instanceof Source) return stream;
  throw new Error('a subscription is resolved to a Source');
}

/** What is sent of a result. */
export type ToText = (result: ExecutionResult, context: Context) => string;

/**
 * How events are told: by a document, the variables that count, and a door's wording. An event object that many
 * subscribers share is executed and serialized once for all that have the same form; the domain shares only what looks
 * the same to every viewer. An event has with it all that is told of it: its fields are resolved without waiting.
 */
export class Form {
  readonly #args: Omit<ExecutionArgs, 'contextValue' | 'rootValue'>;
  readonly #toText: ToText;
  readonly #texts = new WeakMap<object, Buffer>();

  constructor({ schema, document, operationName, variableValues }: ExecutionArgs, toText: ToText) {
    this.#args = { schema, document, operationName, variableValues };
    this.#toText = toText;
  }

  /** One event's text, in UTF-8. Throws what `toText` throws. */
  tell(event: object, openContext: () => Context): Buffer {
    const known = this.#texts.get(event);
    if (known) return known;
    const context = openContext();
    const text = Buffer.from(this.#toText(executeSync({ ...this.#args, rootValue: event, contextValue: context }), context));
    this.#texts.set(event, text);
    return text;
  }
}

/** The forms by name: two subscriptions that have the same would be told the same. One that is forgotten is no longer shared. */
export class Forms {
  readonly #known = keepByText<Form>();

  of(name: string, args: ExecutionArgs, toText: ToText): Form {
    const form = this.#known.get(name) ?? new Form(args, toText);
    this.#known.set(name, form);
    return form;
  }
}

/**
 * The name of the form of a client's subscription. Variables that only the subscribed field's own arguments take (the
 * cursor, the ids) do not change what is told of an event, so they do not part the subscribers.
 */
export function nameForm(query: string, operation: OperationDefinitionNode, variables: Readonly<Record<string, unknown>>): string {
  const used = new Set<string>();
  for (const selection of operation.selectionSet.selections) {
    if (selection.kind !== Kind.FIELD) return JSON.stringify([query, operation.name?.value, variables]);
    for (const part of [selection.selectionSet, ...(selection.directives ?? [])]) {
      if (part) visit(part, { Variable: ({ name }) => void used.add(name.value) });
    }
  }
  // A fragment may use any variable: with one in the document, all of them count.
  const counting = query.includes('...') && query.includes('fragment') ? Object.keys(variables) : [...used];
  return JSON.stringify([query, operation.name?.value, counting.sort().map((name) => [name, variables[name]])]);
}
