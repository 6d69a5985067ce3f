import type { IncomingMessage, ServerResponse } from 'node:http';
import { type ExecutionResult, type GraphQLSchema, getOperationAST, OperationTypeNode } from 'graphql';
import { processRegularResult } from 'graphql-yoga';
import type { ProjectIds } from '../../access/scope.ts';
import { findProjectIds } from '../../graph/accesscheck.ts';
import { ADMISSION_MAX_AGE_MS, type Context, type Services } from '../../graph/context.ts';
import { Fault } from '../../kernel/fault.ts';
import { moveJsonPart } from '../../kernel/json/exact.ts';
import { withText } from '../../pipeline/formatting.ts';
import { failedResult, maskResult } from '../../pipeline/mask.ts';
import type { PipelineSteps } from '../../pipeline/operation.ts';
import type { Pipeline } from '../../pipeline/pipeline.ts';
import { findText, type TrustedDocuments } from '../../pipeline/trusted.ts';
import { type Accepted, readAccept } from '../http/accept.ts';
import { isSmallBody } from '../http/bodyheaders.ts';
import { sendCompressed } from '../http/compress.ts';
import { type ContextDependencies, openContext } from '../http/context.ts';
import { type EventStreams, whenTaken } from '../http/eventstreams.ts';
import { type Exchange, exchangeOf, type Middleware } from '../http/exchange.ts';
import { withPermit } from '../http/permit.ts';
import { setHeaders } from '../http/send.ts';
import { readQueryString } from '../http/url.ts';
import { checkDocumentId, checkParameters, type OperationRequest, readOperation } from './request.ts';

type ProjectReaderDependencies = Pick<Pipeline, 'documents' | 'trusted'> & Pick<Services, 'semaphore'> & { readonly schema: GraphQLSchema };

/**
 * Reads the project that a request names, before its viewer is known and its budget charged. To be cheap, it reads only small
 * bodies, and documents that are cached as valid; and nothing of a request that has to wait, as it is admitted again afterwards.
 * Never rejects: the handler reports an invalid body.
 */
export function createProjectReader({ documents, trusted, semaphore, schema }: ProjectReaderDependencies): ReadProject {
  return async (request, userId) => {
    if (semaphore.mustWait(userId)) return null;
    if (request.method !== 'POST' || request.url !== '/graphql' || !isSmallBody(request)) return null;
    const body = await exchangeOf(request)
      .readBody()
      .catch(() => null);
    const requested = body && readOperation(body);
    if (!requested) return null;
    const { query, hash, operationName, variables } = requested;
    const document = documents.get(hash === null ? query : (trusted.texts.get(hash) ?? ''));
    const operation = document && getOperationAST(document, operationName);
    return operation ? findProjectIds({ schema, document, operation, variables }) : null;
  };
}

/** Reads the project that a request names; null where it names none. Never rejects. */
export type ReadProject = (request: IncomingMessage, userId: string) => ProjectIds | null | Promise<ProjectIds | null>;

type GraphqlDependencies = ContextDependencies & { pipeline: Pipeline; streams: EventStreams };

/** Serves GraphQL over HTTP. */
export function createGraphqlHandler(dependencies: GraphqlDependencies): Middleware {
  const handler = new GraphqlHandler(dependencies);
  const serve = withPermit(dependencies, (request, response) => handler.serve(request, response));
  return (request, response, next) => {
    const exchange = exchangeOf(request);
    exchange.operation = 'graphql';
    // Any response may contain a ticket or a new key.
    exchange.headers.push('Cache-Control', 'no-store');
    return serve(request, response, next);
  };
}

/**
 * A POST with JSON, as nearly every request is, passes through the same plugins by `getEnveloped`, without Yoga's HTTP handler, which
 * takes more CPU than all the rest; that serves all others.
 */
class GraphqlHandler {
  constructor(private readonly dependencies: GraphqlDependencies) {}

  async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const exchange = exchangeOf(request);
    const accepted = readAccept(request);
    const context = openContext(this.dependencies, exchange);
    if (request.method === 'POST') {
      if ((await this.#servePost(request, response, accepted, context)) === 'answered') return;
    } else {
      const parameters = readQueryString(request.url ?? '');
      checkParameters(parameters);
      await this.#takeTurn(parameters.get('query') ?? '', context, exchange);
    }
    await this.#serveByYoga(request, response, accepted, context);
  }

  /** Answers a POST, unless there is something unusual about it. */
  async #servePost(
    request: IncomingMessage,
    response: ServerResponse,
    { mediaType, canStream }: Accepted,
    context: Context,
  ): Promise<'answered' | 'unusual'> {
    const { getEnveloped, trusted } = this.dependencies.pipeline;
    const exchange = exchangeOf(request);
    const body = await exchange.readBody();
    moveJsonPart(body, 'variables');
    if (Object.keys(body).length === 0) throw Fault.invalidRequest('The body must name a `query`.');
    checkDocumentId(Object.hasOwn(body, 'documentId'));
    if (typeof body.query === 'string') await this.#takeTurn(body.query, context, exchange);
    const operation = request.url === '/graphql' ? readOperation(body) : null;
    if (operation && mediaType) {
      const enveloped = getEnveloped({ exchange, responseForm: 'single', openContext: () => context });
      const result = await runOperation(enveloped, operation, { canStream, trusted });
      if (result) {
        await this.#sendResult(response, result, { mediaType, context, exchange });
        return 'answered';
      }
    }
    // Yoga takes what is in `body` for the parsed body of a request that has been read.
    Object.assign(request, { body });
    return 'unusual';
  }

  async #serveByYoga(
    request: IncomingMessage,
    response: ServerResponse,
    { mediaType, canStream }: Accepted,
    context: Context,
  ): Promise<void> {
    const { pipeline, streams } = this.dependencies;
    setHeaders(response);
    const isHead = request.method === 'HEAD';
    // Yoga does not support HEAD, which is GET without the body: Node omits that.
    if (isHead) request.method = 'GET';
    try {
      await pipeline.yoga(request, response, {
        exchange: exchangeOf(request),
        responseForm: canStream && !isHead ? 'stream' : 'single',
        mediaType,
        streams,
        beginStream: () => streams.add(response, context.requireViewer().userId),
        whenSent: () => whenTaken(response),
        openContext: () => context,
      });
    } finally {
      if (isHead) request.method = 'HEAD';
    }
  }

  /** Waits for the turn to parse a document; after a long wait the viewer is admitted again, as after one for a permit. */
  async #takeTurn(text: string, context: Context, { turnKey }: Exchange): Promise<void> {
    const turn = this.dependencies.pipeline.documents.takeTurn(turnKey, text);
    if (!turn) return;
    const beganAt = performance.now();
    await turn;
    if (performance.now() - beganAt > ADMISSION_MAX_AGE_MS) await context.admitAgain();
  }

  /** Serializes and sends a result of `runOperation`. */
  async #sendResult(response: ServerResponse, result: ExecutionResult, { mediaType, context, exchange }: SendOptions): Promise<void> {
    if (!result.errors) return sendCompressed(response, 200, await context.serializeResponse(result), `${mediaType}; charset=utf-8`);
    // Yoga determines the status and headers of errors.
    const { fetchAPI } = this.dependencies.pipeline.yoga;
    const processed = processRegularResult(withText(maskResult(result, context.openLogger, exchange)), fetchAPI, mediaType);
    const { 'content-type': type = mediaType, 'content-length': _length, ...headers } = readHeaders(processed);
    sendCompressed(response, processed.status, await processed.text(), type, headers);
  }
}

interface SendOptions {
  readonly mediaType: string;
  readonly context: Context;
  readonly exchange: Exchange;
}

function readHeaders({ headers }: Response): Record<string, string> {
  return Object.fromEntries([...headers].map(([name, value]) => [name.toLowerCase(), value]));
}

interface RunOptions {
  readonly canStream: boolean;
  readonly trusted: TrustedDocuments;
}

/**
 * Runs one operation through the pipeline. Null for requests that Yoga answers: no operation of that name, or a subscription
 * for a client that accepts a stream.
 */
async function runOperation(
  enveloped: PipelineSteps,
  request: OperationRequest,
  { canStream, trusted }: RunOptions,
): Promise<ExecutionResult | null> {
  const { schema } = enveloped;
  const { query, hash, operationName, variables: variableValues } = request;
  try {
    const document = enveloped.parse(hash === null ? query : findText(trusted, hash));
    const operation = getOperationAST(document, operationName);
    const isSubscription = operation?.operation === OperationTypeNode.SUBSCRIPTION;
    if (!operation || (isSubscription && canStream)) return null;
    const errors = enveloped.validate(schema, document);
    if (errors.length > 0) return { errors };
    const args = { schema, document, operationName, variableValues, contextValue: await enveloped.contextFactory() };
    return await (isSubscription ? (enveloped.subscribe(args) as Promise<ExecutionResult>) : enveloped.execute(args));
  } catch (failure) {
    return failedResult(failure);
  }
}
