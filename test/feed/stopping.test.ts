import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';

const FEED = `subscription ($organization: ID!, $project: ID!) {
  notificationFeed(organizationId: $organization, projectId: $project) { __typename }
}`;

/** Sends a request of which the server has the head when it stops, and the body only when the streams have ended. */
async function askWhileStopping({ app, baseUrl, demo, ask }: TestApp, query: string, accept: string): Promise<string> {
  const body = JSON.stringify({ query, variables: { organization: demo.organization_id, project: demo.project_id } });
  const head = [
    'POST /graphql HTTP/1.1',
    'Host: localhost',
    `Authorization: Bearer ${demo.users.owner.token}`,
    'Content-Type: application/json',
    `Accept: ${accept}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Expect: 100-continue',
  ];
  const socket = connect(Number(new URL(baseUrl).port), '127.0.0.1');
  let text = '';
  socket.on('data', (chunk) => {
    text += chunk;
  });
  const ended = new Promise((resolve) => socket.once('close', resolve));
  socket.write(`${head.join('\r\n')}\r\n\r\n`);
  await expect.poll(() => text).not.toBe('');
  const closing = app.close();
  // The port closes after the streams.
  for (;;) {
    const isOpen = await ask('GET', '/health/live', { as: null, headers: { connection: 'close' } }).then(
      () => true,
      () => false,
    );
    if (!isOpen) break;
    await sleep(10);
  }
  socket.write(body);
  await ended;
  await closing;
  return text;
}

it.each([
  [FEED, 'text/event-stream'],
  [FEED, '*/*'],
  ['{ viewer { id } }', 'text/event-stream'],
])('a stopping server refuses a stream so that its client tries again: %s %s', async (query, accept) => {
  const text = await askWhileStopping(await startApp(), query, accept);
  expect(text).toContain('HTTP/1.1 503');
  expect(text).toMatch(/^retry-after: 1\r$/im);
  expect(text).toContain('{"errors":[{"message":"The service is temporarily unavailable.","extensions":{"code":"service_unavailable"}}]}');
  expect(text).not.toContain('event:');
});

it('a stopping server answers a request without a stream', async () => {
  expect(await askWhileStopping(await startApp(), '{ viewer { id } }', '*/*')).toContain('{"data":{"viewer":{"id":');
});
