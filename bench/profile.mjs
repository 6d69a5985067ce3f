// node bench/profile.mjs 'compute overview' [--seconds n] [--scale n]: a CPU profile of Portico under the load of one operation
// of the bench, by package and by function, in microseconds a request.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { provideDatabase } from './database.mjs';
import { graphqlOperations } from './graphql.mjs';
import { drive } from './load.mjs';
import { restOperations } from './rest.mjs';
import { makeKey, start } from './servers.mjs';
import { short, table } from './table.mjs';

const TOP = 25;
const WARMUP_SECONDS = 4;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seconds: { type: 'string', default: '6' }, scale: { type: 'string', default: '1' } },
});
const scale = Number(values.scale);
const operations = [...restOperations(scale), ...graphqlOperations()];
const operation = operations.find(({ name }) => name === positionals[0]);
if (!operation) throw new Error(`name one of: ${operations.map(({ name }) => name).join(', ')}`);
execFileSync(process.execPath, ['scripts/build.mjs'], { cwd: new URL('..', import.meta.url) });
const databaseUrl = await provideDatabase(scale, console.error);
const key = await makeKey();
const folder = mkdtempSync(join(tmpdir(), 'portico-profile-'));
try {
  const requests = await operation.requests(key.tokenOf);
  const server = await start('portico', { databaseUrl, key, arguments: ['--cpu-prof', `--cpu-prof-dir=${folder}`] });
  await drive(server, requests, { seconds: WARMUP_SECONDS });
  const began = process.hrtime.bigint();
  const { requestsPerSecond, cpuMicros } = await drive(server, requests, { seconds: Number(values.seconds) });
  await server.stop();
  console.log(
    `${operation.name}: ${Math.round(requestsPerSecond)} requests/s, ${Math.round(cpuMicros)} µs of CPU a request, while profiled\n`,
  );
  const from = Number(began / 1000n);
  report(readProfile(), { from, to: from + Number(values.seconds) * 1e6, count: requestsPerSecond * Number(values.seconds) });
} finally {
  key.remove();
  rmSync(folder, { recursive: true, force: true });
}

/** @typedef {{id: number, callFrame: {functionName: string, url: string, lineNumber: number}}} Node */

/** The main thread's profile is the longest. @returns {{nodes: Node[], startTime: number, samples: number[], timeDeltas: number[]}} */
function readProfile() {
  const profiles = readdirSync(folder).map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')));
  return profiles.sort((a, b) => b.samples.length - a.samples.length)[0];
}

/**
 * Reports the samples within the load. A profile has the clock of `process.hrtime`, in microseconds.
 * @param {ReturnType<typeof readProfile>} profile @param {{from: number, to: number, count: number}} load
 */
function report({ nodes, startTime, samples, timeDeltas }, { from, to, count }) {
  let now = startTime;
  const frames = new Map(nodes.map((node) => [node.id, node.callFrame]));
  const [byPackage, byFunction] = [new Map(), new Map()];
  for (const [index, id] of samples.entries()) {
    const frame = frames.get(id);
    now += Number(timeDeltas[index]);
    if (now < from || now > to || !frame || frame.functionName === '(idle)') continue;
    const micros = Number(timeDeltas[index]);
    const layer = packageOf(frame);
    const name = `${frame.functionName || '(anonymous)'} · ${layer}:${frame.url.split('/').at(-1)}:${frame.lineNumber + 1}`;
    byPackage.set(layer, (byPackage.get(layer) ?? 0) + micros);
    byFunction.set(name, (byFunction.get(name) ?? 0) + micros);
  }
  for (const [title, times] of /** @type {const} */ ([
    ['package', byPackage],
    ['function', byFunction],
  ])) {
    const sorted = [...times].sort(([, a], [, b]) => b - a).slice(0, TOP);
    const rows = sorted.map(([name, micros]) => [name, short(micros / count)]);
    console.log(`${table([`${title}, its own time`, 'µs a request'], rows)}\n`);
  }
}

/** @param {Node['callFrame']} frame */
function packageOf({ url, functionName }) {
  if (url === '') return functionName.startsWith('(') ? functionName : 'native';
  if (url.startsWith('wasm:')) return 'WebAssembly (Prisma’s query compiler)';
  if (url.startsWith('node:')) return url.split('/').slice(0, 2).join('/');
  const [, name] = /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url) ?? [];
  return name ?? `portico/${/dist\/[0-9a-f]+\/([^/]+)/.exec(url)?.[1] ?? 'other'}`;
}
