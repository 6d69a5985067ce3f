// Subscriptions by graphql-ws with Yoga's pub/sub, as their documentation recommends.
import { createServer } from 'node:http';
import { useServer } from 'graphql-ws/use/ws';
import { createPubSub, createSchema, createYoga } from 'graphql-yoga';
import { WebSocketServer } from 'ws';
import { listen, verify } from './access.mjs';

const pubSub = createPubSub();

const yoga = createYoga({
  graphiql: false,
  logging: false,
  schema: createSchema({
    typeDefs: /* GraphQL */ `
      type Query { hello: String }
      input NewNotification { projectId: ID! kind: String! severity: String! title: String! body: String! }
      type Mutation { publishNotification(input: NewNotification!): Notification! }
      type Subscription { notificationFeed(projectId: ID!): NotificationAdded! }
      type NotificationAdded { sequence: Int! notification: Notification! }
      type Notification { id: ID! sequence: Int! kind: String! severity: String! title: String! body: String! created: String! read: Boolean! }
    `,
    resolvers: {
      Mutation: {
        publishNotification(_root, { input }) {
          const id = crypto.randomUUID();
          const notification = { ...input, id, sequence: (sequence += 1), created: new Date().toISOString(), read: false };
          pubSub.publish('notification', input.projectId, notification);
          return notification;
        },
      },
      Subscription: {
        notificationFeed: {
          subscribe: (_root, { projectId }) => pubSub.subscribe('notification', projectId),
          resolve: (notification) => ({ sequence: notification.sequence, notification }),
        },
      },
    },
  }),
});
let sequence = 0;

const server = createServer(yoga);
const sockets = new WebSocketServer({ server, path: yoga.graphqlEndpoint });
useServer(
  {
    execute: (/** @type {any} */ args) => args.rootValue.execute(args),
    subscribe: (/** @type {any} */ args) => args.rootValue.subscribe(args),
    async onConnect(context) {
      await verify(/** @type {any} */ (context.extra).request.headers.authorization);
    },
    async onSubscribe(context, _id, params) {
      const { schema, execute, subscribe, contextFactory, parse, validate } = yoga.getEnveloped({
        ...context,
        req: context.extra.request,
        socket: context.extra.socket,
        params,
      });
      const args = {
        schema,
        operationName: params.operationName,
        document: parse(params.query),
        variableValues: params.variables,
        contextValue: await contextFactory(),
        rootValue: { execute, subscribe },
      };
      const errors = validate(args.schema, args.document);
      return errors.length > 0 ? errors : args;
    },
  },
  sockets,
);
listen(server);
