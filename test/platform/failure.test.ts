import { DatabaseError } from 'pg';
import { expect, it } from 'vitest';
import { describeFailure } from '../../src/platform/operatorerror.ts';

it.each([
  ['3D000', 'database "portico" does not exist'],
  ['28P01', 'password authentication failed for user "portico"'],
  ['28000', 'role "portico" does not exist'],
  ['42501', 'permission denied for schema public'],
])('says what PostgreSQL refuses with %s, and where that is set', (code, message) => {
  const failure = Object.assign(new DatabaseError(message, message.length, 'error'), { code });
  expect(describeFailure(failure)).toBe(`PostgreSQL refuses: ${message}. See the role and the database that DATABASE_URL names.`);
});

it('says that a database has no space left, in any language', () => {
  const message = 'konnte Datei »base/5/1259« nicht erweitern: Auf dem Gerät ist kein Speicherplatz mehr verfügbar';
  const failure = Object.assign(new DatabaseError(message, message.length, 'error'), { code: '53100' });
  for (const thrown of [failure, new Error(message, { cause: failure })])
    expect(describeFailure(thrown)).toMatch(/^The database has no space left: make some, and start again\. \(konnte Datei/);
});

it('says that a server takes no writes', () => {
  const message = 'cannot execute CREATE TABLE in a read-only transaction';
  const failure = Object.assign(new DatabaseError(message, message.length, 'error'), { code: '25006' });
  for (const thrown of [failure, new Error(message, { cause: failure })])
    expect(describeFailure(thrown)).toBe(
      'PostgreSQL takes no writes: DATABASE_URL has to lead to a primary, and to a role and a database without default_transaction_read_only.',
    );
});

it('says that what answers is not as DATABASE_URL has it', () => {
  for (const message of ['The server does not support SSL connections', 'timeout expired'])
    expect(describeFailure(new Error(message))).toBe(`PostgreSQL does not answer as DATABASE_URL asks: ${message}.`);
  expect(describeFailure(new Error('the timeout expired in a drawer'))).toBeNull();
});
