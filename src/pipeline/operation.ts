import type { DocumentNode, ExecutionArgs, ExecutionResult, GraphQLError, GraphQLSchema } from 'graphql';
import type { Context } from '../graph/context.ts';
import type { CredentialProblem } from '../kernel/fault.ts';

/** Takes the errors of a response, for its line in the log and for the metrics. */
export interface ErrorRecorder {
  /** `code` is one of ours: their number is fixed. */
  recordError(code: string, reason?: CredentialProblem): void;
}

/** The request of an operation over HTTP. */
interface OperationExchange extends ErrorRecorder {
  /** The user; without one, all clients without a credential together. */
  readonly turnKey: string;
  operation: string | null;
  /** The client's name for it. */
  operationName: string | null;
  /** Whether the client asks what the operation costs. */
  readonly asksForCost: boolean;
  /** The size of its body, in bytes. */
  readonly bodyBytes: number;
  /** Lets the user's next request begin, as it may take long to send the response. */
  readonly releasePermit: () => void;
}

/** The context that a transport passes to the pipeline with an operation: Yoga's server context. */
interface ServerContext {
  openContext(): Context;
  /** Receives the names of the operation, and the errors of its response. */
  readonly exchange?: OperationExchange;
  /** The form that can be sent over HTTP: a single response, or the results of a subscription one by one, as a stream. */
  readonly responseForm?: 'single' | 'stream';
  /** Resolves when what has been sent of a subscription is no longer in memory: no event is read before that. */
  readonly whenSent?: () => Promise<void>;
  /** How a subscription begins over a transport that delivers the events itself; without it each event is executed and yielded. */
  readonly subscribe?: Subscribe;
  /** For v1 routes: their variables have been checked, and their cost is not, as their documents are the server’s own. */
  readonly isChecked?: boolean;
  /** The advice for a client whose response is too large, if the transport has its own. */
  readonly advice?: string;
}

/** The context of resolvers and plugins. */
export type OperationContext = Context & Omit<ServerContext, 'openContext'>;

/** The arguments that an operation is executed with. */
export type OperationArgs = ExecutionArgs & { readonly contextValue: OperationContext };

type Subscribe = (args: ExecutionArgs) => Promise<AsyncIterableIterator<ExecutionResult> | ExecutionResult>;

/** The steps of the pipeline for one operation. */
export interface PipelineSteps {
  readonly schema: GraphQLSchema;
  parse(source: string): DocumentNode;
  validate(schema: GraphQLSchema, document: DocumentNode): readonly GraphQLError[];
  contextFactory(): Promise<Context>;
  execute(args: ExecutionArgs): Promise<ExecutionResult>;
  readonly subscribe: Subscribe;
}

export type GetEnveloped = (context: ServerContext) => PipelineSteps;

/** The server context of a request over HTTP. */
export interface HttpServerContext extends ServerContext {
  /** The media type of a response that is not a stream; null if the client accepts only a stream. */
  readonly mediaType: string | null;
  /** The streams of the server, of which none may begin once they are closed. */
  readonly streams: { readonly isClosed: boolean };
  /** Counts the response as a stream. Throws a Fault where there are too many. */
  beginStream(): void;
}
