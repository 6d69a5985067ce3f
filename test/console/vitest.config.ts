import { defineConfig } from 'vitest/config';
import base from '../../vitest.config.ts';

const { projects: _, ...test } = base.test ?? {};

// These tests run a real machine (Debian's qemu-system-x86) and a browser (Debian's chromium-headless-shell): `npm run test:console`.
export default defineConfig({
  resolve: base.resolve,
  root: new URL('../..', import.meta.url).pathname,
  test: {
    ...test,
    globalSetup: 'test/support/database.ts',
    include: ['test/console/*.test.ts'],
    maxWorkers: 1,
  },
});
