import { tmpdir } from 'node:os';
import { expect, inject, it } from 'vitest';
import { Lifecycle } from '../src/kernel/lifecycle.ts';
import { openDatabase } from '../src/platform/database.ts';
import { OperatorError } from '../src/platform/failure.ts';
import { databaseUrl, execute } from './support/database.ts';

const open = (url: string) => openDatabase({ dataDir: tmpdir(), database: { url, pool: 1 } }, new Lifecycle());

it('a certificate that cannot be read is named, as part of DATABASE_URL', async () => {
  const opening = open('postgresql://portico:secret@127.0.0.1/portico?sslmode=verify-full&sslrootcert=/nowhere/ca.crt');
  await expect(opening).rejects.toThrow(new OperatorError('DATABASE_URL names /nowhere/ca.crt, which cannot be read (ENOENT).'));
});

const origin = inject('origin');

it.runIf('server' in origin)('a database in another encoding is refused before anything is migrated', async () => {
  if (!('server' in origin)) return;
  const name = `${origin.template}_ascii`;
  await execute(origin.server, `CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C'`);
  const url = databaseUrl(origin.server, name);
  const refusal = 'DATABASE_URL names a database in SQL_ASCII: create one in the encoding UTF8.';
  await expect(open(url)).rejects.toThrow(new OperatorError(refusal));
  expect(await execute(url, "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace")).toEqual([]);
});
