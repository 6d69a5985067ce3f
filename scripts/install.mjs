// node scripts/install.mjs <folder>: installs the dependencies of a package of its own, unless those of the same lock file are
// already installed.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const [folder] = process.argv.slice(2);
const stamp = join(folder, 'node_modules/.installed');
const lock = createHash('sha256')
  .update(readFileSync(join(folder, 'package-lock.json')))
  .digest('hex');

if (readStamp() !== lock) {
  execFileSync('npm', ['ci', '--no-progress'], { cwd: folder, stdio: 'inherit' });
  writeFileSync(stamp, lock);
}

function readStamp() {
  try {
    return readFileSync(stamp, 'utf8');
  } catch {
    return null;
  }
}
