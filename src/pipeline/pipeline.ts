import type { GraphQLSchema } from 'graphql';
import { createYoga, type YogaServerInstance } from 'graphql-yoga';
import type { Context } from '../graph/context.ts';
import { checkOperations } from './check.ts';
import { limitDocuments } from './documentlimits.ts';
import { cacheDocuments, ValidDocuments } from './documents.ts';
import { executeWithGraphqlJs } from './execution.ts';
import { finishResponses } from './finishing.ts';
import { formatResults } from './formatting.ts';
import { nameOperations } from './naming.ts';
import type { GetEnveloped, HttpServerContext } from './operation.ts';
import { awaitClients } from './pacing.ts';
import { limitResponses } from './responselimits.ts';
import { limitSubscriptions } from './subscriptionlimits.ts';
import { type TrustedDocuments, trustDocuments, trustsNone, validateTrusted } from './trusted.ts';
import { validateDocuments } from './validation.ts';

export interface Pipeline {
  readonly getEnveloped: GetEnveloped;
  readonly trusted: TrustedDocuments;
  readonly documents: ValidDocuments;
  /** Yoga's own HTTP handler, for unusual requests such as GET, and for event streams. */
  readonly yoga: YogaServerInstance<HttpServerContext, Context>;
}

interface PipelineOptions {
  readonly trusted?: TrustedDocuments;
  readonly subscriptionsPerUser: number;
}

/**
 * The one way to run an operation, whatever the transport: parse, validate, context, execute or subscribe. Throws for a trusted
 * document that is not valid.
 */
export function createPipeline(schema: GraphQLSchema, { trusted = trustsNone, subscriptionsPerUser }: PipelineOptions): Pipeline {
  const documents = new ValidDocuments(subscriptionsPerUser);
  const yoga = createYoga<HttpServerContext, Context>({
    schema,
    graphqlEndpoint: '/graphql',
    batching: false,
    multipart: false,
    // The body is read, limited and parsed before Yoga sees it.
    maxRequestBodySize: false,
    cors: false,
    graphiql: false,
    landingPage: false,
    // `cacheDocuments` is bounded in characters, of which a client chooses the number; Yoga's cache only in documents.
    parserAndValidationCache: false,
    // Yoga answers any URL with this ending: none ends with a space.
    healthCheckEndpoint: ' ',
    logging: false,
    // `formatResults` and the transports mask errors with the logger of the request: errors keep their faults until then.
    maskedErrors: false,
    context: ({ openContext }) => openContext(),
    plugins: [
      cacheDocuments(documents),
      ...limitDocuments(),
      trustDocuments(trusted),
      validateDocuments(),
      nameOperations(),
      checkOperations(),
      limitSubscriptions(documents),
      executeWithGraphqlJs(),
      finishResponses(),
      awaitClients(),
      limitResponses(),
      formatResults(),
    ],
  });
  // Yoga types the argument as `any`, and the context as that of an HTTP request.
  const getEnveloped = yoga.getEnveloped as unknown as GetEnveloped;
  if (trusted.texts.size > 0) validateTrusted(trusted, getEnveloped({ openContext: failAtStart }));
  return { yoga, getEnveloped, trusted, documents };
}

function failAtStart(): never {
  throw new Error('nothing is run before the start is over');
}
