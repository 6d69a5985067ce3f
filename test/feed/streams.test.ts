import { ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { Source } from '../../src/graph/source.ts';
import { startApp, type TestApp } from '../support/app.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_USER: '1000000', MAX_UNREAD_MIB_PER_ADDRESS: '64', MAX_UNREAD_MIB: '64' });
});
afterAll(() => app.close());

const ALIASES = 40;
const BODY = 'x'.repeat(20_000);

it('a stream that is not read has no event in memory but those that are counted as unread', async () => {
  const { organization_id: organizationId, project_id: projectId } = app.demo;
  const bodies = Array.from({ length: ALIASES }, (_, index) => `a${index}: body`).join(' ');
  const query = `subscription { notificationFeed(organizationId: "${organizationId}", projectId: "${projectId}") {
    ... on NotificationAdded { notification { ${bodies} } }
  } }`;
  const next = vi.spyOn(Source.prototype, 'next');
  const write = vi.spyOn(ServerResponse.prototype, 'write');
  const { hostname, port } = new URL(app.baseUrl);
  const client = connect(Number(port), hostname);
  client.pause();
  const body = JSON.stringify({ query });
  client.write(
    [
      'POST /graphql HTTP/1.1',
      'Host: x',
      `Authorization: Bearer ${app.demo.users.owner.token}`,
      'Content-Type: application/json',
      'Accept: text/event-stream',
      `Content-Length: ${body.length}`,
      '',
      body,
    ].join('\r\n'),
  );
  const count = () => {
    const events = next.mock.settledResults.filter(({ type, value }) => type === 'fulfilled' && !value.done).length;
    const text = write.mock.calls.map(([chunk]) => Buffer.from(chunk).toString()).join('');
    return [events, text.match(/^event: next$/gm)?.length ?? 0];
  };
  await expect.poll(() => count()[1]).toBe(1);
  for (let sent = 0; sent < 30; sent += 1) {
    await app.app.database.notification.create({ data: { projectId, kind: 'large', severity: 'info', title: 'x', body: BODY, data: {} } });
  }
  let known = -1;
  await expect
    .poll(async () => {
      const before = known;
      [known = 0] = count();
      await sleep(500);
      return known === before;
    })
    .toBe(true);
  const [read, sent] = count();
  // The kernels have taken some, and not all.
  expect(read).toBeGreaterThan(2);
  expect(read).toBeLessThan(30);
  expect(sent).toBe(read);
  let received = '';
  client.on('data', (chunk) => (received += chunk));
  client.resume();
  await expect.poll(() => received.match(/^event: next$/gm)?.length).toBe(31);
  next.mockRestore();
  write.mockRestore();
  client.destroy();
});
