import { execFile, spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { Agent, get } from 'node:http';
import { isBuiltin } from 'node:module';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import type { DemoFile } from '../../demo/file.ts';
import { copyTemplate } from '../support/copies.ts';
import { buildAndRun, copyCheckout, launch, type Started, start } from '../support/launch.ts';
import { startProgram } from '../support/portico.ts';
import { findLowPort } from '../support/ports.ts';

// Processes: each start takes seconds, so few are made, and the tests go on with what the ones before them left.
const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), "portico's start "));
const dataDir = join(folder, '.portico');
const otherDir = join(folder, 'other');
const demoPath = join(dataDir, 'demo.json');

let checkout: string;
let port: number;
let server: Started;
let fileAtOpening: string | null = null;

const started: Started[] = [];

async function begin(env: Record<string, string>): Promise<Started> {
  const begun = await start(checkout, env);
  started.push(begun);
  return begun;
}

beforeAll(async () => {
  checkout = copyCheckout();
  port = await findLowPort();
  const opening = watchOpening();
  const [first, other] = await Promise.all([begin({ DATA_DIR: dataDir, PORT: String(port) }), begin({ DATA_DIR: otherDir })]);
  fileAtOpening = await opening;
  server = first;
  await other.kill();
}, 900_000);

afterAll(async () => {
  for (const { kill } of started) await kill();
  rmSync(folder, { recursive: true, force: true });
  rmSync(checkout, { recursive: true, force: true });
});

/** Tries the port until it opens; what is in the demo's file at that moment. */
async function watchOpening(): Promise<string | null> {
  const isOpen = () =>
    new Promise<boolean>((resolve) => {
      const probe = connect(port, '127.0.0.1', () => resolve(true)).once('error', () => resolve(false));
      probe.once('connect', () => probe.destroy());
    });
  for (const deadline = Date.now() + 890_000; Date.now() < deadline && !(await isOpen()); )
    await new Promise((resolve) => setTimeout(resolve, 2));
  return existsSync(demoPath) ? readFileSync(demoPath, 'utf8') : null;
}

const readDemo = () => JSON.parse(readFileSync(demoPath, 'utf8')) as DemoFile;

async function ask(method: string, path: string, body?: unknown, { base_url, users }: DemoFile = readDemo()) {
  const headers = { authorization: `Bearer ${users.owner.api_key}`, 'content-type': 'application/json' };
  const response = await fetch(`${base_url}${path}`, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  const text = await response.text();
  return { status: response.status, json: text === '' ? null : JSON.parse(text) };
}

const projectPath = ({ organization_id, project_id } = readDemo()) => `/v1/organizations/${organization_id}/projects/${project_id}`;
const dashboardPath = () => `${projectPath()}/monitoring/dashboards/${readDemo().dashboards.private}`;

describe('the first start', () => {
  test('of two at once without a build both print their progress and serve, and leave one build, one desk and one empty database', () => {
    expect(started.map(({ printed }) => printed.err)).toEqual(Array(2).fill('Building Portico: some fifteen seconds, this once …\n'));
    const build = readlinkSync(join(checkout, 'dist/current'));
    const names = readdirSync(join(checkout, 'dist')).sort();
    const shared = ['database', 'desk'].map((name) => expect.stringMatching(`^\\.${name}-[0-9a-f]{16}$`));
    expect(names).toEqual([...shared, ...[build, 'current'].sort()]);
  });

  /** The files of the build that an entry point imports before it runs, and the packages. */
  const readImports = (entry: string) => {
    const files = new Set([entry]);
    const packages = new Set<string>();
    for (const file of files) {
      const text = readFileSync(join(checkout, 'dist/current', file), 'utf8');
      for (const [, name = ''] of text.matchAll(/^import\b[^'"`;]*?"([^"]+)";$/gm)) {
        if (name.startsWith('./')) files.add(name.slice(2));
        else if (!name.startsWith('node:')) packages.add(name);
      }
    }
    return { files: [...files].sort(), packages: [...packages].filter((name) => !isBuiltin(name)) };
  };

  test('reads a handful of files, without those of a database or of pages', () => {
    const { files, packages } = readImports('main.js');
    const chunks = files.filter((name) => name !== 'main.js' && name !== 'rolldown-runtime.js');
    expect(chunks.length).toBeLessThan(8);
    for (const name of chunks) expect(name).toMatch(/^(packages|shared)(~\w+)*~main(~\w+)*\.js$/);
    expect(packages).toEqual([]);
  });

  test('a command of an operator reads no file that only the server needs', () => {
    const { files, packages } = readImports('cli.js');
    expect(files.length).toBeGreaterThan(2);
    for (const name of files) expect(name).toMatch(/^rolldown-runtime\.js$|\bcli\b/);
    expect(packages).toEqual([]);
  });

  test('writes the demo file before the port opens, for its owner alone', () => {
    expect(fileAtOpening).toBe(readFileSync(demoPath, 'utf8'));
    expect((statSync(demoPath).mode & 0o777).toString(8)).toBe('600');
    expect((statSync(dataDir).mode & 0o777).toString(8)).toBe('700');
    expect((statSync(join(dataDir, 'key.json')).mode & 0o777).toString(8)).toBe('600');
  });

  test('the demo file is complete, and every credential in it is valid', async () => {
    const demo = readDemo();
    const isId = expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    const user = { id: isId, email: expect.any(String), token: expect.any(String), api_key: expect.stringMatching(/^sk-portico-/) };
    expect(demo).toEqual({
      base_url: `http://localhost:${port}`,
      organization_id: isId,
      project_id: isId,
      empty_project_id: isId,
      foreign: { organization_id: isId, project_id: isId, instance_id: isId, dashboard_id: isId },
      users: { owner: user, admin: user, member: user, viewer: user, outsider: user },
      instances: {
        eligible: isId,
        instance_not_active: isId,
        backup_already_enabled: isId,
        missing_billing_service: isId,
        missing_billing_client: isId,
        trial_already_open: isId,
        backup_option_unavailable: isId,
        unsupported_billing_cycle: isId,
        console: isId,
      },
      dashboards: { public: isId, private: isId, default: isId },
      notification_ids: Array.from({ length: 150 }, () => isId),
    });
    const day = Date.now() / 1000 + 86_400;
    for (const { email, token = '', api_key } of Object.values(demo.users)) {
      for (const credential of [token, api_key]) {
        const headers = { authorization: `Bearer ${credential}`, 'content-type': 'application/json' };
        const response = await fetch(`${demo.base_url}/graphql`, { method: 'POST', headers, body: '{"query":"{ viewer { email } }"}' });
        expect(await response.json()).toEqual({ data: { viewer: { email } } });
      }
      const { exp } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
      expect(Math.abs(exp - day)).toBeLessThan(300);
    }
  });

  test('prints the address and four commands, which work when pasted', async () => {
    const lines = server.printed.out.split('\n');
    expect(lines[0]).toBe(`Portico listens on http://localhost:${port}`);
    const commands = lines.slice(lines.indexOf('Try:') + 1).filter((line) => line.startsWith('  '));
    expect(commands).toHaveLength(4);
    const outputs: unknown[] = [];
    for (const pasted of commands.slice(0, 3)) {
      const { stdout } = await run('bash', ['-c', pasted.replace('curl', 'curl --silent --fail')]);
      outputs.push(JSON.parse(stdout));
    }
    expect(outputs).toEqual([
      [expect.objectContaining({ instances_total: 51 })],
      { data: { project: { name: 'Production', unreadNotificationCount: 50 } } },
      { marked: 50, unread_count: 0 },
    ]);
    // In the project's folder; it greets at once, and what is typed is answered.
    const project = fileURLToPath(new URL('../..', import.meta.url));
    const terminal = startProgram('bash', ['-c', `exec ${commands[3]?.trim()}`], { cwd: project });
    await terminal.until(/This is web-02[\s\S]*root@web-02:~# /);
    terminal.type('uname -a\r');
    await terminal.until(/Linux web-02 [\s\S]*root@web-02:~# /);
    terminal.type('exit\r');
    expect((await terminal.exit).out).toMatch(/This is web-02[\s\S]*root@web-02:~# uname -a\r\nLinux web-02 [\s\S]*logout\r\n$/);
  });
});

test('the settings of the guides are those of the demo, for any path', async () => {
  const read = (name: string) => readFileSync(new URL(`../../docs/${name}.md`, import.meta.url), 'utf8');
  const [, settings = ''] = /^```sh\n(BASE=[\s\S]*?)^```/m.exec(read('start')) ?? [];
  const [, dashboard = ''] = /^(DASHBOARD=.*)$/m.exec(read('v1')) ?? [];
  const script = `${settings}${dashboard}\nprintf '%s\\n' "$KEY" "$TOKEN" "$DASHBOARD"`;
  const { stdout } = await run('sh', ['-c', script], { cwd: folder });
  const { users, dashboards } = readDemo();
  const dashboardUrl = `http://localhost:4000${projectPath()}/monitoring/dashboards/${dashboards.private}`;
  expect(stdout.trimEnd().split('\n')).toEqual([users.owner.api_key, users.owner.token, dashboardUrl]);
});

test('prints no command of a program that is not installed, as in the image', async () => {
  const env = { DATA_DIR: join(folder, 'image'), HOST: '127.0.0.1', PORT: '0', LOG_LEVEL: 'error' };
  const running = startProgram(process.execPath, [join(checkout, 'dist/current/main.js')], { cwd: folder, env });
  await running.until(/notifications\/read\n.*\n/);
  running.kill();
  const { out } = await running.exit;
  expect(out.match(/^ {2}\w+/gm)).toEqual(['  curl', '  curl', '  curl']);
});

describe('the commands of the README', () => {
  test('work when pasted: figures, a query, and a feed that shows what a second terminal publishes', async () => {
    const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
    const use = /^## Use\n([\s\S]*?)^## /m.exec(readme)?.[1] ?? '';
    const blocks = [...use.matchAll(/^```sh\n([\s\S]*?)^```/gm)].map(([, block = '']) => block);
    const [settings = '', v1 = '', query = '', feed = '', publish = '', ...others] = blocks;
    expect(others).toEqual(['node docs/clients/console.mjs .portico/demo.json\n']);
    const here = settings.replace('http://localhost:4000', `http://localhost:${port}`);
    const paste = (block: string) => ['-c', `${here}${block.replace('curl', 'curl --silent --show-error --fail')}`];
    const tell = async (block: string) => JSON.parse((await run('bash', paste(block), { cwd: folder })).stdout);
    const [figures, instances, organizations, ...more] = await Promise.all(v1.trim().split('\n').map(tell));
    expect(figures).toEqual([expect.objectContaining({ instances_total: 51 })]);
    expect(instances).toMatchObject({ page_size: 3, results: Array(3).fill({ name: expect.any(String) }) });
    expect(organizations).toMatchObject({ results: [{ name: 'Acme Cloud' }] });
    expect(more).toEqual([]);
    const { project } = (await tell(query)).data;
    expect(project).toMatchObject({ name: 'Production', instances: { nodes: Array(3).fill({ backupTrial: { eligible: false } }) } });
    const terminal = spawn('bash', ['-c', `${here}exec ${feed}`], { cwd: folder, stdio: ['ignore', 'pipe', 'ignore'] });
    let shown = '';
    terminal.stdout.setEncoding('utf8').on('data', (text: string) => {
      shown += text;
    });
    try {
      await expect.poll(() => shown).toMatch(/"sequence":149\b[\s\S]*"sequence":150\b[\s\S]*FeedReady/);
      expect(await tell(publish)).toEqual({ data: { publishNotification: { notification: { sequence: 151 } } } });
      await expect.poll(() => shown).toMatch(/"sequence":151,"notification":\{"title":"Published from a terminal"\}/);
    } finally {
      terminal.kill();
    }
    expect((await ask('POST', `${projectPath()}/notifications/read`)).json).toEqual({ marked: 1, unread_count: 0 });
  });
});

test.each([
  ['192.0.2.1', 'EADDRNOTAVAIL'],
  ['portico.invalid', 'ENOTFOUND'],
])('a start with HOST %s, which this machine does not have, fails with a message', async (host, code) => {
  const refused = await buildAndRun(checkout, ['start'], { DATA_DIR: join(folder, 'elsewhere'), PORT: '0', HOST: host });
  expect([refused.code, refused.err]).toEqual([1, `HOST ${host} and PORT 0 cannot be listened at (${code}).\n`]);
});

test('a start that fails at the end closes everything, and does not wait for clients', async () => {
  const origin = inject('origin');
  const url = 'template' in origin ? await copyTemplate(origin) : null;
  const dir = join(folder, 'failing');
  for (const database of url ? [null, url] : [null]) {
    const env = { DATA_DIR: dir, HOST: '127.0.0.1', PORT: String(port), DRAIN_SECONDS: '600', ...(database && { DATABASE_URL: database }) };
    const refused = await buildAndRun(checkout, ['start'], env);
    expect([refused.code, refused.err]).toEqual([1, `Port ${port} is in use: stop what listens there, or set PORT.\n`]);
    // The socket by which the owner of a folder shows that it lives.
    expect(readdirSync(dir).filter((name) => name.endsWith('.sock'))).toEqual([]);
  }
});

describe('the folder has one owner', () => {
  test('a second start and a command are refused with the owner and what to do, and change nothing', async () => {
    const before = readFileSync(demoPath, 'utf8');
    const env = { DATA_DIR: dataDir, PORT: '0' };
    for (const args of [['start'], ['portico', 'token', readDemo().users.owner.email]]) {
      const refused = await buildAndRun(checkout, args, env);
      expect([refused.code, refused.out]).toEqual([1, '']);
      expect(refused.err).toMatch(`${dataDir} is in use by process ${server.process.pid} (`);
      expect(refused.err).toMatch('stop that one first, choose another DATA_DIR');
    }
    expect(readFileSync(demoPath, 'utf8')).toBe(before);
    expect((await ask('PUT', dashboardPath(), { name: 'unharmed' })).status).toBe(200);
    expect((await ask('GET', dashboardPath())).json.name).toBe('unharmed');
  });

  test('after a first start was killed during the creation of the database, exactly one of two concurrent starts serves', async () => {
    const env = { DATA_DIR: join(folder, 'contended') };
    const broken = launch(checkout, ['start'], { ...env, PORT: '0' });
    await expect.poll(() => findFiles(env.DATA_DIR, 'PG_VERSION'), { interval: 1 }).not.toEqual([]);
    broken.process.kill('SIGKILL');
    expect(await broken.exit).toEqual({ code: null, signal: 'SIGKILL' });
    const outcomes = await Promise.allSettled([begin(env), begin(env)]);
    const failures = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [String(outcome.reason)] : []));
    expect(failures).toEqual([expect.stringContaining(`exit 1: ${env.DATA_DIR} is in use by process`)]);
    const [winner] = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
    expect((await fetch(winner?.baseUrl ?? '')).status).toBe(200);
    await winner?.kill();
  });
});

/** The files of that name in a folder that may not be there yet, and in the folders right below it. */
function findFiles(top: string, name: string): string[] {
  const folders = existsSync(top) ? readdirSync(top) : [];
  return folders.map((below) => join(top, below, name)).filter((path) => existsSync(path));
}

describe('the data stay', () => {
  test('acknowledged writes survive a kill -9 in the middle of writes, and the next start takes over at once', async () => {
    const keys = Object.values(readDemo().users).map(({ api_key }) => api_key);
    const tokens = Object.values(readDemo().users).map(({ token }) => token);
    const acknowledged: number[] = Array.from({ length: 4 }, () => 0);
    const paths = await Promise.all(
      acknowledged.map(async () => {
        const { json } = await ask('POST', `${projectPath()}/monitoring/dashboards`, { name: 'written' });
        return `${projectPath()}/monitoring/dashboards/${json.id}`;
      }),
    );
    // Four clients that write until nobody answers.
    const writing = paths.map(async (path, index) => {
      const demo = readDemo();
      for (let count = 1; ; count += 1) {
        const response = await ask('PUT', path, { name: 'written', widgets: [count] }, demo).catch(() => null);
        if (!response) return;
        expect(response.status).toBe(200);
        acknowledged[index] = count;
      }
    });
    await expect.poll(() => Math.min(...acknowledged)).toBeGreaterThan(20);
    await server.kill();
    await Promise.all(writing);

    server = await begin({ DATA_DIR: dataDir, PORT: String(port) });
    for (const [index, path] of paths.entries()) {
      const { widgets } = (await ask('GET', path)).json;
      // The write under way may have come through without its response.
      expect([acknowledged[index], (acknowledged[index] ?? 0) + 1]).toContain(widgets[0]);
    }
    expect((await ask('GET', dashboardPath())).json.name).toBe('unharmed');
    expect((await ask('POST', `${projectPath()}/notifications/read`)).json).toEqual({ marked: 0, unread_count: 0 });
    expect(Object.values(readDemo().users).map(({ api_key }) => api_key)).toEqual(keys);
    const renewed = Object.values(readDemo().users).map(({ token }) => token);
    expect(renewed.filter((token) => tokens.includes(token))).toEqual([]);
  });

  test('SIGTERM ends it with 0, though a client keeps its connection', async () => {
    const agent = new Agent({ keepAlive: true });
    await new Promise<void>((resolve, reject) => {
      get(`http://127.0.0.1:${port}/`, { agent }, (response) => response.resume().once('end', resolve)).once('error', reject);
    });
    server.process.kill('SIGTERM');
    expect(await server.exit).toEqual({ code: 0, signal: null });
    expect(server.printed.err).toBe('');
    agent.destroy();
    server = await begin({ DATA_DIR: dataDir, PORT: String(port) });
    expect((await ask('GET', dashboardPath())).json.name).toBe('unharmed');
    expect((await ask('GET', `${projectPath()}/compute/overview`)).json[0].instances_total).toBe(51);
    server.process.kill('SIGINT');
    expect(await server.exit).toEqual({ code: 0, signal: null });
  });
});

test('a second signal ends the server at once, with a message', async () => {
  const second = await begin({ DATA_DIR: join(folder, 'twice') });
  const socket = connect(Number(new URL(second.baseUrl).port), '127.0.0.1');
  socket.on('error', () => {});
  // A body that does not come holds the server for ten seconds.
  socket.write('POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{');
  await sleep(500);
  second.process.kill('SIGTERM');
  await sleep(50);
  // As npm repeats a signal that has reached both.
  second.process.kill('SIGTERM');
  await sleep(500);
  expect(second.process.exitCode).toBe(null);
  const began = performance.now();
  second.process.kill('SIGINT');
  expect(await second.exit).toEqual({ code: 1, signal: null });
  expect(performance.now() - began).toBeLessThan(3_000);
  expect(second.printed.err).toBe('SIGINT, the second signal: Portico ends at once, without waiting for what is under way.\n');
  socket.destroy();
});

test('a signal at the end of the start, as its handlers are replaced, ends the server', async () => {
  const preload = join(folder, 'preload.mjs');
  writeFileSync(
    preload,
    `const { off } = process;
     process.off = (name, listener) => {
       if (name === 'SIGTERM') process.kill(process.pid, name);
       return off.call(process, name, listener);
     };`,
  );
  const env = { HOST: '127.0.0.1', PORT: '0', DATA_DIR: join(folder, 'ended'), NODE_OPTIONS: `--import=${pathToFileURL(preload)}` };
  const { process: child, exit } = launch(checkout, ['start'], env);
  const timer = setTimeout(() => child.kill('SIGKILL'), 60_000);
  expect(await exit).toEqual({ code: 0, signal: null });
  clearTimeout(timer);
});

test('DEBUG, which packages obey, has no effect: nothing prints DATABASE_URL, and the embedded database starts', async () => {
  const origin = inject('origin');
  const url = 'template' in origin ? await copyTemplate(origin) : null;
  for (const database of url ? [null, url] : [null]) {
    const env = { DATA_DIR: join(folder, 'debugged'), DEBUG: '*', ...(database && { DATABASE_URL: database }) };
    const { printed, kill } = await begin(env);
    await kill();
    expect(printed.err).toBe('');
  }
});

test('another user than the builder can start the server, and gets a message where DATA_DIR belongs to another', async () => {
  await buildAndRun(checkout, ['build'], {});
  for (const path of [checkout, folder]) chmodSync(path, 0o755);
  const [user, theirs, mine] = ['65534', join(folder, 'theirs'), join(folder, 'mine')];
  const run = (dir: string) => {
    const args = [`--reuid=${user}`, `--regid=${user}`, '--clear-groups', process.execPath, '--disable-warning=ExperimentalWarning'];
    const env = { DATA_DIR: dir, HOST: '127.0.0.1', PORT: '0', LOG_LEVEL: 'error' };
    return startProgram('setpriv', [...args, 'dist/current/main.js'], { cwd: checkout, env });
  };
  mkdirSync(theirs);
  chownSync(theirs, Number(user), Number(user));
  const running = run(theirs);
  await running.until('Portico listens on');
  running.kill();
  expect((await running.exit).code).toBe(0);
  const database = join(theirs, 'database');
  const names = ['', ...(readdirSync(database, { recursive: true }) as string[])];
  // PostgreSQL's cache of the catalogs is written at each start.
  const modes = names
    .filter((name) => !name.endsWith('pg_internal.init'))
    .map((name) => {
      const made = statSync(join(database, name));
      return `${made.isDirectory() ? 'folder' : 'file'} ${(made.mode & 0o777).toString(8)}`;
    });
  expect([...new Set(modes)].sort()).toEqual(['file 600', 'folder 700']);

  const { kill } = await begin({ DATA_DIR: mine });
  await kill();
  const sentence = 'it belongs to another user: start as that user, or choose another DATA_DIR.';
  for (const [mode, path] of [
    [0o755, mine],
    [0o777, join(mine, 'owner.1')],
  ] as const) {
    chmodSync(mine, mode);
    expect(await run(mine).exit).toEqual({ code: 1, out: '', err: `${path} cannot be used (EACCES): ${sentence}\n` });
  }
});

test('a bad environment is refused with all problems at once, and no file is created', async () => {
  const bad = { DATA_DIR: join(folder, 'never'), PORT: 'http', LOG_LEVEL: 'loud', TRUST_PROXY: 'everyone', JWT_ISSUER: 'me' };
  for (const entry of [['start'], ['portico', 'migrate']]) {
    const { exit, printed } = launch(checkout, entry, bad);
    expect([await exit, printed.out]).toEqual([{ code: 1, signal: null }, '']);
    const lines = printed.err.trimEnd().split('\n');
    expect(lines.map((line) => line.split(':')[0]).sort()).toEqual([
      'JWT_JWKS_URL, JWT_ISSUER, JWT_AUDIENCE',
      'LOG_LEVEL',
      'PORT',
      'TRUST_PROXY',
    ]);
  }
  expect(existsSync(bad.DATA_DIR)).toBe(false);
});

test('an unusable folder is named in one message, for any reason', async () => {
  const file = join(folder, 'file');
  writeFileSync(file, '');
  const withFile = (name: string) => {
    const made = join(folder, `with ${name}`);
    mkdirSync(made);
    writeFileSync(join(made, name), '{');
    return made;
  };
  const cases: ReadonlyArray<readonly [string, string]> = [
    [join(file, 'below'), `${join(file, 'below')} cannot be used (ENOTDIR): `],
    [withFile('owner.1'), `${join(folder, 'with owner.1', 'owner.1')} does not say which process has the folder: `],
    [withFile('key.json'), `${join(folder, 'with key.json', 'key.json')} does not hold the key that signs session tokens: `],
  ];
  for (const [unusable, beginning] of cases) {
    for (const entry of [['start'], ['portico', 'seed']]) {
      const { exit, printed } = launch(checkout, entry, { DATA_DIR: unusable, HOST: '127.0.0.1', PORT: '0' });
      expect([await exit, printed.out]).toEqual([{ code: 1, signal: null }, '']);
      expect(printed.err.startsWith(beginning)).toBe(true);
      expect(printed.err.trimEnd()).not.toContain('\n');
    }
  }
}, 180_000);
