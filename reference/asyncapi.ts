import { type GraphQLNamedType, type GraphQLSchema, getNamedType, isUnionType, Kind } from 'graphql';
import { socketPaths } from '../src/graph/socketpaths.ts';
import type { PlainFeed } from '../src/transport/rest/plainfeed.ts';
import { bindOperation } from '../src/transport/rest/route.ts';
import { inputSchema, type JsonSchema, NamedSchemas, objectOf, objectSchema, shapeOf } from './shape.ts';

type Part = Readonly<Record<string, unknown>>;

/** The sockets of v1 as an AsyncAPI 3 document: the feeds from the table that is served, each event a message, and the console. */
export function describePlainFeeds(
  schema: GraphQLSchema,
  feeds: readonly PlainFeed[],
  examples: Readonly<Record<string, readonly unknown[]>>,
) {
  const schemas = new NamedSchemas();
  const messages: Record<string, Part> = {};
  const channels: Record<string, Part> = {};
  const operations: Record<string, Part> = {};
  for (const feed of feeds) {
    const name = channelName(feed);
    const described = describePlainFeed(schemas, schema, feed, examples[name] ?? []);
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
  Object.assign(messages, consoleMessages);
  channels[CONSOLE] = { ...describeConsole(), messages: referAll('#/components/messages', Object.keys(consoleMessages)) };
  Object.assign(operations, consoleOperations());
  return {
    asyncapi: '3.1.0',
    info: {
      title: 'Portico: live feeds and consoles',
      version: 'v1',
      description: introduction,
      contact: { name: 'Portico' },
      license: { name: 'Proprietary' },
      tags: [
        { name: 'Projects', description: 'The notifications of a project.' },
        { name: 'Compute', description: 'Instances and their consoles.' },
      ],
    },
    defaultContentType: 'application/json',
    servers: {
      portico: {
        host: '{host}',
        protocol: 'wss',
        description: 'The host that serves this document; `ws` if that is served without TLS.',
        variables: { host: { default: 'localhost:4000', description: 'Host and port.' } },
        security: Object.values(referAll('#/components/securitySchemes', ['bearer', 'session', 'ticket'])),
      },
    },
    channels,
    operations,
    components: { messages, schemas: schemas.all, securitySchemes },
  };
}

const introduction = `**Feeds.** Each frame is one JSON object; the client sends nothing. Every committed event is delivered once
and in order, through reconnects, as long as the client passes the last \`sequence\` (or \`to\`) that it has received as \`after\`.

A socket is closed with 1012 (\`restart\`: reconnect at once), 1013 (reconnect later), 4400 (fix the client), 4401 (request a new
ticket, or sign in) or 4403 (reconnect with a fresh ticket or token); that of a client which sends frames nevertheless also with
1008 (too many fragments), 1009 (above 64 KiB) or 4429 (too many). In GraphQL, the same feed is the subscription
\`notificationFeed\`.

**Consoles.** The frames form a stream of bytes, which passes to and from the console of the instance unchanged: frame boundaries
have no meaning. The response to the upgrade has the id of the session (\`X-Console-Session-Id\`) and the position in its output
at which the socket starts (\`X-Console-Offset\`). A client that was disconnected reconnects with a ticket for that session, and
with the position that it has reached as \`after\`. A console is closed with 1000 (the console hung up), 1003 (a screen accepts
only binary frames), 4404 (the instance or the session is gone), 4406 (GraphQL is not served here), 4408 (idle, or without a client
for too long), 4409 (taken over), 4410 (ended), 4416 (\`after\` is no longer kept), 4429 (too many consoles, or pings), 4502 (the
console cannot be reached), or with the other codes of a feed, of which 1009 is for frames above 1 MiB.`;

const securitySchemes = {
  bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT or API Key', description: 'A session token (JWT), or an API key.' },
  session: { type: 'httpApiKey', in: 'cookie', name: 'session', description: 'The session token, for a page of an allowed origin.' },
  ticket: {
    type: 'httpApiKey',
    in: 'query',
    name: 'ticket',
    description: 'A ticket from `POST …/websocket-tickets`: valid for 30 seconds, once, and only for its project.',
  },
};

const CONSOLE = 'instance_console';
const bytes = { type: 'string', format: 'binary' };
const mediaType = 'application/octet-stream';

const consoleMessages: Readonly<Record<string, Part>> = {
  console_input: {
    name: 'console_input',
    title: 'console_input',
    summary: 'Input to the console: binary frames, or text frames if the console is serial. At most 1 MiB each.',
    contentType: mediaType,
    payload: bytes,
  },
  console_output: {
    name: 'console_output',
    title: 'console_output',
    summary: 'Output of the console: binary frames.',
    contentType: mediaType,
    payload: bytes,
  },
};

function describeConsole(): Part {
  const inPath = {
    organization_id: 'The id of the organization that the project belongs to.',
    project_id: 'The id of the project.',
    instance_id: 'The id of the instance.',
  };
  const inQuery = {
    ticket: { type: 'string', description: securitySchemes.ticket.description },
    session_id: {
      type: 'string',
      format: 'uuid',
      description: 'The id of the session to attach to, without a ticket: a ticket names its own.',
    },
    after: {
      type: 'integer',
      minimum: 0,
      description: 'How many bytes of the session’s output the client has. Without it, everything that is kept is sent.',
    },
  };
  return {
    address: socketPaths.console.replace(/:(\w+)/g, '{$1}'),
    title: 'Instance console',
    description:
      'The console of an instance, as bytes: a serial line, or a screen over the RFB protocol. The subprotocol `binary` is accepted.',
    parameters: Object.fromEntries(Object.entries(inPath).map(([name, description]) => [name, { description }])),
    bindings: { ws: { method: 'GET', query: { type: 'object', properties: inQuery }, bindingVersion: '0.1.0' } },
  };
}

function consoleOperations(): Record<string, Part> {
  const channel = { $ref: `#/channels/${CONSOLE}` };
  const message = (name: string) => [{ $ref: `#/channels/${CONSOLE}/messages/${name}` }];
  return {
    console_input: {
      action: 'receive',
      title: 'Console input',
      description: 'The client’s input is passed to the console unchanged.',
      channel,
      messages: message('console_input'),
    },
    console_output: {
      action: 'send',
      title: 'Console output',
      description: 'The console’s output is passed to the client unchanged.',
      channel,
      messages: message('console_output'),
    },
  };
}

function describePlainFeed(schemas: NamedSchemas, schema: GraphQLSchema, feed: PlainFeed, examples: readonly unknown[]) {
  const { operation, bindings } = bindOperation(schema, feed.path, feed.operation);
  const title = channelName(feed).replaceAll('_', ' ');
  const [root] = operation.selectionSet.selections;
  const field = root?.kind === Kind.FIELD ? schema.getSubscriptionType()?.getFields()[root.name.value] : undefined;
  if (!field || root?.kind !== Kind.FIELD || !root.selectionSet) throw new Error(`${feed.path}: a feed has one field`);
  const union = getNamedType(field.type);
  if (!isUnionType(union)) throw new Error(`${feed.path}: the events of a feed are a union`);
  const messages = Object.fromEntries(
    root.selectionSet.selections.map((node) => {
      if (node.kind !== Kind.INLINE_FRAGMENT) throw new Error(`${feed.path}: a feed selects its events one by one`);
      const type = union.getTypes().find(({ name }) => name === node.typeCondition?.name.value);
      if (!type) throw new Error(`${feed.path}: no such event`);
      const shape = shapeOf(type, node.selectionSet);
      const discriminator = objectOf(shape)?.definitions.type?.extensions.values as readonly string[] | undefined;
      const [name = type.name] = discriminator ?? [];
      return [name, describeMessage(type, name, schemas.refer(type.name, objectSchema(schemas, shape)), examples)];
    }),
  );
  const inPath = [...feed.path.matchAll(/:(\w+)/g)].map(([, name = '']) => name);
  const inQuery = [...bindings].filter(([name]) => !inPath.includes(name));
  const query = Object.fromEntries(inQuery.map(([name, { type, inputValue }]) => [name, inputSchema(schemas, type, inputValue, false)]));
  return {
    title: title.charAt(0).toUpperCase() + title.slice(1),
    description: field.description ?? title,
    messages,
    channel: {
      address: feed.path.replace(/:(\w+)/g, '{$1}'),
      title: title.charAt(0).toUpperCase() + title.slice(1),
      description: field.description ?? title,
      parameters: Object.fromEntries(inPath.map((name) => [name, { description: bindings.get(name)?.inputValue?.description ?? name }])),
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

function channelName({ operation }: PlainFeed): string {
  return /^\s*subscription (\w+)/.exec(operation)?.[1] ?? '';
}

function referAll(place: string, names: readonly string[]): Record<string, { $ref: string }> {
  return Object.fromEntries(names.map((name) => [name, { $ref: `${place}/${name}` }]));
}
