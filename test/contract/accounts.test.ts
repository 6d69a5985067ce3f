import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { users } from '../../demo/people.ts';
import { type Ask, startApp, type TestApp } from '../support/app.ts';
import { credentialOf, expandRefusal, refusals, type Who } from '../support/doors.ts';
import { anyMoment, anyUuid, expectExact } from '../support/exact.ts';
import { ABSENT_ID, ids } from '../support/fixtures.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_ANONYMOUS: '1000' });
});
afterAll(() => app.close());

const ask = (document: string, as: Who | { bearer: string }, variables: Record<string, unknown> = {}) =>
  app.graphql(document, variables, { as: typeof as === 'string' ? credentialOf(app, as) : as });

/** The only error of a response, without its place in the document. */
async function errorOf(...call: Parameters<typeof ask>) {
  const { json } = await ask(...call);
  expect(json.errors).toHaveLength(1);
  return { message: json.errors[0].message, ...json.errors[0].extensions };
}

const notFound = { message: 'Not found.', code: 'not_found' };
const notAuthenticated = { message: refusals.anonymous.detail, code: 'not_authenticated' };
const sessionRequired = { message: 'This action requires a user session.', code: 'session_required' };

describe('viewer', () => {
  const document = `{
    viewer {
      id email name created
      organizations {
        nodes {
          id name currency role created
          projects { nodes { id organizationId name role created } edges { node { id } } }
        }
      }
    }
  }`;
  const production = { id: ids.project.id, organizationId: ids.organization.id, name: 'Production' };
  const sandbox = { id: ids.emptyProject.id, organizationId: ids.organization.id, name: 'Sandbox', role: 'admin' };
  const webshop = { id: ids.foreignProject.id, organizationId: ids.foreignOrganization.id, name: 'Webshop', role: 'admin' };
  const acme = { id: ids.organization.id, name: 'Acme Cloud', currency: 'EUR' };
  const globex = { id: ids.foreignOrganization.id, name: 'Globex Hosting', currency: 'USD', role: 'owner' };

  const expected = {
    owner: [{ ...acme, role: 'owner' }, [{ ...production, role: 'admin' }, sandbox]],
    admin: [{ ...acme, role: 'admin' }, [{ ...production, role: 'admin' }, sandbox]],
    member: [{ ...acme, role: 'member' }, [{ ...production, role: 'member' }]],
    viewer: [{ ...acme, role: 'member' }, [{ ...production, role: 'viewer' }]],
    outsider: [globex, [webshop]],
  } as const;

  for (const role of Object.keys(expected) as Array<keyof typeof expected>) {
    for (const who of [role, `${role} by key`] as const) {
      it(`shows ${who} their organizations and in them the projects that they may see`, async () => {
        const [organization, projects] = expected[role];
        const nodes = projects.map((project) => ({ ...project, created: anyMoment }));
        const { json } = await ask(document, who);
        expectExact(json, {
          data: {
            viewer: {
              id: users[role].id,
              email: users[role].email,
              name: users[role].name,
              created: anyMoment,
              organizations: {
                nodes: [{ ...organization, created: anyMoment, projects: { nodes, edges: projects.map(({ id }) => ({ node: { id } })) } }],
              },
            },
          },
        });
      });
    }
  }

  it('has their own role in an organization, also where a project leads to it', async () => {
    const linked = 'query ($id: ID!) { project(id: $id) { organization { id role } } }';
    for (const role of ['owner', 'admin', 'member', 'viewer'] as const) {
      const { json } = await ask(linked, role, { id: production.id });
      expect(json.data.project.organization).toEqual({ id: acme.id, role: expected[role][0].role });
    }
  });

  it('shows the user as they are now, to a token that was used before', async () => {
    for (const data of [{ email: 'renamed@acme.example' }, { name: 'Renamed' }]) {
      const { id, email, name } = (await ask('{ viewer { id email name } }', 'owner')).json.data.viewer;
      await app.app.database.prisma.user.update({ where: { id }, data });
      const { json } = await ask('{ viewer { email name } }', 'owner');
      await app.app.database.prisma.user.update({ where: { id }, data: { email, name } });
      expect(json.data.viewer).toEqual({ email, name, ...data });
    }
  });

  it('is null without a credential, and all else is refused', async () => {
    expect((await ask('{ viewer { id } }', 'nobody')).json).toEqual({ data: { viewer: null } });
    const mixed = await ask('query ($id: ID!) { viewer { id } __typename organization(id: $id) { id } }', 'nobody', { id: acme.id });
    expect(mixed.json).toEqual({
      data: { viewer: null, __typename: 'Query', organization: null },
      errors: [
        expect.objectContaining({ message: notAuthenticated.message, path: ['organization'], extensions: { code: 'not_authenticated' } }),
      ],
    });
    expect((await ask('{ __schema { queryType { name } } }', 'nobody')).json).toEqual({
      data: { __schema: { queryType: { name: 'Query' } } },
    });
  });
});

describe('organization', () => {
  const document = 'query ($id: ID!) { organization(id: $id) { id role } }';

  it('has pages of projects that are full, although there are others which the viewer may not see', async () => {
    const { project } = app.app.database.prisma;
    const hidden = ['a', 'b'].map((name) => ({ name, organizationId: ids.organization.id }));
    const created = await project.createManyAndReturn({ data: hidden });
    const query = 'query ($id: ID!) { organization(id: $id) { projects(last: 1) { nodes { id } } } }';
    const { json } = await ask(query, 'viewer', { id: ids.organization.id });
    await project.deleteMany({ where: { id: { in: created.map(({ id }) => id) } } });
    expect(json.data.organization.projects.nodes).toEqual([{ id: ids.project.id }]);
  });

  it('is shown to its members', async () => {
    const { json } = await ask(document, 'viewer', { id: ids.organization.id.toUpperCase() });
    expect(json).toEqual({ data: { organization: { id: ids.organization.id, role: 'member' } } });
  });

  it('is not found where it is another’s, absent or malformed: one response, byte for byte', async () => {
    const responses = await Promise.all(
      [ids.foreignOrganization.id, ABSENT_ID, 'acme', '', `{${ids.organization.id}}`].map((id) => ask(document, 'owner', { id })),
    );
    expect(responses[0]?.json).toMatchObject({
      data: { organization: null },
      errors: [{ message: 'Not found.', extensions: { code: 'not_found' } }],
    });
    expect(new Set(responses.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
  });
});

describe('API keys', () => {
  const fields = 'id name hint created lastUsed expires revoked';
  const create = `mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { key apiKey { ${fields} } } }`;
  const revoke = `mutation ($input: RevokeApiKeyInput!) { revokeApiKey(input: $input) { apiKey { ${fields} } } }`;
  const list = `{ viewer { apiKeys { nodes { ${fields} } } } }`;
  const make = async (input: object, as: Who = 'member') => (await ask(create, as, { input })).json.data.createApiKey;
  const keysOf = async (as: Who) => (await ask(list, as)).json.data.viewer.apiKeys.nodes as Array<Record<string, unknown>>;
  const overview = (as: Ask['as']) => app.ask('GET', `${app.projectPath}/compute/overview`, { as });

  it('are made, shown once, listed the newest first, used, and revoked for good', async () => {
    const before = await keysOf('member');
    const made = await ask(create, 'member', { input: { name: 'Für CI 🔑' } });
    expect(made.headers['cache-control']).toBe('no-store');
    const { key, apiKey } = made.json.data.createApiKey;
    expect(key).toMatch(/^sk-portico-[0-9a-f]{56}$/);
    const row = {
      id: anyUuid,
      name: 'Für CI 🔑',
      hint: `${key.slice(0, 15)}…`,
      created: anyMoment,
      lastUsed: null,
      expires: null,
      revoked: null,
    };
    expectExact(apiKey, row);

    const counting = 'mutation { createApiKey(input: { name: "one more" }) { viewer { id apiKeys { totalCount } } apiKey { id } } }';
    const { viewer, apiKey: second } = (await ask(counting, 'member')).json.data.createApiKey;
    expect(viewer).toEqual({ id: users.member.id, apiKeys: { totalCount: before.length + 2 } });
    await app.app.database.prisma.apiKey.delete({ where: { id: second.id } });

    const listed = await ask(list, 'member');
    expectExact(listed.json.data.viewer.apiKeys.nodes, [apiKey, ...before]);
    expect(listed.text).not.toContain(key);

    const bearer = { bearer: key };
    expect((await overview(bearer)).status).toBe(200);
    expect((await ask('{ viewer { email } }', bearer)).json).toEqual({ data: { viewer: { email: users.member.email } } });
    expect((await keysOf('member'))[0]).toEqual({ ...apiKey, lastUsed: anyMoment });

    const revoked = (await ask(revoke, 'member', { input: { id: apiKey.id } })).json.data.revokeApiKey.apiKey;
    expect(revoked).toEqual({ ...apiKey, lastUsed: anyMoment, revoked: anyMoment });
    const refused = await overview(bearer);
    expect([refused.status, refused.json, refused.headers['www-authenticate']]).toEqual([401, expandRefusal(refusals.garbage), 'Bearer']);
    const byGraphql = await ask('{ viewer { email } }', bearer);
    const error = { message: refusals.garbage.detail, extensions: { code: 'not_authenticated' } };
    expect([byGraphql.status, byGraphql.json]).toEqual([401, { errors: [error] }]);

    const again = (await ask(revoke, 'member', { input: { id: apiKey.id } })).json.data.revokeApiKey.apiKey;
    expect(again).toEqual(revoked);
    expect((await keysOf('member'))[0]).toEqual(revoked);
  });

  it('are stored as a hash alone', async () => {
    const { key, apiKey } = await make({ name: 'hashed' });
    const [{ row }] = await app.app.database.prisma.$queryRaw<[{ row: string }]>`
      SELECT row_to_json(api_keys)::text AS row FROM api_keys WHERE id = ${apiKey.id}::uuid`;
    expect(row).toContain(apiKey.hint);
    expect(row).not.toContain(key.slice('sk-portico-'.length + 4, -8));
    expect(app.logLines.join('\n')).not.toContain(key);
  });

  it('expire', async () => {
    const { key, apiKey } = await make({ name: 'short', expires: new Date(Date.now() + 60_000).toISOString() });
    expect((await overview({ bearer: key })).status).toBe(200);
    await app.app.database.prisma.apiKey.update({ where: { id: apiKey.id }, data: { expires: new Date(Date.now() - 1) } });
    expect((await overview({ bearer: key })).status).toBe(401);
  });

  it('keep an expiry as the moment that it names', async () => {
    const { apiKey } = await make({ name: 'zoned', expires: '2999-02-28T23:30:00.5-05:30' });
    expect(apiKey.expires).toBe('2999-03-01T05:00:00.500Z');
    expect((await make({ name: 'never', expires: null })).apiKey.expires).toBeNull();
  });

  it('count as uses of their user’s budget, and remember their last use to the minute', async () => {
    const { key } = await make({ name: 'used' });
    const left = async (as: Ask['as']) => Number(/r=(\d+)/.exec(String((await overview(as)).headers.ratelimit))?.[1]);
    const before = await left('member');
    expect(await left({ bearer: key })).toBe(before - 1);
    const [first] = await keysOf('member');
    await overview({ bearer: key });
    expect((await keysOf('member'))[0]?.lastUsed).toBe(first?.lastUsed);
  });

  it('are refused with all bad fields at once', async () => {
    const invalid = { message: 'Some fields are not valid.', code: 'validation_failed' };
    const notMoment = ['Not a valid date-time: use ISO 8601 with a time zone.'];
    expect(await errorOf(create, 'member', { input: { expires: 'tomorrow' } })).toEqual({
      ...invalid,
      fields: { name: ['This field is required.'], expires: notMoment },
    });
    for (const expires of ['2999-02-30T00:00:00Z', '2999-01-01', '2999-01-01T00:00:00', 32503680000]) {
      expect(await errorOf(create, 'member', { input: { name: 'x', expires } })).toEqual({ ...invalid, fields: { expires: notMoment } });
    }
    expect(await errorOf(create, 'member', { input: { name: ' ', expires: '2020-01-01T00:00:00Z' } })).toEqual({
      ...invalid,
      fields: { name: ['This field may not be blank.'] },
    });
    expect(await errorOf(create, 'member', { input: { name: 'past', expires: new Date().toISOString() } })).toEqual({
      ...invalid,
      fields: { expires: ['Must be in the future.'] },
    });
  });

  it('are a matter between their user and a session', async () => {
    const { apiKey } = await make({ name: 'mine' });
    const input = { id: apiKey.id };
    expect(await errorOf(create, 'member by key', { input: { name: 'more' } })).toEqual(sessionRequired);
    expect(await errorOf(revoke, 'member by key', { input })).toEqual(sessionRequired);
    expect(await errorOf(list, 'member by key')).toEqual(sessionRequired);
    expect(await errorOf(create, 'nobody', { input: { name: 'more' } })).toEqual(notAuthenticated);
    expect(await errorOf(revoke, 'nobody', { input })).toEqual(notAuthenticated);
    for (const as of ['owner', 'admin', 'outsider'] as const) expect(await errorOf(revoke, as, { input }), as).toEqual(notFound);
    for (const id of [ABSENT_ID, 'x', users.member.id]) expect(await errorOf(revoke, 'member', { input: { id } }), id).toEqual(notFound);
    expect((await keysOf('member'))[0]).toEqual(apiKey);
    expect((await keysOf('owner')).map(({ id }) => id)).not.toContain(apiKey.id);
  });
});
