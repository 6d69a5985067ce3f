#!/usr/bin/env node
import { existsSync } from 'node:fs';

const program = new URL('../dist/cli/main.js', import.meta.url);
if (existsSync(program)) {
  await import(program.href);
} else {
  console.error('portico is not compiled yet: `npm run client` does that in a clone.');
  process.exitCode = 1;
}
