// npm run bench -- [--only rest,graphql,growth,log,sockets,console,start] [--rounds n] [--seconds n] [--scale n]: measures Portico
// and its peers, and writes results.md. The packages that the peers need are installed into this folder on first use.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('.', import.meta.url));
const installed = `${here}node_modules/.package-lock.json`;
const isCurrent = existsSync(installed) && readFileSync(installed, 'utf8').length > 0 && isNewer(installed, `${here}package-lock.json`);
if (!isCurrent) execFileSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: here, stdio: 'inherit' });
const { main } = await import('./main.mjs');
await main(process.argv.slice(2));

/** @param {string} path @param {string} than */
function isNewer(path, than) {
  const lock = JSON.parse(readFileSync(than, 'utf8'));
  const { packages } = JSON.parse(readFileSync(path, 'utf8'));
  return Object.entries(lock.packages).every(
    ([name, { version, optional, extraneous }]) => name === '' || optional || extraneous || packages[name]?.version === version,
  );
}
