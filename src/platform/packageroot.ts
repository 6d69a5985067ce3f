import { existsSync } from 'node:fs';

/** The folder of the package, with a trailing slash. Searched for, as the code runs from `src/` in tests and from below `dist/` otherwise. */
export const packageRoot: URL = findRoot(new URL('.', import.meta.url));

function findRoot(folder: URL): URL {
  if (existsSync(new URL('package.json', folder))) return folder;
  const parent = new URL('..', folder);
  if (parent.href === folder.href) throw new Error('package.json not found above the code');
  return findRoot(parent);
}
