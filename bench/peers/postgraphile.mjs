// PostGraphile 5 on Express. The user is authenticated first and set in the transaction; the SQL function that opens a
// project checks the access to it. The schema is derived from the database, so its names and shapes differ.
import { createServer } from 'node:http';
import express from 'express';
import { postgraphile } from 'postgraphile';
import { makePgService } from 'postgraphile/adaptors/pg';
import { grafserv } from 'postgraphile/grafserv/express/v4';
import { PostGraphileAmberPreset } from 'postgraphile/presets/amber';
import { listen, Refusal, spend, verify } from './access.mjs';

const { DATABASE_URL, DATABASE_POOL } = process.env;

const app = express();
app.disable('x-powered-by');
app.use('/graphql', async (request, response, next) => {
  const { userId } = await verify(request.headers.authorization);
  response.set(await spend(userId));
  Object.assign(request, { userId });
  next();
});

const instance = postgraphile({
  extends: [PostGraphileAmberPreset],
  pgServices: [
    makePgService({
      connectionString: DATABASE_URL,
      schemas: ['public'],
      poolConfig: { max: Number(DATABASE_POOL), options: '-c timezone=UTC' },
    }),
  ],
  // Lists are available only through the function that checks the access.
  schema: { defaultBehavior: '-query:resource:list -query:resource:connection -query:resource:single -insert -update -delete' },
  grafserv: { graphqlPath: '/graphql', graphiql: false, watch: false, websockets: false },
  grafast: {
    explain: false,
    context: (/** @type {any} */ { expressv4 }) => ({ pgSettings: { 'jwt.claims.user_id': expressv4.req.userId } }),
  },
});
const server = createServer(app);
await instance.createServ(grafserv).addTo(app, server);

/** @type {express.ErrorRequestHandler} */
function answerFailure(failure, _request, response, _next) {
  const { status, code, message } =
    failure instanceof Refusal ? failure : { status: 500, code: 'internal_error', message: 'Internal error.' };
  response.status(status).json({ errors: [{ message, extensions: { code } }] });
}
app.use(answerFailure);
listen(server);
