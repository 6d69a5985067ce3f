import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';

// All files that tests leave behind, also those that fail, are in one folder, which goes with the run; this file is read once for
// each project. A PostgreSQL server that a test starts may run as another user, who reads what is in it.
if (!process.env.TESTS_FOLDER) {
  const folder = mkdtempSync(join(tmpdir(), 'portico-tests-'));
  chmodSync(folder, 0o755);
  process.env.TESTS_FOLDER = process.env.TMPDIR = folder;
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
}

// The output of a program into a pipe has no colours, nor Node.js's warning about the two together, which tests would read.
delete process.env.FORCE_COLOR;
delete process.env.NO_COLOR;

const globalSetup = 'test/support/database.ts';

/** Tests that need no database; `npm run test:services` does not run them. */
const withoutDatabase = [
  'access/signing-key',
  'accounts/operator-commands',
  'client-package/files',
  'consoles/backpressure',
  'deploy/compose',
  'deploy/roll-script',
  'desk/failure',
  'desk/feed',
  'desk/format',
  'desk/session',
  'desk/style',
  'docs',
  'feed/history-checker',
  'feed/queue',
  'feed/window',
  'graph/fingerprint',
  'graph/input-values',
  'graph/response-turns',
  'kernel/coalesce',
  'kernel/fair-limit',
  'kernel/json-text',
  'kernel/semaphore',
  'kernel/turns',
  'notifications/throttle',
  'platform/breaker',
  'platform/config',
  'platform/failure',
  'platform/jobs',
  'platform/logger',
  'platform/outage-log',
  'platform/ownership',
  'platform/probe',
  'scale',
  'structure',
  'transport/connection-buffers',
  'transport/request-queue',
].map((name) => `test/${name}.test.ts`);

const project = (name: string, settings: TestProjectInlineConfiguration['test']): TestProjectInlineConfiguration => ({
  extends: true,
  test: { name, ...settings },
});

/** On PostgreSQL a worker mostly waits for it: there four keep two cores busy. */
const maxWorkers = process.env.TEST_DATABASE_URL ? 4 : 3;

/** PGlite is compiled quickly: V8's optimizing compiler would take more than its code saves in the minutes of a run. */
const execArgv = process.env.TEST_DATABASE_URL ? [] : ['--liftoff-only'];

/** Test files in a worker share imported modules, as importing takes each file as long as its tests. */
const shared = { isolate: false, maxWorkers } as const;

/** A test that asserts nothing cannot fail. */
const asserting = { ...shared, expect: { requireAssertions: true } } as const;

const pure = project('pure', { include: withoutDatabase, ...asserting });

/** Tests for both databases: `npm test` runs them on the embedded one, `npm run test:services` on PostgreSQL. */
const app = project('app', {
  globalSetup,
  include: ['test/**/*.test.ts'],
  exclude: [...withoutDatabase, 'test/slow/**', 'test/services/**', 'test/siege/**', 'test/clients/**', 'test/console/**', 'test/web/**'],
  ...asserting,
});

const inServices = (names: readonly string[]) => names.map((name) => `test/services/${name}.test.ts`);

/** Tests that break their own services, work for a time and count, or wait for a minute: they all run at the same time. */
const enduring = [
  ...inServices(['memory', 'nemesis', 'rolling']),
  ...['consoles', 'hardening', 'stalled-peers'].map((name) => `test/slow/${name}.test.ts`),
];

/** Tests of outages and their deadlines: they measure, but mostly wait, and leave a part of two cores idle even together. */
const waiting = inServices(['consoles', 'outages', 'redis-faults', 'silence']);

/** Tests that measure, or count what is exact only while Redis answers in time: nothing else runs at the same time. */
const measuring = inServices(['console-volume', 'limits', 'revocation', 'wakeups']);

/** Tests that build, start programs, measure, or wait for more than ten seconds; only `npm run test:services` runs them. */
const slow = project('slow', { globalSetup, include: ['test/slow/*.test.ts'], exclude: enduring, maxWorkers });

/** Tests that need PostgreSQL and Redis. */
const services = project('services', {
  globalSetup,
  include: ['test/services/*.test.ts'],
  exclude: [...enduring, ...waiting, ...measuring],
  ...shared,
});

const faults = project('faults', { globalSetup, include: enduring, maxWorkers: enduring.length, sequence: { groupOrder: 1 } });

const patient = project('patient', { globalSetup, include: waiting, maxWorkers: 2, sequence: { groupOrder: 2 } });

const alone = project('alone', { globalSetup, include: measuring, maxWorkers: 1, sequence: { groupOrder: 3 } });

/** Run by hand: it measures for minutes, and needs an otherwise idle machine. */
const siege = project('siege', { globalSetup, include: ['test/siege/*.test.ts'], maxWorkers: 1 });

export default defineConfig({
  // The same file that Node resolves: two copies of graphql-js reject each other's types.
  resolve: { alias: [{ find: /^graphql$/, replacement: 'graphql/index.js' }] },
  test: {
    // Generous defaults, as the machine may be slow and busy; a test that needs a bound sets its own.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 60_000 } },
    execArgv,
    projects: process.env.SIEGE_SECONDS
      ? [siege]
      : [pure, app, slow, ...(process.env.TEST_DATABASE_URL ? [services, faults, patient, alone] : [])],
  },
});
