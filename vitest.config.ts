import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';

const globalSetup = 'test/support/database.ts';

const app: TestProjectInlineConfiguration = {
  extends: true,
  test: {
    name: 'app',
    globalSetup,
    include: ['test/**/*.test.ts'],
    exclude: ['test/services/**', 'test/clients/**', 'test/console/**'],
    maxWorkers: 2,
  },
};

/** On a PostgreSQL alone. They measure, and break what they run on: nothing else runs beside them. */
const services: TestProjectInlineConfiguration = {
  extends: true,
  test: { name: 'services', globalSetup, include: ['test/services/*.test.ts'], maxWorkers: 1, sequence: { groupOrder: 1 } },
};

export default defineConfig({
  // As Node resolves it: two copies of graphql-js do not know each other's types.
  resolve: { alias: [{ find: /^graphql$/, replacement: 'graphql/index.js' }] },
  test: {
    testTimeout: 60_000,
    hookTimeout: 60_000,
    projects: process.env.TEST_DATABASE_URL ? [app, services] : [app],
  },
});
