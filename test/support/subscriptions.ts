import type { TestApp } from './app.ts';
import { openSocket } from './feed.ts';

/** A document of a subscription to the demo's main project, with so many blanks at its end. */
export const documentOf = (name: string, characters: number) =>
  `subscription ${name}($o: ID!, $p: ID!) { notificationFeed(organizationId: $o, projectId: $p) { __typename } }${' '.repeat(characters)}`;

/** The variables of these documents. */
export const projectOf = ({ demo }: TestApp) => ({ o: demo.organization_id, p: demo.project_id });

/** A socket that is acknowledged; `subscribe` resolves with the type of the first event, or with the errors. */
export async function openGraphqlSocket(app: TestApp, as: 'owner' | 'viewer' = 'owner') {
  const socket = openSocket(app, '/graphql', {
    protocol: 'graphql-transport-ws',
    headers: { authorization: `Bearer ${app.demo.users[as].token}` },
  });
  await new Promise((resolve) => socket.socket.once('open', resolve));
  socket.socket.send(JSON.stringify({ type: 'connection_init' }));
  await socket.until(({ type }) => type === 'connection_ack');
  return {
    ...socket,
    async subscribe(id: string, query: string, variables: object = projectOf(app)) {
      socket.socket.send(JSON.stringify({ id, type: 'subscribe', payload: { query, variables } }));
      const { type, payload } = await socket.until((frame) => frame.id === id);
      return type === 'next' ? (payload.errors ?? payload.data.notificationFeed.__typename) : payload;
    },
  };
}

/** An event stream, read until its first event or error. */
export async function openStream(
  app: TestApp,
  query: string,
  variables: object = projectOf(app),
  { as = 'owner' as 'owner' | 'viewer', others = {}, blanks = 0 } = {},
) {
  const leaving = new AbortController();
  const response = await fetch(`${app.baseUrl}/graphql`, {
    method: 'POST',
    signal: leaving.signal,
    headers: {
      authorization: `Bearer ${app.demo.users[as].token}`,
      'content-type': 'application/json',
      accept: 'text/event-stream, application/json',
    },
    body: JSON.stringify({ query, variables, ...others }).replace('"lossy"', '1.0') + ' '.repeat(blanks),
  });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  while (!/FeedReady|"errors"/.test(text)) {
    const part = await reader?.read();
    if (!part || part.done) break;
    text += part.value;
  }
  return { text, close: () => leaving.abort() };
}
