import type { GraphQLSchema } from 'graphql';
import { createYoga, type YogaServerInstance } from 'graphql-yoga';
import type { Context } from '../graph/context.ts';
import { finishAnswers, limitAnswers } from './answers.ts';
import { checkOperations } from './check.ts';
import { cacheDocuments, ValidDocuments } from './documents.ts';
import type { GetEnveloped, HttpEntrance } from './enveloped.ts';
import { executeByReference } from './execution.ts';
import { limitDocuments } from './limits.ts';
import { formatResults } from './mask.ts';
import { nameOperations } from './naming.ts';
import { limitSubscriptions } from './subscriptions.ts';
import { type TrustedDocuments, trustDocuments, trustsNone, validateTrusted } from './trusted.ts';
import { validateDocuments } from './validation.ts';

export interface Pipeline {
  readonly getEnveloped: GetEnveloped;
  readonly trusted: TrustedDocuments;
  readonly documents: ValidDocuments;
  /** Yoga's own HTTP handler, for unusual requests such as GET and GraphiQL. */
  readonly yoga: YogaServerInstance<HttpEntrance, Context>;
}

/**
 * The one way to run an operation, whatever the door: parse, validate, context, execute or subscribe. Throws for a trusted
 * document that is not valid.
 */
export function createPipeline(schema: GraphQLSchema, trusted: TrustedDocuments = trustsNone): Pipeline {
  const documents = new ValidDocuments();
  const yoga = createYoga<HttpEntrance, Context>({
    schema,
    graphqlEndpoint: '/graphql',
    batching: false,
    multipart: false,
    // The body is read, limited and parsed before Yoga sees it.
    maxRequestBodySize: false,
    cors: false,
    graphiql: false,
    landingPage: false,
    parserAndValidationCache: false,
    // Yoga answers any URL with this ending: none ends with a space.
    healthCheckEndpoint: ' ',
    logging: false,
    // `formatResults` and the doors mask errors with the logger of the request: errors keep their faults until then.
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
      executeByReference(),
      finishAnswers(),
      limitAnswers(),
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
