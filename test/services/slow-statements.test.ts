import { afterEach, beforeEach, expect, test } from 'vitest';
import { createLogger } from '../../src/platform/logger.ts';
import { Pool } from '../../src/platform/pool.ts';
import { createQuery } from '../../src/platform/query.ts';
import { runTransaction } from '../../src/platform/transaction.ts';
import { copyTemplate } from '../support/app.ts';

let lines: Array<Record<string, unknown>>;
let pool: Pool;
beforeEach(async () => {
  lines = [];
  const log = createLogger('warn', { write: (line) => void lines.push(JSON.parse(line)) });
  pool = new Pool({ url: await copyTemplate(), size: 1, log });
});
afterEach(() => pool.end());

const logged = (msg: string) => lines.filter((line) => line.msg === msg);

test('a slow statement is logged, by its text and not its values; a quick one is not', async () => {
  const query = createQuery((statement, values) => pool.run(statement, values));
  await query`SELECT pg_sleep(1.1),
    ${'a secret'}::text AS name`;
  await query`SELECT 1 AS quick`;
  await runTransaction(pool, (run) => createQuery(run)`SELECT pg_sleep(1.1) AS "within"`);
  await expect(query`SELECT 1 / (SELECT 0 FROM pg_sleep(1.1))`).rejects.toThrow('zero');
  await pool.query({ text: 'SELECT pg_sleep(1.1) AS "of Prisma"' } as never);
  expect(logged('a slow statement').map(({ statement }) => statement)).toEqual([
    'SELECT pg_sleep(1.1), $1::text AS name',
    'SELECT pg_sleep(1.1) AS "within"',
    'SELECT 1 / (SELECT 0 FROM pg_sleep(1.1))',
    'SELECT pg_sleep(1.1) AS "of Prisma"',
  ]);
  expect(logged('a slow statement')[0]).toMatchObject({ level: 'warn', duration_ms: expect.any(Number) });
  expect(JSON.stringify(lines)).not.toContain('secret');
});

test('a long wait for a connection is logged, once for all that wait at a time, and is not a slow statement', async () => {
  const query = createQuery((statement, values) => pool.run(statement, values));
  await Promise.all([
    query`SELECT pg_sleep(1.1) AS "holds it"`,
    query`SELECT 1 AS waits`,
    query`SELECT 2 AS waits`,
    pool.query({ text: 'SELECT 3 AS waits' } as never),
  ]);
  expect(logged('a slow statement').map(({ statement }) => statement)).toEqual(['SELECT pg_sleep(1.1) AS "holds it"']);
  expect(logged('a long wait for a database connection')).toEqual([
    { level: 'warn', time: expect.any(String), busy: 1, waiting: 2, duration_ms: expect.any(Number), msg: expect.any(String) },
  ]);
});
