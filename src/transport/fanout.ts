import {
  createSourceEventStream,
  type ExecutionArgs,
  type ExecutionResult,
  execute,
  Kind,
  type OperationDefinitionNode,
  visit,
} from 'graphql';

type Sources = AsyncIterableIterator<unknown>;

/**
 * Serialized results by event and by form. An event object that many subscribers share is executed and serialized
 * once for all that ask for it in the same form; the domain shares only what looks the same to every viewer.
 */
const texts = new WeakMap<object, Map<string, Promise<string>>>();

/** The events of a subscription, before they are executed; or the errors that it begins with. */
export async function openSources(args: ExecutionArgs): Promise<Sources | ExecutionResult> {
  return (await createSourceEventStream(args)) as Sources | ExecutionResult;
}

/**
 * One event's text. `form` names the document and variables: two that have the same would get the same result.
 * `toText` says what is sent of a result.
 */
export function tellEvent(args: ExecutionArgs, form: string, event: unknown, toText: (result: ExecutionResult) => string): Promise<string> {
  const make = async () => toText(await execute({ ...args, rootValue: event }));
  if (typeof event !== 'object' || event === null) return make();
  const byForm = texts.get(event) ?? new Map<string, Promise<string>>();
  texts.set(event, byForm);
  const text = byForm.get(form) ?? make();
  byForm.set(form, text);
  return text;
}

/**
 * The form of a client's subscription. Variables that only the subscribed field's own arguments take (the cursor, the
 * ids) do not change what is told of an event, so they do not part the subscribers.
 */
export function readForm(query: string, operation: OperationDefinitionNode, variables: Readonly<Record<string, unknown>>): string {
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
