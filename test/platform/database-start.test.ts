import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import timers, { setTimeout as sleep } from 'node:timers/promises';
import { TLSSocket } from 'node:tls';
import { describe, expect, inject, it, onTestFinished, vi } from 'vitest';
import { createApp } from '../../src/app.ts';
import { readConfig } from '../../src/config.ts';
import { Lifecycle } from '../../src/kernel/lifecycle.ts';
import { openDatabase } from '../../src/platform/database.ts';
import { describeServer } from '../../src/platform/databaseurl.ts';
import { type Attempt, type DatabaseWait, logWait, retryUntilDatabaseAnswers } from '../../src/platform/databasewait.ts';
import { toFault } from '../../src/platform/errors.ts';
import { createLogger } from '../../src/platform/logger.ts';
import { LOCK_KEY } from '../../src/platform/migrate.ts';
import { describeFailure, OperatorError } from '../../src/platform/operatorerror.ts';
import { Pool } from '../../src/platform/pool.ts';
import { createQuery } from '../../src/platform/query.ts';
import { copyTemplate, startApp } from '../support/app.ts';
import { createCertificate } from '../support/certificate.ts';
import { fillDemo } from '../support/database.ts';
import { makeProject } from '../support/fixtures.ts';
import { readList } from '../support/lists.ts';
import { openSnapshot } from '../support/snapshot.ts';
import { connectTo, databaseUrl, execute } from '../support/sql.ts';

const open = (url: string) => openDatabase({ dataDir: tmpdir(), database: { url, poolSize: 1 } }, new Lifecycle());

it('a certificate that cannot be read is named, as part of DATABASE_URL', async () => {
  const opening = open('postgresql://portico:secret@127.0.0.1/portico?sslmode=verify-full&sslrootcert=/nowhere/ca.crt');
  await expect(opening).rejects.toThrow(new OperatorError('DATABASE_URL names /nowhere/ca.crt, which cannot be read (ENOENT).'));
});

it('a start that fails with the database open leaves no job behind', async () => {
  const origin = inject('origin');
  const dataDir = mkdtempSync(join(tmpdir(), 'portico-test-'));
  const url = 'template' in origin ? await copyTemplate(origin) : null;
  const config = readConfig({ DATA_DIR: dataDir, ...(url && { DATABASE_URL: url }) });
  const database = 'snapshot' in origin ? { openEmbedded: () => openSnapshot(origin.snapshot) } : {};
  const broken = { ...config, trustedProxies: null as never };
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  try {
    await expect(createApp(broken, { log: createLogger('silent'), database })).rejects.toThrow(TypeError);
    expect(vi.getTimerCount()).toBe(0);
  } finally {
    vi.useRealTimers();
    rmSync(dataDir, { recursive: true });
  }
});

it('a start needs DATA_DIR for a key of its own, and not with an identity provider', async () => {
  const origin = inject('origin');
  const url = 'template' in origin ? await copyTemplate(origin) : null;
  const dataDir = join(tmpdir(), `portico-${randomUUID()}`);
  writeFileSync(dataDir, 'a file');
  onTestFinished(() => rmSync(dataDir));
  const start = async (env: Record<string, string>) => {
    const config = readConfig({ DATA_DIR: join(dataDir, 'folder'), DRAIN_SECONDS: '0', ...(url && { DATABASE_URL: url }), ...env });
    const database = 'snapshot' in origin ? { openEmbedded: () => openSnapshot(origin.snapshot) } : {};
    const app = await createApp(config, { log: createLogger('silent'), database });
    await app.close();
  };
  const failure = await start({}).catch((thrown) => thrown);
  expect(describeFailure(failure)).toMatch(
    /\/folder(\/key\.json)? cannot be used \(ENOTDIR\): a part of the path is a file, where a folder should be/,
  );
  const provider = { JWT_JWKS_URL: 'http://127.0.0.1:1/keys', JWT_ISSUER: 'https://login.example', JWT_AUDIENCE: 'portico' };
  await expect(start(provider)).resolves.toBeUndefined();
});

describe('a start without its database', () => {
  const rejection = Buffer.from('E\0\0\0\0SFATAL\0C28P01\0Mno\0\0');
  rejection.writeInt32BE(rejection.length - 1, 1);
  const refused = () => Object.assign(new Error('connect ECONNREFUSED 192.0.2.1:5432'), { code: 'ECONNREFUSED', syscall: 'connect' });

  it('is logged at once, and then every ten seconds, without the stack', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    // The pause between two attempts takes no time here.
    const pausing = vi.spyOn(timers, 'setTimeout').mockImplementation(async (_milliseconds, value) => value as never);
    syncBuiltinESMExports();
    try {
      const lines: string[] = [];
      const log = createLogger('info', { write: (line) => void lines.push(line) });
      const attempt = vi.fn(async () => {
        vi.advanceTimersByTime(5_000);
        throw refused();
      });
      await expect(retryUntilDatabaseAnswers(attempt, logWait(log))).rejects.toThrow('ECONNREFUSED');
      expect(attempt).toHaveBeenCalledTimes(13);
      const logged = lines.map((line) => JSON.parse(line));
      expect(logged.map(({ seconds_left }) => seconds_left)).toEqual([55, 45, 35, 25, 15, 5]);
      const cause = 'connect ECONNREFUSED 192.0.2.1:5432';
      for (const line of logged) expect(line).toMatchObject({ level: 'warn', msg: 'waiting for the database', cause });
      expect(lines.join('')).not.toContain('stack');
      expect(pausing.mock.calls.map(([milliseconds]) => milliseconds)).toEqual(Array(12).fill(500));
    } finally {
      vi.useRealTimers();
      pausing.mockRestore();
      syncBuiltinESMExports();
    }
  });

  it('is given up a minute after its last progress: migrations may take longer before another session holds a table', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    const pausing = vi.spyOn(timers, 'setTimeout').mockImplementation(async (_milliseconds, value) => value as never);
    syncBuiltinESMExports();
    try {
      let attempts = 0;
      const work = async ({ onProgress }: Attempt) => {
        attempts += 1;
        if (attempts === 1) {
          vi.advanceTimersByTime(300_000);
          onProgress();
        }
        vi.advanceTimersByTime(10_000);
        throw refused();
      };
      await expect(retryUntilDatabaseAnswers(work, () => {})).rejects.toThrow('ECONNREFUSED');
      expect(attempts).toBe(7);
    } finally {
      vi.useRealTimers();
      pausing.mockRestore();
      syncBuiltinESMExports();
    }
  });

  it('logs the server that it waits for, without the password, before an unanswered connection fails', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    let isSilent = true;
    let recordAttempt = () => {};
    const isAttempted = new Promise<void>((resolve) => (recordAttempt = resolve));
    const sockets = new Set<Socket>();
    const server = createServer((socket) => {
      socket.on('error', () => {});
      sockets.add(socket);
      socket.once('data', () => (isSilent ? recordAttempt() : socket.end(rejection)));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const waits: DatabaseWait[] = [];
    const onWait = (wait: DatabaseWait) => {
      waits.push(wait);
      isSilent = false;
      for (const socket of sockets) socket.destroy();
    };
    const url = `postgresql://portico:hunter2@127.0.0.1:${port}/portico`;
    const opening = openDatabase({ dataDir: tmpdir(), database: { url, poolSize: 1 } }, new Lifecycle(), { onWait });
    try {
      await isAttempted;
      vi.advanceTimersByTime(999);
      expect(waits).toEqual([]);
      vi.advanceTimersByTime(1);
      await expect(opening).rejects.toMatchObject({ code: '28P01' });
    } finally {
      vi.useRealTimers();
      server.close();
    }
    expect(waits).toEqual([{ server: `127.0.0.1:${port}`, cause: 'no answer', secondsLeft: expect.any(Number) }]);
    expect(waits[0]?.secondsLeft).toBeGreaterThan(50);
  });

  it('connects again where a server accepts the connection and then is silent', async () => {
    const ready = Buffer.from('R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I');
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    let connections = 0;
    let recordQuestion = () => {};
    const isAsked = new Promise<void>((resolve) => (recordQuestion = resolve));
    const server = createServer((socket) => {
      connections += 1;
      if (connections > 1) return void socket.once('data', () => socket.end(rejection));
      socket.on('error', () => {}).once('data', () => socket.write(ready, () => socket.once('data', recordQuestion)));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const causes: string[] = [];
    const onWait = ({ cause }: DatabaseWait) => void causes.push(cause);
    const url = `postgresql://portico@127.0.0.1:${port}/portico?sslmode=disable`;
    const opening = openDatabase({ dataDir: tmpdir(), database: { url, poolSize: 1 } }, new Lifecycle(), { onWait });
    try {
      await isAsked;
      vi.advanceTimersByTime(5_000);
      await expect(opening).rejects.toMatchObject({ code: '28P01' });
    } finally {
      vi.useRealTimers();
      server.close();
    }
    expect(causes).toEqual(['Query read timeout']);
  });

  it.each([
    ['postgresql://portico:hunter2@db.example/portico', 'db.example:5432'],
    ['postgresql://portico:hunter2@[::1]:5433/portico?password=hunter2', '[::1]:5433'],
    ['postgresql://portico@localhost/portico?host=/var/run/postgresql&port=5433', '/var/run/postgresql/.s.PGSQL.5433'],
  ])('names the server of %s', (url, server) => expect(describeServer(new URL(url))).toBe(server));
});

it('a key that does not fit its certificate, or is a folder, ends the start with one sentence', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'portico-certificate-'));
  writeFileSync(join(folder, 'cert.pem'), createCertificate().cert);
  writeFileSync(join(folder, 'key.pem'), createCertificate().key);
  const server = createServer((socket) => void socket.once('data', () => socket.write('S'))).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const describe = async (key: string) => {
    const parameters = `sslmode=verify-full&sslcert=${join(folder, 'cert.pem')}&sslkey=${key}`;
    return describeFailure(await open(`postgresql://portico:secret@127.0.0.1:${port}/portico?${parameters}`).catch((reason) => reason));
  };
  const explanation = 'PostgreSQL cannot be reached as DATABASE_URL asks: ';
  expect(await describe(join(folder, 'key.pem'))).toBe(`${explanation}x509 certificate routines: key values mismatch.`);
  expect(await describe(folder)).toBe(`${explanation}EISDIR: illegal operation on a directory, read.`);
  server.close();
  rmSync(folder, { recursive: true });
});

it('a certificate of PostgreSQL that is refused ends the start with one sentence', async () => {
  const certificate = createCertificate();
  const server = createServer((socket) => {
    // PostgreSQL's reply to a request for TLS.
    socket.once('data', () => {
      socket.write('S');
      new TLSSocket(socket, { isServer: true, ...certificate }).on('error', () => {});
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const failure = await open(`postgresql://portico:secret@127.0.0.1:${port}/portico?sslmode=verify-full`).catch((reason) => reason);
  // Node.js 24 adds an advice of its own after a semicolon.
  expect(describeFailure(failure)).toMatch(
    /^The certificate of PostgreSQL is refused: self-signed certificate(; [^()]+)? \(DEPTH_ZERO_SELF_SIGNED_CERT\)\. See the host, sslmode and sslrootcert of DATABASE_URL\.$/,
  );
  server.close();
});

it('a message that the driver cannot read fails the connection, and ends nothing', async () => {
  // The request for GSSAPI, in answer to the first message.
  const gssapi = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 7]);
  const server = createServer((socket) => void socket.on('error', () => {}).once('data', () => socket.write(gssapi))).listen(
    0,
    '127.0.0.1',
  );
  await once(server, 'listening');
  const url = `postgresql://portico:secret@127.0.0.1:${(server.address() as AddressInfo).port}/portico`;
  expect(describeFailure(await open(url).catch((reason) => reason))).toMatch(/^PostgreSQL cannot be reached as DATABASE_URL asks: .+ 7\.$/);
  const pool = new Pool({ url, size: 1, log: createLogger('silent') });
  const failure = await pool.connect().catch((reason) => reason);
  expect(toFault(failure).code).toBe('service_unavailable');
  await pool.end();
  server.close();
});

const origin = inject('origin');

it.runIf('server' in origin)('a certificate that is away for a moment fails the connections of that moment, and ends nothing', async () => {
  if (!('server' in origin)) return;
  const folder = mkdtempSync(join(tmpdir(), 'portico-certificate-'));
  const path = join(folder, 'ca.crt');
  writeFileSync(path, '');
  const pool = new Pool({
    url: `${await copyTemplate(origin)}?sslmode=disable&sslrootcert=${path}`,
    size: 1,
    log: createLogger('silent'),
  });
  const query = createQuery((statement, values) => pool.run(statement, values));
  const read = () => query<{ one: number }>`SELECT 1 AS one`;
  expect(await read()).toEqual([{ one: 1 }]);
  // The server answers the probe all along: nothing but the connections that are opened fails.
  pool.breaker.startProbing();
  const readProbes = () => query`SELECT FROM pg_stat_activity WHERE application_name = 'portico probe' AND datname = current_database()`;
  await expect.poll(readProbes).toHaveLength(1);
  rmSync(path);
  // The connection is in use and ends: the statements that wait for it ask the driver for a new one.
  const cut = query`SELECT pg_terminate_backend(pg_backend_pid())`;
  const outcomes = await Promise.allSettled([cut, read(), read()]);
  const codes = outcomes.map((outcome) => (outcome.status === 'rejected' ? toFault(outcome.reason).code : outcome.status));
  expect(codes).toEqual(['service_unavailable', 'service_unavailable', 'service_unavailable']);
  writeFileSync(path, '');
  await expect.poll(() => read().catch(() => null)).toEqual([{ one: 1 }]);
  await pool.end();
  rmSync(folder, { recursive: true });
});

it.runIf('server' in origin)('a role that is refused after the start loses no connection that is open', async () => {
  if (!('server' in origin)) return;
  const role = `${origin.template}_refused`;
  await execute(origin.server, `CREATE ROLE ${role} LOGIN`);
  const url = new URL(await copyTemplate(origin));
  url.username = role;
  const pool = new Pool({ url: url.href, size: 2, log: createLogger('silent') });
  const query = createQuery((statement, values) => pool.run(statement, values));
  const [before] = await query<{ pid: number }>`SELECT pg_backend_pid() AS pid`;
  await execute(origin.server, `ALTER ROLE ${role} NOLOGIN`);
  const outcomes = await Promise.allSettled([1, 2, 3].map(() => query<{ pid: number }>`SELECT pg_backend_pid() AS pid FROM pg_sleep(0.3)`));
  expect(outcomes.some(({ status }) => status === 'rejected')).toBe(true);
  await sleep(1_500);
  expect(pool.breaker.isOpen).toBe(false);
  expect(await query`SELECT pg_backend_pid() AS pid`).toEqual([before]);
  await pool.end();
  await execute(origin.server, `DROP ROLE ${role}`);
});

it.runIf('server' in origin)('a migration that waits for another one says so, and begins again where its connection is lost', async () => {
  if (!('server' in origin)) return;
  const name = `${origin.template}_lost`;
  await execute(origin.server, `CREATE DATABASE ${name}`);
  const url = databaseUrl(origin.server, name);
  const other = await connectTo(url);
  await other.query(`SELECT pg_advisory_lock(${LOCK_KEY})`);
  const lifecycle = new Lifecycle();
  const waits: DatabaseWait[] = [];
  const onWait = (wait: DatabaseWait) => void waits.push(wait);
  const opening = openDatabase({ dataDir: tmpdir(), database: { url, poolSize: 1 } }, lifecycle, { onWait });
  const cause = 'another process is migrating the database';
  await expect.poll(() => waits, { timeout: 5_000 }).toEqual([{ server: describeServer(new URL(url)), cause, secondsLeft: null }]);
  const cut = `SELECT application_name AS of, pg_terminate_backend(pid) AS done FROM pg_stat_activity WHERE datname = '${name}' AND wait_event = 'advisory'`;
  await expect.poll(() => execute(origin.server, cut)).toEqual([{ of: 'portico migration', done: true }]);
  await other.end();
  await opening;
  expect((await execute(url, 'SELECT count(*)::int AS count FROM _prisma_migrations'))[0]?.count).toBeGreaterThan(0);
  await lifecycle.close();
});

it.runIf('server' in origin)('a start that fails while it warms up says nothing of the warm-up', async () => {
  const app = await startApp();
  const warmed = app.app.warmUp();
  await app.close();
  await warmed;
  expect(app.logLines.filter((line) => line.includes('warm up'))).toEqual([]);
});

it.runIf('server' in origin)('a database in another encoding is refused before anything is migrated', async () => {
  if (!('server' in origin)) return;
  const name = `${origin.template}_ascii`;
  await execute(origin.server, `CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C'`);
  const url = databaseUrl(origin.server, name);
  const refusal = 'DATABASE_URL names a database in SQL_ASCII: create one in the encoding UTF8.';
  await expect(open(url)).rejects.toThrow(new OperatorError(refusal));
  expect(await execute(url, "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace")).toEqual([]);
});

it.runIf('server' in origin)('a database of any name is reached, by a socket in a folder too', async () => {
  if (!('server' in origin)) return;
  const name = `${origin.template} a/b@c&d=e%25"`;
  const quoted = `"${name.replaceAll('"', '""')}"`;
  await execute(origin.server, `CREATE DATABASE ${quoted}`);
  const { username, hostname, port } = new URL(origin.server);
  const folder = mkdtempSync(join(tmpdir(), 'portico-socket-'));
  const relay = createServer((socket) => {
    const server = connect(Number(port || 5432), hostname);
    socket
      .on('error', () => {})
      .pipe(server.on('error', () => {}))
      .pipe(socket);
  }).listen(join(folder, '.s.PGSQL.5432'));
  const lifecycle = new Lifecycle();
  const { database: settings } = readConfig({
    DATABASE_URL: `postgresql://${username}@/${encodeURIComponent(name)}?host=${folder}&schema=public`,
    DATABASE_POOL: '1',
  });
  const { database } = await openDatabase({ dataDir: tmpdir(), database: settings }, lifecycle);
  expect(await database.query<{ name: string }>`SELECT current_database() AS name`).toEqual([{ name }]);
  expect(await database.prisma.project.count()).toBe(0);
  await lifecycle.close();
  relay.close();
  await execute(origin.server, `DROP DATABASE ${quoted} WITH (FORCE)`);
});

it.runIf('server' in origin)('settings of the database, and options of the URL, are overridden as far as they would break it', async () => {
  if (!('server' in origin)) return;
  const name = `${origin.template}_settings`;
  await execute(origin.server, `CREATE DATABASE ${name}`);
  const url = databaseUrl(origin.server, name);
  const [{ settings } = {}] = await execute(
    url,
    `SELECT array_agg(format('ALTER DATABASE ${name} SET %I TO %s', name, value)) AS settings FROM pg_settings JOIN (VALUES
       ('DateStyle', 'SQL, DMY'), ('search_path', 'elsewhere'), ('idle_session_timeout', '600000'), ('transaction_timeout', '600000'),
       ('array_nulls', 'off'), ('lock_timeout', '1')
     ) AS own (name, value) USING (name)`,
  );
  for (const setting of settings as string[]) await execute(origin.server, setting);
  const lifecycle = new Lifecycle();
  const urlWithOptions = `${url}?options=${encodeURIComponent('-c search_path=elsewhere -c timezone=Asia/Tokyo -c work_mem=8MB')}`;
  const { database } = await openDatabase({ dataDir: tmpdir(), database: { url: urlWithOptions, poolSize: 1 } }, lifecycle);
  const user = await database.prisma.user.create({
    data: { email: 'olivia@acme.example', name: 'Olivia', created: new Date('2026-02-01') },
  });
  const rows = await database.query<Record<string, unknown>>`
    SELECT id, created, current_setting('idle_session_timeout') AS idle, current_setting('transaction_timeout', true) AS transaction,
      current_setting('timezone') AS timezone, current_setting('work_mem') AS memory,
      current_setting('lock_timeout') AS lock, ${[null, 'NULL']}::text[] AS texts
    FROM users`;
  const transaction = (settings as string[]).length === 6 ? '0' : null;
  const expected = { idle: '0', transaction, timezone: 'UTC', memory: '8MB', lock: '0', texts: [null, 'NULL'] };
  expect(rows).toEqual([{ id: user.id, created: user.created, ...expected }]);
  await lifecycle.close();
});

it.runIf('server' in origin)('sessions without triggers are refused', async () => {
  if (!('server' in origin)) return;
  const name = `${origin.template}_replica`;
  await execute(origin.server, `CREATE DATABASE ${name}`);
  await execute(origin.server, `ALTER DATABASE ${name} SET session_replication_role = 'replica'`);
  await expect(open(databaseUrl(origin.server, name))).rejects.toThrow(
    new OperatorError('DATABASE_URL leads to sessions without triggers: reset session_replication_role of the role and the database.'),
  );
});

it.runIf('server' in origin)('an option that PostgreSQL does not have is refused in one sentence', async () => {
  if (!('server' in origin)) return;
  const failure = await open(`${origin.server}?options=${encodeURIComponent('-c nonsense=1')}`).catch((reason) => reason);
  expect(describeFailure(failure)).toMatch(/^PostgreSQL cannot be reached as DATABASE_URL asks: .*"nonsense"\.$/);
});

it.runIf('server' in origin)('a database without the schema of the tables is refused in one sentence', async () => {
  if (!('server' in origin)) return;
  const name = `${origin.template}_bare`;
  await execute(origin.server, `CREATE DATABASE ${name}`);
  const url = databaseUrl(origin.server, name);
  await execute(url, 'DROP SCHEMA public');
  const failure = await open(url).catch((reason) => reason);
  expect(describeFailure(failure)).toBe(
    'DATABASE_URL names a database without a schema public that its role may use: create one, or grant USAGE on it.',
  );
});

it.runIf('server' in origin)('a database with a collation of ICU orders names as any other, byte by byte', async () => {
  if (!('server' in origin)) return;
  const name = `${origin.template}_icu`;
  await execute(
    origin.server,
    `CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'UTF8' LOCALE_PROVIDER icu ICU_LOCALE 'en-US' LOCALE 'C'`,
  );
  const url = databaseUrl(origin.server, name);
  await fillDemo(url);
  const app = await startApp({ DATABASE_URL: url });
  const projectId = await makeProject(app);
  const names = ['a', 'B', 'ä', 'a1', '_', 'Z-1', 'a-2'];
  const size = { status: 'active', plan: 'vps-m', region: 'eu-central-1', vcpu: 1, ramMb: 1024, storageGb: 10 } as const;
  await app.app.database.prisma.instance.createMany({ data: names.map((name) => ({ projectId, name, ...size })) });
  const read = async (direction: 'asc' | 'desc', filter: object) => {
    const { edges } = await readList(app, projectId, 'instances', { orderBy: { field: 'name', direction }, filter, first: 3 });
    return edges.map(({ node }) => node.name);
  };
  expect(await execute(url, "SELECT 'a' < 'B' AS is")).toEqual([{ is: true }]);
  expect(await read('asc', {})).toEqual(['B', 'Z-1', '_']);
  expect(await read('desc', { region: 'eu-central-1' })).toEqual(['ä', 'a1', 'a-2']);
  expect(await read('asc', { namePrefix: 'a' })).toEqual(['a', 'a-2', 'a1']);
  await app.close();
});
