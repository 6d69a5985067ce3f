import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Prisma } from '../src/generated/prisma/client.ts';
import { batchByOwner } from '../src/kernel/batch.ts';
import { Fault } from '../src/kernel/fault.ts';
import type { Query } from '../src/platform/query.ts';
import { isPostgres, startApp, type TestApp } from './support/app.ts';

let app: TestApp;
let query: Query;
beforeAll(async () => {
  app = await startApp({ DATABASE_POOL: '1' });
  query = app.app.database.query;
});
afterAll(() => app.close());

describe('a statement', () => {
  it('gives values as JavaScript has them, each time it is run', async () => {
    const moment = new Date('2026-01-31T12:00:00.123Z');
    const run = () =>
      query`
        SELECT 9007199254740991::bigint AS big, 1.50::numeric AS exact, ${moment}::timestamptz AS moment, ${'ä\n'}::text AS text,
          ${JSON.stringify({ b: 1, a: [null] })}::json AS json, ${['x', 'y']}::text[] AS list, ${true}::boolean AS yes, NULL::int AS none,
          ${Uint8Array.of(0, 255)}::bytea = '\\x00ff'::bytea AS bytes, ${null}::uuid IS NULL AS empty, 'info'::severity AS label`;
    const expected = {
      big: 2 ** 53 - 1,
      exact: '1.50',
      moment,
      text: 'ä\n',
      json: { b: 1, a: [null] },
      list: ['x', 'y'],
      yes: true,
      none: null,
    };
    for (let turn = 0; turn < 3; turn += 1) expect(await run()).toEqual([{ ...expected, bytes: true, empty: true, label: 'info' }]);
  });

  it.each([
    '1000-01-01T00:00:00.000Z',
    '1969-12-31T23:59:59.999Z',
    '1970-01-01T00:00:00.000Z',
    '2026-06-30T23:59:59.001Z',
    '9999-12-31T23:59:59.999Z',
  ])('keeps the moment %s', async (text) => {
    const [row] = await query<{
      moment: Date;
      day: Date;
    }>`SELECT ${new Date(text)}::timestamptz AS moment, date_trunc('day', ${new Date(text)}::timestamptz) AS day`;
    expect(row?.moment.toISOString()).toBe(text);
    expect(row?.day.toISOString()).toBe(`${text.slice(0, 10)}T00:00:00.000Z`);
  });

  it('is made of fragments, and is another one with others', async () => {
    const list = (condition: Prisma.Sql) =>
      query<{ n: number }>`SELECT n FROM generate_series(1, ${5}::int) AS n WHERE ${condition} ORDER BY n`;
    expect(await list(Prisma.sql`n > ${3}`)).toEqual([{ n: 4 }, { n: 5 }]);
    expect(await list(Prisma.sql`n < ${2}`)).toEqual([{ n: 1 }]);
    expect(await list(Prisma.sql`n > ${4}`)).toEqual([{ n: 5 }]);
    expect(await query(Prisma.sql`SELECT ${1}::int AS n`)).toEqual([{ n: 1 }]);
  });

  it('may answer nothing, or nothing this time', async () => {
    for (let turn = 0; turn < 3; turn += 1) {
      expect(await query`UPDATE users SET name = name WHERE id = ${null}::uuid`).toEqual([]);
      expect(await query`SELECT id FROM users WHERE id = ${null}::uuid`).toEqual([]);
      expect(await query<{ n: number }>`SELECT n FROM generate_series(1, ${turn}::int) AS n`).toHaveLength(turn);
    }
  });

  it('that fails leaves nothing behind', async () => {
    for (let turn = 0; turn < 3; turn += 1) {
      const failure = await query`SELECT 1 / ${0}::int AS n`.then(
        () => null,
        (thrown: unknown) => Fault.from(thrown).code,
      );
      expect(failure).toBe('invalid_request');
      expect(await query`SELECT 1 / ${1}::int AS n`).toEqual([{ n: 1 }]);
      await expect(query`SELECT ${'x'}::no_such_type`).rejects.toThrow('no_such_type');
    }
  });

  it('stays right when its columns change', async () => {
    await query`CREATE TABLE changing (value int)`;
    await query`INSERT INTO changing VALUES (${7}::int)`;
    const read = () => query`SELECT value FROM changing WHERE ${true}`;
    expect(await read()).toEqual([{ value: 7 }]);
    await query`ALTER TABLE changing ALTER value TYPE text USING 'now ' || value`;
    // PostgreSQL refuses what was prepared for a number, once on each connection.
    if (isPostgres) await expect(read()).rejects.toThrow('cached plan');
    expect(await read()).toEqual([{ value: 'now 7' }]);
    await query`DROP TABLE changing`;
  });
});

describe('a question for many', () => {
  it('is asked once for those who come together, and once more for those who come meanwhile', async () => {
    const asked: number[][] = [];
    const find = batchByOwner(async (_owner: object, keys: readonly number[]) => {
      asked.push([...keys]);
      await sleep(20);
      return keys.map((key) => key * 2);
    });
    const owner = {};
    const first = Promise.all([find(owner, 1), find(owner, 2), find(owner, 1)]);
    await sleep(5);
    const second = Promise.all([find(owner, 3), find(owner, 4)]);
    await sleep(5);
    const third = find(owner, 1);
    const other = find({}, 9);
    expect(await Promise.all([first, second, third, other])).toEqual([[2, 4, 2], [6, 8], 2, 18]);
    expect(asked).toEqual([[1, 2, 1], [9], [3, 4, 1]]);
  });

  it('that fails, fails for those who asked it, and for nobody else', async () => {
    let turn = 0;
    const find = batchByOwner(async (_owner: object, keys: readonly string[]) => {
      turn += 1;
      await sleep(10);
      if (turn === 1) throw new Error('broken');
      return keys;
    });
    const owner = {};
    const first = Promise.allSettled([find(owner, 'a'), find(owner, 'b')]);
    await sleep(3);
    const second = find(owner, 'c');
    expect((await first).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(await second).toBe('c');
    expect(await find(owner, 'd')).toBe('d');
  });
});
