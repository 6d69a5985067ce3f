import { renderGraphiQL } from '@graphql-yoga/render-graphiql';
import type { RequestHandler } from 'express';
import type { ExecutionArgs, GraphQLSchema } from 'graphql';
import { createYoga } from 'graphql-yoga';
import { type Context, createContext } from '../../graph/context.ts';
import { Fault } from '../../kernel/fault.ts';
import type { Database } from '../../platform/database.ts';
import type { Log } from '../../platform/log.ts';
import { readJsonObject } from '../body.ts';
import { type Exchange, exchangeOf } from '../exchange.ts';
import { documentGuards } from './guards.ts';
import { maskError } from './mask.ts';

interface GraphqlDoor {
  /** Answers a browser with GraphiQL; leaves every other GET to the handler. */
  readonly page: RequestHandler;
  readonly handler: RequestHandler;
}

/** GraphQL over HTTP, by Yoga. */
export function createGraphqlDoor({ schema, database, log }: { schema: GraphQLSchema; database: Database; log: Log }): GraphqlDoor {
  const yoga = createYoga<{ exchange: Exchange }, Context>({
    schema,
    graphqlEndpoint: '/graphql',
    batching: false,
    multipart: false,
    // The body is read, limited and parsed before Yoga sees it.
    maxRequestBodySize: false,
    cors: false,
    graphiql: false,
    landingPage: false,
    healthCheckEndpoint: '/graphql/never',
    logging: false,
    maskedErrors: { maskError: (error) => maskError(error, log) },
    context: ({ exchange }) => createContext({ database, log: exchange.log, viewer: exchange.viewer, isClientDocument: true }),
    plugins: [
      ...documentGuards(),
      {
        onExecute({ args }: { args: ExecutionArgs }) {
          const { exchange } = args.contextValue as { exchange: Exchange };
          exchange.operation = args.operationName ?? 'graphql';
        },
      },
    ],
  });
  const graphiql = renderGraphiQL({ title: 'Portico', headers: '{\n  "Authorization": "Bearer "\n}', defaultQuery: welcome });
  return {
    page(request, response, next) {
      if (request.accepts(['json', 'html']) !== 'html' || request.query.query !== undefined) return next();
      response.type('html').send(graphiql);
    },
    async handler(request, response) {
      const exchange = exchangeOf(request);
      if (request.method === 'POST') {
        const body = await readJsonObject(request);
        if (Object.keys(body).length === 0) throw Fault.invalidRequest('The body must name a `query`.');
        request.body = body;
      }
      await yoga(request, response, { exchange });
    },
  };
}

const welcome = `# Set the header Authorization below to "Bearer <token>"; demo.json in the data folder has tokens.
{
  viewer {
    name
    organizations {
      nodes {
        id
        name
        projects {
          nodes {
            id
            name
            role
          }
        }
      }
    }
  }
}
`;
