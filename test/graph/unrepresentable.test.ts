import { afterAll, beforeAll, expect, test } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { openSocket } from '../support/feed.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp();
  const { database } = app.app;
  // As a later release, or another service, would: the schema of this one does not know the value.
  await database.prisma.$executeRawUnsafe(`ALTER TYPE severity ADD VALUE 'unheard_of'`);
  await database.prisma.$executeRawUnsafe(
    `INSERT INTO notifications (project_id, kind, severity, title) VALUES ($1::uuid, 'test', 'unheard_of', 'New')`,
    app.demo.project_id,
  );
});
afterAll(() => app.close());

const causes = () => app.logLines.map((line) => JSON.parse(line)).filter(({ level, msg }) => level === 'error' && msg === 'internal error');

test('a stored value that its type cannot represent is a logged defect in v1 and GraphQL', async () => {
  const listed = await app.ask('GET', `${app.projectPath}/notifications?page_size=1`);
  expect([listed.status, listed.json.code]).toEqual([500, 'internal_error']);
  const query = `{ project(id: "${app.demo.project_id}") { notifications(first: 1) { nodes { severity } } } }`;
  const responses = [await app.graphql(query), await app.ask('GET', `/graphql?query=${encodeURIComponent(query)}`)];
  for (const { json, text } of responses) {
    expect(json.errors[0].extensions.code).toBe('internal_error');
    expect(text).not.toContain('unheard_of');
  }
  expect(causes()).toHaveLength(3);
  expect(JSON.stringify(causes()[1].err)).toContain('unheard_of');
});

test('a stored value that its type cannot represent is a logged defect in a feed', async () => {
  const headers = { authorization: `Bearer ${app.demo.users.owner.token}` };
  const socket = openSocket(app, '/graphql', { protocol: 'graphql-transport-ws', headers });
  await new Promise((resolve) => socket.socket.once('open', resolve));
  socket.socket.send(JSON.stringify({ type: 'connection_init' }));
  await socket.until(({ type }) => type === 'connection_ack');
  const fields = '... on NotificationAdded { notification { severity } }';
  const { organization_id, project_id } = app.demo;
  const place = `organizationId: "${organization_id}", projectId: "${project_id}"`;
  const query = `subscription { notificationFeed(${place}, after: 149) { __typename ${fields} } }`;
  socket.socket.send(JSON.stringify({ type: 'subscribe', id: 'a', payload: { query } }));
  const refused = await socket.until(({ type, payload }) => type === 'error' || Boolean(payload?.errors));
  expect(JSON.stringify(refused)).toContain('internal_error');
  expect(JSON.stringify(refused)).not.toContain('unheard_of');
  socket.socket.close();
  await socket.closed;
});
