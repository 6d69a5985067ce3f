import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import {
  type GraphQLField,
  type GraphQLInputField,
  getOperationAST,
  isEnumType,
  isInterfaceType,
  isObjectType,
  isSpecifiedScalarType,
  lexicographicSortSchema,
  parse,
  printSchema,
} from 'graphql';
import { beforeAll, describe, expect, it } from 'vitest';
import { pageCost } from '../src/graph/cost.ts';
import { statusByCode } from '../src/kernel/fault.ts';
import { packageRoot } from '../src/platform/packageroot.ts';
import { schema } from '../src/schema.ts';
import { routes } from '../src/transport/rest/routes.ts';
import { type OperationName, operations } from './support/contract.ts';
import type { Case } from './support/doors.ts';

const read = (path: string) => readFileSync(new URL(path, packageRoot), 'utf8');
const listFiles = (folder: string) =>
  readdirSync(new URL(folder, packageRoot), { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.tsx?$/.test(path))
    .sort();

/** What a file imports by relative paths, types included. */
function readImports(source: string): string[] {
  const forms = [
    /^import\b[^'"`;]*?['"]([^'"]+)['"]/gm,
    /^export\b[^'"`;=(]*?\bfrom\s*['"]([^'"]+)['"]/gm,
    /\bimport\(\s*['"]([^'"]+)['"]/g,
  ];
  const named = forms.flatMap((form) => [...source.matchAll(form)].map(([, target = '']) => target));
  return named.filter((target) => target.startsWith('.'));
}

const shorten = (path: string) => path.replace(/^src\//, '');
const lengthen = (path: string) => (path.startsWith('demo/') ? path : `src/${path}`);

it('schema.graphql is the schema that is served, printed and sorted', () => {
  expect(read('schema.graphql')).toBe(`${printSchema(lexicographicSortSchema(schema))}\n`);
});

it('has a description for every type, field, argument and enum value', () => {
  const own = Object.values(schema.getTypeMap()).filter((type) => !type.name.startsWith('__') && !isSpecifiedScalarType(type));
  const parts = own.flatMap((type) => {
    const fields = 'getFields' in type ? Object.values<GraphQLField<unknown, unknown> | GraphQLInputField>(type.getFields()) : [];
    const values = isEnumType(type) ? type.getValues() : [];
    const below = [...values, ...fields, ...fields.flatMap((field) => ('args' in field ? field.args : []))];
    return [{ path: type.name, part: type }, ...below.map((part) => ({ path: `${type.name} ${part.name}`, part }))];
  });
  expect(parts.length).toBeGreaterThan(500);
  expect(parts.filter(({ part }) => !part.description?.trim()).map(({ path }) => path)).toEqual([]);
});

it('a field with a page size multiplies the cost of its selection by it, and no other field does', () => {
  const fields = Object.values(schema.getTypeMap())
    .filter((type) => isObjectType(type) || isInterfaceType(type))
    .filter(({ name }) => !name.startsWith('__'))
    .flatMap((type) => Object.values(type.getFields()).map((field) => ({ ...field, path: `${type.name}.${field.name}` })));
  const paged = fields.filter(({ args }) => args.some(({ name }) => ['first', 'last', 'pageSize', 'ids'].includes(name)));
  expect(paged.map(({ path }) => path)).toContain('Project.notificationPage');
  expect(fields.filter(({ extensions }) => extensions.complexity === pageCost)).toEqual(paged);
  // The multipliers are the maximum numbers of ids to mark and of notifications to publish.
  const written = fields.filter(({ path }) => /^(Mark|Publish)Notifications\w*Payload\.notifications$/.test(path));
  expect(written.map(({ extensions }) => extensions.complexity)).toEqual([200, 100].map((multiplier) => ({ field: 1, multiplier })));
  const others = fields
    .filter((field) => !written.includes(field) && !paged.includes(field))
    .map(({ extensions }) => extensions.complexity);
  for (const complexity of others) expect([1, { field: 1, multiplier: 1 }]).toContainEqual(complexity);
});

describe('floors', () => {
  const sources = new Map(
    ['src', 'demo']
      .flatMap((folder) => listFiles(`${folder}/`).map((path) => `${folder}/${path}`))
      .filter((path) => !path.startsWith('src/generated/'))
      .map((path) => [shorten(path), read(path)]),
  );
  /** Portico's files that a file imports, types included, as paths below src/ or as demo/…. */
  const importsOf = (path: string) => {
    const targets = readImports(sources.get(path) ?? '');
    return targets.map((target) => shorten(normalize(join(dirname(lengthen(path)), target))));
  };

  const ground = ['generated', 'kernel'];
  const below = {
    kernel: [],
    platform: ground,
    access: ['platform', ...ground],
    graph: ['access', 'platform', ...ground],
    domain: ['graph', 'access', 'platform', ...ground],
    pipeline: ['graph', 'platform', ...ground],
    transport: ['pipeline', 'graph', 'access', 'platform', ...ground],
    demo: ['access', 'platform', ...ground],
    'config.ts': ['platform'],
    'schema.ts': ['domain', 'graph'],
    'gauges.ts': ['transport', 'domain', 'platform', ...ground],
    'app.ts': ['schema.ts', 'gauges.ts', 'config.ts', 'transport', 'pipeline', 'domain', 'graph', 'access', 'platform', ...ground],
    'main.ts': ['app.ts', 'config.ts', 'demo', 'access', 'platform', ...ground],
    'cli.ts': ['app.ts', 'config.ts', 'demo', 'domain', 'access', 'platform', ...ground],
  } satisfies Record<string, readonly string[]>;
  type Floor = keyof typeof below;

  /** A ticket is a credential that belongs to a domain; it is redeemed at the upgrade, before any operation exists. */
  const exceptions = ['transport/sockets/admission.ts → tickets/service.ts'];

  const placeOf = (path: string) => path.split('/')[0] ?? path;
  /** A folder without its own entry is a domain; a file beside the folders must be listed. */
  const floorOf = (path: string): Floor | 'generated' => {
    const place = placeOf(path);
    if (place === 'generated' || place in below) return place as Floor;
    expect(place, 'every file beside the folders has its floor').not.toMatch(/\.ts$/);
    return 'domain';
  };

  it('cover all sources', () => {
    expect(sources.size).toBeGreaterThan(50);
    expect(importsOf('main.ts')).toContain('app.ts');
    expect(importsOf('schema.ts')).toContain('tickets/schema.ts');
    expect(importsOf('transport/rest/route.ts')).toEqual(
      expect.arrayContaining(['graph/deprecation.ts', 'graph/bindings.ts', 'kernel/fault.ts', 'transport/rest/links.ts']),
    );
    const domains = new Set([...sources.keys()].filter((path) => floorOf(path) === 'domain').map(placeOf));
    for (const domain of ['accounts', 'backups', 'compute', 'dashboards', 'notifications', 'tickets']) expect(domains).toContain(domain);
    const imported = [...sources.keys()].flatMap(importsOf).filter((path) => !path.startsWith('generated/'));
    expect(imported.filter((path) => !sources.has(path))).toEqual([]);
  });

  it('are imported downwards only, and no domain imports another', () => {
    const wrong = [...sources.keys()].flatMap((path) => {
      const floor = floorOf(path);
      const allowed: readonly string[] = floor === 'generated' ? [] : below[floor];
      return importsOf(path)
        .filter((target) => placeOf(target) !== placeOf(path) && !allowed.includes(floorOf(target)))
        .map((target) => `${path} → ${target}`);
    });
    expect(wrong).toEqual(exceptions);
  });

  it('have a transport/http that knows none of the other folders of transport/', () => {
    const shared = [...sources.keys()].filter((path) => path.startsWith('transport/http/'));
    expect(shared.length).toBeGreaterThan(5);
    const ofTransport = shared.flatMap(importsOf).filter((target) => target.startsWith('transport/'));
    expect(ofTransport.filter((target) => !target.startsWith('transport/http/'))).toEqual([]);
  });

  it('begin with a kernel that knows neither the database nor the machine', () => {
    const impure = /\bprisma\b|sqlstate|\bpg\b|\bP[12]\d{3}\b|'node:(?:fs|net|http|process|child_process)\b/i;
    const kernel = [...sources].filter(([path]) => path.startsWith('kernel/'));
    expect(kernel.length).toBeGreaterThan(5);
    expect(kernel.filter(([, source]) => impure.test(source)).map(([path]) => path)).toEqual([]);
  });

  it('are entered by literal imports alone', () => {
    const computed = [...sources].filter(([, source]) => /\bimport\((?!\s*['"])|\brequire\(|createRequire/.test(source));
    expect(computed.map(([path]) => path)).toEqual([]);
  });

  it('read the environment through the config alone, which gets it from the entries', () => {
    const uses = [...sources].flatMap(([path, source]) =>
      [...source.matchAll(/^.*(?:\bprocess\s*(?:\?\.)?\.?\s*(?:\[['"])?env\b|\benv\b.*['"](?:node:)?process['"]).*$/gm)].map(
        ([line]) => `${path}: ${line.trim()}`,
      ),
    );
    expect(uses.length).toBeGreaterThan(0);
    expect(uses.filter((use) => !/^(main|cli)\.ts: .*\breadConfig\(process\.env\)/.test(use))).toEqual([]);
  });
});

it.each(['src', 'demo', 'reference', 'clients/typescript/src', 'web/src'])('no file of %s imports itself in a circle', (folder) => {
  const all = listFiles(`${folder}/`).map((path) => `${folder}/${path}`);
  const paths = all.filter((path) => !path.startsWith('src/generated/'));
  const imports = new Map(
    paths.map((path) => [path, readImports(read(path)).map((target) => normalize(join(dirname(path), target)))] as const),
  );
  expect([...imports.values()].flat().length).toBeGreaterThan(5);
  const done = new Set<string>();
  const visit = (path: string, trail: readonly string[]): string[] => {
    if (trail.includes(path)) return [[...trail.slice(trail.indexOf(path)), path].join(' → ')];
    if (done.has(path)) return [];
    done.add(path);
    return (imports.get(path) ?? []).flatMap((target) => visit(target, [...trail, path]));
  };
  expect(paths.flatMap((path) => visit(path, []))).toEqual([]);
});

it('comments of src have a noun as their subject', () => {
  const paths = listFiles('src/').filter((path) => !path.startsWith('generated/'));
  expect(paths.length).toBeGreaterThan(50);
  const clauses = paths.flatMap((path) =>
    [...read(`src/${path}`).matchAll(/(?:\/\*\*(?:\s+\*)?|\/\/)\s+(?:What|Who|Whose|Whatever|That)\b.*/g)].map(
      ([comment]) => `${path}: ${comment}`,
    ),
  );
  expect(clauses).toEqual([]);
});

describe('the table of routes', () => {
  let cases: readonly Case[];
  beforeAll(async () => {
    const files = listFiles('test/contract/cases/').map((path) => path.replace(/\.ts$/, ''));
    const modules = await Promise.all(files.map((name) => import(`./contract/cases/${name}.ts`)));
    cases = modules.flatMap((module) =>
      Object.entries(module).flatMap(([name, value]) => (name.endsWith('Cases') ? (value as Case[]) : [])),
    );
  });

  /** The statuses that each operation can answer with, apart from outages and internal errors. */
  const statusesOf: Readonly<Record<OperationName, readonly number[]>> = {
    create_websocket_ticket: [201, 400, 401, 403, 404, 429],
    list_organizations: [200, 400, 401, 404, 429],
    list_projects: [200, 400, 401, 404, 429],
    list_dashboards: [200, 400, 401, 404, 429],
    create_dashboard: [201, 400, 401, 403, 404, 409, 429],
    get_dashboard: [200, 401, 404, 429],
    update_dashboard: [200, 400, 401, 403, 404, 409, 429],
    delete_dashboard: [204, 400, 401, 403, 404, 409, 429],
    list_instances: [200, 400, 401, 404, 429],
    get_instance: [200, 401, 404, 429],
    backup_trial_state: [200, 401, 404, 429],
    list_tasks: [200, 400, 401, 404, 429],
    compute_overview: [200, 401, 404, 429],
    list_notifications: [200, 400, 401, 404, 429],
    mark_notifications_read: [200, 400, 401, 404, 429],
  };

  const bound = routes.map(({ operation, method, path, status }) => {
    const name = getOperationAST(parse(operation))?.name?.value ?? '';
    return { name, method, path, status };
  });

  it('is the contract: these operations at these addresses, and no others', () => {
    const expected = Object.entries(operations).map(([name, { method, path }]) => ({ name, method, path }));
    const found = bound.map(({ name, method, path }) => ({ name, method, path }));
    expect(found, 'test/support/contract.ts has the routes of src/transport/rest/routes.ts, in the same order').toEqual(expected);
  });

  it('is what the tables of docs/v1.md list', () => {
    const listed = read('docs/v1.md')
      .split('\n')
      .flatMap((row) => {
        const [, methods = '', path = '', statuses = ''] = /^\| ((?:`[A-Z]+`, )*`[A-Z]+) (\/\S+)` +\| ([\d, ]+?) +\|$/.exec(row) ?? [];
        const below = path.startsWith('/v1/') ? '' : '/v1/organizations/:organization_id/projects/:project_id';
        const address = below + path.replace(/\{(\w+)\}/g, ':$1');
        return (methods.match(/[A-Z]+/g) ?? []).map((method, index) => `${method} ${address} ${statuses.split(', ')[index]}`);
      });
    const served = bound.map(({ method, path, status }) => `${method.toUpperCase()} ${path} ${status}`);
    expect(listed.sort(), 'the tables of docs/v1.md have a row for each route').toEqual(served.sort());
  });

  it('has the names that docs/choices.md gives to the operations without one in the contract', () => {
    const [, text = ''] = /those without a name there ([\s\S]*?)\.\n/.exec(read('docs/choices.md')) ?? [];
    const named = [...text.matchAll(/`(\w+)`/g)].map(([, name]) => name);
    expect(['create_websocket_ticket', ...named].sort()).toEqual(Object.keys(operations).sort());
  });

  it('answers the statuses of the contract alone', () => {
    const statuses = new Set([200, 201, 204, 400, 401, 403, 404, 409, 429, 500, 503]);
    for (const status of [...bound.map((route) => route.status), ...Object.values(statusByCode), ...Object.values(statusesOf).flat()]) {
      expect(statuses).toContain(status);
    }
  });

  it('has a case for every status of every route', () => {
    const covered = Object.fromEntries(
      bound.map(({ name }) => {
        const statuses = cases.filter(({ operation }) => operation === name).map(({ status }) => status);
        return [name, [...new Set(statuses)].sort((a, b) => a - b)];
      }),
    );
    expect(covered, 'test/contract/cases/ has a case for each status in statusesOf').toEqual(statusesOf);
    for (const { name, status } of bound)
      expect(
        statusesOf[name as OperationName].filter((one) => one < 300),
        name,
      ).toEqual([status]);
  });

  it('has every case run by a test', () => {
    const tests = listFiles('test/contract/').filter((path) => path.endsWith('.test.ts'));
    const run = tests.flatMap((path) =>
      [...read(`test/contract/${path}`).matchAll(/^runCases\(\(\) => app, (\w+)\);$/gm)].map(([, name]) => name),
    );
    const exported = listFiles('test/contract/cases/').flatMap((path) =>
      [...read(`test/contract/cases/${path}`).matchAll(/^export const (\w+Cases)\b/gm)].map(([, name]) => name),
    );
    expect(run.sort()).toEqual(exported.sort());
    expect(exported.length).toBeGreaterThan(5);
  });
});
