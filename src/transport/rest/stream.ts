import type { ExecutionResult, GraphQLSchema } from 'graphql';
import type { Context } from '../../graph/context.ts';
import { Source } from '../../graph/source.ts';
import { variableErrors } from '../../graph/variables.ts';
import { Fault } from '../../kernel/fault.ts';
import { type Form, Forms, openSource } from '../fanout.ts';
import { bindOperation, type Data, readQuery, rename } from './route.ts';

export interface Stream {
  readonly path: string;
  readonly operation: string;
  readonly event: (data: Data) => unknown;
}

export interface BoundStream {
  /** The events, and how they are told as JSON in v1's names. Throws a Fault; telling throws one where a result has errors. */
  open(path: Readonly<Record<string, string>>, query: URLSearchParams, context: Context): Promise<{ source: Source; form: Form }>;
}

/** Checks a stream against the schema, once, at the start. */
export function bindStream(schema: GraphQLSchema, stream: Stream): BoundStream {
  const { document, bindings } = bindOperation(schema, stream.path, stream.operation);
  const inQuery = [...bindings.keys()].filter((name) => !stream.path.includes(`:${name}`));
  const forms = new Forms();
  const toText = (result: ExecutionResult) => JSON.stringify(stream.event(dataOf(result)));
  return {
    async open(path, query, contextValue) {
      const variableValues = { ...readQuery(bindings, inQuery, query), ...path };
      const errors = variableErrors(bindings, variableValues);
      if (errors) throw Fault.invalidFields(errors);
      const args = { schema, document, variableValues, contextValue };
      const source = await openSource(args);
      // The variables are the path's and the cursor's: they do not change what is told of an event.
      if (source instanceof Source) return { source, form: forms.of(stream.path, args, toText) };
      const fault = faultOf(source);
      throw fault.fields ? Fault.invalidFields(rename(bindings, fault.fields)) : fault;
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
