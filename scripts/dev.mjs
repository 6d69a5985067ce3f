// npm run dev: builds and serves the sources, and restarts when one is saved. If a build fails, the previous server keeps running.
// Vite serves the desk beside it, with hot module replacement, and proxies all other requests to the server.
import { spawn } from 'node:child_process';
import { readdirSync, watch } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { checkBuildPrerequisites } from './prerequisites.mjs';

checkBuildPrerequisites();

const root = fileURLToPath(new URL('..', import.meta.url));
/** The debounce after a change, as editors save in several steps. */
const SETTLE_MS = 100;

/** @type {Map<string, import('node:fs').FSWatcher>} */
const watchers = new Map();
/** @type {ReturnType<typeof run> | null} */
let server = null;
/** @type {NodeJS.Timeout | undefined} */
let timer;
let isEnding = false;
const desk = run(['node_modules/vite/bin/vite.js', 'web', '--clearScreen', 'false']);
let work = Promise.resolve();
/** For the documents that the server serves, which are in this folder itself: `npm run schema` writes them. */
const documents = watch(root, (_event, name) => {
  if (name === 'openapi.json' || name === 'asyncapi.json') scheduleRestart();
});

for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM'])) {
  process.on(signal, () => {
    isEnding = true;
    clearTimeout(timer);
    documents.close();
    for (const watcher of watchers.values()) watcher.close();
    server?.stop(signal);
    desk.stop(signal);
  });
}
watchFolders();
restart();

/** Watches folders, not files: a save by rename replaces the file, and a watcher of the old one would get no more events. */
function watchFolders() {
  const folders = ['src', 'demo', 'prisma', 'docs', 'reference', 'clients/typescript/src'].map((name) => join(root, name));
  for (const folder of folders) {
    for (const entry of readdirSync(folder, { withFileTypes: true }))
      if (entry.isDirectory() && entry.name !== 'generated') folders.push(join(folder, entry.name));
    if (watchers.has(folder)) continue;
    const watcher = watch(folder, scheduleRestart);
    watcher.on('error', () => watcher.close());
    watchers.set(folder, watcher);
  }
  for (const [folder, watcher] of watchers) {
    if (folders.includes(folder)) continue;
    watcher.close();
    watchers.delete(folder);
  }
}

function scheduleRestart() {
  clearTimeout(timer);
  timer = setTimeout(() => {
    watchFolders();
    restart();
  }, SETTLE_MS);
}

/** Builds and restarts the server, one run at a time. */
function restart() {
  work = work.then(async () => {
    if (isEnding || (await run(['scripts/build.mjs']).exit) !== 0 || isEnding) return;
    await server?.stop();
    if (!isEnding) server = run(['--disable-warning=ExperimentalWarning', '--enable-source-maps', 'dist/current/main.js']);
  });
}

/** @param {string[]} args */
function run(args) {
  const child = spawn(process.execPath, args, { cwd: root, stdio: 'inherit' });
  const exit = new Promise((resolve) => child.once('close', resolve));
  const stop = (/** @type {NodeJS.Signals} */ signal = 'SIGTERM') => {
    child.kill(signal);
    return exit;
  };
  return { exit, stop };
}
