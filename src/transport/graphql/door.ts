import type { IncomingMessage } from 'node:http';
import accepts from 'accepts';
import type { RequestHandler } from 'express';
import {
  type DocumentNode,
  type ExecutionArgs,
  type ExecutionResult,
  type GraphQLError,
  type GraphQLSchema,
  getOperationAST,
} from 'graphql';
import { createYoga } from 'graphql-yoga';
import type { Context } from '../../graph/context.ts';
import { Fault } from '../../kernel/fault.ts';
import type { Log } from '../../platform/log.ts';
import { readJsonObject } from '../body.ts';
import { type ContextParts, openContext } from '../context.ts';
import { type Exchange, exchangeOf, type Middleware, sendText, showHeaders } from '../exchange.ts';
import { readQueryString } from '../query.ts';
import { chooseMediaType, executeDirectly } from './direct.ts';
import { Documents, noErrors } from './documents.ts';
import { documentGuards, toGraphqlError } from './guards.ts';
import { maskError } from './mask.ts';
import { describeOperation } from './operation.ts';
import { graphiqlPolicy, renderPage } from './page.ts';

/** One operation's way through Yoga's plugins, for doors that are not HTTP. */
export interface Enveloped {
  readonly schema: GraphQLSchema;
  parse(source: string): DocumentNode;
  validate(schema: GraphQLSchema, document: DocumentNode): readonly GraphQLError[];
  contextFactory(): Promise<Context>;
  execute(args: ExecutionArgs): Promise<ExecutionResult>;
  subscribe(args: ExecutionArgs): Promise<AsyncIterableIterator<ExecutionResult> | ExecutionResult>;
}

export type GetEnveloped = (initial: { openContext: () => Context }) => Enveloped;

/** What an HTTP request brings along. */
interface ServerContext {
  readonly exchange?: Exchange;
  readonly canStream?: boolean;
  /** The result, where it is known already. */
  readonly found?: ExecutionResult | null;
  readonly openContext: () => Context;
}

export interface GraphqlDoor {
  /** Answers a browser with GraphiQL; leaves every other GET to the handler. */
  readonly page: RequestHandler;
  readonly handler: Middleware;
  readonly getEnveloped: GetEnveloped;
}

/** GraphQL over HTTP, by Yoga. */
export function createGraphqlDoor(parts: ContextParts & { schema: GraphQLSchema; log: Log }): GraphqlDoor {
  const { schema, log } = parts;
  const documents = new Documents(schema);
  const yoga = createYoga<ServerContext, Context>({
    schema,
    graphqlEndpoint: '/graphql',
    batching: false,
    multipart: false,
    // The body is read, limited and parsed before Yoga sees it.
    maxRequestBodySize: false,
    cors: false,
    graphiql: false,
    landingPage: false,
    parserAndValidationCache: { documentCache: documents, errorCache: noErrors },
    healthCheckEndpoint: '/graphql/never',
    logging: false,
    maskedErrors: { maskError: (error) => maskError(error, log) },
    context: ({ openContext }) => openContext(),
    plugins: [
      ...documentGuards(documents),
      {
        // Found the short way: what is left is to word it.
        onParams({ setResult, context }) {
          const { found } = context as ServerContext;
          if (found) setResult(found);
        },
        onExecute({ args }: { args: ExecutionArgs }) {
          const { exchange, openLog } = args.contextValue as Context & { exchange?: Exchange };
          if (exchange) nameExchange(exchange, args);
          return { onExecuteDone: (done: ExecutionDone) => maskResult(done, openLog) };
        },
        onSubscribe({ args, setResultAndStopExecution }: Subscribing) {
          const { canStream, exchange } = args.contextValue as { canStream?: boolean; exchange?: Exchange };
          if (exchange) nameExchange(exchange, args);
          // Yoga would open the stream, find no way to send it, and leave it open behind an empty answer.
          if (canStream === false) setResultAndStopExecution({ errors: [toGraphqlError(Fault.invalidRequest(noStream))] });
        },
      },
    ],
  });
  let graphiql: Promise<string> | null = null;
  return {
    getEnveloped: yoga.getEnveloped as unknown as GetEnveloped,
    async page(request, response, next) {
      if (request.accepts(['json', 'html']) !== 'html' || request.query.query !== undefined) return next();
      graphiql ??= renderPage();
      response
        .type('html')
        .vary('Accept')
        .set({ 'Content-Security-Policy': graphiqlPolicy, 'Cache-Control': 'max-age=300' })
        .send(await graphiql);
    },
    async handler(request, response) {
      const exchange = exchangeOf(request);
      exchange.operation = 'graphql';
      // Any answer may hold a ticket or a new key.
      exchange.headers.push('Cache-Control', 'no-store');
      const { accept } = request.headers;
      const open = () => openContext(parts, exchange);
      let found: ExecutionResult | null = null;
      if (request.method === 'POST') {
        const body = await readJsonObject(request);
        if (Object.keys(body).length === 0) throw Fault.invalidRequest('The body must name a `query`.');
        const mediaType = hasQuery(request) ? null : chooseMediaType(accept);
        if (mediaType) found = await executeDirectly({ schema, documents }, body, exchange, open);
        if (mediaType && found && !found.errors) return sendText(response, 200, JSON.stringify(found), `${mediaType}; charset=utf-8`);
        Object.assign(request, { body });
      } else checkParameters(readQueryString(request.url ?? ''));
      showHeaders(response);
      const accepted = accepts(request);
      // A client that takes none of what there is gets JSON, rather than nothing.
      if (!accepted.type(mediaTypes)) request.headers.accept = 'application/json';
      const { method } = request;
      // HEAD is GET without a body, which Node leaves out; Yoga knows no HEAD.
      if (method === 'HEAD') request.method = 'GET';
      const canStream = method !== 'HEAD' && Boolean(accepted.type('text/event-stream'));
      await yoga(request, response, { exchange, canStream, found, openContext: open });
      request.method = method;
    },
  };
}

function hasQuery({ url = '' }: IncomingMessage): boolean {
  return url.includes('?');
}

function nameExchange(exchange: Exchange, { document, operationName }: ExecutionArgs): void {
  exchange.operation = describeOperation(document, operationName);
  exchange.operationName = getOperationAST(document, operationName)?.name?.value.slice(0, 100) ?? null;
}

const noStream = 'A subscription needs a client that takes text/event-stream, or a WebSocket.';

interface Subscribing {
  readonly args: ExecutionArgs;
  setResultAndStopExecution(result: ExecutionResult): void;
}

interface ExecutionDone {
  readonly result: unknown;
  setResult(result: ExecutionResult): void;
}

/** Masked here, with the log of the request; Yoga masks what goes wrong outside of an execution. */
function maskResult({ result, setResult }: ExecutionDone, openLog: () => Log): void {
  const { errors } = result as ExecutionResult;
  if (errors) setResult({ ...(result as ExecutionResult), errors: errors.map((error) => maskError(error, openLog())) });
}

const mediaTypes = ['application/json', 'application/graphql-response+json', 'text/event-stream'];

/** Yoga would join what is given twice, and parses JSON unguarded. */
function checkParameters(query: URLSearchParams): void {
  for (const name of ['query', 'operationName', 'variables', 'extensions']) {
    if (query.getAll(name).length > 1) throw Fault.invalidRequest(`The parameter \`${name}\` is given more than once.`);
  }
  for (const name of ['variables', 'extensions']) {
    try {
      JSON.parse(query.get(name) || '{}');
    } catch {
      throw Fault.invalidRequest(`The parameter \`${name}\` is not valid JSON.`);
    }
  }
}
