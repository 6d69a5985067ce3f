import { execFileSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A file system of the test's own, in memory, that can be filled up. */
export interface Disk {
  readonly folder: string;
  /** Leaves so many bytes. */
  fill(left: number): void;
  /** Gives back what was filled up. */
  free(): void;
  /** Nothing on it can be written any more. */
  protect(): void;
  close(): void;
}

/** Takes the right to mount. Where there is none the test fails: a disk that cannot be full shows nothing. */
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
