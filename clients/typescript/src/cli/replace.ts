import { randomUUID } from 'node:crypto';
import { rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/**
 * Replaces a file, or creates it: a reader sees either the old file or the new one. Other users may write to its folder, so the draft
 * has a name that none of them can guess, and is never written through a link that exists already.
 */
export async function replaceFile(path: string, text: string, mode = 0o666): Promise<void> {
  const draft = join(dirname(path), `.portico.${randomUUID()}`);
  try {
    await writeFile(draft, text, { mode, flag: 'wx' });
    await rename(draft, path);
  } finally {
    await rm(draft, { force: true });
  }
}
