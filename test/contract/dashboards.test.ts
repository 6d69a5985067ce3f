import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { isPostgres, startApp, type TestApp } from '../support/app.ts';
import { expandRefusal, runCases } from '../support/doors.ts';
import { makeDashboard, makeProject } from '../support/fixtures.ts';
import { dashboardChangeCases, oddWidgets } from './cases/dashboard-changes.ts';
import { dashboardReadCases } from './cases/dashboards.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.close());

runCases(() => app, dashboardReadCases);
runCases(() => app, dashboardChangeCases);

const pathOf = (projectId: string) => `/v1/organizations/${app.demo.organization_id}/projects/${projectId}/monitoring/dashboards`;
const conflict = expandRefusal({
  detail: 'The dashboard has been changed since the expected version.',
  code: 'conflict',
  context: { version: 5 },
});

/** A dashboard at version 5 in a project of its own, and its path. */
async function makeOne(data: Parameters<typeof makeDashboard>[2] = {}) {
  const projectId = await makeProject(app);
  const { id } = await makeDashboard(app, projectId, data);
  return { projectId, id, path: `${pathOf(projectId)}/${id}` };
}

describe('If-Match', () => {
  // A proxy that compresses makes a tag weak.
  for (const tag of ['*', ' * ', '"5"', ' "5" ', 'W/"5"']) {
    it(`takes ${JSON.stringify(tag)} for the current version`, async () => {
      const { path } = await makeOne();
      const response = await app.ask('PUT', path, { headers: { 'if-match': tag }, body: { name: 'After' } });
      expect([response.status, response.headers.etag]).toEqual([200, '"6"']);
      const deleted = await app.ask('DELETE', path, { headers: { 'if-match': '"6"' } });
      expect([deleted.status, deleted.headers.etag]).toEqual([204, undefined]);
    });
  }

  for (const tag of ['5', '"05"', '"5', '""', '', '"v5"', '"5.0"', "'5'", 'w/"5"']) {
    it(`takes ${JSON.stringify(tag)} for no tag of ours`, async () => {
      const { path } = await makeOne();
      const detail = 'If-Match must be an entity tag that a response had, such as "2".';
      for (const [method, body] of [['PUT', { name: 'After' }] as const, ['DELETE', undefined] as const]) {
        const response = await app.ask(method, path, { headers: { 'if-match': tag }, body });
        expect([response.status, response.json]).toEqual([400, expandRefusal({ detail, code: 'invalid_request' })]);
      }
      expect((await app.ask('GET', path)).headers.etag).toBe('"5"');
    });
  }

  for (const tag of ['"4"', '"6"', 'W/"6"', '"99999999999"']) {
    it(`takes ${JSON.stringify(tag)} for another version`, async () => {
      const { path } = await makeOne();
      for (const [method, body] of [['PUT', { name: 'After' }] as const, ['DELETE', undefined] as const]) {
        const response = await app.ask(method, path, { headers: { 'if-match': tag }, body });
        expect([response.status, response.json]).toEqual([409, conflict]);
      }
      expect((await app.ask('GET', path)).headers.etag).toBe('"5"');
    });
  }

  it('refuses several tags, and several headers', async () => {
    const { path } = await makeOne();
    const refusal = expandRefusal({ detail: 'If-Match must name one entity tag.', code: 'invalid_request' });
    const authorization = `Bearer ${app.demo.users.owner.token}`;
    for (const tags of [
      ['If-Match', '"5", "6"'],
      ['If-Match', '"4"', 'if-match', '"5"'],
    ]) {
      const headers = ['Host', 'localhost', 'Authorization', authorization, 'Content-Type', 'application/json', ...tags];
      const response = await app.ask('PUT', path, { headers: headers, body: '{"name":"Next"}' });
      expect([response.status, response.json]).toEqual([400, refusal]);
    }
  });

  it('follows the tag of each response to the next', async () => {
    const { path } = await makeOne();
    let etag = String((await app.ask('GET', path)).headers.etag);
    for (const name of ['First', 'Second', 'Third']) {
      const response = await app.ask('PUT', path, { headers: { 'if-match': etag }, body: { name } });
      expect(response.status).toBe(200);
      etag = String(response.headers.etag);
    }
    expect(etag).toBe('"8"');
  });
});

describe('a PUT', () => {
  it('reads only its own fields from the body', async () => {
    const { path, id, projectId } = await makeOne();
    const { organization_id, foreign, users } = app.demo;
    const mine = { name: 'After', widgets: oddWidgets, is_public: true };
    const strays = {
      id: foreign.dashboard_id,
      dashboard_id: foreign.dashboard_id,
      project_id: foreign.project_id,
      version: 90,
      if_match: 4,
    };
    const owned = {
      organization: foreign.organization_id,
      organization_id: 7,
      created_by: users.owner.id,
      created: 'never',
      isDefault: true,
    };
    const response = await app.ask('PUT', path, { body: { ...strays, ...mine, ...owned } });
    expect(response.json).toEqual({
      ...mine,
      id,
      organization: organization_id,
      project: projectId,
      created_by: users.member.id,
      created: '2026-03-01T08:00:00.000Z',
      modified: expect.any(String),
      description: '',
      is_default: false,
    });
  });

  it('is refused by GraphQL where the input has fields that it does not know', async () => {
    const { id, projectId } = await makeOne();
    const input = { organizationId: app.demo.organization_id, projectId, id, name: 'After', createdById: app.demo.users.owner.id };
    const response = await app.graphql(
      'mutation ($input: UpdateDashboardInput!) { updateDashboard(input: $input) { dashboard { version } } }',
      { input },
    );
    expect(response.json.errors[0].extensions).toEqual({ code: 'validation_failed', fields: { createdById: ['Unknown field.'] } });
  });

  it.runIf(isPostgres)('has the times of PostgreSQL’s clock, as the clocks of two replicas may differ', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 3_600_000 });
    const target = await makeProject(app);
    const body = { name: 'Ahead', is_default: true };
    const { json } = await app.ask('POST', pathOf(target), { body });
    await app.ask('POST', pathOf(target), { body });
    const path = `${pathOf(target)}/${json.id}`;
    const cleared = (await app.ask('GET', path)).json;
    const ahead = (await app.ask('PUT', path, { body })).json;
    vi.useRealTimers();
    const { modified } = (await app.ask('PUT', path, { body: { name: 'Later' } })).json;
    expect(json.modified).toBe(json.created);
    const times = [json.modified, cleared.modified, ahead.modified, modified];
    expect([...times].sort()).toEqual(times);
    expect(Date.parse(ahead.modified)).toBeLessThan(Date.now() + 1_800_000);
  });

  it('answers a move at the new place, and is not found at the old one', async () => {
    const { path, id, projectId } = await makeOne();
    const target = await makeProject(app);
    const moved = await app.ask('PUT', path, { body: { name: 'Moved', project: target } });
    expect([moved.status, moved.json.project]).toEqual([200, target]);
    expect((await app.ask('GET', path)).status).toBe(404);
    expect((await app.ask('GET', `${pathOf(target)}/${id}`)).json).toEqual(moved.json);
    expect((await app.ask('GET', pathOf(projectId))).json.count).toBe(0);
  });
});

describe('the default of a project', () => {
  const defaults = (projectId: string) =>
    app.app.database.prisma.dashboard.findMany({ where: { projectId, isDefault: true }, select: { id: true, version: true } });

  it('is taken over by a new one, which the old one’s version shows', async () => {
    const { path, projectId } = await makeOne({ isDefault: true });
    const { json } = await app.ask('POST', pathOf(projectId), { body: { name: 'New default', is_default: true } });
    expect(await defaults(projectId)).toEqual([{ id: json.id, version: 1 }]);
    const before = await app.ask('GET', path);
    expect([before.headers.etag, before.json.is_default, before.json.name]).toEqual(['"6"', false, 'Before']);
  });

  it('is taken over by a PUT, and stays one’s own by a second', async () => {
    const { path, id, projectId } = await makeOne();
    await makeDashboard(app, projectId, { isDefault: true });
    const body = { name: 'Default', is_default: true };
    expect((await app.ask('PUT', path, { body })).headers.etag).toBe('"6"');
    expect((await app.ask('PUT', path, { body })).headers.etag).toBe('"7"');
    expect(await defaults(projectId)).toEqual([{ id, version: 7 }]);
  });

  it('is taken over in the project that a default moves to, and in that alone', async () => {
    const { path, id, projectId } = await makeOne({ isDefault: true });
    const target = await makeOne({ isDefault: true });
    const response = await app.ask('PUT', path, { body: { name: 'Moved', is_default: true, project: target.projectId } });
    expect(response.status).toBe(200);
    expect(await defaults(projectId)).toEqual([]);
    expect(await defaults(target.projectId)).toEqual([{ id, version: 6 }]);
  });

  it('stays where it was when the change is refused', async () => {
    const { path, projectId } = await makeOne();
    const { id } = await makeDashboard(app, projectId, { isDefault: true });
    const response = await app.ask('PUT', path, { headers: { 'if-match': '"4"' }, body: { name: 'Default', is_default: true } });
    expect(response.status).toBe(409);
    expect(await defaults(projectId)).toEqual([{ id, version: 5 }]);
  });

  it('may be none', async () => {
    const { path, projectId } = await makeOne({ isDefault: true });
    await app.ask('PUT', path, { body: { name: 'No default' } });
    expect(await defaults(projectId)).toEqual([]);
  });
});
