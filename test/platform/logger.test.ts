import { expect, it } from 'vitest';
import { createLogger } from '../../src/platform/logger.ts';

function lineOf(fields: object): string {
  const lines: string[] = [];
  createLogger('info', { write: (line) => void lines.push(line) }).info(fields, 'a line');
  return lines.join();
}

it.each(['authorization', 'cookie', 'token', 'ticket', 'apiKey', 'secret', 'password'])('has no %s, up to two levels deep', (name) => {
  for (const fields of [{ [name]: 'hunter2' }, { request: { [name]: 'hunter2' } }, { request: { headers: { [name]: 'hunter2' } } }]) {
    const line = lineOf(fields);
    expect(line).not.toContain('hunter2');
    expect(line).toContain('[redacted]');
  }
});

it('logs the type, message, stack and code of an error, and no other fields of a driver', () => {
  const attached = { detail: 'hunter2', command: { args: ['hunter2'] } };
  const inner = Object.assign(new Error('one of them'), { code: 'ECONNREFUSED', ...attached });
  const failure = Object.assign(new AggregateError([inner], 'all of them'), { code: '23505', ...attached });
  const line = lineOf({ err: failure });
  expect(line).not.toContain('hunter2');
  expect(JSON.parse(line).err).toEqual({
    type: 'AggregateError',
    message: 'all of them',
    stack: expect.any(String),
    code: '23505',
    errors: [{ type: 'Error', message: 'one of them', stack: expect.any(String), code: 'ECONNREFUSED' }],
  });
});
