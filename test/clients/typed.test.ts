import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildClientSchema, getIntrospectionQuery, Kind, printSchema } from 'graphql';
import ts from 'typescript';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import WebSocket from 'ws';
import { startApp, type TestApp } from '../support/app.ts';
import { operations } from '../support/contract.ts';
import { checkout, commandOf, folder, run, runTool } from './tools.ts';

const generated = join(folder, 'generated');

let app: TestApp;
beforeAll(async () => {
  app = await startApp();
  mkdirSync(generated, { recursive: true });
  // What a client of ours has: the document, and the introspection.
  const document = join(generated, 'openapi.json');
  writeFileSync(document, (await app.ask('GET', '/v1/openapi.json', { as: null })).text);
  const v1 = await runTool('openapi-typescript', [document, '--default-non-nullable', 'false', '--output', join(generated, 'v1.ts')]);
  expect(v1.code, v1.err).toBe(0);
  const { json } = await app.graphql(getIntrospectionQuery({ inputValueDeprecation: true }), {}, { as: null });
  writeFileSync(join(generated, 'published.graphql'), printSchema(buildClientSchema(json.data)));
  const tada = await runTool('gql.tada', ['generate-output', '--tsconfig', join(folder, 'typed/tsconfig.json')]);
  expect(tada.code, tada.out + tada.err).toBe(0);
});
afterAll(() => app.close());

/** Whatever makes the compiler believe; `as const` only makes it look closer. */
function castsIn(text: string): string[] {
  const found: string[] = text.match(/@ts-\w+/g) ?? [];
  const visit = (node: ts.Node) => {
    const isConst = ts.isAsExpression(node) && node.type.getText() === 'const';
    const isCast = ts.isAsExpression(node) || ts.isNonNullExpression(node) || ts.isTypeAssertionExpression(node);
    if ((isCast && !isConst) || node.kind === ts.SyntaxKind.AnyKeyword) found.push(node.getText());
    node.forEachChild(visit);
  };
  ts.createSourceFile('client.ts', text, ts.ScriptTarget.Latest, true).forEachChild(visit);
  return found;
}

const compile = () => run(process.execPath, [join(folder, 'node_modules/typescript/bin/tsc'), '--project', join(folder, 'typed')]);

it('the types of the client package are those of the document', () => {
  const types = readFileSync(join(checkout, 'clients/typescript/src/v1.ts'), 'utf8');
  expect(types === readFileSync(join(generated, 'v1.ts'), 'utf8'), 'stale: npm run client:v1').toBe(true);
});

it('the tests of this folder have no errors of types', async () => {
  const { code, out } = await run(process.execPath, [join(checkout, 'node_modules/typescript/bin/tsc'), '--project', folder]);
  expect([code, out]).toEqual([0, '']);
});

describe('clients that are typed by the published documents', () => {
  it('compile under strict, without a cast', async () => {
    const { code, out } = await compile();
    expect([code, out]).toEqual([0, '']);
    for (const name of ['v1.ts', 'graphql.ts']) expect(castsIn(readFileSync(join(folder, 'typed', name), 'utf8')), name).toEqual([]);
    expect(castsIn('const a = b as string; const c = d!; let e: any; const f = <g>h; // @ts-expect-error')).toHaveLength(5);
  });

  it('do not compile with an unknown name or value', async () => {
    const path = join(folder, 'typed/wrong.ts');
    writeFileSync(
      path,
      `import createClient from 'openapi-fetch';
import type { paths } from '../generated/v1.ts';
const client = createClient<paths>();
const path = { organization_id: '', project_id: '' };
const project = '/v1/organizations/{organization_id}/projects/{project_id}';
void client.POST(\`\${project}/websocket-tickets\`, { params: { path }, body: { target: 'console' } });
void client.GET(\`\${project}/notifications\`, { params: { path, query: { severity: 'loud' } } });
void client.GET(\`\${project}/compute/overview\`, { params: { path } }).then(({ data }) => data?.[0]?.instances);
`,
    );
    const { out } = await compile();
    rmSync(path);
    expect(out.match(/wrong\.ts\((\d+),/g)).toEqual(['wrong.ts(6,', 'wrong.ts(7,', 'wrong.ts(8,']);
  });

  it('openapi-fetch calls every operation', async () => {
    const { callEveryOperation } = await import('./typed/v1.ts');
    const { organization_id, project_id, instances, users } = app.demo;
    const { calls, facts } = await callEveryOperation({
      baseUrl: app.baseUrl,
      token: users.owner.token ?? '',
      organization_id,
      project_id,
      instance_id: instances.eligible,
    });
    expect(Object.keys(calls).sort()).toEqual(Object.keys(operations).sort());
    for (const [name, { response }] of Object.entries(calls)) expect(response.status, name).toBeLessThan(300);
    expect(facts).toEqual({
      names: ['Typed', 'Typed again'],
      listed: true,
      marked: [5, 5],
      instances: [48],
      found: [[[true, 'owner']], true, true, true, ['failed']],
      reason: '',
      expiresIn: 30,
      stale: 'it is at version 2',
    });
  });

  it('gql.tada uses every root field, subscriptions included', async () => {
    const { documents, useEveryField } = await import('./typed/graphql.ts');
    const used = documents.flatMap(({ definitions }) =>
      definitions.flatMap((definition) =>
        definition.kind === Kind.OPERATION_DEFINITION
          ? definition.selectionSet.selections.flatMap((field) => (field.kind === Kind.FIELD ? [field.name.value] : []))
          : [],
      ),
    );
    const { json } = await app.graphql(getIntrospectionQuery(), {}, { as: null });
    const schema = buildClientSchema(json.data);
    const roots = [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()];
    expect(used.sort()).toEqual(roots.flatMap((type) => Object.keys(type?.getFields() ?? {})).sort());
    const told = await useEveryField({
      baseUrl: app.baseUrl,
      token: app.demo.users.owner.token ?? '',
      organizationId: app.demo.organization_id,
      projectId: app.demo.project_id,
      webSocketImpl: WebSocket,
    });
    expect(told).toEqual({
      email: 'owner@acme.example',
      currency: 'EUR',
      instances: 51,
      suspended: ['suspended', 'suspended'],
      severities: 3,
      expiresIn: 30,
      updated: 'Typed again',
      patched: { name: 'Typed again', widgets: ['patched'] },
      found: 'Typed again',
      many: ['Project', 'Dashboard', 'Organization'],
      published: ['One', 'Two'],
      isDeleted: true,
      isRevoked: true,
      isRenewed: true,
      consoles: 0,
      endsNothing: true,
      told: ['FeedReady', 'Told live', 'NotificationsRead'],
    });
  });
});

describe('Relay’s compiler', () => {
  const artifacts = join(generated, 'relay');
  const compileRelay = (schema: string) => {
    rmSync(artifacts, { recursive: true, force: true });
    mkdirSync(artifacts, { recursive: true });
    const config = join(generated, 'relay.config.json');
    const settings = { src: join(folder, 'relay'), schema, language: 'typescript', artifactDirectory: artifacts, eagerEsModules: true };
    writeFileSync(config, JSON.stringify(settings));
    return run(process.execPath, [commandOf('relay-compiler'), '--noWatchman', config], {}, checkout);
  };

  it('accepts the schema, and a document with a connection', async () => {
    const { code, out, err } = await compileRelay(join(generated, 'published.graphql'));
    expect(code, out + err).toBe(0);
    expect(readdirSync(artifacts).sort()).toEqual([
      'NotificationListFeedSubscription.graphql.ts',
      'NotificationListMarkMutation.graphql.ts',
      'NotificationListNextQuery.graphql.ts',
      'NotificationListQuery.graphql.ts',
      'NotificationList_query.graphql.ts',
    ]);
  });

  it('refuses a connection without pageInfo', async () => {
    const broken = join(generated, 'broken-relay.graphql');
    const text = readFileSync(join(generated, 'published.graphql'), 'utf8');
    writeFileSync(broken, text.replaceAll(/pageInfo: PageInfo!/g, ''));
    expect((await compileRelay(broken)).code).not.toBe(0);
  });
});
