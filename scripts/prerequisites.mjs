// The prerequisites of the scripts of package.json on the machine. Each is said in one sentence, as the packages would end with a stack.
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const packages = ['@prisma/internals', 'rolldown', 'typescript', 'vite'];

// Importing this module checks the version: a script imports it before anything that an old Node.js cannot load.
const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 20 || major === 21 || (major === 20 && minor < 19) || (major === 22 && minor < 12))
  end(`Portico needs Node.js 20 from 20.19 on, 22 from 22.12 on, or a later one: this is ${process.versions.node}.`);

/** Checks the prerequisites of a build beyond Node.js, which a start from a finished build does not have. */
export function checkBuildPrerequisites() {
  if (!packages.every((name) => existsSync(join(root, 'node_modules', name))))
    end('Packages that build Portico are missing: run `npm ci --include=dev` first.');
  if (!existsSync(tmpdir())) end(`The folder of temporary files, ${tmpdir()}, does not exist: let TMPDIR name one that does.`);
}

/** @param {string} message @returns {never} */
export function end(message) {
  console.error(message);
  process.exit(1);
}
