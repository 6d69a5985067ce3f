import { defineConfig } from 'vitest/config';
import base from '../../vitest.config.ts';

const { projects: _, ...test } = base.test ?? {};

// These tests use the desk in Debian's chromium-headless-shell, on the embedded demo or, with TEST_DATABASE_URL, on two replicas: `npm run test:web`.
export default defineConfig({
  resolve: base.resolve,
  root: new URL('../..', import.meta.url).pathname,
  test: {
    ...test,
    globalSetup: 'test/support/database.ts',
    include: ['test/web/*.test.ts'],
    testTimeout: 300_000,
    maxWorkers: 2,
  },
});
