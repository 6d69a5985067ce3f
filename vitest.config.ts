import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';

const globalSetup = 'test/support/database.ts';

/** Tests that need no database; only `npm test` runs them. */
const withoutDatabase = [
  'answer-turns',
  'coalesce',
  'compose',
  'config',
  'docs',
  'failure',
  'feed/history',
  'jobs',
  'json-text',
  'ownership',
  'pipelining',
  'scale',
  'signing-key',
  'structure',
  'throttle',
  'turns',
].map((name) => `test/${name}.test.ts`);

const project = (name: string, settings: TestProjectInlineConfiguration['test']): TestProjectInlineConfiguration => ({
  extends: true,
  test: { name, ...settings },
});

/** Test files in a worker share imported modules, as importing takes each file as long as its tests. */
const shared = { isolate: false, maxWorkers: 3 } as const;

const pure = project('pure', { include: withoutDatabase, ...shared });

/** Tests for both databases: `npm test` runs them on the embedded one, `npm run test:services` on PostgreSQL. */
const app = project('app', {
  globalSetup,
  include: ['test/**/*.test.ts'],
  exclude: [...withoutDatabase, 'test/slow/**', 'test/services/**', 'test/siege/**', 'test/clients/**', 'test/console/**', 'test/web/**'],
  ...shared,
});

/** Tests that build, start programs, measure, or wait for more than ten seconds; only `npm run test:services` runs them. */
const slow = project('slow', { globalSetup, include: ['test/slow/*.test.ts'], maxWorkers: 3 });

/** Tests that measure, so nothing else runs at the same time. */
const measuring = ['console-volume', 'consoles', 'redis-faults', 'revocation', 'silence', 'wakeups'].map(
  (name) => `test/services/${name}.test.ts`,
);

/** Tests that need PostgreSQL. Each breaks the services that it runs on, which are its own, and mostly waits. */
const services = project('services', {
  globalSetup,
  include: ['test/services/*.test.ts'],
  exclude: measuring,
  maxWorkers: 2,
  sequence: { groupOrder: 1 },
});

const alone = project('alone', { globalSetup, include: measuring, maxWorkers: 1, sequence: { groupOrder: 2 } });

/** Run by hand: it measures for minutes, and needs an otherwise idle machine. */
const siege = project('siege', { globalSetup, include: ['test/siege/*.test.ts'], maxWorkers: 1 });

export default defineConfig({
  // The same file that Node resolves: two copies of graphql-js reject each other's types.
  resolve: { alias: [{ find: /^graphql$/, replacement: 'graphql/index.js' }] },
  test: {
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // A generous default, as the machine may be busy; a test that needs a bound sets its own.
    expect: { poll: { timeout: 15_000 } },
    projects: process.env.SIEGE_SECONDS ? [siege] : [pure, app, slow, ...(process.env.TEST_DATABASE_URL ? [services, alone] : [])],
  },
});
