import type { TestApp } from './app.ts';
import { openGraphqlSocket } from './subscriptions.ts';

/** The result of an operation, without the locations of its errors. */
export interface DoorResult {
  readonly data?: unknown;
  readonly errors?: ReadonlyArray<{ readonly message: string; readonly path?: unknown; readonly extensions: Record<string, unknown> }>;
}

export interface DoorRequest {
  readonly query: string;
  readonly variables?: object;
  readonly operationName?: string;
}

type Door = (app: TestApp, request: DoorRequest) => Promise<DoorResult>;

/** The doors of GraphQL that take every operation, each for the demo's owner. */
export const graphqlDoors: Readonly<Record<string, Door>> = {
  POST: async (app, body) => (await app.ask('POST', '/graphql', { body })).json,
  'POST for a stream': async (app, body) => {
    const { json, text } = await app.ask('POST', '/graphql', { body, headers: { accept: 'text/event-stream' } });
    return json ?? JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? '');
  },
  WebSocket: async (app, payload) => {
    const { socket, until } = await openGraphqlSocket(app);
    try {
      socket.send(JSON.stringify({ id: 'a', type: 'subscribe', payload }));
      const frame = await until(({ id }) => id === 'a');
      return frame.type === 'error' ? { errors: frame.payload } : frame.payload;
    } finally {
      socket.close();
    }
  },
};

/** The code of each error, by its path, or the invalid fields of an operation. */
export function verdictOf({ data, errors }: DoorResult): unknown {
  const [error] = errors ?? [];
  if (!error) return { data };
  return error.extensions.fields ?? errors?.map(({ path, extensions }) => [path, extensions.code]);
}
