import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { DemoFile } from '../../demo/file.ts';
import { packageRoot } from '../../src/platform/packageroot.ts';
import type { Data } from '../../src/transport/rest/route.ts';
import { buildAndRun, copyCheckout, start } from '../support/launch.ts';

// On a copy of the checkout, in which each test breaks something.
let checkout: string;
beforeAll(async () => {
  checkout = copyCheckout({ isBuilt: true });
  cpSync(fileURLToPath(new URL('schema.graphql', packageRoot)), join(checkout, 'schema.graphql'));
}, 180_000);
afterAll(() => rmSync(checkout, { recursive: true, force: true }));

/** Runs something while a source has another text, and puts it back. */
async function withChange<Result>(path: string, [from, to]: readonly [string, string], run: () => Promise<Result>): Promise<Result> {
  const file = join(checkout, path);
  const text = readFileSync(file, 'utf8');
  expect(text).toContain(from);
  writeFileSync(file, text.replace(from, to));
  try {
    return await run();
  } finally {
    writeFileSync(file, text);
  }
}

const check = () => buildAndRun(checkout, ['schema', '--check'], {});
const stale = (...names: string[]) => ({
  code: 1,
  out: '',
  err: `${names.map((name) => `${name} is stale\n`).join('')}\`npm run documents\` writes these files anew, and all that is generated from them.\n`,
});

it('no checked-in file is stale', async () => {
  expect(await check()).toEqual({ code: 0, out: '', err: '' });
});

it('a changed route, description or fault makes the printed documents stale', async () => {
  const route = ["summary: 'Compute overview'", "summary: 'Overview'"] as const;
  expect(await withChange('src/transport/rest/routes.ts', route, check)).toEqual(stale('openapi.json'));
  const stream = ['FeedGap { type from to }', 'FeedGap { type to }'] as const;
  expect(await withChange('src/transport/rest/plainfeeds.ts', stream, check)).toEqual(stale('asyncapi.json'));
  const description = ["'How urgent a notification is.'", "'How urgent it is.'"] as const;
  expect(await withChange('src/notifications/schema.ts', description, check)).toEqual(
    stale('schema.graphql', 'openapi.json', 'asyncapi.json'),
  );
  const fault = ["when: 'a mistake of ours'", "when: 'our mistake'"] as const;
  expect(await withChange('src/kernel/fault.ts', fault, check)).toEqual(stale('openapi.json', 'docs/errors.md'));
}, 240_000);

it('a field that is renamed in the schema, but not in the table, fails the start', async () => {
  const env = { DATA_DIR: join(checkout, 'data'), PORT: '0' };
  const attempt = () => buildAndRun(checkout, ['start'], env);
  const field = ["trialDays: t.exposeInt('trialDays'", "daysOfTrial: t.exposeInt('trialDays'"] as const;
  const { code, out, err } = await withChange('src/backups/schema.ts', field, attempt);
  expect([code, out]).toEqual([1, '']);
  const message = '/backup-trial: Cannot query field "trialDays" on type "BackupTrialState".';
  expect(err).toContain(message);
  const checked = await withChange('src/backups/schema.ts', field, check);
  expect(checked.code).toBe(1);
  // The message, without a stack trace around it.
  expect(checked.err.split('\n')).toEqual([
    'schema.graphql is stale',
    'openapi.json cannot be printed: a route of src/transport/rest/routes.ts does not fit the schema.',
    expect.stringContaining(message),
    '`npm run documents` writes these files anew, and all that is generated from them.',
    '',
  ]);
});

it('one flag deprecates a route, and one a field: in the SDL, in the document, and in the headers of every response', async () => {
  const flag = "{ since: '2026-11-01', sunset: '2027-05-01', reason: 'Use the other.' }";
  const route = ["summary: 'Compute overview',", `summary: 'Compute overview', deprecated: ${flag},`] as const;
  const field = ["isPublic: t.exposeBoolean('isPublic', {", `isPublic: t.exposeBoolean('isPublic', { ...deprecate(${flag}),`] as const;
  const help = ['import { builder', "import { deprecate } from '../graph/deprecation.ts';\nimport { builder"] as const;
  const begin = async () => {
    await buildAndRun(checkout, ['schema'], {});
    return start(checkout, { DATA_DIR: join(checkout, 'data') });
  };
  const server = await withChange('src/transport/rest/routes.ts', route, () =>
    withChange('src/dashboards/schema.ts', field, () => withChange('src/dashboards/schema.ts', help, begin)),
  );
  try {
    const demo = JSON.parse(readFileSync(join(checkout, 'data/demo.json'), 'utf8')) as DemoFile;
    const project = `${server.baseUrl}/v1/organizations/${demo.organization_id}/projects/${demo.project_id}`;
    const ask = async (path: string) => {
      const { status, headers } = await fetch(project + path, { headers: { authorization: `Bearer ${demo.users.viewer.api_key}` } });
      return [status, headers.get('deprecation'), headers.get('sunset')];
    };
    const told = ['@1793491200', 'Sat, 01 May 2027 00:00:00 GMT'];
    expect(await ask('/compute/overview')).toEqual([200, ...told]);
    expect(await ask('/compute/overview?%ff')).toEqual([400, ...told]);
    expect(await ask('/monitoring/dashboards')).toEqual([200, ...told]);
    expect(await ask('/notifications')).toEqual([200, null, null]);
    const { paths, components } = (await (await fetch(`${server.baseUrl}/v1/openapi.json`)).json()) as Data;
    const operations = Object.values<Data>(paths).flatMap((item) => Object.values<Data>(item));
    expect(operations.filter(({ deprecated }) => deprecated).map(({ operationId }) => operationId)).toEqual(['compute_overview']);
    expect(components.schemas.Dashboard.properties.is_public).toMatchObject({ deprecated: true });
    const query = '{ __type(name: "Dashboard") { fields(includeDeprecated: true) { name isDeprecated } } }';
    const { data } = (await (await fetch(`${server.baseUrl}/graphql?query=${encodeURIComponent(query)}`)).json()) as Data;
    expect(data.__type.fields.filter((one: Data) => one.isDeprecated).map(({ name }: Data) => name)).toEqual(['isPublic']);
  } finally {
    await server.kill();
  }
});
