import type { DocumentNode, ExecutionArgs, ExecutionResult, GraphQLError, GraphQLSchema } from 'graphql';
import type { Context } from '../graph/context.ts';

/** The request of an operation over HTTP. */
interface OperationExchange {
  operation: string | null;
  /** The client's name for it. */
  operationName: string | null;
  /** Whether the client asks what the operation costs. */
  readonly asksForCost: boolean;
  /** Lets the user's next request begin, as it may take long to send the answer. */
  readonly endTurn: () => void;
}

/** The options of a door for one operation. */
interface Entrance {
  openContext(): Context;
  /** Receives the names of the operation. */
  readonly exchange?: OperationExchange;
  /** Whether the door can send the results of a subscription one by one, or answers as a whole. */
  readonly delivery?: 'whole' | 'results';
  /** How a subscription begins at a door that delivers the events itself; without it each event is executed and yielded. */
  readonly subscribe?: Subscribe;
  /** For v1 routes: the door has checked the variables, and the cost was checked when the route was bound. */
  readonly isChecked?: boolean;
  /** The advice for a client whose answer is too large, if the door has its own. */
  readonly advice?: string;
}

/** The context of resolvers and plugins. */
export type OperationContext = Context & Omit<Entrance, 'openContext'>;

type Subscribe = (args: ExecutionArgs) => Promise<AsyncIterableIterator<ExecutionResult> | ExecutionResult>;

/** The steps of the pipeline for one operation. */
export interface Enveloped {
  readonly schema: GraphQLSchema;
  parse(source: string): DocumentNode;
  validate(schema: GraphQLSchema, document: DocumentNode): readonly GraphQLError[];
  contextFactory(): Promise<Context>;
  execute(args: ExecutionArgs): Promise<ExecutionResult>;
  readonly subscribe: Subscribe;
}

export type GetEnveloped = (entrance: Entrance) => Enveloped;

/** The options of a door over HTTP. */
export interface HttpEntrance extends Entrance {
  /** The media type of an answer that is not a stream; null if the client accepts only a stream. */
  readonly mediaType: string | null;
}
