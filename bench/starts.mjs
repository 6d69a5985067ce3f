// The time from the start of the process to its first response.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { idOf } from './fill.mjs';
import { measureFresh } from './fresh.mjs';
import { median } from './load.mjs';
import { memoryOf, start } from './servers.mjs';
import { short, table } from './table.mjs';

const TIMES = 5;
const TIMES_EMBEDDED = 3;
const AFTER_START_MS = 5_000;
/** V8 returns the memory that the start needed once the process has been idle for some forty seconds. */
const IDLE_MS = 60_000;

/** @param {Parameters<typeof start>[1]} options @param {() => Promise<{path: string, token: string}>} describe */
async function timeStart(options, describe) {
  const began = performance.now();
  const server = await start('portico', options);
  const { path, token } = await describe();
  const response = await fetch(server.baseUrl + path, { headers: { authorization: `Bearer ${token}` } });
  const text = await response.text();
  const ms = performance.now() - began;
  if (response.status !== 200) throw new Error(`${path}: ${response.status} ${text}`);
  return { ms, server };
}

/** @param {import('./main.mjs').Bench} bench @returns {Promise<import('./main.mjs').Section>} */
export async function measureStarts(bench) {
  const { databaseUrl, key } = bench;
  const token = await key.tokenOf(1);
  const overview = { path: `/v1/organizations/${idOf('organization', 1)}/projects/${idOf('project', 2)}/compute/overview`, token };
  const times = { postgres: /** @type {number[]} */ ([]), first: /** @type {number[]} */ ([]), second: /** @type {number[]} */ ([]) };
  let idle = NaN;
  let started = NaN;
  for (let time = 0; time < TIMES; time += 1) {
    const { ms, server } = await timeStart({ databaseUrl, key }, async () => overview);
    times.postgres.push(ms);
    if (time === 0) {
      await sleep(AFTER_START_MS);
      started = memoryOf(server.pid);
      await sleep(IDLE_MS - AFTER_START_MS);
      idle = memoryOf(server.pid);
    }
    await server.stop();
  }
  for (let time = 0; time < TIMES_EMBEDDED; time += 1) {
    const folder = mkdtempSync(join(tmpdir(), 'portico-bench-start-'));
    const readDemo = async () => {
      const demo = JSON.parse(readFileSync(join(folder, 'demo.json'), 'utf8'));
      return {
        path: `/v1/organizations/${demo.organization_id}/projects/${demo.project_id}/compute/overview`,
        token: demo.users.owner.api_key,
      };
    };
    try {
      for (const which of /** @type {const} */ (['first', 'second'])) {
        const { ms, server } = await timeStart({ key, env: { DATA_DIR: folder } }, readDemo);
        times[which].push(ms);
        await server.stop();
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }
  const claims = [
    { what: 'start on PostgreSQL, to the first response', figure: median(times.postgres) / 1000, bound: 1, unit: ' s' },
    { what: 'embedded, second start', figure: median(times.second) / 1000, bound: 2.5, unit: ' s' },
    { what: 'embedded, first start with the demo', figure: median(times.first) / 1000, bound: 6, unit: ' s' },
    { what: 'RSS idle on PostgreSQL', figure: idle, bound: 130, unit: ' MiB' },
  ];
  const { fresh, warm } = await measureFresh(bench);
  return {
    title: 'Start',
    text: table(
      ['what', 'figure'],
      [
        ...claims.map(({ what, figure, unit }) => [what, short(figure) + unit]),
        ['RSS on PostgreSQL, five seconds after the start', `${short(started)} MiB`],
        ['p99 of the first 1,000 requests to a fresh replica, 300 a second', `${short(fresh)} ms`],
        ['p99 of 1,000 to one that is warm', `${short(warm)} ms`],
      ],
    ),
    claims: [...claims, { what: 'the first 1,000 requests to a fresh replica against a warm one, p99', figure: fresh / warm, bound: 3 }],
  };
}
