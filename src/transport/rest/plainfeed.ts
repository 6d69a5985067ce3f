import type { ExecutionResult, GraphQLSchema } from 'graphql';
import type { Context } from '../../graph/context.ts';
import { Source } from '../../graph/source.ts';
import { variableErrors } from '../../graph/variableerrors.ts';
import { Fault } from '../../kernel/fault.ts';
import { stringifyJson } from '../../kernel/json/text.ts';
import { EventRenderer, openSource } from '../delivery/renderer.ts';
import { bindOperation, type Data, faultOf, queryVariables, readData } from './route.ts';

export interface PlainFeed {
  readonly path: string;
  readonly operation: string;
  readonly event: (data: Data) => unknown;
}

export interface BoundPlainFeed {
  /** The source of the events for the ids of a path, and their renderer as JSON with v1's names. Throws a fault; the renderer does too, for a result with errors. */
  open(
    ids: Readonly<Record<string, string>>,
    query: URLSearchParams,
    context: Context,
  ): Promise<{ source: Source; renderer: EventRenderer }>;
}

/** Validates a feed against the schema, once, at the start. */
export function bindPlainFeed(schema: GraphQLSchema, feed: PlainFeed): BoundPlainFeed {
  const { document, bindings } = bindOperation(schema, feed.path, feed.operation);
  const queryNames = [...bindings.keys()].filter((name) => !feed.path.includes(`:${name}`));
  let renderer: EventRenderer | null = null;
  const formatResult = (result: ExecutionResult) => stringifyJson(feed.event(readData(result, bindings)));
  return {
    async open(ids, query, contextValue) {
      const variableValues = { ...queryVariables(bindings, queryNames, query), ...ids };
      const errors = variableErrors(bindings, variableValues);
      if (errors) throw Fault.invalidFields(errors);
      const args = { schema, document, variableValues, contextValue };
      const source = await openSource(args);
      if (!(source instanceof Source)) throw faultOf(source, bindings);
      // The variables are the ids in the path and the cursor, which do not affect an event: all clients share the first one's renderer.
      renderer ??= new EventRenderer(args, formatResult);
      return { source, renderer };
    },
  };
}
