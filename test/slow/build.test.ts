import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import nodeModule from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { DemoFile } from '../../demo/file.ts';
import { buildAndRun, copyCheckout, launch, type Started, start } from '../support/launch.ts';

// What the scripts of package.json promise, on a copy of the checkout. The tests go on with what the ones before them left.
const folder = mkdtempSync(join(tmpdir(), 'portico-build-'));
const started: Array<{ kill(): Promise<void> }> = [];
let checkout: string;

beforeAll(() => {
  checkout = copyCheckout();
});

afterAll(async () => {
  for (const { kill } of started) await kill();
  rmSync(folder, { recursive: true, force: true });
  rmSync(checkout, { recursive: true, force: true });
});

async function begin(name: string): Promise<Started> {
  // DEBUG, which packages of the build obey, has no effect.
  const begun = await start(checkout, { DATA_DIR: join(folder, name), DEBUG: '*' });
  started.push(begun);
  return begun;
}

/** The most memory that a process has had, in MiB. */
const readPeak = ({ pid }: ChildProcess) => Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;

/** The folder of the current build's desk, and the moment it was made. */
function readDesk() {
  const path = realpathSync(join(checkout, 'dist/current/web'));
  return { path, made: statSync(join(path, 'index.html')).mtimeMs };
}

const said = 'Building Portico: some fifteen seconds, this once …\n';

describe('npm start', () => {
  test('builds stale parts in a process that has ended before the server begins', async () => {
    const peaks = [];
    for (const name of ['stale', 'fresh']) {
      const server = await begin(name);
      expect(server.printed.err).toBe(name === 'stale' ? said : '');
      expect((await fetch(server.baseUrl)).status).toBe(200);
      peaks.push(readPeak(server.process));
      await server.kill();
    }
    const [stale = 0, fresh = 0] = peaks;
    expect(stale).toBeLessThan(fresh * 1.2);
  }, 600_000);

  test('compiles the client package, and again when its sources have changed', async () => {
    const compiled = join(checkout, 'clients/typescript/dist/index.js');
    const source = join(checkout, 'clients/typescript/src/wait.ts');
    const readTime = () => statSync(compiled).mtimeMs;
    const first = readTime();
    expect((await buildAndRun(checkout, ['build'], {})).err).toBe('');
    expect(readTime()).toBe(first);
    const desk = readDesk();
    writeFileSync(source, `${readFileSync(source, 'utf8')}export const added = 'later';\n`);
    expect((await buildAndRun(checkout, ['build'], {})).err).toBe('');
    expect(readTime()).toBeGreaterThan(first);
    expect(readDesk().path).not.toBe(desk.path);
    expect(readFileSync(join(checkout, 'clients/typescript/dist/wait.js'), 'utf8')).toContain('later');
    const program = `import { connect } from ${JSON.stringify(compiled)}; console.log(typeof connect({ url: 'http://localhost', credential: 'x' }).feed)`;
    expect(execFileSync(process.execPath, ['--input-type=module', '--eval', program], { encoding: 'utf8' })).toBe('function\n');
  });

  test('does not build the desk again for a change of the server', async () => {
    const [build, desk] = [readlinkSync(join(checkout, 'dist/current')), readDesk()];
    const source = join(checkout, 'src/main.ts');
    writeFileSync(source, `${readFileSync(source, 'utf8')}// Changed.\n`);
    expect((await buildAndRun(checkout, ['build'], {})).err).toBe('');
    expect(readlinkSync(join(checkout, 'dist/current'))).not.toBe(build);
    expect(readDesk()).toEqual(desk);
  });

  test('has source maps that lead to the sources, so that a stack trace names files that exist', () => {
    const build = realpathSync(join(checkout, 'dist/current'));
    const maps = readdirSync(build).filter((name) => name.endsWith('.js.map'));
    const sources = maps.flatMap((name) => JSON.parse(readFileSync(join(build, name), 'utf8')).sources as string[]);
    const own = sources.filter((source) => source.includes('/src/') && !source.includes('node_modules'));
    expect(own.map((source) => resolve(build, source))).toContain(realpathSync(join(checkout, 'src/main.ts')));
    expect(own.filter((source) => !existsSync(resolve(build, source)))).toEqual([]);
  });

  test('names the command that installs missing packages', async () => {
    const packages = join(checkout, 'node_modules');
    const build = join(checkout, 'dist');
    renameSync(packages, `${packages}-away`);
    renameSync(build, `${build}-away`);
    for (const script of ['start', 'generate', 'dev']) {
      const { printed, exit } = launch(checkout, [script], {});
      expect(await exit).toMatchObject({ code: 1 });
      expect(printed).toEqual({ out: '', err: 'Packages that build Portico are missing: run `npm ci --include=dev` first.\n' });
    }
    renameSync(`${packages}-away`, packages);
    renameSync(`${build}-away`, build);
  });

  test.each(['18.20.8', '20.18.3', '21.7.3', '22.11.0'])(
    'says that Node.js %s is too old, and no script of a build goes on',
    async (version) => {
      const pretend = `Object.defineProperty(process,'versions',{value:{...process.versions,node:'${version}'}})`;
      for (const script of ['start', 'generate', 'dev', 'portico']) {
        const { printed, exit } = launch(checkout, [script], { NODE_OPTIONS: `--import=data:text/javascript,${pretend}` });
        expect(await exit).toMatchObject({ code: 1 });
        const err = `Portico needs Node.js 20 from 20.19 on, 22 from 22.12 on, or a later one: this is ${version}.\n`;
        expect(printed).toEqual({ out: '', err });
      }
    },
  );

  test('names the folder that a build cannot use', async () => {
    const build = join(checkout, 'dist');
    renameSync(build, `${build}-away`);
    const away = launch(checkout, ['start'], { TMPDIR: '/nowhere/tmp' });
    expect(await away.exit).toMatchObject({ code: 1 });
    expect(away.printed.err).toBe('The folder of temporary files, /nowhere/tmp, does not exist: let TMPDIR name one that does.\n');
    // A folder without the right to write would not stop root.
    writeFileSync(build, '');
    const blocked = launch(checkout, ['start'], {});
    expect(await blocked.exit).toMatchObject({ code: 1 });
    expect(blocked.printed.err).toBe(`Portico cannot be built in ${checkout}/: ${build} cannot be written (ENOTDIR).\n`);
    rmSync(build);
    renameSync(`${build}-away`, build);
  });

  test('refuses to build in a folder whose path has a question mark', async () => {
    const odd = `${checkout}?`;
    renameSync(checkout, odd);
    renameSync(join(odd, 'dist'), join(odd, 'dist-away'));
    const { printed, exit } = launch(odd, ['start'], {});
    expect(await exit).toMatchObject({ code: 1 });
    expect(printed.out).toBe('');
    expect(printed.err).toMatch(/^Portico cannot be built in [^\n]*\?\/: [^\n]*Rename the folder\.\n$/);
    renameSync(join(odd, 'dist-away'), join(odd, 'dist'));
    renameSync(odd, checkout);
  });

  test('a server answers every page without node_modules, and so does the next start', async () => {
    const env = join(folder, 'fresh');
    const running = await begin('fresh');
    unlinkSync(join(checkout, 'node_modules'));
    await visit(running, env);
    await running.kill();
    await visit(await begin('fresh'), env);
  }, 600_000);
});

async function visit({ baseUrl }: Started, dataDir: string): Promise<void> {
  const { users, organization_id, project_id } = JSON.parse(readFileSync(join(dataDir, 'demo.json'), 'utf8')) as DemoFile;
  const headers = { authorization: `Bearer ${users.owner.api_key}`, 'content-type': 'application/json', accept: 'text/html, */*' };
  const project = `/v1/organizations/${organization_id}/projects/${project_id}`;
  const pages = [
    '/',
    '/guides',
    '/guides/start',
    '/guides/start.md',
    '/guides.json',
    '/docs',
    '/docs/start.js',
    '/docs/swagger-ui.css',
    '/docs/swagger-ui-bundle.js',
    '/docs/favicon-32x32.png',
    '/graphql',
  ];
  const documents = ['/v1/openapi.json', '/v1/asyncapi.json', '/health/live', '/health/ready', '/metrics'];
  const routes = ['/compute/overview', '/notifications', '/monitoring/dashboards'].map((path) => project + path);
  for (const path of [...pages, ...documents, ...routes]) {
    const response = await fetch(baseUrl + path, { headers });
    expect([path, response.status, (await response.text()).length > 0]).toEqual([path, 200, true]);
  }
  const query = '{ viewer { email } __schema { queryType { name } } }';
  const response = await fetch(`${baseUrl}/graphql`, { method: 'POST', headers, body: JSON.stringify({ query }) });
  expect((await response.json()).data.viewer).toEqual({ email: users.owner.email });
}

/** npm itself, in a process group of its own as a terminal would have it. */
function npm(args: readonly string[], env: Record<string, string>) {
  const { PATH = '', HOME = '' } = process.env;
  const child = spawn('npm', args, { cwd: checkout, detached: true, env: { PATH, HOME, HOST: '127.0.0.1', LOG_LEVEL: 'error', ...env } });
  let printed = '';
  const listening = new Promise<void>((resolve, reject) => {
    child.stdout.on('data', (bytes) => {
      printed += bytes;
      if (/^Portico listens on /m.test(printed)) resolve();
    });
    child.once('exit', (code) => reject(new Error(`exit ${code}: ${printed}`)));
  });
  const signal = (name: NodeJS.Signals, to: 'npm' | 'group') => process.kill((to === 'group' ? -1 : 1) * Number(child.pid), name);
  const exit = once(child, 'exit').then(([code]) => code as number | null);
  let isGone = false;
  exit.then(() => {
    isGone = true;
  });
  const kill = async () => {
    if (!isGone) signal('SIGKILL', 'group');
    await exit;
  };
  started.push({ kill });
  return { listening, signal, exit };
}

describe('signals', () => {
  test.each([
    ['SIGTERM to npm alone', 'SIGTERM', 'npm'],
    ['Ctrl-C, which a terminal sends to all and npm once more to the server', 'SIGINT', 'group'],
  ] as const)(
    '%s: the server closes, and its exit code comes back',
    async (_name, signal, to) => {
      const run = npm(['start'], { DATA_DIR: join(folder, 'stale'), PORT: '0' });
      await run.listening;
      run.signal(signal, to);
      expect(await run.exit).toBe(0);
    },
    300_000,
  );
});

test('the build leaves a compile cache for the options of the server and for those of the commands', async () => {
  await buildAndRun(checkout, ['build'], {});
  const { scripts } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8')) as { scripts: Record<string, string> };
  const compiled = join(checkout, 'dist/current/compiled');
  // Node.js has one from 22.8 on.
  const made = existsSync(compiled) ? readdirSync(compiled) : [];
  expect(made.length > 0).toBe('enableCompileCache' in nodeModule);
  for (const name of made.length > 0 ? ['start', 'portico'] : []) {
    const [, options = ''] = /exec node ((?:--\S+ )*)/.exec(scripts[name] ?? '') ?? [];
    const print = [...(options.match(/\S+/g) ?? []), '--print', 'v8.cachedDataVersionTag().toString(16)'];
    const tag = execFileSync(process.execPath, print, { encoding: 'utf8' }).trim();
    expect(made).toEqual(expect.arrayContaining([expect.stringContaining(`-${tag}`)]));
  }
});

test('the image starts the server as npm start does', () => {
  const { scripts } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    scripts: Record<string, string>;
  };
  const image = readFileSync(new URL('../../Dockerfile', import.meta.url), 'utf8');
  const command = JSON.parse(/^CMD (.*)$/m.exec(image)?.[1] ?? '') as string[];
  const [, settings = ''] = /&& (.*) exec node/.exec(scripts.start ?? '') ?? [];
  expect(settings).toMatch(/^NODE_COMPILE_CACHE=\S+ MALLOC_TRIM_THRESHOLD_=\S+$/);
  expect(/^ENV (.*)$/m.exec(image)?.[1]).toContain(settings);
  expect(scripts.start).toBe(`${scripts.build} && ${settings} exec ${command.join(' ')}`);
});
