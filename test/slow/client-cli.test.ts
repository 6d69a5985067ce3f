import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse, request as sendRequest } from 'node:http';
import { type AddressInfo, connect, createServer as createNetServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { openConsole, openGuest, setEndpoint } from '../support/console.ts';
import { portico, program, startOnTerminal, startPortico, startProgram } from '../support/portico.ts';
import { findLowPort } from '../support/ports.ts';
import { openProxy } from '../support/proxy.ts';

let app: TestApp;
let folder: string;
/** The environment of a user who has logged in nowhere. */
let nobody: Record<string, string>;
/** That of the owner, by a session token, in the demo's project. */
let owner: Record<string, string>;

beforeAll(async () => {
  app = await startApp();
  folder = mkdtempSync(join(tmpdir(), 'portico-cli-'));
  nobody = { HOME: folder, XDG_CONFIG_HOME: join(folder, 'nobody') };
  const { token = '' } = app.demo.users.owner;
  owner = { ...nobody, PORTICO_URL: app.baseUrl, PORTICO_CREDENTIAL: token, PORTICO_PROJECT: 'Production' };
});
afterAll(async () => {
  await app.close();
  rmSync(folder, { recursive: true, force: true });
});

/** What a command prints that succeeds, and says nothing else. */
async function print(args: readonly string[], env: Record<string, string> = owner, input = ''): Promise<string> {
  const { code, out, err } = await portico(args, { env, input, cwd: folder });
  expect({ args, code, err }).toEqual({ args, code: 0, err: expect.any(String) });
  return out;
}

const json = async (args: readonly string[], env: Record<string, string> = owner, input = '') =>
  JSON.parse(await print(['--json', ...args], env, input));

/** The sentence with which a command fails. */
async function fail(args: readonly string[], env: Record<string, string> = owner, input = ''): Promise<[number | null, string]> {
  const { code, err } = await portico(args, { env, input, cwd: folder });
  return [code, err];
}

/** A proxy without WebSockets, which has the server under a path; what `answer` answers does not get to the server. */
async function openFront(
  answer: (request: { readonly url: string; readonly body: string }, response: ServerResponse) => unknown,
  base = '',
) {
  const { hostname, port } = new URL(app.baseUrl);
  const server = createServer(async (request: IncomingMessage, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const body = Buffer.concat(parts);
    const { url = '', method = '', headers } = request;
    if (answer({ url, body: body.toString() }, response) !== null) return;
    if (!url.startsWith(`${base}/`)) return response.writeHead(404).end();
    const onward = sendRequest({ hostname, port, path: url.slice(base.length), method, headers, agent: false }, (got) => {
      response.writeHead(got.statusCode ?? 0, got.headers);
      got.pipe(response);
    });
    onward.on('error', () => response.destroy());
    response.once('close', () => onward.destroy());
    onward.end(body);
  });
  server.on('upgrade', (_request, socket) => socket.destroy());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${base}`,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** How many bytes the system takes of a connection whose peer does not read. */
async function measureCapacity(): Promise<number> {
  const server = createNetServer({ pauseOnConnect: true }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const peer = once(server, 'connection');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const part = Buffer.alloc(64 * 1024);
  let taken = 0;
  const write = () => new Promise<boolean>((resolve) => socket.write(part, () => resolve(true)));
  while (await Promise.race([write(), sleep(500, false)])) taken += part.length;
  for (const end of [socket, ...(await peer)]) end.destroy();
  server.close();
  return taken;
}

describe('a profile', () => {
  const config = () => join(folder, 'login');
  const mine = () => ({ HOME: folder, XDG_CONFIG_HOME: config() });
  const file = () => join(config(), 'portico/profiles.json');
  const login = (...args: string[]) => ['login', '--url', app.baseUrl, ...args];

  test('is readable by its owner alone, and its key is never shown', async () => {
    const { api_key } = app.demo.users.owner;
    const { code, out, err } = await portico(login(), { env: mine(), input: `${api_key}\n` });
    expect([code, out]).toEqual([0, `You are Olivia Okafor (owner@acme.example) at ${app.baseUrl}.\n`]);
    expect(err).toBe(`Kept as the profile default in ${file()}.\n`);
    const modes = [file(), join(config(), 'portico')].map((path) => (statSync(path).mode & 0o777).toString(8));
    expect(modes).toEqual(['600', '700']);
    expect(readdirSync(join(config(), 'portico'))).toEqual(['profiles.json']);
    expect(JSON.parse(readFileSync(file(), 'utf8'))).toEqual({ profiles: { default: { url: app.baseUrl, credential: api_key } } });
  });

  test('has a name and a project of its own', async () => {
    const { token = '' } = app.demo.users.viewer;
    expect(await json([...login('--profile', 'viewer')], mine(), token)).toMatchObject({ user: { email: 'viewer@acme.example' } });
    // The viewer has one project alone; the owner has to say which.
    expect(JSON.parse(await print(['--json', 'overview', '--profile', 'viewer'], mine()))[0].instances_total).toBe(51);
    expect(await fail(['overview'], mine())).toEqual([
      1,
      'Which project: Production, Sandbox? Say --project, or keep one with “portico use”.\n',
    ]);
    expect(await print(['use', 'Production'], mine())).toBe('Commands are about Production from now on.\n');
    expect((await json(['overview'], mine()))[0].instances_total).toBe(51);
    expect((await json(['overview', '--project', 'Sandbox'], mine()))[0].instances_total).toBe(0);
    expect((await json(['overview'], { ...mine(), PORTICO_PROJECT: app.demo.empty_project_id }))[0].instances_total).toBe(0);
    // To log in anew leaves the project.
    await print(login(), mine(), app.demo.users.admin.api_key);
    expect((await json(['overview'], mine()))[0].instances_total).toBe(51);
  });

  test('is made private again with a warning where its file was open to others', async () => {
    chmodSync(file(), 0o644);
    const { code, err } = await portico(['projects'], { env: mine() });
    expect([code, err]).toEqual([0, expect.stringMatching(/^\S+profiles\.json was open to other users of this machine\. .*\n$/)]);
    expect((statSync(file()).mode & 0o777).toString(8)).toBe('600');
  });

  test('sends a credential to no other server than its own', async () => {
    const [code, err] = await fail(['projects', '--url', 'http://127.0.0.1:9'], mine());
    expect([code, err]).toEqual([
      1,
      expect.stringMatching(/^The profile default is for http:\S+: log in with “portico login --url http:\/\/127\.0\.0\.1:9”/),
    ]);
    expect(await fail(['api', 'GET', '//127.0.0.1:9/v1/x'], mine())).toEqual([2, expect.stringContaining('is not a path of')]);
    expect(await fail(['api', 'GET', '/\\127.0.0.1:9/v1/x'], mine())).toEqual([2, expect.stringContaining('is not a path of')]);
  });

  test('works with a server under a path, and sends its credential to no other path', async () => {
    const asked: string[] = [];
    const front = await openFront(({ url }) => {
      asked.push(url);
      return null;
    }, '/gw');
    const env = { HOME: folder, XDG_CONFIG_HOME: join(folder, 'path') };
    const { api_key } = app.demo.users.owner;
    expect(await print(['login', '--url', `${front.url}/`], env, api_key)).toContain(` at ${front.url}.\n`);
    await print(['use', 'Production'], env);
    expect((await json(['overview'], env))[0].instances_total).toBe(51);
    const path = '/v1/organizations/{organization_id}/projects/{project_id}/compute/tasks?page_size=1';
    expect((await json(['api', 'GET', path], env)).page_size).toBe(1);
    const body = JSON.stringify({ query: '{ project(id: "none") { id } }' });
    expect(await fail(['api', 'POST', '/graphql', '--data', body], env)).toEqual([1, 'Not found.\n']);
    expect(await fail(['api', 'GET', '/../../beside'], env)).toEqual([1, expect.any(String)]);
    const following = startPortico(['notifications', '--follow', '--json'], { env });
    await following.until('"ready"').finally(following.kill);
    const beside = new URL(front.url).origin;
    expect(await fail(['projects', '--url', beside], env)).toEqual([1, expect.stringContaining(`is for ${front.url}: log in with`)]);
    expect(asked.filter((url) => !url.startsWith('/gw/'))).toEqual([]);
    expect(asked).toContain('/gw/beside');
    await front.close();
  });

  test('sends a credential over plain HTTP to another machine only with --plain-http', async () => {
    const url = 'http://portico.invalid';
    const refused = [2, `${url} has no TLS: your credential could be read on the way. Say https://, or --plain-http.\n`];
    const given = { ...nobody, PORTICO_URL: url, PORTICO_CREDENTIAL: 'sk-portico-x' };
    expect(await fail(['projects'], given)).toEqual(refused);
    expect(await fail(['login', '--url', url], nobody, 'sk-portico-x')).toEqual(refused);
    const sent = [1, expect.stringMatching(/portico\.invalid does not answer: .*\n$/)];
    expect(await fail(['projects', '--plain-http'], given)).toEqual(sent);
    const kept = { HOME: folder, XDG_CONFIG_HOME: join(folder, 'plain') };
    mkdirSync(join(kept.XDG_CONFIG_HOME, 'portico'), { recursive: true });
    const profiles = { default: { url, credential: 'sk-portico-x' } };
    writeFileSync(join(kept.XDG_CONFIG_HOME, 'portico/profiles.json'), JSON.stringify({ profiles }), { mode: 0o600 });
    expect(await fail(['projects'], kept)).toEqual(sent);
  });

  test('is not read where the environment has the address and the credential, and is reported as unreadable otherwise', async () => {
    const env = { HOME: folder, XDG_CONFIG_HOME: join(folder, 'broken') };
    mkdirSync(join(folder, 'broken/portico'), { recursive: true });
    const path = join(folder, 'broken/portico/profiles.json');
    const { api_key: PORTICO_CREDENTIAL } = app.demo.users.viewer;
    const broken = [() => writeFileSync(path, 'no JSON', { mode: 0o600 }), () => mkdirSync(path, { mode: 0o700 })];
    for (const make of broken) {
      make();
      expect(await print(['projects'], { ...env, PORTICO_URL: app.baseUrl, PORTICO_CREDENTIAL })).toMatch(/Production/);
      expect(await print(['overview', '--url', app.baseUrl], { ...env, PORTICO_CREDENTIAL })).toMatch(/^Production/);
      const partly: Record<string, string>[] = [{ PORTICO_URL: app.baseUrl }, { PORTICO_CREDENTIAL }, {}];
      for (const some of partly)
        expect(await fail(['projects'], { ...env, ...some })).toEqual([
          1,
          expect.stringMatching(/profiles\.json cannot be read as profiles/),
        ]);
      rmSync(path, { recursive: true });
    }
  });

  test('is forgotten by logout, after which commands print how to log in', async () => {
    expect(await print(['logout'], mine())).toBe('The profile default is forgotten.\n');
    expect(await fail(['projects'], mine())).toEqual([1, 'There is no profile default: log in with “portico login --url <address>”.\n']);
    expect(Object.keys(JSON.parse(readFileSync(file(), 'utf8')).profiles)).toEqual(['viewer']);
  });

  test('stays forgotten where logout happens during the lookup of a project', async () => {
    const own = { HOME: folder, XDG_CONFIG_HOME: join(folder, 'meanwhile') };
    const path = join(own.XDG_CONFIG_HOME, 'portico/profiles.json');
    const keep = (profiles: object) => writeFileSync(path, JSON.stringify({ profiles }), { mode: 0o600 });
    const front = await openFront(() => {
      keep({});
      return null;
    });
    mkdirSync(join(own.XDG_CONFIG_HOME, 'portico'), { recursive: true });
    keep({ default: { url: front.url, credential: app.demo.users.owner.api_key } });
    expect(await fail(['use', 'Production'], own)).toEqual([1, 'The profile default was changed meanwhile: nothing was kept.\n']);
    expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual({ profiles: {} });
    await front.close();
  });

  test('is saved only with a credential that the server accepts', async () => {
    const before = readFileSync(file(), 'utf8');
    const wrong = app.demo.users.owner.api_key.replace(/.$/, (last) => (last === 'a' ? 'b' : 'a'));
    const cases: ReadonlyArray<readonly [string[], string, number, RegExp]> = [
      [login(), wrong, 1, /^http:\S+ does not take it: it is wrong, revoked or expired\. Nothing was kept\.\n$/],
      [login(), 'clé\n', 1, /^That is neither a key nor a token\.\n$/],
      [login(), '', 1, /^That is neither a key nor a token\.\n$/],
      [['login'], wrong, 1, /^There is no profile default: log in with “portico login --url <address>”\.\n$/],
      [['login', '--url', 'localhost'], wrong, 2, /^localhost is not the address of a server/],
      [['login', '--url', `http://127.0.0.1:${await findLowPort()}`], wrong, 1, /^127\.0\.0\.1:\d+ does not answer: ECONNREFUSED\.\n$/],
    ];
    const results = await Promise.all(cases.map(([args, input]) => fail(args, mine(), input)));
    for (const [index, [, , code, sentence]] of cases.entries()) expect(results[index]).toEqual([code, expect.stringMatching(sentence)]);
    expect(results.join()).not.toContain(wrong);
    expect(readFileSync(file(), 'utf8')).toBe(before);
    for (const broken of ['{"profiles": ', '{}', '{"profiles": {"default": {"url": "here", "credential": "x"}}}']) {
      writeFileSync(file(), broken);
      expect(await fail(['projects'], mine())).toEqual([
        1,
        `${file()} cannot be read as profiles: mend it, or remove it and log in again.\n`,
      ]);
    }
    const blocked = { HOME: folder, XDG_CONFIG_HOME: file() };
    expect(await fail(login(), blocked, app.demo.users.owner.api_key)).toEqual([1, expect.stringMatching(/^ENOTDIR: .*\n$/)]);
  });

  test('reads a typed key on a terminal without echo', async () => {
    const { api_key } = app.demo.users.owner;
    const env = { HOME: folder, XDG_CONFIG_HOME: join(folder, 'terminal') };
    const terminal = startOnTerminal(login(), { env });
    await terminal.until('API key or session token for');
    terminal.type(`${api_key}\r`);
    const { code, out } = await terminal.exit;
    expect([code, out]).toEqual([0, expect.stringContaining('You are Olivia Okafor')]);
    expect(out).not.toContain(api_key.slice(-8));
    const left = startOnTerminal(login(), { env });
    await left.until('API key or session token for');
    left.type('\x03');
    expect(await left.exit).toMatchObject({ code: 1, out: expect.stringContaining('Nothing was kept.') });
  });
});

describe('the lists of the program', () => {
  test('projects are listed with their organization', async () => {
    const { organization_id, project_id, empty_project_id } = app.demo;
    const organization = { id: organization_id, name: 'Acme Cloud' };
    expect(await json(['projects'])).toEqual([
      { id: project_id, name: 'Production', role: 'admin', organization },
      { id: empty_project_id, name: 'Sandbox', role: 'admin', organization },
    ]);
    expect(await print(['projects'])).toMatch(/^PROJECT +ORGANIZATION +ROLE +ID\nProduction +Acme Cloud +admin +019b76da-/);
  });

  test('more projects than a page has are all found, also by name', async () => {
    const { id } = await app.app.database.prisma.user.create({ data: { name: 'Paula', email: 'paula@many.example' } });
    for (let count = 0; count < 21; count += 1) {
      const projects = Array.from({ length: count === 0 ? 101 : 1 }, (_, index) => ({ name: `p-${count}-${index}` }));
      await app.app.database.prisma.organization.create({
        data: { name: `o-${count}`, currency: 'EUR', members: { create: { userId: id, role: 'owner' } }, projects: { create: projects } },
      });
    }
    const token = (await app.app.tokens.local?.sign(id, 60)) ?? '';
    const paula = { ...owner, PORTICO_CREDENTIAL: token, PORTICO_PROJECT: '' };
    const names = ((await json(['projects'], paula)) as { name: string }[]).map(({ name }) => name);
    expect([names.length, new Set(names).size]).toEqual([121, 121]);
    expect((await json(['overview', '--project', 'p-0-100'], paula))[0].instances_total).toBe(0);
    expect(await fail(['overview', '--project', 'p-0-101'], paula)).toEqual([
      1,
      'You are in no project p-0-101: “portico projects” lists them.\n',
    ]);
  });

  test('the overview is bars of text, and as JSON the response of v1', async () => {
    const [text, whole] = await Promise.all([print(['overview']), json(['overview'])]);
    const { json: v1 } = await app.ask('GET', `${app.projectPath}/compute/overview`);
    expect(whole).toEqual(v1);
    expect(text).toMatch(/^Production: what needs attention\n/);
    for (const { status, count } of v1[0].instances_by_status) expect(text).toMatch(new RegExp(`^  ${status} +${count}  █+$`, 'm'));
    const longest = /^ {2}active +\d+ {2}(█+)$/m.exec(text)?.[1];
    expect(longest).toHaveLength(40);
    expect(text).not.toContain('\x1b');
  });

  test('colours are for terminals without NO_COLOR', async () => {
    const show = async (env: Record<string, string>) => {
      const { code, out } = await startOnTerminal(['overview'], { env: { ...owner, TERM: 'xterm', ...env } }).exit;
      expect(code).toBe(0);
      return out;
    };
    const [coloured, plain] = await Promise.all([show({}), show({ NO_COLOR: '1' })]);
    expect(coloured).toContain('\x1b[32m█');
    expect(plain).toContain('█');
    expect(plain).not.toContain('\x1b');
  });

  test('lists are pages, and as JSON the responses of v1', async () => {
    const pages = ['--page', '2', '--page-size', '3'];
    const { code, out, err } = await portico(['instances', ...pages], { env: owner });
    expect([code, out.trimEnd().split('\n').length, err]).toEqual([0, 4, 'Page 2 of 17, of 51 in all: --page 3 shows more.\n']);
    const { json: v1 } = await app.ask('GET', `${app.projectPath}/compute/instances?page=2&page_size=3`);
    expect(await json(['instances', ...pages])).toEqual(v1);
    for (const { name, id } of v1.results) expect(out).toMatch(new RegExp(`^${name} .* ${id}$`, 'm'));
    const suspended = await json(['instances', '--status', 'suspended']);
    expect(suspended.results.map(({ status }: { status: string }) => status)).toEqual(Array(3).fill('suspended'));
    expect(await fail(['instances', '--status', 'lost'])).toEqual([1, expect.stringMatching(/^status: .+\n$/)]);
  });

  test('tasks are listed with what failed', async () => {
    const { json: v1 } = await app.ask('GET', `${app.projectPath}/compute/tasks?status=failed&page=1&page_size=2`);
    const args = ['tasks', '--status', 'failed', '--page-size', '2'];
    expect(await json(args)).toEqual(v1);
    const { code, out, err } = await portico(args, { env: owner });
    expect([code, err]).toEqual([0, 'Page 1 of 4, of 7 in all: --page 2 shows more.\n']);
    const [{ id, kind, instance, created, finished, error }] = v1.results;
    const times = [created, finished].map((time: string) => time.slice(0, 16).replace('T', ' '));
    const line = out.split('\n')[1]?.split(/ {2,}/);
    expect(line).toEqual([kind, 'failed', ...times, instance, id, error]);
  });

  test('a page after the last is a failure with the number of pages', async () => {
    const pages = (...args: string[]) => fail([...args, '--page', '99']);
    expect(await pages('instances')).toEqual([1, 'There is no page 99: the list has the pages 1 to 3, of 51 in all.\n']);
    expect(await pages('--json', 'tasks', '--status', 'failed')).toEqual([
      1,
      'There is no page 99: the list has only page 1, of 7 in all.\n',
    ]);
    expect(await pages('notifications', '--unread')).toEqual([1, expect.stringMatching(/^There is no page 99: .*\n$/)]);
    expect(await pages('instances', '--project', '019b76da-a800-7c0e-8b1c-5c2b6f2f0a11')).toEqual([1, 'Not found.\n']);
  });
});

describe('notifications', () => {
  const publish = (title: string, ...args: string[]) => json(['publish', title, '--kind', 'test.cli', ...args]);

  test('are listed, read one by one and all', async () => {
    const unread = await json(['notifications', '--unread', '--page-size', '2']);
    expect(unread.count).toBe(50);
    const [{ id, sequence, title }] = unread.results;
    expect(await print(['notifications', '--page-size', '1'])).toMatch(new RegExp(`^#.*\\n${sequence} .*unread +${id} .*${title}\\n$`));
    expect(await json(['read', id])).toEqual({ marked: 1, unread_count: 49 });
    expect(await print(['read', '--all'])).toBe('49 marked as read, 0 unread.\n');
    expect(await fail(['read'])).toEqual([2, 'Say either ids or --all.\n']);
    expect(await fail(['read', '--all', id])).toEqual([2, 'Say either ids or --all.\n']);
    expect(await fail(['read', 'x'])).toEqual([1, expect.stringMatching(/^notification_ids: .+\n$/)]);
  });

  test('are published once, however often that is sent', async () => {
    const key = ['--idempotency-key', crypto.randomUUID()];
    const first = await publish('Once', '--severity', 'warning', '--body', 'b', '--data', '{"a": [1]}', ...key);
    expect(first).toMatchObject({ title: 'Once', kind: 'test.cli', severity: 'warning', body: 'b', data: { a: [1] }, read: false });
    expect(await publish('Once', '--severity', 'warning', '--body', 'b', '--data', '{"a": [1]}', ...key)).toEqual(first);
    const again = await fail(['publish', 'Other', '--kind', 'test.cli', ...key]);
    expect(again).toEqual([1, expect.stringContaining('idempotency key')]);
  });

  test('that are refused print the reason, and without a response how to find out whether they were published', async () => {
    expect(await fail(['publish', '', '--kind', 'test.cli'])).toEqual([1, expect.stringMatching(/^title: .+\n$/)]);
    const denied = { ...owner, PORTICO_CREDENTIAL: app.demo.users.viewer.token ?? '' };
    expect(await fail(['publish', 'x', '--kind', 'y'], denied)).toEqual([1, expect.stringMatching(/^.*permission.*\n$/)]);
    const destroy = (response: ServerResponse) => response.destroy();
    const limit = (response: ServerResponse) => response.writeHead(429, { 'retry-after': '30' }).end();
    for (const losses of [[destroy], [(response: ServerResponse) => response.writeHead(502).end()], [destroy, limit]]) {
      let sent = 0;
      const lose = (response: ServerResponse) => (losses[sent++] ?? losses.at(-1))?.(response);
      const front = await openFront((request, response) => (request.body.includes('publishNotification') ? lose(response) : null));
      const lost = await fail(['publish', 'x', '--kind', 'y'], { ...owner, PORTICO_URL: front.url });
      expect(lost).toEqual([1, expect.stringMatching(/^Whether it was published .* --idempotency-key [\w-]{36}: .*\n127\..*\n$/)]);
      await front.close();
    }
  });

  test('keep every digit of their data', async () => {
    const data = '{"big":12345678901234567890,"list":[-0,1.10,1E2,9007199254740993],"text":"\\"1.10","n":7}';
    const following = startPortico(['notifications', '--follow', '--json'], { env: owner });
    await following.until('"ready"');
    const [printed] = await Promise.all([
      print(['--json', 'publish', 'Digits', '--kind', 'test.cli', '--data', data]),
      following.until('"Digits"'),
    ]);
    expect(printed.replaceAll(/\s/g, '')).toContain(`"data":${data}`);
    following.kill();
    const { out } = await following.exit;
    expect(out).toContain(`"data":${data}`);
    const { sequence } = JSON.parse(printed);
    expect(JSON.parse(out.trimEnd().split('\n').at(-1) ?? '')).toMatchObject({ sequence, notification: { sequence, title: 'Digits' } });
    // By server-sent events, too.
    const front = await openFront(() => null);
    const streamed = startPortico(['notifications', '--follow', '--json', '--after', String(sequence - 1)], {
      env: { ...owner, PORTICO_URL: front.url },
    });
    await streamed.until(`"data":${data}`);
    streamed.kill();
    await streamed.exit;
    await front.close();
    expect(await fail(['publish', 'x', '--kind', 'y', '--data', '{"a":"\\u00005","b":"\\"\\u0000b"}'])).toEqual([
      1,
      expect.stringMatching(/^data: .+\n$/),
    ]);
  });

  test('are followed, and resumed later at the saved cursor', async () => {
    const cursor = join(folder, 'cursor');
    const { sequence: last } = await publish('before');
    const following = startPortico(['notifications', '--follow', '--cursor', cursor, '--after', String(last - 1)], { env: owner });
    await following.until('unread]');
    await Promise.all([following.until(/first$/m), publish('first')]);
    expect(following.printed.out).toMatch(new RegExp(`^${last}  .*before\\n${last + 1}  \\d{4}-.*  info      test.cli +first\\n$`));
    expect(following.printed.err).toMatch(/^\[Production: connecting\]\n\[Production: live\]\n\[\d+ unread\]\n/);
    following.kill();
    await following.exit;
    await publish('missed');
    const resumed = startPortico(['notifications', '--follow', '--json', '--cursor', cursor], { env: owner });
    await resumed.until('"ready"');
    resumed.kill();
    const events = (await resumed.exit).out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    // What was shown last may be shown again: it is kept when the next one is asked for.
    expect(events.filter(({ sequence }) => sequence > last + 1)).toMatchObject([
      { type: 'notification', sequence: last + 2, notification: { title: 'missed' } },
      { type: 'ready', sequence: last + 2, read_through: expect.any(Number), unread_count: expect.any(Number) },
    ]);
  });
});

test('an unavailable feed ends with a message', async () => {
  const wrong = { ...owner, PORTICO_CREDENTIAL: 'x.y.z', PORTICO_PROJECT: app.demo.project_id };
  expect(await fail(['notifications', '--follow'], wrong)).toEqual([1, expect.stringContaining('“portico login”')]);
  expect(await fail(['notifications', '--after', '1'])).toEqual([2, '--after and --cursor are for --follow.\n']);
  expect(await fail(['notifications', '--follow', '--cursor', folder])).toEqual([1, expect.stringContaining('cannot be read (EISDIR)')]);
  const nowhere = join(folder, 'none', 'cursor');
  expect(await fail(['notifications', '--follow', '--cursor', nowhere])).toEqual([1, `${nowhere} cannot be written (ENOENT).\n`]);
});

test('a hostile text moves no cursor and names no window, and is unchanged in JSON', async () => {
  const title = 'a\x1b]0;owned\x07b\x9b2Jc\rd\u202ee\u2028f';
  const { sequence } = await json(['publish', title, '--kind', 'test.\x1b[2J', '--severity', 'critical']);
  const [text, raw] = await Promise.all([
    print(['notifications', '--page-size', '1']),
    portico(['--json', 'notifications', '--page-size', '1'], { env: owner }),
  ]);
  expect(text).toContain('a ]0;owned b 2Jc d e f\n');
  expect(text.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\u202e\u2028]/u);
  expect(raw.out.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\u202e\u2028]/u);
  expect(JSON.parse(raw.out).results[0]).toMatchObject({ sequence, title });
  const following = startPortico(['notifications', '--follow', '--after', String(sequence - 1)], { env: owner });
  await following.until('owned');
  following.kill();
  expect((await following.exit).out.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\u202e\u2028]/u);
});

test('no text of a server moves the cursor, whichever field it is in, and JSON keeps it', async () => {
  const hostile = '\x1b[2J\u202e';
  const taint = (text: string) =>
    text.replace(
      /"(id|status|severity|role|created|unread_count|count|total_pages)": ?("[^"]*"|\d+)/g,
      (_, name) => `"${name}":${JSON.stringify(hostile)}`,
    );
  const { text: instances } = await app.ask('GET', `${app.projectPath}/compute/instances?page_size=2`);
  const { text: notifications } = await app.ask('GET', `${app.projectPath}/notifications?page_size=2`);
  const { text: overview } = await app.ask('GET', `${app.projectPath}/compute/overview`);
  const bodies: Readonly<Record<string, string>> = {
    instances,
    notifications,
    overview,
    read: '{"marked":1,"unread_count":2}',
    raw: '{"a":"\x1b[2J"}',
  };
  const front = await openFront(({ url }, response) => {
    const body = bodies[/\/(\w+)(\?|$)/.exec(url)?.[1] ?? ''];
    return body === undefined ? null : response.setHeader('content-type', 'application/json').end(taint(body));
  });
  const env = { ...owner, PORTICO_URL: front.url };
  for (const args of [['instances'], ['notifications'], ['overview'], ['read', '--all']]) {
    const { code, out, err } = await portico(args, { env });
    expect([args, code, out]).toEqual([args, 0, expect.stringContaining('[2J')]);
    expect((out + err).replaceAll('\n', '')).not.toMatch(/[\p{Cc}\u202e]/u);
  }
  const { results } = await json(['instances'], env);
  expect(results[0]).toMatchObject({ id: hostile, status: hostile });
  // A string of JSON holds no control character: this is not the server's own.
  expect(await print(['api', 'GET', '/v1/raw'], env)).toBe('{\n  "a": "\\u001b[2J"\n}\n');
  await front.close();
});

describe('dashboards', () => {
  const widgets = '[{"title": "CPU", "max": 1.0}, {"title": "Memory", "id": 12345678901234567890}]';
  const within = (name: string) => join(folder, 'boards', name);
  const change = async (id: string, body: object) => app.ask('PUT', `${app.projectPath}/monitoring/dashboards/${id}`, { body });
  const get = (id: string) => app.ask('GET', `${app.projectPath}/monitoring/dashboards/${id}`);

  test('are pulled to files and pushed, to the digit', async () => {
    mkdirSync(join(folder, 'boards'));
    writeFileSync(within('new.json'), `{"name": "../New / board\\u001b", "widgets": ${widgets}}`);
    expect(await print(['dashboards', 'push', within('new.json')])).toBe(`${within('new.json')}: new (version 1)\n`);
    const { id } = JSON.parse(readFileSync(within('new.json'), 'utf8'));
    expect(await print(['dashboards', 'list'])).toMatch(new RegExp(`^\\.\\./New / board +1 +private .*${id}$`, 'm'));
    expect(await print(['dashboards', 'pull', '--dir', within('')])).toContain(`${within('new.json')}: unchanged (version 1)\n`);
    rmSync(within('new.json'));
    expect(await json(['dashboards', 'pull', id, '--dir', within('')])).toEqual([
      { file: within('new-board.json'), state: 'new', id, version: 1 },
    ]);
    const text = readFileSync(within('new-board.json'), 'utf8');
    expect(text).toMatch(/^\{\n {2}"version": 1,\n/);
    writeFileSync(within('new-board.json'), text.replace('"CPU"', '"Load"'));
    expect(await print(['dashboards', 'push', within('new-board.json')])).toBe(`${within('new-board.json')}: pushed (version 2)\n`);
    expect((await get(id)).text).toContain('[{"title":"Load","max":1.0},{"title":"Memory","id":12345678901234567890}]');
    expect(await print(['dashboards', 'push', within('new-board.json')])).toBe(`${within('new-board.json')}: unchanged (version 2)\n`);
  });

  test('that were changed on both sides are shown, and nothing is written over', async () => {
    const path = within('new-board.json');
    const text = readFileSync(path, 'utf8');
    const { id } = JSON.parse(text);
    writeFileSync(path, text.replace('"Load"', '"Mine"'));
    await change(id, { name: 'Theirs', widgets: [{ title: 'Load', max: 2 }] });
    const pushed = await portico(['dashboards', 'push', path], { env: owner });
    expect(pushed).toMatchObject({ code: 1, err: expect.stringMatching(/^Nothing was written for \S+new-board\.json\. .*\n$/) });
    const lines = pushed.out.split('\n').map((line) => line.split(/ {2,}/));
    expect(lines).toEqual([
      [`${path}: conflict, as it is at version 3 there`],
      ['FIELD', 'THERE', 'YOURS'],
      ['name', '"Theirs"', '"../New / board\\u001b"'],
      ['widgets[0].title', '"Load"', '"Mine"'],
      ['widgets[0].max', '2', '1.0'],
      ['widgets[1]', '(none)', '{"title":"Memory","id":12345678901234567890}'],
      [''],
    ]);
    const pulled = await portico(['--json', 'dashboards', 'pull', id, '--dir', within('')], { env: owner });
    expect([pulled.code, JSON.parse(pulled.out)]).toMatchObject([1, [{ state: 'conflict', version: 3 }]]);
    expect((await get(id)).json.name).toBe('Theirs');
    expect(readFileSync(path, 'utf8')).toContain('"Mine"');
    // As the sentence says.
    writeFileSync(path, readFileSync(path, 'utf8').replace('"version": 2', '"version": 3'));
    expect(await print(['dashboards', 'push', path])).toBe(`${path}: pushed (version 4)\n`);
    await change(id, { name: 'Theirs again' });
    writeFileSync(path, readFileSync(path, 'utf8').replace('"Mine"', '"Lost"'));
    expect(await print(['dashboards', 'pull', id, '--dir', within(''), '--force'])).toBe(`${path}: pulled (version 5)\n`);
    expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({ version: 5, name: 'Theirs again' });
    // Edited by nobody here: what is there comes without being asked twice.
    await change(id, { name: 'Newest' });
    expect(await print(['dashboards', 'pull', id, '--dir', within('')])).toBe(`${path}: pulled (version 6)\n`);
  });

  test('in which the order of names was changed are edited', async () => {
    const { id } = (
      await app.ask('POST', `${app.projectPath}/monitoring/dashboards`, { body: { name: 'Order', widgets: [{ x: 1, y: 2 }] } })
    ).json;
    await print(['dashboards', 'pull', id, '--dir', within('')]);
    const path = within('order.json');
    const widget = /"x": 1,(\s+)"y": 2/;
    expect(readFileSync(path, 'utf8')).toMatch(widget);
    writeFileSync(path, readFileSync(path, 'utf8').replace(widget, '"y": 2,$1"x": 1'));
    const { code, out } = await portico(['dashboards', 'pull', id, '--dir', within('')], { env: owner });
    expect([code, out]).toEqual([0, `${path}: edited and not pushed yet: left as it is (version 1)\n`]);
    await change(id, { name: 'Order', widgets: [{ x: 1, y: 2 }] });
    const pushed = await portico(['dashboards', 'push', path], { env: owner });
    expect([pushed.code, pushed.out]).toEqual([1, expect.stringMatching(/\nwidgets\[0\] +\{"x":1,"y":2\} +\{"y":2,"x":1\}\n$/)]);
  });

  test('with the content of the server are unchanged, also after a push from another file', async () => {
    const { id } = (await app.ask('POST', `${app.projectPath}/monitoring/dashboards`, { body: { name: 'Same', widgets: [{ max: 1 }] } }))
      .json;
    await print(['dashboards', 'pull', id, '--dir', within('')]);
    const [path, edited] = [within('same.json'), within('edited.json')];
    writeFileSync(path, readFileSync(path, 'utf8').replace('"max": 1', '"max": 1.50'));
    writeFileSync(edited, readFileSync(path, 'utf8'));
    expect(await print(['dashboards', 'push', path])).toBe(`${path}: pushed (version 2)\n`);
    // The same edit, still with the version that it began with.
    expect(await json(['dashboards', 'push', edited])).toEqual([{ file: edited, state: 'unchanged', id, version: 2 }]);
    // It goes on from there.
    writeFileSync(edited, readFileSync(edited, 'utf8').replace('"max": 1.50', '"max": 1.5'));
    expect(await print(['dashboards', 'push', edited])).toBe(`${edited}: pushed (version 3)\n`);
    await app.ask('DELETE', `${app.projectPath}/monitoring/dashboards/${id}`);
  });

  test('that are refused print their own reasons', async () => {
    writeFileSync(within('blank.json'), '{"name": " "}');
    writeFileSync(within('gone.json'), `{"id": "${app.demo.foreign.dashboard_id}", "version": 1, "name": "x"}`);
    writeFileSync(within('old.json'), `{"id": "${app.demo.dashboards.private}", "name": "x"}`);
    const { code, out, err } = await portico(['dashboards', 'push', 'blank.json', 'gone.json', 'old.json'], {
      env: owner,
      cwd: within(''),
    });
    expect([code, err]).toEqual([1, 'Nothing was written for blank.json, gone.json, old.json.\n']);
    expect(out).toMatch(/^blank\.json: name: .+\ngone\.json: Not found\.\nold\.json: it has an id and no version: pull it first\.\n$/);
    expect(await fail(['dashboards', 'push', within('none.json')])).toEqual([1, `${within('none.json')} cannot be read (ENOENT).\n`]);
    expect(await fail(['dashboards', 'pull', 'Nowhere'])).toEqual([1, expect.stringMatching(/^There is no dashboard Nowhere/)]);
  });
});

test('a dashboard is pulled to a file of its own for any length of its name and any other files', async () => {
  const dir = join(folder, 'long');
  const ids: string[] = [];
  for (const letter of ['𝒳', '𝒳', 'x', '文']) {
    const { json } = await app.ask('POST', `${app.projectPath}/monitoring/dashboards`, { body: { name: letter.repeat(100) } });
    ids.push(json.id);
  }
  const pulled = (await json(['dashboards', 'pull', ...ids, '--dir', dir])) as { file: string; state: string }[];
  const files = pulled.map(({ file }) => file.slice(dir.length + 1));
  expect(files).toEqual([
    `${'𝒳'.repeat(45)}.json`,
    `${'𝒳'.repeat(45)}-${ids[1]}.json`,
    `${'x'.repeat(60)}.json`,
    `${'文'.repeat(60)}.json`,
  ]);
  const again = (await json(['dashboards', 'pull', ...ids, '--dir', dir])) as { file: string; state: string }[];
  expect(again.map(({ file, state }) => [file.slice(dir.length + 1), state])).toEqual(files.map((file) => [file, 'unchanged']));
  // A file may have the longest name that there is.
  const long = join(dir, `${'y'.repeat(250)}.json`);
  writeFileSync(long, '{"name": "Long"}');
  expect(await print(['dashboards', 'push', long])).toBe(`${long}: new (version 1)\n`);
  for (const id of [...ids, JSON.parse(readFileSync(long, 'utf8')).id])
    await app.ask('DELETE', `${app.projectPath}/monitoring/dashboards/${id}`);
});

test('a file that is named twice is pushed once', async () => {
  const path = join(folder, 'twice.json');
  writeFileSync(path, '{"name": "Twice"}');
  expect(await print(['dashboards', 'push', path, `${folder}/./twice.json`])).toMatch(/twice\.json: new \(version 1\)\n$/);
  const listed = (await json(['dashboards', 'list'])) as { id: string; name: string }[];
  const made = listed.filter(({ name }) => name === 'Twice');
  expect(made).toHaveLength(1);
  await app.ask('DELETE', `${app.projectPath}/monitoring/dashboards/${made[0]?.id}`);
});

test('a dashboard is pulled over no file that does not hold it', async () => {
  const dir = join(folder, 'taken');
  mkdirSync(dir);
  const { id } = (await app.ask('POST', `${app.projectPath}/monitoring/dashboards`, { body: { name: 'Taken' } })).json;
  writeFileSync(join(dir, 'taken.json'), 'a note');
  const path = join(dir, `taken-${id}.json`);
  for (const foreign of ['{"name": ', `{"id": "${app.demo.dashboards.private}", "name": "Another"}`]) {
    writeFileSync(path, foreign);
    for (const force of [[], ['--force']]) {
      const { code, out, err } = await portico(['dashboards', 'pull', 'Taken', '--dir', dir, ...force], { env: owner });
      expect([code, out]).toEqual([1, `${path}: it is there, and not this dashboard: mend it, or move it away.\n`]);
      expect(err).toBe(`Nothing was written for ${path}.\n`);
      expect([path, join(dir, 'taken.json')].map((file) => readFileSync(file, 'utf8'))).toEqual([foreign, 'a note']);
    }
  }
  rmSync(path);
  expect(await print(['dashboards', 'pull', 'Taken', '--dir', dir])).toBe(`${path}: new (version 1)\n`);
  await app.ask('DELETE', `${app.projectPath}/monitoring/dashboards/${id}`);
});

describe('a console', () => {
  test('is opened by name and passes bytes both ways in pipes, and leaves when all is quiet', async () => {
    const guest = await openGuest((line) => {
      line.write('login: ');
      line.on('data', (bytes) => line.write(Buffer.concat([Buffer.from([0xff, 0x1b]), bytes])));
    });
    try {
      const { name } = (await app.ask('GET', `${app.projectPath}/compute/instances/${app.demo.instances.eligible}`)).json;
      await setEndpoint(app, app.demo.instances.eligible, { port: guest.port });
      const key = { ...owner, PORTICO_CREDENTIAL: app.demo.users.member.api_key };
      const [code, err] = await fail(['console', name, '--linger', '0.3'], key, 'root\x1d\n');
      expect([code, err]).toEqual([0, `[${name}: connecting]\n[${name}: live]\n\n[${name}: left]\n`]);
      await expect.poll(() => guest.heard().toString()).toBe('root\x1d\n');
      expect(await print(['console', app.demo.instances.eligible, '--linger', '0.3'], key, '')).toBe('login: ');
    } finally {
      await guest.close();
    }
  });

  test('on a terminal takes each key as it is typed, and Ctrl-] leaves', async () => {
    const guest = await openGuest((line) => line.write('login: '));
    try {
      await setEndpoint(app, app.demo.instances.eligible, { port: guest.port });
      const terminal = startOnTerminal(['console', app.demo.instances.eligible], { env: owner });
      await terminal.until('login: ');
      terminal.type('a\x03\x04');
      await expect.poll(() => guest.heard().toString()).toBe('a\x03\x04');
      terminal.type('b\x1dc');
      const { code, out } = await terminal.exit;
      expect([code, out]).toEqual([0, expect.stringContaining('live: Ctrl-] leaves]')]);
      await expect.poll(() => guest.heard().toString()).toBe('a\x03\x04b');
    } finally {
      await guest.close();
    }
  });

  test('in a pipe is left only when all of it has arrived', async () => {
    const guest = await openGuest();
    const proxy = await openProxy({ host: '127.0.0.1', port: Number(new URL(app.baseUrl).port) });
    try {
      const { eligible } = app.demo.instances;
      await setEndpoint(app, eligible, { port: guest.port });
      const env = { ...owner, PORTICO_URL: `http://127.0.0.1:${proxy.port}` };
      const running = startPortico(['console', eligible, '--linger', '0.1'], { env });
      await running.until(': live]');
      proxy.freeze();
      // What the program does not wait for as it reads its input: half a megabyte more than the system takes.
      const text = randomBytes(((await measureCapacity()) + 512 * 1024) / 2).toString('hex');
      running.end(text);
      await sleep(2_500);
      proxy.thaw();
      expect(await running.exit).toMatchObject({ code: 0, err: expect.stringContaining(': left]') });
      await expect.poll(() => guest.heard().length, { timeout: 10_000 }).toBe(text.length);
      expect(guest.heard().toString() === text).toBe(true);
    } finally {
      await proxy.close();
      await guest.close();
    }
  });

  test('in a pipe fails where it closes, or the connection breaks, before all has arrived', async () => {
    const guest = await openGuest((line) => line.pause());
    const proxy = await openProxy({ host: '127.0.0.1', port: Number(new URL(app.baseUrl).port) });
    try {
      const { eligible } = app.demo.instances;
      await setEndpoint(app, eligible, { port: guest.port });
      const text = 'x'.repeat(24_000_000);
      const lost = 'The connection ended before all input had arrived: some of it may be lost.\n';
      const hungUp = fail(['console', eligible], owner, text);
      const line = await guest.called();
      await sleep(1_000);
      line.resume().end();
      // With input on its way the guest's end may also come as a line that is broken.
      expect(await hungUp).toEqual([1, expect.stringMatching(/some of it may be lost|does not answer/)]);
      const broken = startPortico(['console', eligible], { env: { ...owner, PORTICO_URL: `http://127.0.0.1:${proxy.port}` } });
      await broken.until(': live]');
      proxy.freeze();
      broken.end(text.slice(0, 500_000));
      await sleep(500);
      for (const link of proxy.links()) link.cut();
      await proxy.mend();
      expect(await broken.exit).toMatchObject({ code: 1, err: expect.stringContaining(lost) });
    } finally {
      await proxy.close();
      await guest.close();
    }
  });

  test.each(['b', ''])('on a terminal is left while it is disconnected, and after %j in the same moment', async (before) => {
    const guest = await openGuest((line) => line.write('login: '));
    const proxy = await openProxy({ host: '127.0.0.1', port: Number(new URL(app.baseUrl).port) });
    try {
      await setEndpoint(app, app.demo.instances.eligible, { port: guest.port });
      const env = { ...owner, PORTICO_URL: `http://127.0.0.1:${proxy.port}` };
      const terminal = startOnTerminal(['console', app.demo.instances.eligible], { env });
      await terminal.until('login: ');
      await proxy.refuse();
      await terminal.until(': waiting ');
      terminal.type('a');
      await sleep(200);
      terminal.type(`${before}\x1d`);
      const exit = await Promise.race([terminal.exit, sleep(5_000)]);
      terminal.kill();
      expect(exit).toMatchObject({ code: 0, out: expect.stringContaining(': left]') });
    } finally {
      await proxy.close();
      await guest.close();
    }
  });

  test('is taken over only after a question on a terminal, and in a pipe only with --take-over', async () => {
    const guest = await openGuest((line) => line.write('login: '));
    try {
      const { eligible } = app.demo.instances;
      await setEndpoint(app, eligible, { port: guest.port });
      const theirs = await openConsole(app, eligible, { as: 'admin' });
      await theirs.until('login: ');
      const key = { ...owner, PORTICO_CREDENTIAL: app.demo.users.member.api_key };
      const refusal = 'Somebody is at this console: with --take-over it is taken from them.\n';
      expect(await fail(['console', eligible, '--linger', '0.3'], key)).toEqual([1, refusal]);
      for (const answer of ['\r', 'no\r', '\x04']) {
        const terminal = startOnTerminal(['console', eligible], { env: key });
        await terminal.until('Somebody is at this console. Take it over? [y/N]');
        terminal.type(answer);
        expect(await terminal.exit).toMatchObject({ code: 1, out: expect.stringContaining('The console was not opened.') });
      }
      expect([theirs.socket.readyState, guest.connections()]).toEqual([theirs.socket.OPEN, 1]);
      const terminal = startOnTerminal(['console', eligible], { env: key });
      await terminal.until('[y/N]');
      terminal.type('y\r');
      await terminal.until('live: Ctrl-] leaves]');
      expect(await theirs.closed).toEqual({ code: 4409, reason: 'taken_over' });
      terminal.type('typed');
      await expect.poll(() => guest.heard().toString()).toBe('typed');
      const piped = await portico(['console', eligible, '--linger', '0.3', '--take-over'], { env: key });
      expect([piped.code, piped.out]).toEqual([0, 'login: ']);
      expect(await terminal.exit).toMatchObject({ code: 1, out: expect.stringContaining('Somebody else has opened this console.') });
      expect((await portico(['console', '--help'], { env: key })).out).toContain('--take-over');
    } finally {
      await guest.close();
    }
  });

  test('that is a screen has any number of users, without a question', async () => {
    const guest = await openGuest((line) => line.write('RFB'));
    try {
      const { eligible } = app.demo.instances;
      await setEndpoint(app, eligible, { kind: 'vnc', port: guest.port });
      const theirs = await openConsole(app, eligible, { as: 'admin' });
      await theirs.until('RFB');
      const key = { ...owner, PORTICO_CREDENTIAL: app.demo.users.member.api_key };
      expect((await portico(['console', eligible, '--linger', '0.3'], { env: key })).code).toBe(0);
      expect(theirs.socket.readyState).toBe(theirs.socket.OPEN);
      theirs.socket.terminate();
    } finally {
      await guest.close();
    }
  });

  test('that is unavailable prints the reason', async () => {
    expect(await fail(['console', 'nowhere'])).toEqual([
      1,
      'There is no instance nowhere in the project: “portico instances” lists them.\n',
    ]);
    const viewer = { ...owner, PORTICO_CREDENTIAL: app.demo.users.viewer.token ?? '' };
    const [code, err] = await fail(['console', app.demo.instances.eligible], viewer);
    expect([code, err]).toEqual([1, expect.stringContaining('permission')]);
  });
});

describe('API keys', () => {
  test('are made, listed and revoked by a session token', async () => {
    const { code, out, err } = await portico(['keys', 'create', 'nightly', '--expires', '2999-01-01T00:00:00Z'], { env: owner });
    expect([code, out]).toEqual([0, expect.stringMatching(/^sk-portico-\w+\n$/)]);
    const [, id = ''] = /^Its id is (\S+)\. The key is not shown again\.\n$/.exec(err) ?? [];
    expect(await print(['projects'], { ...owner, PORTICO_CREDENTIAL: out })).toContain('Production');
    expect(await print(['keys', 'list'])).toMatch(new RegExp(`^nightly +sk-portico-\\w{4}… +good until 2999-01-01 00:00 .* ${id}$`, 'm'));
    expect(await print(['keys', 'revoke', id])).toBe('nightly counts no more.\n');
    expect(await json(['keys', 'list'])).toContainEqual(expect.objectContaining({ id, name: 'nightly', revoked: expect.any(String) }));
    expect(await fail(['projects'], { ...owner, PORTICO_CREDENTIAL: out })).toEqual([1, expect.stringContaining('“portico login”')]);
  });

  test('that may have been made are reported as uncertain', async () => {
    const front = await openFront(({ body }, response) => (body.includes('createApiKey') ? response.destroy() : null));
    const [code, err] = await fail(['keys', 'create', 'lost'], { ...owner, PORTICO_URL: front.url });
    expect([code, err]).toEqual([1, expect.stringMatching(/^Whether the key was made is not known: .*\n127\..* does not answer: .*\n$/)]);
    await front.close();
  });

  test('are not managed by one of them', async () => {
    const key = { ...owner, PORTICO_CREDENTIAL: app.demo.users.owner.api_key };
    const [code, err] = await fail(['keys', 'list'], key);
    expect([code, err]).toEqual([1, expect.stringMatching(/An API key manages no keys and takes no ticket: .*\n$/)]);
  });
});

describe('any other request', () => {
  test('is sent as given, and its response is printed', async () => {
    const path = '/v1/organizations/{organization_id}/projects/{project_id}/compute/tasks?page_size=1';
    expect(await json(['api', 'get', path])).toEqual((await app.ask('GET', `${app.projectPath}/compute/tasks?page_size=1`)).json);
    const boards = '/v1/organizations/{organization_id}/projects/{project_id}/monitoring/dashboards';
    const made = JSON.parse(await print(['api', 'POST', boards, '--data', '-'], owner, '{"name": "by api"}'));
    expect(made.name).toBe('by api');
    writeFileSync(join(folder, 'body.json'), '{"name": "renamed"}');
    const put = (tag: string) => ['api', 'PUT', `${boards}/${made.id}`, '--data', '@body.json', '--header', `If-Match: "${tag}"`];
    const stale = await portico(put('7'), { env: owner, cwd: folder });
    expect([stale.code, JSON.parse(stale.out).context, stale.err]).toEqual([1, { version: 1 }, expect.stringMatching(/^\S.*\n$/)]);
    expect(JSON.parse(await print(put('1'))).name).toBe('renamed');
    expect(await print(['api', 'DELETE', `${boards}/${made.id}`])).toBe('');
    expect(await print(['api', 'GET', '/health/live'])).not.toBe('');
  });

  test('is a failure where GraphQL answers with errors, which are printed', async () => {
    const post = (query: string, ...more: string[]) =>
      portico(['api', 'post', '/graphql', '--data', JSON.stringify({ query }), ...more], { env: owner });
    const failed = await post('{ viewer { id } project(id: "none") { id } }');
    expect([failed.code, failed.err]).toEqual([1, 'Not found.\n']);
    expect(JSON.parse(failed.out)).toMatchObject({ data: { project: null }, errors: [{ extensions: { code: 'not_found' } }] });
    const { code, out } = await post('{ viewer { name } }', '--header', 'Accept: text/event-stream');
    expect([code, out]).toEqual([0, expect.stringContaining('Olivia Okafor')]);
    expect((await post('{ viewer { name } }')).code).toBe(0);
  });

  test('that is malformed exits with 2', async () => {
    const cases: ReadonlyArray<readonly [string[], RegExp]> = [
      [['api', 'FETCH', '/v1'], /^FETCH is not a method\.\n$/],
      [['api', 'GET', 'v1'], /^v1 is not a path/],
      [['api', 'GET', '/v1', '--data', '{}'], /^GET has no body\.\n$/],
      [['api', 'POST', '/v1', '--data', '{'], /^--data is not JSON\.\n$/],
      [['api', 'GET', '/v1', '--header', 'sesame'], /^A --header is a name, a colon and a value, such as /],
      [['api', 'GET', '/v1', '--header', 'X: sésame€'], /^A --header is a name, a colon and a value, such as /],
      [['api', 'GET', '/v1', '--header', 'authorization: Bearer sesame'], /^authorization cannot be set with --header/],
      [['api', 'POST', '/v1', '--data', '{}', '--header', 'Content-Length: 7'], /^Content-Length cannot be set with --header/],
      [['api', 'GET', '//'], /^\/\/ is not a path of /],
      [['projects', '--url', 'https://me:sesame@localhost'], /^The address of a server holds no user name and no password\.\n$/],
      [['projects', '--url', 'https://localhost/?x=1'], /^The address of a server holds no query and no fragment\.\n$/],
      [['drop'], /^error: unknown command 'drop'\n$/],
      [['instances', '--page', '0'], /A number from 1 on\.\n$/],
      [['publish', 'x'], /^error: required option '--kind <kind>' not specified\n$/],
      [['publish', 'x', '--kind', 'y', '--severity', 'loud'], /Allowed choices are info, warning, critical\.\n$/],
    ];
    const results = await Promise.all(cases.map(([args]) => fail(args)));
    for (const [index, [, sentence]] of cases.entries()) expect(results[index]).toEqual([2, expect.stringMatching(sentence)]);
  });
});

test('a response that is not JSON is a failure of each command, and is not printed', async () => {
  const page = (response: ServerResponse) => response.writeHead(200, { 'content-type': 'text/html' }).end('<p>Sign in</p>');
  const front = await openFront(({ url }, response) => (url.startsWith('/v1/') ? page(response) : null));
  const env = { ...owner, PORTICO_URL: front.url };
  const file = join(folder, 'page.json');
  writeFileSync(file, '{"name": "Page"}');
  const sentence = /^Something before 127\S+ has answered what is not JSON\.\n$/;
  for (const args of [['overview'], ['--json', 'overview'], ['--json', 'instances'], ['--json', 'notifications'], ['read', '--all']])
    expect(await portico(args, { env })).toEqual({ code: 1, out: '', err: expect.stringMatching(sentence) });
  expect(await portico(['--json', 'dashboards', 'push', file], { env })).toEqual({
    code: 1,
    out: expect.stringContaining('"state": "unknown"'),
    err: `Whether ${file} was written there is not known: see “portico dashboards list” before you push it again.\n`,
  });
  await front.close();
});

test('what was done to the files before a failure that ends a push is reported', async () => {
  const paths = ['first', 'second'].map((name) => join(folder, `${name}.json`));
  for (const path of paths) writeFileSync(path, '{"name": "Two"}');
  let requests = 0;
  const front = await openFront(({ url }, response) => {
    if (!url.endsWith('/dashboards')) return null;
    requests += 1;
    if (requests === 1) return response.writeHead(200, { 'content-type': 'text/html' }).end('<p>Sign in</p>');
    const fault = { detail: 'Expired.', code: 'not_authenticated', error: 'not_authenticated' };
    return response.writeHead(401, { 'content-type': 'application/json' }).end(JSON.stringify(fault));
  });
  const { code, out, err } = await portico(['dashboards', 'push', ...paths], { env: { ...owner, PORTICO_URL: front.url } });
  expect([code, out]).toEqual([1, expect.stringMatching(/first\.json: .*\n$/)]);
  expect(err).toMatch(/^Whether \S+first\.json was written there is not known: .*\n.*Expired.*portico login.*\n$/);
  await front.close();
});

test('a pushed dashboard is reported as pushed, also where its file cannot be written', async () => {
  const line = `node ${program} dashboards push /dev/fd/3 3< <(echo '{"name": "From a pipe"}')`;
  const { code, out, err } = await startProgram('bash', ['-c', line], { env: owner }).exit;
  expect([code, out]).toEqual([1, expect.stringMatching(/^\/dev\/fd\/3: new \(version 1\); ENOENT: .*\n$/)]);
  expect(err).toBe('The file /dev/fd/3 could not be written after the push: pull the dashboard, and do not push this file again.\n');
});

test('output that cannot be written is a failure', async () => {
  const line = `node ${program} projects > /dev/full`;
  expect(await startProgram('sh', ['-c', line], { env: owner }).exit).toEqual({
    code: 1,
    out: '',
    err: 'Standard output cannot be written (ENOSPC).\n',
  });
});

test('a closed pipe ends the program quietly', async () => {
  const line = `{ node ${program} --json instances --page-size 100; echo "ended with $?" >&2; } | head -n 1`;
  expect(await startProgram('sh', ['-c', line], { env: owner }).exit).toEqual({ code: 0, out: '{\n', err: 'ended with 0\n' });
});

test('the help leads to the operator’s program of the same name', async () => {
  const help = await print(['--help'], nobody);
  expect(help).toContain('npm run portico -- --help');
  for (const name of ['projects', 'overview', 'console']) expect(help).toMatch(new RegExp(`^  ${name} `, 'm'));
});

describe('docs/cli.md', () => {
  const guide = readFileSync(new URL('../../docs/cli.md', import.meta.url), 'utf8');
  const blocks = [...guide.matchAll(/^```console\n([\s\S]*?)^```$/gm)].map(([, block = '']) => block);
  const steps = blocks.flatMap((block) => block.split(/^\$ /m).slice(1)).map((step) => /^(.*)\n([\s\S]*)$/.exec(step) ?? []);
  /** What differs from one day, and one machine, to the next. */
  const settle = (text: string, home: string) =>
    text
      .replaceAll(shown.baseUrl, 'http://localhost:4000')
      .replaceAll(home, '/home/olivia')
      .replace(/\d{4}-\d\d-\d\d([ T])\d\d:\d\d(:\d\d\.\d+Z)?/g, '2026-01-01$100:00')
      .replace(/\b(?!019b76d)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, 'an id');
  let shown: TestApp;
  beforeAll(async () => {
    shown = await startApp();
  });
  afterAll(() => shown.close());

  test('shows the output of the program', async () => {
    expect(steps.length).toBeGreaterThan(10);
    const home = mkdtempSync(join(tmpdir(), 'portico-docs-'));
    mkdirSync(join(home, '.portico'));
    writeFileSync(join(home, '.portico/demo.json'), JSON.stringify(shown.demo));
    mkdirSync(join(home, 'bin'));
    writeFileSync(join(home, 'bin/portico'), `#!/bin/sh\nexec ${process.execPath} ${program} "$@"\n`, { mode: 0o755 });
    try {
      for (const [, command = '', printed = ''] of steps) {
        const isFollowing = command.includes('--follow');
        const line = `PATH=$HOME/bin:$PATH; ${isFollowing ? 'exec ' : ''}${command.replaceAll('http://localhost:4000', shown.baseUrl)}`;
        const running = startProgram('bash', ['-c', `{ ${line}\n} 2>&1`], { env: { HOME: home }, cwd: home });
        running.end();
        // A feed is followed until somebody has seen enough.
        if (isFollowing) await running.until(printed.trimEnd().split('\n').at(-1)?.slice(-20) ?? '').finally(running.kill);
        const { out } = await running.exit;
        expect(`$ ${command}\n${settle(out, home)}`).toBe(`$ ${command}\n${settle(printed, home)}`);
      }
    } finally {
      rmSync(home, { recursive: true, force: true });
    }
  });
});
