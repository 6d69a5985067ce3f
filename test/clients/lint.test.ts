import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Parser } from '@asyncapi/parser';
import { describe, expect, it } from 'vitest';
import { checkout, folder, runTool } from './tools.ts';

const path = (name: string) => join(checkout, name);
mkdirSync(join(folder, 'generated'), { recursive: true });

describe('openapi.json', () => {
  it('passes the recommended rules of Redocly', async () => {
    const { code, out } = await runTool('@redocly/cli', ['lint', path('openapi.json'), '--extends', 'recommended', '--format', 'json']);
    const { totals, problems } = JSON.parse(out);
    expect(problems).toEqual([]);
    expect([code, totals]).toEqual([0, { errors: 0, warnings: 0, ignored: 0 }]);
  });

  it('passes the rules spectral:oas of Spectral', async () => {
    const rules = join(folder, 'generated/spectral.json');
    writeFileSync(rules, '{"extends":["spectral:oas"]}');
    const { code, out } = await runTool('@stoplight/spectral-cli', [
      'lint',
      path('openapi.json'),
      '--ruleset',
      rules,
      '--format',
      'json',
      '--fail-severity',
      'hint',
    ]);
    expect([code, out]).toEqual([0, expect.stringMatching(/^\[\]/)]);
  });
});

it('asyncapi.json is accepted by AsyncAPI’s parser, without a diagnostic', async () => {
  const { document, diagnostics } = await new Parser().parse(readFileSync(path('asyncapi.json'), 'utf8'));
  expect(diagnostics).toEqual([]);
  const channels = (document?.channels().all() ?? []).map((channel) => [
    channel.address()?.split('{project_id}')[1],
    channel
      .messages()
      .all()
      .map((message) => message.name())
      .sort(),
  ]);
  expect(Object.fromEntries(channels)).toEqual({
    '/compute/instances/{instance_id}/console/ws': ['console_input', 'console_output'],
    '/notifications/ws': ['gap', 'notification', 'read', 'ready'],
  });
});

describe('schema.graphql', () => {
  it('passes graphql-eslint’s recommended rules for schemas, and those for Relay', async () => {
    const copy = join(folder, 'generated/schema.graphql');
    copyFileSync(path('schema.graphql'), copy);
    const { code, out } = await runTool('eslint', ['--max-warnings', '0', copy]);
    expect([code, out]).toEqual([0, '']);
  });

  it('fails the rules when a description is missing', async () => {
    const copy = join(folder, 'generated/broken.graphql');
    writeFileSync(copy, readFileSync(path('schema.graphql'), 'utf8').replace('"""The user who asks."""', ''));
    const { code, out } = await runTool('eslint', [copy]);
    expect([code, out]).toEqual([1, expect.stringContaining('Description is required for type "Viewer"')]);
  });
});
