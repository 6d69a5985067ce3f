import type { ExecutionResult, GraphQLSchema } from 'graphql';
import type { Context } from '../../graph/context.ts';
import { Source } from '../../graph/source.ts';
import { variableErrors } from '../../graph/variables.ts';
import { Fault } from '../../kernel/fault.ts';
import { toJsonText } from '../../kernel/jsontext.ts';
import { toFault } from '../../platform/errors.ts';
import { type EventRenderer, openSource, RendererCache } from '../delivery/renderer.ts';
import { bindOperation, type Data, queryVariables, rename } from './route.ts';

export interface Stream {
  readonly path: string;
  readonly operation: string;
  readonly event: (data: Data) => unknown;
}

export interface BoundStream {
  /** The events, and their renderer as JSON in v1's names. Throws a Fault; so does the renderer for a result with errors. */
  open(
    path: Readonly<Record<string, string>>,
    query: URLSearchParams,
    context: Context,
  ): Promise<{ source: Source; renderer: EventRenderer }>;
}

/** Checks a stream against the schema, once, at the start. */
export function bindStream(schema: GraphQLSchema, stream: Stream): BoundStream {
  const { document, bindings } = bindOperation(schema, stream.path, stream.operation);
  const inQuery = [...bindings.keys()].filter((name) => !stream.path.includes(`:${name}`));
  const renderers = new RendererCache();
  const formatResult = (result: ExecutionResult) => toJsonText(stream.event(dataOf(result)));
  return {
    async open(path, query, contextValue) {
      const variableValues = { ...queryVariables(bindings, inQuery, query), ...path };
      const errors = variableErrors(bindings, variableValues);
      if (errors) throw Fault.invalidFields(errors);
      const args = { schema, document, variableValues, contextValue };
      const source = await openSource(args);
      // The variables are the ids of the path and the cursor, which do not show in an event.
      if (source instanceof Source) return { source, renderer: renderers.get(stream.path, args, formatResult) };
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
  return toFault(errors?.[0]?.originalError ?? errors?.[0]);
}
