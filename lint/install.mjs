// Installs this folder's dependencies, unless those of the same lock file are already installed.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const here = new URL('.', import.meta.url);
const stamp = new URL('node_modules/.installed', here);
const lock = createHash('sha256')
  .update(readFileSync(new URL('package-lock.json', here)))
  .digest('hex');

if (readStamp() !== lock) {
  execFileSync('npm', ['ci', '--no-progress'], { cwd: fileURLToPath(here), stdio: 'inherit' });
  writeFileSync(stamp, lock);
}

function readStamp() {
  try {
    return readFileSync(stamp, 'utf8');
  } catch {
    return null;
  }
}
