import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { root } from '../src/kernel/root.ts';
import { command, copyCheckout } from './support/launch.ts';

// On a copy of the checkout, in which each test breaks something.
let checkout: string;
beforeAll(() => {
  checkout = copyCheckout();
  mkdirSync(join(checkout, 'docs'));
  for (const name of ['schema.graphql', 'openapi.json', 'asyncapi.json', 'docs/errors.md']) {
    cpSync(fileURLToPath(new URL(name, root)), join(checkout, name));
  }
});
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

const check = () => command(checkout, ['print', '--check'], {});
const stale = (...names: string[]) => ({
  code: 1,
  out: '',
  err: names.map((name) => `${name} is stale: npm run schema writes it anew\n`).join(''),
});

it('nothing is stale as it is checked in', async () => {
  expect(await check()).toEqual({ code: 0, out: '', err: '' });
}, 120_000);

it('a route, a description or a fault that changes makes what is printed stale', async () => {
  const route = ["summary: 'Compute overview'", "summary: 'Overview'"] as const;
  expect(await withChange('src/transport/rest/routes.ts', route, check)).toEqual(stale('openapi.json'));
  const stream = ['FeedGap { type from to }', 'FeedGap { type to }'] as const;
  expect(await withChange('src/transport/rest/routes.ts', stream, check)).toEqual(stale('asyncapi.json'));
  const description = ["'How urgent a notification is.'", "'How urgent it is.'"] as const;
  expect(await withChange('src/notifications/schema.ts', description, check)).toEqual(
    stale('schema.graphql', 'openapi.json', 'asyncapi.json'),
  );
  const fault = ["when: 'a mistake of ours'", "when: 'our mistake'"] as const;
  expect(await withChange('src/kernel/fault.ts', fault, check)).toEqual(stale('openapi.json', 'docs/errors.md'));
}, 240_000);

it('a field that is renamed in the schema, but not in the table, stops the start', async () => {
  const env = { DATA_DIR: join(checkout, 'data'), PORT: '0' };
  const start = () => command(checkout, ['main'], env);
  const field = ["trialDays: t.exposeInt('trialDays'", "daysOfTrial: t.exposeInt('trialDays'"] as const;
  const { code, out, err } = await withChange('src/backups/schema.ts', field, start);
  expect([code, out]).toEqual([1, '']);
  expect(err).toContain('/backup-trial: Cannot query field "trialDays" on type "BackupTrialState".');
}, 120_000);
