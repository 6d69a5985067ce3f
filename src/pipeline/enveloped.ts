import type { DocumentNode, ExecutionArgs, ExecutionResult, GraphQLError, GraphQLSchema } from 'graphql';
import type { Context } from '../graph/context.ts';

/** The name of an operation, for the log and the metrics. */
interface OperationNames {
  operation: string | null;
  /** The name that the client gave it. */
  operationName: string | null;
  /** Whether the client asks what the operation costs. */
  readonly asksForCost: boolean;
}

/** A door's part in one operation. */
interface Entrance {
  openContext(): Context;
  /** Gets the names of the operation. */
  readonly exchange?: OperationNames;
  /** Whether the door can send the results of a subscription one by one, or answers as a whole. */
  readonly delivery?: 'whole' | 'results';
  /** How a subscription begins at a door that delivers the events itself; without it each event is executed and yielded. */
  readonly subscribe?: Subscribe;
  /** Its variables have been checked by the door, and its cost when it was bound: of v1's table. */
  readonly isChecked?: boolean;
  /** The advice for a client whose answer is too large, where the door knows one. */
  readonly advice?: string;
}

/** The context of resolvers and plugins. */
export type OperationContext = Context & Omit<Entrance, 'openContext'>;

export type Subscribe = (args: ExecutionArgs) => Promise<AsyncIterableIterator<ExecutionResult> | ExecutionResult>;

/** One operation's way through the pipeline. */
export interface Enveloped {
  readonly schema: GraphQLSchema;
  parse(source: string): DocumentNode;
  validate(schema: GraphQLSchema, document: DocumentNode): readonly GraphQLError[];
  contextFactory(): Promise<Context>;
  execute(args: ExecutionArgs): Promise<ExecutionResult>;
  readonly subscribe: Subscribe;
}

export type GetEnveloped = (entrance: Entrance) => Enveloped;

/** The part of a door that speaks HTTP. */
export interface HttpEntrance extends Entrance {
  /** The media type of an answer that is no stream; null where the client takes only a stream. */
  readonly mediaType: string | null;
}
