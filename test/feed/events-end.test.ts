import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { passSeconds } from '../support/clock.ts';
import { publish } from '../support/feed.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_USER: '1000000' });
});
afterAll(() => app.close());
afterEach(() => void vi.useRealTimers());

const sign = async (user: 'owner' | 'viewer' | 'member', seconds: number) =>
  (await app.app.tokens.local?.sign(app.demo.users[user].id, seconds)) ?? '';

async function makeKey() {
  const { json } = await app.graphql('mutation { createApiKey(input: { name: "events" }) { key apiKey { id } } }', {}, { as: 'viewer' });
  return json.data.createApiKey as { key: string; apiKey: { id: string } };
}

/** Opens a stream, and reads it until it is ready. */
async function openStream(credential: string) {
  const { organization_id, project_id } = app.demo;
  const query = `subscription { notificationFeed(organizationId: "${organization_id}", projectId: "${project_id}") { __typename } }`;
  const response = await fetch(`${app.baseUrl}/graphql`, {
    method: 'POST',
    headers: { authorization: `Bearer ${credential}`, 'content-type': 'application/json', accept: 'text/event-stream' },
    body: JSON.stringify({ query }),
  });
  const chunks = (response.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream())[Symbol.asyncIterator]();
  /** What comes until the text occurs in it, or until the end. */
  const readUntil = async (wanted: string | null): Promise<string> => {
    let text = '';
    while (wanted === null || !text.includes(wanted)) {
      const part = await chunks.next();
      if (part.done) break;
      text += part.value;
    }
    return text.replaceAll(/^:\n\n/gm, '');
  };
  expect(await readUntil('FeedReady"}}}\n\n')).toContain('FeedReady');
  return { readUntil, leave: () => chunks.return?.() };
}

it('a stream whose access is lost ends with one error that has the reason, and other streams continue', async () => {
  const [revoked, expiring] = [await makeKey(), await makeKey()];
  const where = { projectId: app.demo.project_id, userId: app.demo.users.member.id };
  const revoke = 'mutation ($id: ID!) { revokeApiKey(input: { id: $id }) { apiKey { id } } }';
  const ways: ReadonlyArray<[what: string, credential: string, code: string, lose: () => unknown]> = [
    ['a key that is revoked', revoked.key, 'permission_denied', () => app.graphql(revoke, { id: revoked.apiKey.id }, { as: 'viewer' })],
    [
      'a key that expires',
      expiring.key,
      'permission_denied',
      () => app.app.database.prisma.apiKey.update({ where: { id: expiring.apiKey.id }, data: { expires: new Date() } }),
    ],
    [
      'a project that is lost',
      await sign('member', 3600),
      'permission_denied',
      () => app.app.database.prisma.projectMember.deleteMany({ where }),
    ],
    ['a session that expires', await sign('viewer', 60), 'not_authenticated', () => passSeconds(61)],
  ];
  const streams = await Promise.all(ways.map(([, credential]) => openStream(credential)));
  const other = await openStream(await sign('owner', 3600));
  for (const [, , , lose] of ways) await lose();
  for (const [index, [what, , code]] of ways.entries()) {
    const rest = await streams[index]?.readUntil(null);
    expect(rest?.match(/"errors"/g), what).toHaveLength(1);
    expect(rest, what).toMatch(/^event: next\ndata: \{"errors":\[.*\n\nevent: complete\n/m);
    expect(rest, what).toContain(`"code":"${code}"`);
  }
  await publish(app, 'for others');
  expect(await other.readUntil('NotificationAdded')).not.toContain('"errors"');
  await other.leave();
});
