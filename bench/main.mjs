import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { cpus, release, totalmem } from 'node:os';
import { parseArgs } from 'node:util';
import { measureConsole } from './console.mjs';
import { provideDatabase, query, root } from './database.mjs';
import { measureGraphql } from './graphql.mjs';
import { measureGrowth } from './growth.mjs';
import { measureLog } from './log.mjs';
import { measureRest } from './rest.mjs';
import { makeKey } from './servers.mjs';
import { measureSockets } from './sockets.mjs';
import { measureStarts } from './starts.mjs';
import { verdict } from './table.mjs';

const sections = {
  rest: measureRest,
  graphql: measureGraphql,
  growth: measureGrowth,
  log: measureLog,
  sockets: measureSockets,
  console: measureConsole,
  start: measureStarts,
};

/**
 * @typedef {object} Bench
 * @property {string} databaseUrl
 * @property {number} scale
 * @property {number} rounds
 * @property {number} seconds
 * @property {import('./servers.mjs').Key} key
 * @property {(line: string) => void} say
 * @typedef {{title: string, text: string, claims: import('./table.mjs').Claim[]}} Section
 */

/** @param {string[]} args */
export async function main(args) {
  const { values } = parseArgs({
    args,
    options: {
      only: { type: 'string' },
      rounds: { type: 'string', default: '3' },
      seconds: { type: 'string', default: '1' },
      scale: { type: 'string', default: '1' },
    },
  });
  const names = values.only?.split(',') ?? Object.keys(sections);
  const unknown = names.filter((name) => !(name in sections));
  if (unknown.length > 0) throw new Error(`--only ${unknown}: there are ${Object.keys(sections)}`);
  const say = (/** @type {string} */ line) => console.error(line);
  const began = performance.now();
  execFileSync(process.execPath, ['scripts/build.mjs'], { cwd: root });
  const scale = Number(values.scale);
  const databaseUrl = await provideDatabase(scale, say);
  const filled = performance.now();
  const key = await makeKey();
  /** @type {Section[]} */
  const done = [];
  try {
    for (const name of names) {
      say(name);
      const section = sections[/** @type {keyof typeof sections} */ (name)];
      done.push(await section({ databaseUrl, scale, rounds: Number(values.rounds), seconds: Number(values.seconds), key, say }));
    }
  } finally {
    key.remove();
  }
  const seconds = (performance.now() - filled) / 1000;
  const report = [
    '# What the bench has measured',
    await describeMachine(databaseUrl),
    `Rounds: ${values.rounds} of ${values.seconds} s, medians; scale ${scale}; the run took ${Math.round(seconds)} s, what it needed before ${Math.round((filled - began) / 1000)} s.`,
    verdict(done.flatMap(({ claims }) => claims)),
    ...done.flatMap(({ title, text }) => [`## ${title}`, text]),
  ].join('\n\n');
  console.log(report);
  // A quick run does not overwrite the results of a full one.
  if (scale === 1 && !values.only) writeFileSync(new URL('results.md', import.meta.url), `${report}\n`);
}

/** @param {string} databaseUrl */
async function describeMachine(databaseUrl) {
  const [{ version }] = await query(databaseUrl, "SELECT current_setting('server_version') AS version");
  const [cpu] = cpus();
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: root, encoding: 'utf8' }).trim();
  return (
    `${new Date().toISOString().slice(0, 16)}Z, commit ${commit}. Node.js ${process.version}, PostgreSQL ${version}, Linux ${release()}; ` +
    `${cpus().length} × ${cpu?.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GiB. Servers, database and load share these cores.`
  );
}
