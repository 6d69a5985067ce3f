import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { Fault } from '../../src/kernel/fault.ts';
import { JsonText, stringifyJson } from '../../src/kernel/json/text.ts';
import { createSharedLoader } from '../../src/kernel/sharedloader.ts';
import { toFault } from '../../src/platform/errors.ts';
import { isReadOnly, type Query } from '../../src/platform/query.ts';
import { startApp, type TestApp } from '../support/app.ts';

let app: TestApp;
let query: Query;
beforeAll(async () => {
  app = await startApp({ DATABASE_POOL: '1' });
  query = app.app.database.query;
});
afterAll(() => app.close());

describe('a statement', () => {
  it('returns values of JavaScript’s types, each time it is run', async () => {
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
      json: JsonText.ofColumn('{"b":1,"a":[null]}'),
      list: ['x', 'y'],
      yes: true,
      none: null,
    };
    for (let turn = 0; turn < 3; turn += 1) {
      const rows = await run();
      expect(rows).toEqual([{ ...expected, bytes: true, empty: true, label: 'info' }]);
      expect(stringifyJson(rows)).toContain('"json":{"b":1,"a":[null]}');
    }
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

  it.each([
    ['infinity', '9999-12-31T23:59:59.999Z'],
    ['10000-01-01 00:00:00+00', '9999-12-31T23:59:59.999Z'],
    ['294276-12-31 23:59:59.999+00', '9999-12-31T23:59:59.999Z'],
    ['9999-12-31 23:59:59.999+00', '9999-12-31T23:59:59.999Z'],
    ['0999-06-01 12:00:00.5+00', '0999-06-01T12:00:00.500Z'],
    ['0001-01-01 00:00:00+00', '0001-01-01T00:00:00.000Z'],
    ['0044-03-15 12:00:00+00 BC', '0001-01-01T00:00:00.000Z'],
    ['4713-01-01 00:00:00+00 BC', '0001-01-01T00:00:00.000Z'],
    ['-infinity', '0001-01-01T00:00:00.000Z'],
  ])('reads the moment %s of any program within the years of ISO 8601', async (stored, read) => {
    const [row] = await query<{ moment: Date }>`SELECT ${stored}::text::timestamptz AS moment`;
    expect(row?.moment.toISOString()).toBe(read);
  });

  it('takes its parameters as values, and never as a part of its text', async () => {
    const read = (value: string) => query<{ text: string }>`SELECT ${value}::text AS text`;
    for (const value of ["'; SELECT 1 --", '$1', '{}', '\\', 'NULL']) expect(await read(value)).toEqual([{ text: value }]);
  });

  it('may return no rows', async () => {
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
        (thrown: unknown) => toFault(thrown).code,
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
    // The plan that was prepared for a number is rejected, once on each connection.
    expect(toFault(await read().catch((failure) => failure)).code).toBe('service_unavailable');
    expect(await read()).toEqual([{ value: 'now 7' }]);
    await query`DROP TABLE changing`;
  });
});

describe('a transaction', () => {
  const secret = Uint8Array.of(0, 255);
  const read = (run: Query) =>
    run`
      SELECT 9007199254740991::bigint AS big, 1.50::numeric AS exact, ${new Date(5)}::timestamptz AS moment, ${['x', 'y']}::text[] AS list,
        ${JSON.stringify({ b: 1, a: [null] })}::json AS json, 'info'::severity AS label, ${secret}::bytea AS bytes, NULL::int AS none`;

  it('returns the same values as a statement outside of one', async () => {
    const outside = await read(query);
    const inside = await app.app.database.transact(async (run) => [await read(run), await read(run)]);
    expect(inside).toEqual([outside, outside]);
    expect(outside).toMatchObject([{ big: 2 ** 53 - 1, exact: '1.50', moment: new Date(5), list: ['x', 'y'], label: 'info' }]);
  });

  it('stays right when the columns of its statements change', async () => {
    await query`CREATE TABLE altered (value int)`;
    await query`INSERT INTO altered VALUES (${7}::int)`;
    const select = () => app.app.database.transact((run) => run`SELECT value FROM altered WHERE ${true}`);
    expect(await select()).toEqual([{ value: 7 }]);
    await query`ALTER TABLE altered ALTER value TYPE text USING 'now ' || value`;
    expect(toFault(await select().catch((failure) => failure)).code).toBe('service_unavailable');
    expect(await select()).toEqual([{ value: 'now 7' }]);
    await query`DROP TABLE altered`;
  });

  it('commits all of its work, or nothing', async () => {
    const { transact } = app.app.database;
    await query`CREATE TABLE kept (value int)`;
    expect(
      await transact(async (run) => {
        await run`INSERT INTO kept VALUES (${1}::int)`;
        return run`SELECT value FROM kept`;
      }),
    ).toEqual([{ value: 1 }]);
    const failing = transact(async (run) => {
      await run`INSERT INTO kept VALUES (${2}::int)`;
      throw new Fault('conflict', 'not this time');
    });
    await expect(failing).rejects.toThrow('not this time');
    const broken = transact(async (run) => {
      await run`INSERT INTO kept VALUES (${3}::int)`;
      await run`SELECT 1 / ${0}::int AS n`;
    });
    await expect(broken).rejects.toThrow('division by zero');
    const careless = transact(async (run) => {
      await run`INSERT INTO kept VALUES (${4}::int)`;
      await run`SELECT 1 / ${0}::int AS n`.catch(() => {});
    });
    await expect(careless).rejects.toThrow('nothing of it was kept');
    // The pool has a single connection, which is returned to it each time.
    expect(await query`SELECT value FROM kept`).toEqual([{ value: 1 }]);
    await query`DROP TABLE kept`;
  });
});

describe('a shared load', () => {
  it('runs once for concurrent callers, and once more for those that call meanwhile', async () => {
    const asked: number[][] = [];
    let answer = () => {};
    const answered = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const find = createSharedLoader(async (_owner: object, keys: readonly number[]) => {
      asked.push([...keys]);
      await answered;
      return keys.map((key) => key * 2);
    });
    const owner = {};
    const first = Promise.all([find(owner, 1), find(owner, 2), find(owner, 1)]);
    await sleep(5);
    const second = Promise.all([find(owner, 3), find(owner, 4)]);
    await sleep(5);
    const third = find(owner, 1);
    const other = find({}, 9);
    await sleep(5);
    answer();
    expect(await Promise.all([first, second, third, other])).toEqual([[2, 4, 2], [6, 8], 2, 18]);
    expect(asked).toEqual([[1, 2, 1], [9], [3, 4, 1]]);
  });

  it('that fails rejects its own callers alone', async () => {
    let turn = 0;
    const find = createSharedLoader(async (_owner: object, keys: readonly string[]) => {
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

  it('that is late does not hold up the next, and is repeated once', async () => {
    const asked: string[][] = [];
    const find = createSharedLoader((_owner: object, keys: readonly string[]) => {
      asked.push([...keys]);
      // The first query never settles, as on a connection that has gone silent.
      return asked.length === 1 ? new Promise<readonly string[]>(() => {}) : Promise.resolve(keys);
    });
    const owner = {};
    const first = find(owner, 'a');
    await sleep(20);
    const next = Promise.all([find(owner, 'b'), find(owner, 'c')]);
    expect(asked).toEqual([['a']]);
    expect(await Promise.all([first, next])).toEqual(['a', ['b', 'c']]);
    expect(asked).toEqual([['a'], ['a'], ['b', 'c']]);
    expect(await find(owner, 'd')).toBe('d');
  });

  it('that is never answered is given up, and runs three times concurrently at most', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    let asked = 0;
    const find = createSharedLoader(() => {
      asked += 1;
      return new Promise<readonly never[]>(() => {});
    });
    const owner = {};
    try {
      const outcomes: string[] = [];
      const ask = (key: string) => void find(owner, key).catch(({ code }) => outcomes.push(`${key}: ${code}`));
      ask('a');
      await sleep(20);
      ask('b');
      await vi.advanceTimersByTimeAsync(1_000);
      ask('c');
      await vi.advanceTimersByTimeAsync(1_999);
      expect([outcomes, asked]).toEqual([[], 3]);
      await vi.advanceTimersByTimeAsync(1);
      expect(outcomes).toEqual(['a: service_unavailable', 'b: service_unavailable']);
      await vi.advanceTimersByTimeAsync(999);
      expect(outcomes).toHaveLength(2);
      await vi.advanceTimersByTimeAsync(1);
      expect([outcomes.slice(2), asked]).toEqual([['c: service_unavailable'], 3]);
    } finally {
      vi.useRealTimers();
    }
  });

  it('that fails late is rejected only when all of its attempts have failed', async () => {
    let turn = 0;
    const find = createSharedLoader(async (_owner: object, keys: readonly string[]) => {
      turn += 1;
      if (turn > 1) throw new Error('broken');
      await sleep(400);
      return keys;
    });
    expect(await find({}, 'a')).toBe('a');
    expect(turn).toBe(2);
  });
});

describe('a statement that may be run again', () => {
  it('does not write, lock, or call a volatile function of Portico', async () => {
    const volatile = await query<{ name: string }>`
      SELECT proname AS name FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND provolatile = 'v' AND prorettype <> 'trigger'::regtype`;
    expect(volatile.map(({ name }) => name)).toContain('mark_notifications_read');
    // A repeated call of uuid_v7 only wastes an id.
    const harmless = ['uuid_v7'];
    for (const { name } of volatile) expect([name, isReadOnly(`SELECT * FROM ${name}($1)`)]).toEqual([name, harmless.includes(name)]);
    for (const text of [
      'INSERT INTO users VALUES ($1)',
      'WITH gone AS (DELETE FROM users RETURNING id) SELECT * FROM gone',
      'SELECT pg_advisory_xact_lock(1)',
      'BEGIN',
      'UPDATE users SET name = $1',
    ])
      expect([text, isReadOnly(text)]).toEqual([text, false]);
    for (const text of ['SELECT 1', '\n  WITH one AS (SELECT 1) SELECT * FROM one']) expect([text, isReadOnly(text)]).toEqual([text, true]);
  });
});
