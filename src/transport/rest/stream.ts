import type { ExecutionResult, GraphQLSchema } from 'graphql';
import type { Context } from '../../graph/context.ts';
import { variableErrors } from '../../graph/variables.ts';
import { Fault } from '../../kernel/fault.ts';
import { openSources, tellEvent } from '../fanout.ts';
import { bindOperation, type Data, readQuery, rename } from './route.ts';

export interface Stream {
  readonly path: string;
  readonly operation: string;
  readonly event: (data: Data) => unknown;
}

export interface BoundStream {
  readonly path: string;
  /** The events as JSON, in v1's names. Throws a Fault before the first, or when the stream breaks off. */
  open(path: Readonly<Record<string, string>>, query: URLSearchParams, context: Context): Promise<AsyncIterableIterator<string>>;
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
      const args = { schema, document, variableValues, contextValue };
      const sources = await openSources(args);
      if (Symbol.asyncIterator in sources) {
        const toText = (result: ExecutionResult) => JSON.stringify(stream.event(dataOf(result)));
        return mapEvents(sources, (event) => tellEvent(args, stream.path, event, toText));
      }
      const fault = faultOf(sources);
      throw fault.fields ? Fault.invalidFields(rename(bindings, fault.fields)) : fault;
    },
  };
}

/** Not a generator: its `return()` would wait for the event that it is waiting for. */
function mapEvents(sources: AsyncIterableIterator<unknown>, tell: (event: unknown) => Promise<string>): AsyncIterableIterator<string> {
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    async next() {
      const { done, value } = await sources.next();
      return done ? { done, value: undefined } : { done: false, value: await tell(value) };
    },
    async return() {
      await sources.return?.();
      return { done: true, value: undefined };
    },
  };
}

function dataOf(result: ExecutionResult): Data {
  if (result.errors) throw faultOf(result);
  return result.data;
}

function faultOf({ errors }: ExecutionResult): Fault {
  return Fault.from(errors?.[0]?.originalError ?? errors?.[0]);
}
