import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Fault } from '../../src/kernel/fault.ts';
import { maskError } from '../../src/pipeline/mask.ts';
import { DATABASE_AWAY, toFault } from '../../src/platform/errors.ts';
import { createLogger } from '../../src/platform/logger.ts';
import { isPostgres, startApp, type TestApp } from '../support/app.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.close());

/** The fault that a database error becomes on its way through driver, adapter and client. */
async function faultOf(work: () => Promise<unknown>): Promise<Fault> {
  try {
    await work();
  } catch (failure) {
    return toFault(failure);
  }
  throw new Error('it did not fail');
}

describe('a SQLSTATE', () => {
  const table: Record<string, string> = {
    // The database is unreachable, starting, stopping, full, or in another temporary state.
    '57P01': 'service_unavailable',
    '57P02': 'service_unavailable',
    '57P03': 'service_unavailable',
    '57P04': 'service_unavailable',
    '57P05': 'service_unavailable',
    '53300': 'service_unavailable',
    '55000': 'service_unavailable',
    '08000': 'service_unavailable',
    '08003': 'service_unavailable',
    '08006': 'service_unavailable',
    '57014': 'service_unavailable',
    '40001': 'service_unavailable',
    '40P01': 'service_unavailable',
    '25P03': 'service_unavailable',
    '25006': 'service_unavailable',
    '55P03': 'service_unavailable',
    '28000': 'service_unavailable',
    '28P01': 'service_unavailable',
    '3D000': 'service_unavailable',
    // A right is not granted.
    '42501': 'service_unavailable',
    // A referenced row does not exist, or a unique value is taken.
    '23503': 'not_found',
    '23001': 'not_found',
    '23505': 'conflict',
    '23P01': 'conflict',
    // A log that has used its last number.
    '2200H': 'conflict',
    // A user with too many single reads.
    QU001: 'conflict',
    // Values that no column accepts.
    '22001': 'invalid_request',
    '22003': 'invalid_request',
    '22021': 'invalid_request',
    '22P02': 'invalid_request',
    '22P05': 'invalid_request',
    '23502': 'invalid_request',
    '23514': 'invalid_request',
    // Errors in Portico's own statements.
    '42601': 'internal_error',
    '42703': 'internal_error',
    '42P01': 'internal_error',
    '42883': 'internal_error',
    XX000: 'internal_error',
  };

  it.each(Object.entries(table))('%s is %s, raw and in a transaction', async (state, code) => {
    const { database } = app.app;
    const raise = `DO $$ BEGIN RAISE EXCEPTION 'secret' USING ERRCODE = '${state}', CONSTRAINT = 'x', DETAIL = 'Key (id)=(1) secret'; END $$`;
    const alone = await faultOf(() => database.prisma.$executeRawUnsafe(raise));
    const within = await faultOf(() => database.prisma.$transaction((transaction) => transaction.$executeRawUnsafe(raise)));
    expect([alone.code, within.code]).toEqual([code, code]);
    expect(alone.message).not.toContain('secret');
    if (code === 'service_unavailable') expect(alone.retryAfterSeconds).toBeGreaterThan(0);
  });
});

describe('an error of Prisma’s own', () => {
  const absent = randomUUID();

  it('a reference to an absent row is not_found', async () => {
    const { organization_id: organizationId } = app.demo;
    const { database } = app.app;
    expect(
      (await faultOf(() => database.prisma.organizationMember.create({ data: { organizationId, userId: absent, role: 'member' } }))).code,
    ).toBe('not_found');
  });

  it('an update of an absent row is not_found', async () => {
    const { database } = app.app;
    expect((await faultOf(() => database.prisma.user.update({ where: { id: absent }, data: { name: 'x' } }))).code).toBe('not_found');
  });

  it('a taken unique value is a conflict', async () => {
    const { database } = app.app;
    const { email } = app.demo.users.owner;
    expect((await faultOf(() => database.prisma.user.create({ data: { email, name: 'x' } }))).code).toBe('conflict');
  });

  it('a text with NUL, or a number beyond its column, is invalid_request', async () => {
    const { database } = app.app;
    expect((await faultOf(() => database.prisma.user.create({ data: { email: 'nul\0@x', name: 'x' } }))).code).toBe('invalid_request');
    const tooMuch = database.prisma.$queryRaw`SELECT ${2 ** 40}::int`;
    expect((await faultOf(() => tooMuch)).code).toBe('invalid_request');
  });

  it('a transaction that lasts too long is service_unavailable', async () => {
    const { database } = app.app;
    const slow = () =>
      database.prisma.$transaction(
        async (transaction) => {
          await new Promise((resolve) => setTimeout(resolve, 300));
          await transaction.user.count();
        },
        { timeout: 50 },
      );
    expect((await faultOf(slow)).code).toBe('service_unavailable');
  });
});

it.runIf(isPostgres)('a transaction whose connection breaks between two statements is service_unavailable', async () => {
  const { database } = app.app;
  const faults: string[] = [];
  const causes: string[] = [];
  const work = database.transact(async (query) => {
    const [session] = await query<{ pid: number | null }>`SELECT pg_backend_pid() AS pid`;
    await database.query<{ done: boolean | null }>`SELECT pg_terminate_backend(${session?.pid ?? 0}::int) AS done`;
    const tell = async () => {
      const { code, cause } = await faultOf(() => query<{ one: number | null }>`SELECT 1 AS one`);
      faults.push(code);
      causes.push((cause as Error | undefined)?.message ?? '');
      return causes.some((cause) => cause.includes('not queryable'));
    };
    await vi.waitUntil(tell, { timeout: 60_000, interval: 5 });
    await query`SELECT 1`;
  });
  expect((await faultOf(() => work)).code).toBe('service_unavailable');
  expect(new Set(faults)).toEqual(new Set(['service_unavailable']));
});

describe('an error without a statement', () => {
  it.each([
    ['the pool is exhausted', new Error('timeout exceeded when trying to connect'), 'service_unavailable'],
    ['the connection broke', new Error('Connection terminated unexpectedly'), 'service_unavailable'],
    ['the connection is being closed', new Error('Client was closed and is not queryable'), 'service_unavailable'],
    ['a new connection took too long', new Error('Connection terminated due to connection timeout'), 'service_unavailable'],
    ['it broke between two statements', new Error('Client has encountered a connection error and is not queryable'), 'service_unavailable'],
    ['a successor has no TLS', new Error('The server does not support SSL connections'), 'service_unavailable'],
    ['no answer came', new Error('Query read timeout'), 'service_unavailable'],
    ['nobody listens', Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }), 'service_unavailable'],
    ['no name', Object.assign(new Error('lookup'), { code: 'ENOTFOUND' }), 'service_unavailable'],
    ['its certificate is refused', Object.assign(new Error('expired'), { code: 'CERT_HAS_EXPIRED' }), 'service_unavailable'],
    ['reset', Object.assign(new Error('read'), { code: 'ECONNRESET' }), 'service_unavailable'],
    ['without its Unix socket', Object.assign(new Error('x'), { code: 'ENOENT', syscall: 'connect' }), 'service_unavailable'],
    ['without a file', Object.assign(new Error('x'), { code: 'ENOENT', syscall: 'open' }), 'internal_error'],
    ['Prisma cannot reach it', Object.assign(new Error('x'), { code: 'P1001' }), 'service_unavailable'],
    ['Prisma has too many clients', Object.assign(new Error('x'), { code: 'P2037' }), 'service_unavailable'],
    ['the cause of a cause', new Error('a', { cause: new Error('b', { cause: { code: '57P03' } }) }), 'service_unavailable'],
    ['raw, with the driver’s word', Object.assign(new Error('x'), { code: 'P2010', cause: { originalCode: '23505' } }), 'conflict'],
    ['raw, without', Object.assign(new Error('x'), { code: 'P2010' }), 'internal_error'],
    ['a mistake', new TypeError('x is not a function'), 'internal_error'],
    ['not even an error', 'words', 'internal_error'],
    ['nothing', undefined, 'internal_error'],
  ])('%s', (_what, failure, code) => {
    expect(toFault(failure).code).toBe(code);
  });
});

describe('the log has the cause of a `service_unavailable` of GraphQL', () => {
  const linesOf = (failure: unknown) => {
    const lines: string[] = [];
    const { extensions } = maskError(failure, createLogger('info', { write: (line) => void lines.push(line) }));
    expect(extensions.code).toBe('service_unavailable');
    return lines.map((line) => JSON.parse(line));
  };

  it('where the pool is exhausted, or a statement takes too long', () => {
    for (const message of ['timeout exceeded when trying to connect', 'Query read timeout'])
      expect(linesOf(new Error(message))).toEqual([
        expect.objectContaining({ level: 'warn', msg: 'unavailable', err: expect.objectContaining({ message }) }),
      ]);
  });

  it('but not for each request of an outage, whose beginning is logged', () => {
    expect(linesOf(new Error(DATABASE_AWAY))).toEqual([]);
    expect(linesOf(new Error('Invalid invocation', { cause: new Error(DATABASE_AWAY) }))).toEqual([]);
  });
});
