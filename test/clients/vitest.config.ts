import { defineConfig } from 'vitest/config';
import base from '../../vitest.config.ts';

const { projects: _, ...test } = base.test ?? {};

// These tests run the tools of package.json in this folder, Java and a browser: `npm run test:clients`.
export default defineConfig({
  resolve: base.resolve,
  root: new URL('../..', import.meta.url).pathname,
  test: {
    ...test,
    globalSetup: 'test/support/database.ts',
    include: ['test/clients/*.test.ts'],
    testTimeout: 300_000,
    maxWorkers: 2,
  },
});
