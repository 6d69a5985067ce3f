import { cpSync, existsSync, mkdirSync, realpathSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PGlite } from '@electric-sql/pglite';
import { PrismaPGlite } from 'pglite-prisma-adapter';
import type { Lifecycle } from '../kernel/lifecycle.ts';
import type { Driver } from './driver.ts';
import { migrate } from './migrate.ts';
import { ownFolder } from './ownership.ts';

/**
 * PGlite in `dataDir`, owned by this process alone, or in memory from a snapshot. Whoever has a PostgreSQL does not load
 * this file: PGlite takes as long to load as all else that a start loads.
 */
export async function openEmbedded(dataDir: string, lifecycle: Lifecycle, snapshot: Blob | undefined): Promise<Driver> {
  const folder = join(dataDir, 'database');
  if (!snapshot) {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    lifecycle.onClose(await ownFolder(dataDir));
    if (!existsSync(folder)) await createEmbedded(folder);
  }
  const embedded = await PGlite.create({ dataDir: snapshot ? 'memory://' : folder, loadDataDir: snapshot });
  lifecycle.onClose(() => embedded.close());
  await migrate({
    runScript: async (sql) => void (await embedded.exec(sql)),
    query: async (sql, values) => (await embedded.query<Record<string, unknown>>(sql, [...values])).rows,
  });
  return {
    adapter: new PrismaPGlite(embedded),
    run: async ({ text }, values) => (await embedded.query(text, values)).rows,
    connections: null,
  };
}

/** Where the build has left an empty database of this PGlite. */
const template = fileURLToPath(new URL('./database', import.meta.url));

/** An empty database that appears whole: PGlite could not go on with one whose making was broken off. */
async function createEmbedded(folder: string): Promise<void> {
  const draft = `${folder}.draft`;
  rmSync(draft, { recursive: true, force: true });
  if (existsSync(template)) cpSync(realpathSync(template), draft, { recursive: true });
  else await (await PGlite.create(draft)).close();
  renameSync(draft, folder);
}
