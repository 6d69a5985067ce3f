import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Ask, startApp, type TestApp, type TestResponse } from '../support/app.ts';
import { countCases } from '../support/cases.ts';

let portico: TestApp;

beforeAll(async () => {
  portico = await startApp();
});
afterAll(() => portico.close());

const pathOf = (projectId: string, dashboardId = '') => {
  const path = `/v1/organizations/${portico.demo.organization_id}/projects/${projectId}/monitoring/dashboards`;
  return dashboardId ? `${path}/${dashboardId}` : path;
};
const put = (path: string, body: unknown, headers: Ask['headers'] = {}) => portico.ask('PUT', path, { body, headers });

async function create(projectId = portico.demo.project_id, content: object = {}): Promise<string> {
  const { status, json } = await portico.ask('POST', pathOf(projectId), { body: { name: 'raced', ...content } });
  expect(status).toBe(201);
  return json.id;
}

async function createMany(count: number, projectId?: string): Promise<string[]> {
  return Promise.all(Array.from({ length: count }, () => create(projectId)));
}

async function listDefaults(projectId: string): Promise<string[]> {
  const rows = await portico.app.database.prisma.dashboard.findMany({ where: { projectId, isDefault: true }, select: { id: true } });
  return rows.map(({ id }) => id);
}

/** The number of responses by status. */
function tally(responses: readonly TestResponse[]): Record<number, number> {
  const counts: Record<number, number> = {};
  for (const { status } of responses) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

/** Runs `act` `count` times concurrently. */
function atOnce<Result>(count: number, act: (index: number) => Promise<Result>): Promise<Result[]> {
  return Promise.all(Array.from({ length: count }, (_, index) => act(index)));
}

describe('a stored dashboard is returned as it was sent', () => {
  const text = fc.string({
    unit: fc.oneof(fc.constantFrom('é', '\u{1f600}', '"', '\\', '/', '\u2028', '\u007f', '\t', 'ﬀ'), fc.string({ unit: 'binary' })),
  });
  const storable = text.filter((value) => value.isWellFormed() && !value.includes('\0'));
  const key = fc.oneof(storable, fc.constantFrom('__proto__', 'constructor', 'toString', 'length', '', '0', '10', '9', 'b', 'a'));
  const numberText = fc.oneof(
    fc.integer().map(String),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
    fc.constantFrom(
      '-0',
      '1.0',
      '1e21',
      '1E-7',
      '0.1',
      '5e-324',
      '1.7976931348623157e308',
      '9007199254740993',
      '123456789012345678901234567890',
    ),
  );
  /** JSON text rather than values, because the spelling of numbers and the order of members are preserved too. */
  const { json } = fc.letrec<{ json: string; list: string; object: string }>((tie) => ({
    json: fc.oneof(
      { maxDepth: 6, withCrossShrink: true },
      fc.constantFrom('null', 'true', 'false', '[]', '{}'),
      numberText.filter((number) => Number.isFinite(Number(number))),
      storable.map((value) => JSON.stringify(value)),
      tie('list'),
      tie('object'),
    ),
    list: fc.array(tie('json'), { maxLength: 6 }).map((items) => `[${items.join(', ')}]`),
    object: fc
      .uniqueArray(fc.tuple(key, tie('json')), { maxLength: 6, selector: ([name]) => name })
      .map((members) => `{${members.map(([name, value]) => `${JSON.stringify(name)}: ${value}`).join(', ')}}`),
  }));

  test('any JSON as widgets, by PUT, by GET, in the list and through GraphQL', async () => {
    const { organization_id, empty_project_id } = portico.demo;
    const id = await create(empty_project_id);
    const query = `{ project(organizationId: "${organization_id}", id: "${empty_project_id}") { dashboard(id: "${id}") { widgets } } }`;
    await fc.assert(
      fc.asyncProperty(json, async (widgets) => {
        const sent = widgets.replace(/"(?:[^"\\]|\\.)*"|([,:]) /g, (whole, separator) => separator ?? whole);
        const changed = await put(pathOf(empty_project_id, id), `{"name": "any", "widgets": ${widgets}}`);
        const read = await portico.ask('GET', pathOf(empty_project_id, id));
        const list = await portico.ask('GET', pathOf(empty_project_id));
        const graphql = await portico.graphql(query);
        expect(changed.text).toContain(`"widgets":${sent},`);
        expect(read.text).toBe(changed.text);
        expect(list.text).toContain(`"widgets":${sent},`);
        expect(graphql.text).toContain(`"widgets":${sent}}`);
      }),
      { seed: 20_261_120, numRuns: countCases(120), examples: [['{"__proto__": {"a": 1}, "b": null, "a": [], "2": 0, "1": 0}']] },
    );
  });

  test('the other fields', async () => {
    const id = await create();
    const field = { name: storable.filter((value) => value.trim() !== '' && [...value].length <= 255), description: storable };
    const content = fc.record({ ...field, is_default: fc.boolean(), is_public: fc.boolean() });
    await fc.assert(
      fc.asyncProperty(content, async (sent) => {
        const { status, json: changed } = await put(pathOf(portico.demo.project_id, id), sent);
        expect([status, changed]).toEqual([200, { ...changed, ...sent, widgets: [], project: portico.demo.project_id }]);
        const { json: read } = await portico.ask('GET', pathOf(portico.demo.project_id, id));
        expect(read).toEqual(changed);
      }),
      { seed: 20_261_120, numRuns: countCases(50) },
    );
  });
});

describe('one default a project', () => {
  test.each([2, 20])('%i setters at once all succeed, and one default remains', async (count) => {
    const { project_id } = portico.demo;
    const ids = await createMany(count);
    for (let round = 0; round < 3; round += 1) {
      const responses = await atOnce(count, (index) => put(pathOf(project_id, ids[index]), { name: `${index}`, is_default: true }));
      expect(tally(responses)).toEqual({ 200: count });
      const defaults = await listDefaults(project_id);
      expect([defaults.length, ids.includes(defaults[0] ?? '')]).toEqual([1, true]);
    }
  });

  test('creators and setters at once', async () => {
    const { project_id } = portico.demo;
    const ids = await createMany(6);
    const responses = await atOnce(12, (index) =>
      index < 6
        ? put(pathOf(project_id, ids[index]), { name: 'set', is_default: true })
        : portico.ask('POST', pathOf(project_id), { body: { name: 'made', is_default: true } }),
    );
    expect(tally(responses)).toEqual({ 200: 6, 201: 6 });
    expect(await listDefaults(project_id)).toHaveLength(1);
  });

  test('also while dashboards move between two projects in opposite directions', async () => {
    const { project_id, empty_project_id } = portico.demo;
    const here = await createMany(8, project_id);
    const there = await createMany(8, empty_project_id);
    for (let round = 0; round < 4; round += 1) {
      const [from, to] = round % 2 === 0 ? [project_id, empty_project_id] : [empty_project_id, project_id];
      const responses = await atOnce(16, (index) =>
        index < 8
          ? put(pathOf(from, here[index]), { name: 'moved', is_default: true, project: to })
          : put(pathOf(to, there[index - 8]), { name: 'moved', is_default: true, project: from }),
      );
      expect(tally(responses)).toEqual({ 200: 16 });
      expect(responses.map(({ json }) => json.project)).toEqual([...here.map(() => to), ...there.map(() => from)]);
      expect((await listDefaults(project_id)).length).toBe(1);
      expect((await listDefaults(empty_project_id)).length).toBe(1);
    }
  });

  test('a setter that comes with a stale version changes nothing', async () => {
    const { project_id } = portico.demo;
    const standing = await create(project_id, { is_default: true });
    const other = await create(project_id);
    const before = await portico.ask('GET', pathOf(project_id, standing));
    const response = await put(pathOf(project_id, other), { name: 'late', is_default: true }, { 'if-match': '"7"' });
    expect([response.status, response.json.context]).toEqual([409, { version: 1 }]);
    const after = await portico.ask('GET', pathOf(project_id, standing));
    expect([after.text, after.headers.etag]).toEqual([before.text, before.headers.etag]);
  });

  test('a setter who may not edit the dashboard takes no lock, and writes nothing that is rolled back', async () => {
    const { project_id } = portico.demo;
    const theirs = await create(project_id, { is_public: true });
    const statements: string[] = [];
    portico.listen((sql) => void statements.push(sql));
    const body = { name: 'mine', is_default: true };
    for (const [id, status] of [
      [theirs, 403],
      ['00000000-0000-7000-8000-000000000000', 404],
    ] as const)
      expect((await portico.ask('PUT', pathOf(project_id, id), { body, as: 'member' })).status).toBe(status);
    expect(statements.filter((sql) => /UPDATE/.test(sql))).toEqual([]);
  });
});

describe('versions', () => {
  test('one of 16 writers with the same ETag wins', async () => {
    const { project_id } = portico.demo;
    for (const isDefault of [false, true]) {
      const id = await create();
      for (let version = 1; version <= 3; version += 1) {
        const headers = { 'if-match': `"${version}"` };
        const responses = await atOnce(16, (index) =>
          put(pathOf(project_id, id), { name: `writer ${index}`, is_default: isDefault }, headers),
        );
        expect(tally(responses)).toEqual({ 200: 1, 409: 15 });
        for (const { json } of responses.filter(({ status }) => status === 409)) expect(json.context).toEqual({ version: version + 1 });
        const winner = responses.find(({ status }) => status === 200);
        const read = await portico.ask('GET', pathOf(project_id, id));
        expect([read.text, read.headers.etag]).toEqual([winner?.text, `"${version + 1}"`]);
      }
    }
  });

  test('one of 16 writers with the same expectedVersion wins', async () => {
    const { organization_id, project_id } = portico.demo;
    const id = await create();
    const mutation = 'mutation ($input: UpdateDashboardInput!) { updateDashboard(input: $input) { dashboard { version } } }';
    const input = { organizationId: organization_id, projectId: project_id, id, name: 'raced', expectedVersion: 1 };
    const responses = await atOnce(16, () => portico.graphql(mutation, { input }));
    const won = responses.filter(({ json }) => json.data.updateDashboard?.dashboard.version === 2);
    const lost = responses.filter(({ json }) => json.errors?.[0].extensions.code === 'conflict');
    expect([won.length, lost.length]).toEqual([1, 15]);
    for (const { json } of lost) expect(json.errors[0].extensions.context).toEqual({ version: 2 });
  });

  test('16 writers without If-Match all succeed, and each counts', async () => {
    const { project_id } = portico.demo;
    const id = await create();
    const responses = await atOnce(16, (index) => put(pathOf(project_id, id), { name: `writer ${index}` }));
    expect(tally(responses)).toEqual({ 200: 16 });
    const versions = responses.map(({ headers }) => Number(/^"(\d+)"$/.exec(String(headers.etag))?.[1])).sort((a, b) => a - b);
    expect(versions).toEqual(Array.from({ length: 16 }, (_, index) => index + 2));
    const { headers } = await portico.ask('GET', pathOf(project_id, id));
    expect(headers.etag).toBe('"17"');
  });
});

describe('a delete against updates', () => {
  test('without If-Match: the delete succeeds, updates precede it or find nothing, and nothing is recreated', async () => {
    const { project_id } = portico.demo;
    for (let round = 0; round < 10; round += 1) {
      const path = pathOf(project_id, await create());
      const isDefault = round % 2 === 0;
      const [deleted, ...updated] = await atOnce(9, (index) =>
        index === 0 ? portico.ask('DELETE', path) : put(path, { name: 'late', is_default: isDefault }),
      );
      expect(deleted?.status).toBe(204);
      expect(updated.filter(({ status }) => status !== 200 && status !== 404)).toEqual([]);
      expect((await portico.ask('GET', path)).status).toBe(404);
    }
  });

  test('with one ETag: exactly one of them wins', async () => {
    const { project_id } = portico.demo;
    const headers = { 'if-match': '"1"' };
    for (let round = 0; round < 10; round += 1) {
      const path = pathOf(project_id, await create());
      const [first, second] = round % 2 === 0 ? ['DELETE', 'PUT'] : ['PUT', 'DELETE'];
      const responses = await Promise.all(
        [first, second].map((method = '') => portico.ask(method, path, { headers, body: method === 'PUT' ? { name: 'new' } : undefined })),
      );
      const outcome = Object.fromEntries(responses.map(({ status }, index) => [[first, second][index], status]));
      expect([
        { DELETE: 204, PUT: 404 },
        { DELETE: 409, PUT: 200 },
      ]).toContainEqual(outcome);
      expect((await portico.ask('GET', path)).status).toBe(outcome.DELETE === 204 ? 404 : 200);
    }
  });
});
