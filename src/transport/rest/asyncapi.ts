import { type GraphQLNamedType, type GraphQLSchema, getNamedType, isUnionType, Kind } from 'graphql';
import { bindOperation } from './route.ts';
import { inputSchema, type JsonSchema, NamedSchemas, objectOf, objectSchema, shapeOf } from './shape.ts';
import type { Stream } from './stream.ts';

type Part = Readonly<Record<string, unknown>>;

/** The plain-JSON sockets as an AsyncAPI 3 document, from the table that is served: each event is a message. */
export function describeStreams(schema: GraphQLSchema, streams: readonly Stream[], examples: Readonly<Record<string, readonly unknown[]>>) {
  const schemas = new NamedSchemas();
  const messages: Record<string, Part> = {};
  const channels: Record<string, Part> = {};
  const operations: Record<string, Part> = {};
  for (const stream of streams) {
    const name = channelName(stream);
    const described = describeStream(schemas, schema, stream, examples[name] ?? []);
    Object.assign(messages, described.messages);
    const channel = { $ref: `#/channels/${name}` };
    const names = Object.keys(described.messages);
    channels[name] = { ...described.channel, messages: referAll('#/components/messages', names) };
    operations[name] = {
      action: 'send',
      title: described.title,
      description: described.description,
      channel,
      messages: Object.values(referAll(`#/channels/${name}/messages`, names)),
    };
  }
  return {
    asyncapi: '3.1.0',
    info: {
      title: 'Portico: live feeds',
      version: 'v1',
      description: introduction,
      contact: { name: 'Portico' },
      license: { name: 'Proprietary' },
      tags: [{ name: 'Projects', description: 'What belongs to a project.' }],
    },
    defaultContentType: 'application/json',
    servers: {
      portico: {
        host: '{host}',
        protocol: 'wss',
        description: 'The host that serves this document; `ws` where that is served without TLS.',
        variables: { host: { default: 'localhost:4000', description: 'Host and port.' } },
        security: Object.values(referAll('#/components/securitySchemes', ['bearer', 'session', 'ticket'])),
      },
    },
    channels,
    operations,
    components: { messages, schemas: schemas.all, securitySchemes },
  };
}

const introduction = `One JSON object a frame; the client has nothing to say. Every committed event is told once and in order, through
reconnects, as long as the client comes back with the last \`sequence\` (or \`to\`) that it has as \`after\`.

A socket is closed with 1001 or 1012 (\`restart\`: come back at once), 1013 (come back later), 4400 (mend the client),
4401 (take a new ticket, or sign in) or 4403 (come back with a fresh ticket or token). Over GraphQL the same feed is the
subscription \`notificationFeed\`.`;

const securitySchemes = {
  bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT or API Key', description: 'A session token (JWT), or an API key.' },
  session: { type: 'httpApiKey', in: 'cookie', name: 'session', description: 'The session token, from a page of an allowed origin.' },
  ticket: {
    type: 'httpApiKey',
    in: 'query',
    name: 'ticket',
    description: 'A ticket of `POST …/websocket-tickets`: good for 30 seconds, once, and for its project alone.',
  },
};

function describeStream(schemas: NamedSchemas, schema: GraphQLSchema, stream: Stream, examples: readonly unknown[]) {
  const { operation, bindings } = bindOperation(schema, stream.path, stream.operation);
  const title = channelName(stream).replaceAll('_', ' ');
  const [root] = operation.selectionSet.selections;
  const field = root?.kind === Kind.FIELD ? schema.getSubscriptionType()?.getFields()[root.name.value] : undefined;
  if (!field || root?.kind !== Kind.FIELD || !root.selectionSet) throw new Error(`${stream.path}: a stream has one field`);
  const union = getNamedType(field.type);
  if (!isUnionType(union)) throw new Error(`${stream.path}: the events of a stream are a union`);
  const messages = Object.fromEntries(
    root.selectionSet.selections.map((node) => {
      if (node.kind !== Kind.INLINE_FRAGMENT) throw new Error(`${stream.path}: a stream selects its events one by one`);
      const type = union.getTypes().find(({ name }) => name === node.typeCondition?.name.value);
      if (!type) throw new Error(`${stream.path}: no such event`);
      const shape = shapeOf(type, node.selectionSet);
      const discriminator = objectOf(shape)?.definitions.type?.extensions.values as readonly string[] | undefined;
      const [name = type.name] = discriminator ?? [];
      return [name, describeMessage(type, name, schemas.refer(type.name, objectSchema(schemas, shape)), examples)];
    }),
  );
  const inPath = [...stream.path.matchAll(/:(\w+)/g)].map(([, name = '']) => name);
  const inQuery = [...bindings].filter(([name]) => !inPath.includes(name));
  const query = Object.fromEntries(inQuery.map(([name, { type, position }]) => [name, inputSchema(schemas, type, position, false)]));
  return {
    title: title.charAt(0).toUpperCase() + title.slice(1),
    description: field.description ?? title,
    messages,
    channel: {
      address: stream.path.replace(/:(\w+)/g, '{$1}'),
      title: title.charAt(0).toUpperCase() + title.slice(1),
      description: field.description ?? title,
      parameters: Object.fromEntries(inPath.map((name) => [name, { description: bindings.get(name)?.position?.description ?? name }])),
      bindings: {
        ws: {
          method: 'GET',
          query: { type: 'object', properties: { ...query, ticket: { type: 'string', description: securitySchemes.ticket.description } } },
          bindingVersion: '0.1.0',
        },
      },
    },
  };
}

function describeMessage(type: GraphQLNamedType, name: string, payload: JsonSchema, examples: readonly unknown[]): Part {
  const own = examples.filter((event) => (event as { type?: unknown }).type === name);
  return {
    name,
    title: name,
    summary: type.description,
    contentType: 'application/json',
    payload,
    ...(own.length > 0 && { examples: own.map((example) => ({ name: 'demo', payload: example })) }),
  };
}

function channelName({ operation }: Stream): string {
  return /^\s*subscription (\w+)/.exec(operation)?.[1] ?? '';
}

function referAll(place: string, names: readonly string[]): Record<string, { $ref: string }> {
  return Object.fromEntries(names.map((name) => [name, { $ref: `${place}/${name}` }]));
}
