import { execFileSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** An in-memory file system owned by the test, which can be filled up. */
export interface Disk {
  readonly folder: string;
  /** Fills the disk until `left` bytes are free. */
  fill(left: number): void;
  /** Releases the space taken by `fill`. */
  free(): void;
  /** Makes the file system read-only. */
  protect(): void;
  close(): void;
}

/** Requires permission to mount. Without it the test fails, because a disk that cannot be filled tests nothing. */
export function openDisk(bytes: number): Disk {
  const folder = mkdtempSync(join(tmpdir(), 'portico-disk-'));
  const mount = (options: string) => execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', folder]);
  mount(`size=${bytes},mode=700`);
  const ballast = join(folder, 'ballast');
  return {
    folder,
    fill(left) {
      const file = openSync(ballast, 'a');
      const { bavail, bsize } = statfsSync(folder);
      const block = Buffer.alloc(bsize);
      try {
        for (let count = Math.max(0, bavail - Math.floor(left / bsize)); count > 0; count -= 1) writeSync(file, block);
      } finally {
        closeSync(file);
      }
    },
    free: () => rmSync(ballast, { force: true }),
    protect: () => mount('remount,ro'),
    close() {
      execFileSync('umount', ['--lazy', folder]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
