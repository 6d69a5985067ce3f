import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { GraphQLNonNull, GraphQLObjectType, type GraphQLScalarType, GraphQLSchema, GraphQLString, printSchema } from 'graphql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { examples } from '../reference/examples.ts';
import { describeApi } from '../reference/openapi.ts';
import { deprecate } from '../src/graph/deprecation.ts';
import { packageRoot } from '../src/platform/packageroot.ts';
import { schema } from '../src/schema.ts';
import { demoProject } from '../src/transport/pages/graphiql.ts';
import { bindRoute, type Data, type Route, type RouteRequest } from '../src/transport/rest/route.ts';
import { routes } from '../src/transport/rest/routes.ts';
import { closeCodes } from '../src/transport/sockets/close.ts';
import { startApp, type TestApp, type TestResponse } from './support/app.ts';
import { countCases } from './support/cases.ts';
import { operations } from './support/contract.ts';
import { expandRefusal, expectSecurityHeaders, refusals } from './support/doors.ts';
import { recordExamples } from './support/examples.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ PUBLIC_URL: 'http://localhost:4000' });
});
afterAll(() => app.close());

const read = (path: string) => readFileSync(new URL(path, packageRoot), 'utf8');
const html = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };
const get = (path: string, headers = {}) => app.ask('GET', path, { as: null, headers });

/** Checks that a document is public, costs no budget, and is answered alike for HEAD. */
async function expectOpen(path: string, headers = {}): Promise<TestResponse> {
  const response = await get(path, headers);
  expect(response.status, path).toBe(200);
  expect(response.headers).not.toHaveProperty('ratelimit');
  expectSecurityHeaders(response.headers);
  const head = await app.ask('HEAD', path, { as: null, headers });
  expect([head.status, head.text, head.headers['content-length']]).toEqual([200, '', response.headers['content-length']]);
  return response;
}

it('the queries of the GraphiQL page name the demo’s project', () => {
  expect(demoProject).toEqual({ organizationId: app.demo.organization_id, projectId: app.demo.project_id });
});

describe('the documents', () => {
  for (const name of ['openapi.json', 'asyncapi.json']) {
    it(`/v1/${name} is the checked-in file`, async () => {
      const { text, headers } = await expectOpen(`/v1/${name}`);
      expect(text).toBe(read(name));
      expect(headers['content-type']).toBe('application/json; charset=utf-8');
      expect(headers['cache-control']).toBe('max-age=300');
    });
  }

  it('name this service as the server, also where a proxy strips a path before it', () => {
    const { servers, info } = JSON.parse(read('openapi.json'));
    for (const base of ['https://api.example/', 'https://api.example/portico/']) {
      expect(servers.map(({ url }: { url: string }) => new URL(url, `${base}v1/openapi.json`).href)).toEqual([base]);
      const links = [...info.description.matchAll(/\]\((.*?)\)/g)].map(([, link]) => new URL(link, `${base}docs`).href);
      expect(links).toEqual([`${base}v1/asyncapi.json`, `${base}graphql`]);
    }
  });

  it('have the operations of the contract, by their names', async () => {
    const { paths } = JSON.parse(read('openapi.json'));
    const described = Object.entries<Record<string, { operationId: string }>>(paths).flatMap(([path, item]) =>
      Object.entries(item).map(([method, { operationId }]) => [operationId, method, path.replace(/\{(\w+)\}/g, ':$1')]),
    );
    expect(described.sort()).toEqual(
      Object.entries(operations)
        .map(([name, { method, path }]) => [name, method, path])
        .sort(),
    );
  });

  it('have as examples what the demo answers', async () => {
    const recorded = await recordExamples(app);
    const file = [
      '// Recorded from the demo: `npx vitest run test/documents.test.ts --update` writes it anew.',
      "import type { Examples } from './openapi.ts';",
      '',
      `export const examples: Examples = ${JSON.stringify(recorded, null, 2)};`,
      '',
    ];
    await expect(file.join('\n')).toMatchFileSnapshot('../reference/examples.ts');
  });
});

it('the document promises no bound of the numbers in a query, as the API takes any', async () => {
  const { parameters } = JSON.parse(read('openapi.json')).components;
  for (const name of ['page', 'page_size']) {
    expect(parameters[name].schema).not.toHaveProperty('format');
    expect((await app.ask('GET', `${app.projectPath}/notifications?${name}=${2 ** 31}`)).status).toBe(name === 'page' ? 404 : 200);
  }
});

it('the document of v1 names no field that v1 does not have', () => {
  const named = (name: string) => [...new Set([...read(name).matchAll(/`([a-z]+[A-Z]\w*)`/g)].map(([, field]) => field))];
  // The catalogue of errors is that of both APIs.
  expect(named('openapi.json')).toEqual(['expectedVersion']);
  // What a client of GraphQL uses in place of the socket.
  expect(named('asyncapi.json')).toEqual(['notificationFeed']);
  const { properties } = JSON.parse(read('openapi.json')).components.schemas.BackupTrialState;
  for (const [, name] of JSON.stringify(properties).matchAll(/`(\w+)`/g)) expect(properties).toHaveProperty(name as string);
});

it('the documents of the sockets name the codes with which Portico closes them', () => {
  // ws itself closes with 1008 and 1009.
  const codes = [...new Set<number>([...Object.values(closeCodes), 1008, 1009])].sort((a, b) => a - b);
  const named = (text: string) => [...new Set([...text.matchAll(/\b(?:1|4)\d{3}\b/g)].map(([code]) => Number(code)))].sort((a, b) => a - b);
  expect(named(JSON.parse(read('asyncapi.json')).info.description)).toEqual(codes);
  const tables = ['docs/feed.md', 'docs/consoles.md'].flatMap((page) => read(page).match(/^\| [\d, ]+\|/gm) ?? []);
  // Proxies close with 1001.
  expect(named(tables.join())).toEqual([1000, 1001, ...codes.slice(1)]);
});

describe('the patterns of the document', () => {
  it('have every invisible character as an escape', () => {
    const patterns = [...read('openapi.json').matchAll(/"pattern": (".*")/g)].map(([, text = '']) => JSON.parse(text) as string);
    expect(patterns.length).toBeGreaterThan(3);
    for (const pattern of patterns) expect(pattern).toMatch(/^[\x20-\x7e]*$/);
  });

  const text = fc.string({ unit: fc.constantFrom('a', ' ', '\n', '\u0000', '\ufeff', '\u00a0', '😀', 'é'), maxLength: 4 });

  it.each(['Name', 'Text'])('of %s match exactly the values that the scalar accepts', (name) => {
    const scalar = schema.getType(name) as GraphQLScalarType;
    const { pattern, minLength = 0 } = scalar.extensions.jsonSchema as { pattern: string; minLength?: number };
    const isTaken = (value: string) => {
      try {
        scalar.parseValue(value);
        return true;
      } catch {
        return false;
      }
    };
    fc.assert(
      fc.property(text, (value) => {
        expect(new RegExp(pattern, 'u').test(value) && value.length >= minLength, JSON.stringify(value)).toBe(isTaken(value));
      }),
      { numRuns: countCases(2_000) },
    );
  });
});

describe('the pages', () => {
  it('/ says what runs here, to browsers as a page and to others as JSON', async () => {
    const page = await expectOpen('/', html);
    expect(page.headers['content-type']).toBe('text/html; charset=utf-8');
    expect(page.headers.vary).toContain('Accept');
    const links = linksOf(page.text).map((link) => new URL(link, app.baseUrl).pathname);
    expect(links).toEqual(expect.arrayContaining(['/icon.svg', '/guides', '/v1/openapi.json']));
    expect(links.filter((link) => link.startsWith('/assets/')).length).toBeGreaterThan(1);
    for (const link of links) await expectOpen(link, html);
    expect(page.text).toMatch(/<meta name="description" content="[^"]*consoles[\s\S]*<noscript>\s*<main>/);
    for (const accept of ['*/*', 'application/json', 'application/json, text/html;q=0.5']) {
      expect((await get('/', { accept })).json).toEqual({ name: 'Portico', graphql: '/graphql', rest: '/v1' });
    }
  });

  it('/docs has all that it loads, from this server alone', async () => {
    const page = await expectOpen('/docs', html);
    const loaded = linksOf(page.text);
    expect(loaded.length).toBeGreaterThan(3);
    for (const link of loaded) {
      const asset = await expectOpen(`/${link}`);
      expect(asset.headers['cache-control']).toMatch(/max-age=300$/);
    }
    expect(page.headers['content-security-policy']).toMatch(/default-src 'none'.*script-src 'self';.*connect-src 'self'/);
  });

  it('have no paths below them', async () => {
    for (const path of [
      '/docs/',
      '/docs/swagger-ui.js',
      '/docs/../package.json',
      '/docs/start.js/x',
      '/v1/openapi.json/',
      '/v1/openapi.yaml',
    ]) {
      const response = await app.ask('GET', path);
      expect([response.status, response.json], path).toEqual([404, expandRefusal(refusals.notFound)]);
    }
    for (const path of ['/', '/docs', '/v1/openapi.json']) expect((await app.ask('POST', path)).status, path).toBe(404);
  });
});

function linksOf(page: string): string[] {
  return [...page.matchAll(/\b(?:src|href)="(?!data:)([^"]+)"/g)].map(([, link = '']) => link);
}

it('a route returns no null, which its document does not have: its resolver throws `not_found`', async () => {
  const [route] = routes.filter(({ path }) => path.endsWith('/compute/instances/:instance_id'));
  if (!route) throw new Error('no such route');
  const { organization_id, project_id, instances } = app.demo;
  const request = {
    pathParameters: { organization_id, project_id, instance_id: instances.eligible },
    readQuery: () => new URLSearchParams(),
    execute: async () => ({ data: { project: { answer: null } } }),
  } as Partial<RouteRequest> as RouteRequest;
  await expect(bindRoute(schema, route).serve(request)).rejects.toThrow(
    '/compute/instances/:instance_id: null is not a response of a route',
  );
});

describe('deprecation', () => {
  const flag = { since: '2026-11-01', sunset: '2027-05-01', reason: 'Use the other.' };
  const headers = { Deprecation: `@${Date.UTC(2026, 10, 1) / 1000}`, Sunset: 'Sat, 01 May 2027 00:00:00 GMT' };
  const document = (from: typeof schema, route: Route) => JSON.parse(JSON.stringify(describeApi(from, [bindRoute(from, route)], examples)));
  const operationOf = ({ paths }: Data): Data => Object.values<Data>(Object.values<Data>(paths)[0])[0];

  it('of a route marks its operation, and adds the headers to every response', () => {
    const [route] = routes.filter(({ path }) => path.endsWith('/compute/overview'));
    if (!route) throw new Error('no such route');
    expect(bindRoute(schema, route).headers).toEqual({});
    const old = { ...route, deprecated: flag };
    expect(bindRoute(schema, old).headers).toEqual(headers);
    const operation = operationOf(document(schema, old));
    expect([operation.deprecated, operation.description]).toEqual([true, expect.stringContaining('Use the other.')]);
    expect(Object.keys(operation.responses[200].headers)).toEqual(expect.arrayContaining(['Deprecation', 'Sunset']));
    expect(operationOf(document(schema, route))).not.toHaveProperty('deprecated');
  });

  it('of a route adds the headers to refusals, and the document distinguishes those with a sunset from those without', async () => {
    const at = routes.findIndex(({ path }) => path.endsWith('/compute/overview'));
    const route = routes[at] as Route;
    const list = routes as Route[];
    list[at] = { ...route, deprecated: flag };
    const old = await startApp();
    list[at] = route;
    const refused = await old.ask('GET', `${old.projectPath}/compute/overview`, { as: null });
    await old.close();
    expect(refused.status).toBe(401);
    expect(refused.headers).toMatchObject({ deprecation: headers.Deprecation, sunset: headers.Sunset });
    const { sunset: _, ...open } = flag;
    const other = { ...route, path: `${route.path}/old`, deprecated: open };
    const both = [bindRoute(schema, { ...route, deprecated: flag }), bindRoute(schema, other)];
    const { paths, components } = JSON.parse(JSON.stringify(describeApi(schema, both, examples)));
    const refusedBy = Object.values<Data>(paths).map((item) => item.get.responses[401].$ref.split('/').at(-1));
    expect(refusedBy.map((name) => Object.keys(components.responses[name].headers).includes('Sunset'))).toEqual([true, false]);
  });

  it('of a field marks it in the SDL and the document, and adds the headers to the routes that select it', () => {
    const text = { type: new GraphQLNonNull(GraphQLString) };
    const thing = new GraphQLObjectType({ name: 'Thing', fields: { fresh: text, stale: { ...text, ...deprecate(flag) } } });
    const own = new GraphQLSchema({ query: new GraphQLObjectType({ name: 'Query', fields: { thing: { type: thing } } }) });
    expect(printSchema(own)).toContain(
      'stale: String! @deprecated(reason: "Use the other. Deprecated since 2026-11-01. Gone from 2027-05-01.")',
    );
    const select = (field: string): Route => ({
      method: 'get',
      path: '/v1/thing',
      status: 200,
      tag: 'Compute',
      summary: 'A thing',
      operation: `query thing { answer: thing { ${field} } }`,
      response: (data) => data.answer,
    });
    expect(bindRoute(own, select('fresh')).headers).toEqual({});
    expect(bindRoute(own, select('fresh stale')).headers).toEqual(headers);
    const { properties } = document(own, select('fresh stale')).components.schemas.Thing;
    expect([properties.stale.deprecated, properties.fresh.deprecated]).toEqual([true, undefined]);
  });
});
