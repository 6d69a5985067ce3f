import { defineConfig } from 'vitest/config';

export default defineConfig({
  // As Node resolves it: two copies of graphql-js do not know each other's types.
  resolve: { alias: [{ find: /^graphql$/, replacement: 'graphql/index.js' }] },
  test: {
    include: ['test/**/*.test.ts'],
    // They run programs that are not ours: `npm run test:clients`.
    exclude: ['**/node_modules/**', 'test/clients/**'],
    globalSetup: 'test/support/database.ts',
    testTimeout: 60_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
  },
});
