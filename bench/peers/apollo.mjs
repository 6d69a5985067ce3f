// Apollo Server on Express, with a DataLoader to avoid one query per instance, as its documentation recommends.
import { createServer } from 'node:http';
import { ApolloServer } from '@apollo/server';
import { ApolloServerPluginDrainHttpServer } from '@apollo/server/plugin/drainHttpServer';
import { expressMiddleware } from '@as-integrations/express5';
import DataLoader from 'dataloader';
import express from 'express';
import { GraphQLError, GraphQLScalarType } from 'graphql';
import { listen, Refusal } from './access.mjs';
import { authenticate, loadTrials, projectFields, queryFields, typeDefs } from './schema.mjs';

const DateTime = new GraphQLScalarType({ name: 'DateTime', serialize: (value) => /** @type {Date} */ (value).toISOString() });
const JSONValue = new GraphQLScalarType({ name: 'JSON', serialize: (value) => value });

const app = express();
const httpServer = createServer(app);
const server = new ApolloServer({
  typeDefs,
  resolvers: {
    Query: queryFields,
    Project: projectFields,
    Instance: {
      backupTrial: (/** @type {any} */ instance, /** @type {unknown} */ _args, /** @type {any} */ { trials }) => trials.load(instance),
    },
    DateTime,
    JSON: JSONValue,
  },
  plugins: [ApolloServerPluginDrainHttpServer({ httpServer })],
});
await server.start();
app.use(
  '/graphql',
  express.json(),
  expressMiddleware(server, {
    async context({ req, res }) {
      try {
        const { userId, headers } = await authenticate(req.headers.authorization);
        res.set(headers);
        return { userId, trials: new DataLoader(loadTrials) };
      } catch (failure) {
        if (!(failure instanceof Refusal)) throw failure;
        const { status, code, message } = failure;
        throw new GraphQLError(message, { extensions: { code, http: { status } } });
      }
    },
  }),
);
listen(httpServer);
