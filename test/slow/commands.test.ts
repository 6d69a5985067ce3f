import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { PGlite } from '@electric-sql/pglite';
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { launch, run, type Started, start } from '../support/launch.ts';
import { findLowPort } from '../support/ports.ts';
import { databaseUrl, execute } from '../support/sql.ts';

// One story on an empty database: on PostgreSQL the server runs all the while, the embedded database serves one at a time.
const origin = inject('origin');
const databases = [
  { kind: 'the embedded database', server: null },
  ...('server' in origin ? [{ kind: 'PostgreSQL', server: origin }] : []),
];
const tables = [
  'users',
  'organizations',
  'projects',
  'instances',
  'tasks',
  'dashboards',
  'notifications',
  'api_keys',
  'notification_reads',
];

const checkout = fileURLToPath(new URL('../..', import.meta.url));
const instance = '019b76da-a800-7a53-8b0a-0d2b9a6f4c11';

// What a build says of itself would stand before what the commands print.
beforeAll(async () => void (await launch(checkout, ['build'], {}).exit), 180_000);

test('a command prints at once which PostgreSQL it waits for, in one line without the password', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'portico-commands-'));
  const port = await findLowPort();
  const env = { DATA_DIR: dataDir, DATABASE_URL: `postgresql://portico:hunter2@127.0.0.1:${port}/portico` };
  const { process: child, printed, exit } = launch(checkout, ['portico', 'migrate'], env);
  await vi.waitFor(() => expect(printed.err).not.toBe(''), 20_000);
  await sleep(1_500);
  child.kill('SIGKILL');
  await exit;
  const server = `127.0.0.1:${port}`;
  expect(printed).toEqual({ out: '', err: `Waiting for PostgreSQL at ${server}, for at most 60 s: connect ECONNREFUSED ${server}\n` });
  rmSync(dataDir, { recursive: true, force: true });
});

describe.each(databases)('on $kind', ({ server: host }) => {
  const name = `${host?.template}_commands`;
  const dataDir = mkdtempSync(join(tmpdir(), 'portico-commands-'));
  const demoPath = join(dataDir, 'demo.json');

  let env: Record<string, string> = { DATA_DIR: dataDir };
  let server: Started | null = null;

  beforeAll(async () => {
    if (!host) return;
    await execute(host.server, `CREATE DATABASE ${name}`);
    env = { DATA_DIR: dataDir, DATABASE_URL: databaseUrl(host.server, name) };
    server = await start(checkout, env);
  }, 180_000);

  afterAll(async () => {
    await server?.kill();
    if (host) await execute(host.server, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    rmSync(dataDir, { recursive: true, force: true });
  });

  const portico = (...args: string[]) => run(checkout, ['portico', ...args], env);
  // Each command starts the embedded database anew, which takes seconds: what is the same on both is asked of PostgreSQL alone.
  const testOnce = test.skipIf(host === null && databases.length > 1);

  /** What each table holds, and a fingerprint of it; how many migrations were applied. */
  async function readDatabase(): Promise<unknown> {
    const content = (table: string) =>
      `SELECT '${table}' AS name, count(*)::int AS count, md5(string_agg(t::text, '|' ORDER BY t::text)) FROM ${table} AS t`;
    const sql = `${tables.map(content).join(' UNION ALL ')} UNION ALL SELECT 'migrations', count(*)::int, '' FROM _prisma_migrations`;
    if (env.DATABASE_URL) return execute(env.DATABASE_URL, sql);
    const embedded = await PGlite.create(join(dataDir, 'database'));
    try {
      return (await embedded.query(sql)).rows;
    } finally {
      await embedded.close();
    }
  }

  async function ask(credential: string, query: string) {
    const headers = { authorization: `Bearer ${credential}`, 'content-type': 'application/json' };
    const response = await fetch(`${server?.baseUrl}/graphql`, { method: 'POST', headers, body: JSON.stringify({ query }) });
    return response.json();
  }

  describe('on an empty database', () => {
    test('a server on PostgreSQL serves it unchanged, without demo data', async () => {
      if (server) {
        expect((await fetch(server.baseUrl)).status).toBe(200);
        expect(server.printed.out.trim().split('\n')).toEqual([`Portico listens on ${server.baseUrl}`]);
      }
      expect(existsSync(demoPath)).toBe(false);
    });

    test('migrate', async () => {
      expect(await portico('migrate')).toEqual({ code: 0, out: 'The database is up to date.\n', err: '' });
      const counts = (await readDatabase()) as Array<{ name: string; count: number }>;
      expect(counts.filter(({ count }) => count > 0)).toEqual([expect.objectContaining({ name: 'migrations' })]);
    });

    test('a token for an absent user is refused', async () => {
      const expected = { code: 1, out: '', err: 'There is no active user owner@acme.example.\n' };
      expect(await portico('token', 'owner@acme.example')).toEqual(expected);
    });
  });

  describe('seed', () => {
    test('fills the database, and a second time changes nothing', async () => {
      expect(await portico('seed')).toEqual({ code: 0, out: `The demo data is in. Its users and ids: ${demoPath}\n`, err: '' });
      expect((statSync(demoPath).mode & 0o777).toString(8)).toBe('600');
      const keys = () => Object.values<{ api_key: string }>(JSON.parse(readFileSync(demoPath, 'utf8')).users).map(({ api_key }) => api_key);
      const before = { keys: keys(), database: await readDatabase() };
      const again = { code: 0, out: `The demo data was there already. Its users and ids: ${demoPath}\n`, err: '' };
      expect(await portico('seed')).toEqual(again);
      expect({ keys: keys(), database: await readDatabase() }).toEqual(before);
      expect(before.database).toContainEqual(expect.objectContaining({ name: 'notifications', count: 157 }));
    });
  });

  describe('a first installation', () => {
    const id = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\n$/;
    const made = { code: 0, out: expect.stringMatching(id), err: '' };

    testOnce(
      'users, an organization, a project and members, each printed as its id alone',
      async () => {
        const subject = '0192a0b0-0000-7000-8000-000000000001';
        expect(await portico('user', 'add', 'first@new.example', '--name', 'First')).toEqual(made);
        expect(await portico('user', 'add', 'second@new.example', '--name', 'Second', '--id', subject)).toEqual({
          code: 0,
          out: `${subject}\n`,
          err: '',
        });
        const organization = await portico('organization', 'add', 'New', '--owner', 'first@new.example', '--currency', 'SEK');
        expect(organization).toEqual(made);
        const project = await portico('project', 'add', 'Shop', '--organization', organization.out.trim());
        expect(project).toEqual(made);
        const member = ['member', 'add', 'second@new.example', '--organization', organization.out.trim()];
        expect(await portico(...member, '--project', project.out.trim(), '--role', 'viewer')).toEqual({
          code: 0,
          out: 'second@new.example is viewer of the project.\n',
          err: '',
        });
        expect((await portico(...member, '--project', project.out.trim(), '--role', 'admin')).out).toBe(
          'second@new.example is admin of the project.\n',
        );
        const keys = [
          await portico('api-key', 'first@new.example', '--name', 'k'),
          await portico('api-key', 'second@new.example', '--name', 'k'),
        ];
        server ??= await start(checkout, env);
        const query = '{ viewer { organizations { nodes { name role projects { nodes { name role } } } } } }';
        for (const [index, [organizationRole, projectRole]] of [
          ['owner', 'admin'],
          ['member', 'admin'],
        ].entries()) {
          const response = await ask(keys[index]?.out.trim() ?? '', query);
          const projects = { nodes: [{ name: 'Shop', role: projectRole }] };
          expect(response.data.viewer.organizations.nodes).toEqual([{ name: 'New', role: organizationRole, projects }]);
        }
        if (!env.DATABASE_URL) {
          await server.kill();
          server = null;
        }
      },
      240_000,
    );

    testOnce.each([
      [['user', 'add', 'owner@acme.example', '--name', 'Twin'], 'There is a user with this e-mail address or id already.'],
      [['api-key', 'owner@acme.example', '--name', ' '], 'The name is empty.'],
      [['project', 'add', 'P', '--organization', '0192a0b0-0000-7000-8000-00000000dead'], 'There is no such organization.'],
    ])('%j is refused', async (words, complaint) => {
      expect(await portico(...words)).toEqual({ code: 1, out: '', err: `${complaint}\n` });
    });
  });

  // That access is lost at once: test/accounts/operator.test.ts.
  describe('the commands of access', () => {
    const uuid = /^[0-9a-f-]{36}$/;
    const list = async (...args: string[]) => {
      const { code, out, err } = await portico(...args);
      expect([args, code, err]).toEqual([args, 0, '']);
      return out.split('\n').flatMap((line) => (line === '' ? [] : [line.split('\t')]));
    };

    testOnce(
      'is listed, taken away and given back',
      async () => {
        const users = await list('user', 'list');
        const [id = ''] = users.find(([, email]) => email === 'first@new.example') ?? [];
        expect(users).toContainEqual([id, 'first@new.example', 'active', 'First']);
        for (const [other = ''] of await list('user', 'list', '--after', id)) expect(other > id).toBe(true);
        const [organization = ''] = (await list('organization', 'list')).find(([, , name]) => name === 'New') ?? [];
        const [[project = '', ...rest] = []] = await list('project', 'list', organization);
        expect([project, ...rest]).toEqual([expect.stringMatching(uuid), organization, 'Shop']);
        expect((await list('project', 'list')).map(([, , name]) => name)).toEqual(expect.arrayContaining(['Production', 'Shop']));
        const place = ['--organization', organization];
        const members = () => list('member', 'list', ...place, '--project', project);
        expect((await members()).map(([, email, , role]) => [email, role])).toEqual(
          expect.arrayContaining([
            ['first@new.example', 'admin, as owner of the organization'],
            ['second@new.example', 'admin'],
          ]),
        );
        expect(await portico('member', 'remove', 'second@new.example', ...place)).toEqual({
          code: 0,
          out: 'second@new.example is no longer a member of the organization.\n',
          err: '',
        });
        expect((await members()).map(([, email]) => email)).toEqual(['first@new.example']);
        const last = 'first@new.example is the last owner of the organization: add another owner first, or use --force.\n';
        for (const words of [['remove'], ['add', '--role', 'admin']])
          expect(await portico('member', ...words, 'first@new.example', ...place)).toEqual({ code: 1, out: '', err: last });
        expect((await portico('member', 'add', 'first@new.example', ...place, '--role', 'admin', '--force')).out).toBe(
          'first@new.example is admin of the organization.\n',
        );
        const key = (await portico('api-key', 'add', 'first@new.example', '--name', 'to be revoked')).out.trim();
        expect((await portico('user', 'disable', 'first@new.example')).out).toBe('first@new.example is disabled.\n');
        expect((await portico('user', 'enable', 'first@new.example')).out).toBe('first@new.example is active.\n');
        const [newest = []] = await list('api-key', 'list', 'first@new.example');
        expect(newest).toEqual([expect.stringMatching(uuid), `${key.slice(0, 15)}…`, 'valid', expect.any(String), 'to be revoked']);
        expect((await portico('api-key', 'revoke', newest[0] ?? '')).out).toBe(
          `${newest[1]} of first@new.example is revoked: to be revoked\n`,
        );
      },
      120_000,
    );

    testOnce('a long list says how it goes on, beside what it prints', async () => {
      const many = `INSERT INTO organizations (name) SELECT 'Many' FROM generate_series(1, 200)`;
      if (env.DATABASE_URL) await execute(env.DATABASE_URL, many);
      else {
        const embedded = await PGlite.create(join(dataDir, 'database'));
        await embedded.exec(many).finally(() => embedded.close());
      }
      const { code, out, err } = await portico('organization', 'list');
      const lines = out.trimEnd().split('\n');
      const last = lines.at(-1)?.split('\t')[0] ?? '';
      expect([code, lines.length, err]).toEqual([0, 200, `More follow: --after ${last}\n`]);
      for (const [id = ''] of await list('organization', 'list', '--after', last)) expect(id > last).toBe(true);
    });
  });

  testOnce('output that cannot be written is a failure: a new key would be lost', async () => {
    const line = `node ${join(checkout, 'dist/current/cli.js')} user list > /dev/full`;
    expect(spawnSync('sh', ['-c', line], { env: { ...process.env, ...env }, encoding: 'utf8' })).toMatchObject({
      status: 1,
      stderr: 'Standard output cannot be written (ENOSPC).\n',
    });
  });

  describe('console', () => {
    testOnce('set writes down where a console listens, a second time somewhere else, and remove takes it away', async () => {
      const demo = JSON.parse(readFileSync(demoPath, 'utf8')) as { instances: { console: string } };
      const { console } = demo.instances;
      const steps: Array<[string[], string]> = [
        [['set', console, '--kind', 'serial', '--tcp', '[fd00::17]:4555'], 'The serial console of the instance is [fd00::17]:4555.\n'],
        [['set', console, '--kind', 'vnc', '--unix', '/run/vm-17.sock'], 'The vnc console of the instance is /run/vm-17.sock.\n'],
        [['remove', console], 'The instance no longer has a console.\n'],
      ];
      for (const [words, out] of steps) expect(await portico('console', ...words)).toEqual({ code: 0, out, err: '' });
      const removed = { code: 1, out: '', err: 'The instance has no console.\n' };
      expect(await portico('console', 'remove', console)).toEqual(removed);
    });

    testOnce.each([
      [['set', instance, '--kind', 'serial', '--tcp', 'host:1'], 'There is no such instance.'],
      [['remove', instance], 'There is no such instance.'],
    ])('%j is refused', async (words, complaint) => {
      expect(await portico('console', ...words)).toEqual({ code: 1, out: '', err: `${complaint}\n` });
    });
  });

  describe('credentials', () => {
    test('a token and a key are printed alone, and count', async () => {
      const token = await portico('token', 'viewer@acme.example');
      expect(token).toEqual({ code: 0, out: expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+\n$/), err: '' });
      const key = await portico('api-key', 'viewer@acme.example', '--name', 'nightly job');
      expect(key).toEqual({ code: 0, out: expect.stringMatching(/^sk-portico-\w+\n$/), err: '' });
      server ??= await start(checkout, env);
      const email = 'viewer@acme.example';
      const bySession = await ask(token.out.trim(), '{ viewer { email apiKeys { nodes { name } } } }');
      expect(bySession.data.viewer.email).toBe(email);
      expect(bySession.data.viewer.apiKeys.nodes).toContainEqual({ name: 'nightly job' });
      expect(await ask(key.out.trim(), '{ viewer { email } }')).toEqual({ data: { viewer: { email } } });
    });
  });
});

// The other values that are refused without asking a database: test/accounts/operator-commands.test.ts.
describe('a malformed command', () => {
  const env = { DATA_DIR: mkdtempSync(join(tmpdir(), 'portico-commands-')) };
  afterAll(() => rmSync(env.DATA_DIR, { recursive: true, force: true }));
  const portico = (...args: string[]) => run(checkout, ['portico', ...args], env);

  test('is refused with a message', async () => {
    expect(await portico('user', 'add', 'nobody', '--name', 'x')).toEqual({ code: 1, out: '', err: 'nobody is not an e-mail address.\n' });
  });

  test('exits with 1 and prints its usage', async () => {
    const nameless = await portico('api-key', 'viewer@acme.example');
    expect([nameless.code, nameless.err]).toEqual([1, "error: required option '--name <name>' not specified\n"]);
    const unknown = await portico('drop');
    expect([unknown.code, unknown.err]).toEqual([1, "error: unknown command 'drop'\n"]);
    const help = await portico('--help');
    expect([help.code, help.out.match(/^ {2}(token|api-key|migrate|seed)\b/gm)]).toEqual([
      0,
      ['  token', '  api-key', '  migrate', '  seed'],
    ]);
    const { version } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8')) as { version: string };
    expect(await portico('--version')).toEqual({ code: 0, out: `${version}\n`, err: '' });
    // The program of the same name, for those who use a server.
    expect(help.out).toContain('npx portico --help');
  });
});
