import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import { PGLiteSocketServer } from '@electric-sql/pglite-socket';

/** A PGlite in memory with all migrations, behind a socket server for PostgreSQL clients. */
export async function openDatabase(migrations) {
  const database = await PGlite.create();
  const folders = readdirSync(migrations, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  for (const { name } of folders.sort((a, b) => a.name.localeCompare(b.name))) {
    await database.exec(readFileSync(join(migrations, name, 'migration.sql'), 'utf8'));
  }
  const server = new PGLiteSocketServer({ db: database, host: '127.0.0.1', port: 0, maxConnections: 20 });
  await server.start();
  return { database, server, url: `postgresql://postgres@${server.getServerConn()}/postgres` };
}
