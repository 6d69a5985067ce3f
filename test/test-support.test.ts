import { randomBytes } from 'node:crypto';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { isPostgres, needPostgres } from './support/copies.ts';
import { drop, dropAbandoned, reserve } from './support/database.ts';
import { start } from './support/launch.ts';
import { execute } from './support/sql.ts';

// What the tests' own support promises where its failure would hang a run, or break another one.

describe('a statement of a test', () => {
  it('fails when the server accepts the connection and is silent', async () => {
    const silent = createServer((socket) => socket.on('error', () => {}));
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void silent.close());
    const url = `postgresql://postgres@127.0.0.1:${(silent.address() as AddressInfo).port}/postgres`;
    await expect(execute(url, 'SELECT 1', [], { connectionTimeoutMillis: 50 })).rejects.toThrow('timeout');
  });

  it.runIf(isPostgres)('fails when it is not answered', async () => {
    const { server } = needPostgres();
    await expect(execute(server, 'SELECT pg_sleep(600)', [], { query_timeout: 50 })).rejects.toThrow('timeout');
  });
});

it('a server that never listens is killed, and the failure has what it printed', async () => {
  const checkout = mkdtempSync(join(tmpdir(), 'portico-silent-'));
  writeFileSync(join(checkout, 'package.json'), JSON.stringify({ scripts: { start: 'echo "process $$"; exec sleep 600' } }));
  const failure = await start(checkout, {}, 5_000).catch((reason: Error) => reason.message);
  expect(failure).toMatch(/^it did not listen within 5000 ms: process \d+\n$/);
  const pid = Number(/\d+$/m.exec(String(failure).trim())?.[0]);
  await expect
    .poll(() => {
      try {
        return process.kill(pid, 0);
      } catch {
        return 'gone';
      }
    })
    .toBe('gone');
});

describe.runIf(isPostgres)('the databases of a run', () => {
  const makeName = () => `portico_test_${randomBytes(6).toString('hex')}`;
  const listNames = async (start: string) => {
    const rows = await execute(needPostgres().server, 'SELECT datname FROM pg_database WHERE starts_with(datname, $1) ORDER BY 1', [start]);
    return rows.map(({ datname }) => datname);
  };
  const make = (name: string) => execute(needPostgres().server, `CREATE DATABASE ${name}`);

  it('are dropped without those of a run whose name has the same beginning', async () => {
    const { server } = needPostgres();
    const name = makeName();
    const [copy, other] = [`${name}_copy`, `${name}1`];
    for (const one of [name, copy, other]) await make(one);
    onTestFinished(() => drop(server, other));
    await drop(server, name);
    expect(await listNames(name)).toEqual([other]);
  });

  it('are dropped by the next run if theirs was interrupted, and not while it runs', async () => {
    const { server, template } = needPostgres();
    const name = makeName();
    const release = await reserve(server, name);
    for (const one of [name, `${name}_copy`]) await make(one);
    await dropAbandoned(server);
    expect(await listNames(name)).toEqual([name, `${name}_copy`]);
    await release();
    // PostgreSQL takes a moment to end the connection.
    await expect.poll(() => dropAbandoned(server).then(() => listNames(name))).toEqual([]);
    expect(await listNames(template)).toContain(template);
  });
});
