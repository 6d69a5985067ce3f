import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';

const globalSetup = 'test/support/database.ts';

/** They ask no database: in `npm test` alone. */
const withoutDatabase = [
  'answer-turns',
  'compose',
  'config',
  'docs',
  'failure',
  'feed/history',
  'json-text',
  'ownership',
  'pipelining',
  'scale',
  'signing-key',
  'structure',
  'turns',
].map((name) => `test/${name}.test.ts`);

const project = (name: string, settings: TestProjectInlineConfiguration['test']): TestProjectInlineConfiguration => ({
  extends: true,
  test: { name, ...settings },
});

/** The files of a worker share what they import, which would take each as long as its tests. */
const shared = { isolate: false, maxWorkers: 3 } as const;

const pure = project('pure', { include: withoutDatabase, ...shared });

/** On each database: `npm test` has the embedded one, `npm run test:services` a PostgreSQL. */
const app = project('app', {
  globalSetup,
  include: ['test/**/*.test.ts'],
  exclude: [...withoutDatabase, 'test/slow/**', 'test/services/**', 'test/siege/**', 'test/clients/**', 'test/console/**', 'test/web/**'],
  ...shared,
});

/** They build, start programs, measure, or wait for more than ten seconds: in `npm run test:services` alone. */
const slow = project('slow', { globalSetup, include: ['test/slow/*.test.ts'], maxWorkers: 3 });

/** They measure, so nothing runs beside them. */
const measuring = ['console-volume', 'consoles', 'memory', 'redis-faults', 'revocation', 'silence', 'wakeups'].map(
  (name) => `test/services/${name}.test.ts`,
);

/** On a PostgreSQL alone. They break what they run on, each of them its own, and wait for most of their time. */
const services = project('services', {
  globalSetup,
  include: ['test/services/*.test.ts'],
  exclude: measuring,
  maxWorkers: 2,
  sequence: { groupOrder: 1 },
});

const alone = project('alone', { globalSetup, include: measuring, maxWorkers: 1, sequence: { groupOrder: 2 } });

/** By hand: it measures for minutes, and wants a machine of its own. */
const siege = project('siege', { globalSetup, include: ['test/siege/*.test.ts'], maxWorkers: 1 });

export default defineConfig({
  // As Node resolves it: two copies of graphql-js do not know each other's types.
  resolve: { alias: [{ find: /^graphql$/, replacement: 'graphql/index.js' }] },
  test: {
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // What is waited for comes when the machine has time for it; a bound on it is a test's own.
    expect: { poll: { timeout: 15_000 } },
    projects: process.env.SIEGE_SECONDS ? [siege] : [pure, app, slow, ...(process.env.TEST_DATABASE_URL ? [services, alone] : [])],
  },
});
