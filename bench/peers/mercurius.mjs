// Fastify with Mercurius and its JIT, with loaders to avoid one query per instance, as its documentation recommends.
import Fastify from 'fastify';
import { GraphQLScalarType } from 'graphql';
import mercurius from 'mercurius';
import { Refusal } from './access.mjs';
import { authenticate, loadTrials, projectFields, queryFields, typeDefs } from './schema.mjs';

const DateTime = new GraphQLScalarType({ name: 'DateTime', serialize: (value) => /** @type {Date} */ (value).toISOString() });
const JSONValue = new GraphQLScalarType({ name: 'JSON', serialize: (value) => value });

const app = Fastify();
app.decorateRequest('userId', '');
app.addHook('preHandler', async (request, reply) => {
  try {
    const { userId, headers } = await authenticate(request.headers.authorization);
    reply.headers(headers);
    Object.assign(request, { userId });
  } catch (failure) {
    if (!(failure instanceof Refusal)) throw failure;
    const { status, code, message } = failure;
    return reply.code(status).send({ errors: [{ message, extensions: { code } }] });
  }
});
app.register(/** @type {any} */ (mercurius), {
  schema: typeDefs,
  resolvers: { Query: queryFields, Project: projectFields, DateTime, JSON: JSONValue },
  loaders: {
    Instance: { backupTrial: async (/** @type {Array<{obj: any}>} */ queries) => loadTrials(queries.map(({ obj }) => obj)) },
  },
  context: (/** @type {any} */ request) => ({ userId: request.userId }),
  jit: 1,
});
const address = await app.listen({ port: Number(process.env.PORT), host: process.env.HOST });
console.log(`listens on ${address}`);
