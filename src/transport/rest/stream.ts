import { type ExecutionResult, type GraphQLSchema, subscribe } from 'graphql';
import type { Context } from '../../graph/context.ts';
import { variableErrors } from '../../graph/variables.ts';
import { Fault } from '../../kernel/fault.ts';
import { bindOperation, type Data, readQuery, rename } from './route.ts';

export interface Stream {
  readonly path: string;
  readonly operation: string;
  readonly event: (data: Data) => unknown;
}

export interface BoundStream {
  readonly path: string;
  /** The events, in v1's names. Throws a Fault before the first; the iterator throws a Fault when it breaks off. */
  open(path: Readonly<Record<string, string>>, query: URLSearchParams, context: Context): Promise<AsyncIterableIterator<unknown>>;
}

/** Checks a stream against the schema, once, at the start. */
export function bindStream(schema: GraphQLSchema, stream: Stream): BoundStream {
  const { document, bindings } = bindOperation(schema, stream.path, stream.operation);
  const inQuery = [...bindings.keys()].filter((name) => !stream.path.includes(`:${name}`));
  return {
    path: stream.path,
    async open(path, query, contextValue) {
      const variableValues = { ...readQuery(bindings, inQuery, query), ...path };
      const errors = variableErrors(bindings, variableValues);
      if (errors) throw Fault.invalidFields(errors);
      const results = await subscribe({ schema, document, variableValues, contextValue });
      if (Symbol.asyncIterator in results) return mapEvents(results, stream);
      const fault = faultOf(results);
      throw fault.fields ? Fault.invalidFields(rename(bindings, fault.fields)) : fault;
    },
  };
}

/** Not a generator: its `return()` would wait for the event that it is waiting for. */
function mapEvents(results: AsyncGenerator<ExecutionResult>, { event }: Stream): AsyncIterableIterator<unknown> {
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    async next() {
      const { done, value } = await results.next();
      if (done) return { done, value: undefined };
      if (value.errors) throw faultOf(value);
      return { done: false, value: event(value.data) };
    },
    async return() {
      await results.return(undefined);
      return { done: true, value: undefined };
    },
  };
}

function faultOf({ errors }: ExecutionResult): Fault {
  return Fault.from(errors?.[0]?.originalError ?? errors?.[0]);
}
