import { defineConfig } from 'vitest/config';
import base from '../../vitest.config.ts';

// These tests run the tools of package.json in this folder, Java and a browser: `npm run test:clients`.
export default defineConfig({
  ...base,
  root: new URL('../..', import.meta.url).pathname,
  test: { ...base.test, include: ['test/clients/**/*.test.ts'], exclude: ['**/node_modules/**'], testTimeout: 300_000 },
});
