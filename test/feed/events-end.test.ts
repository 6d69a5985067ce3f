import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { passSeconds } from '../support/clock.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_USER: '1000000' });
});
afterAll(() => app.close());
afterEach(() => void vi.useRealTimers());

const sign = async (seconds: number) => (await app.app.tokens.local?.sign(app.demo.users.viewer.id, seconds)) ?? '';

describe('server-sent events end with one error, and others are served meanwhile: for', () => {
  const create = 'mutation { createApiKey(input: { name: "events" }) { key apiKey { id } } }';
  const makeKey = async () => (await app.graphql(create, {}, { as: 'viewer' })).json.data.createApiKey;
  const ways: Record<string, () => Promise<[credential: string, lose: () => unknown]>> = {
    'a key that is revoked': async () => {
      const { key, apiKey } = await makeKey();
      const revoke = 'mutation ($id: ID!) { revokeApiKey(input: { id: $id }) { apiKey { id } } }';
      return [key, () => app.graphql(revoke, { id: apiKey.id }, { as: 'viewer' })];
    },
    'a key that expires': async () => {
      const { key, apiKey } = await makeKey();
      return [key, () => app.app.database.apiKey.update({ where: { id: apiKey.id }, data: { expires: new Date() } })];
    },
    'a session that expires': async () => [await sign(60), () => passSeconds(61)],
    'a project that is lost': async () => {
      const where = { projectId: app.demo.project_id, userId: app.demo.users.viewer.id };
      return [await sign(3600), () => app.app.database.projectMember.deleteMany({ where })];
    },
  };
  it.each(Object.keys(ways))('%s', async (way) => {
    const [credential, lose] = (await ways[way]?.()) ?? ['', () => {}];
    const { organization_id, project_id } = app.demo;
    const query = `subscription { notificationFeed(organizationId: "${organization_id}", projectId: "${project_id}") { __typename } }`;
    const response = await fetch(`${app.baseUrl}/graphql`, {
      method: 'POST',
      headers: { authorization: `Bearer ${credential}`, 'content-type': 'application/json', accept: 'text/event-stream' },
      body: JSON.stringify({ query }),
    });
    let text = '';
    for await (const chunk of response.body ?? []) {
      if (text === '') await lose();
      text += Buffer.from(chunk).toString();
    }
    text = text.replaceAll(/^:\n\n/gm, '');
    expect(text.match(/"errors"/g)).toHaveLength(1);
    expect(text).toMatch(/^event: next\ndata: \{"errors":\[.*\n\nevent: complete\n/m);
  });
});
