import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { openGuest, setEndpoint } from '../support/console.ts';
import { portico, startPortico } from '../support/portico.ts';

// Each command once, as a program in pipes: each takes a third of a second. All else of them: test/slow/client-cli.test.ts.
let app: TestApp;
let folder: string;
let env: Record<string, string>;
let profiles: string;

beforeAll(async () => {
  app = await startApp();
  folder = mkdtempSync(join(tmpdir(), 'portico-cli-'));
  env = { HOME: folder };
  profiles = join(folder, '.config/portico/profiles.json');
});
afterAll(async () => {
  await app.close();
  rmSync(folder, { recursive: true, force: true });
});

const run = (...args: string[]) => portico(args, { env, cwd: folder });

async function json(...args: string[]) {
  const { code, out, err } = await run('--json', ...args);
  expect([args, code, err]).toEqual([args, 0, '']);
  return JSON.parse(out);
}

test('login keeps a key for its owner alone, and never shows it', async () => {
  const { api_key } = app.demo.users.owner;
  const result = await portico(['login', '--url', app.baseUrl], { env, input: `${api_key}\n` });
  expect(result).toEqual({
    code: 0,
    out: `You are Olivia Okafor (owner@acme.example) at ${app.baseUrl}.\n`,
    err: `Kept as the profile default in ${profiles}.\n`,
  });
  expect(JSON.parse(readFileSync(profiles, 'utf8'))).toEqual({ profiles: { default: { url: app.baseUrl, credential: api_key } } });
  expect([profiles, join(profiles, '..')].map((path) => (statSync(path).mode & 0o777).toString(8))).toEqual(['600', '700']);
  expect(await json('use', 'Production')).toMatchObject({ id: app.demo.project_id });
});

test('projects, overview, instances, tasks and notifications show the responses of v1, as text and as JSON', async () => {
  const read = async (path: string) => (await app.ask('GET', `${app.projectPath}/${path}`)).json;
  const [projects, overview, instances, tasks, notifications] = await Promise.all([
    json('projects'),
    run('overview'),
    json('instances', '--page-size', '2'),
    json('tasks', '--page-size', '2'),
    json('notifications', '--unread', '--page-size', '3'),
  ]);
  expect(projects.map(({ name }: { name: string }) => name)).toEqual(['Production', 'Sandbox']);
  const [{ instances_by_status }] = await read('compute/overview');
  for (const { status, count } of instances_by_status) expect(overview.out).toMatch(new RegExp(`^  ${status} +${count}  █+$`, 'm'));
  expect(instances).toEqual(await read('compute/instances?page=1&page_size=2'));
  expect(tasks).toEqual(await read('compute/tasks?page=1&page_size=2'));
  expect(notifications).toEqual(await read('notifications?unread=true&page=1&page_size=3'));
});

test('publish, a feed that is followed, and read', async () => {
  const following = startPortico(['notifications', '--follow', '--json'], { env });
  await following.until('"ready"');
  const [published] = await Promise.all([
    json('publish', 'Hello\x1b[2J', '--kind', 'test.cli', '--data', '{"a": 1}'),
    following.until('Hello'),
  ]);
  following.kill();
  const { out, err } = await following.exit;
  const [ready, event] = out
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(ready).toEqual({ type: 'ready', sequence: 150, read_through: 100, unread_count: 50 });
  expect(event).toMatchObject({
    type: 'notification',
    sequence: 151,
    notification: { id: published.id, title: 'Hello\x1b[2J', data: { a: 1 } },
  });
  expect(err).toBe('[Production: connecting]\n[Production: live]\n');
  expect((await run('notifications', '--page-size', '1')).out).toMatch(/^151 .*unread .* test\.cli +Hello \[2J$/m);
  expect(await json('read', published.id)).toEqual({ marked: 1, unread_count: 50 });
  expect((await run('read', '--all')).out).toBe('50 marked as read, 0 unread.\n');
});

test('dashboards are pulled, edited and pushed; where both sides were changed, both stay', async () => {
  const { id, file } = (await json('dashboards', 'pull', 'Traffic', '--dir', 'boards'))[0];
  expect((await json('dashboards', 'list')).map(({ name }: { name: string }) => name)).toContain('Traffic');
  const path = join(folder, file);
  const edit = (name: string) => writeFileSync(path, readFileSync(path, 'utf8').replace(/"name": ".*"/, `"name": "${name}"`));
  edit('Mine');
  expect(await run('dashboards', 'push', file)).toEqual({ code: 0, out: `${file}: pushed (version 3)\n`, err: '' });
  const address = `${app.projectPath}/monitoring/dashboards/${id}`;
  await app.ask('PUT', address, { body: { ...(await app.ask('GET', address)).json, name: 'Theirs' } });
  edit('Mine again');
  const { code, out, err } = await run('dashboards', 'push', file);
  expect([code, out]).toEqual([
    1,
    `${file}: conflict, as it is at version 4 there\nFIELD  THERE     YOURS\nname   "Theirs"  "Mine again"\n`,
  ]);
  expect(err).toMatch(new RegExp(`^Nothing was written for ${file}\\. .*\\n$`));
  expect((await app.ask('GET', address)).json.name).toBe('Theirs');
});

test('an edited digit of a dashboard is an edit', async () => {
  const path = join(folder, 'digits.json');
  const write = (widgets: string) => writeFileSync(path, `{"name": "Digits", "widgets": [${widgets}]}`);
  write('{"n":9007199254740993,"f":1.10}');
  expect((await run('dashboards', 'push', 'digits.json')).out).toMatch(/^digits\.json: /);
  const edit = (from: string, to: string) => writeFileSync(path, readFileSync(path, 'utf8').replace(from, to));
  edit('9007199254740993', '9007199254740992');
  expect((await run('dashboards', 'push', 'digits.json')).out).toBe('digits.json: pushed (version 2)\n');
  edit('1.10', '1.1');
  expect((await run('dashboards', 'pull', 'Digits')).out).toMatch(/^digits\.json: edited/);
  expect(readFileSync(path, 'utf8')).toContain('9007199254740992');
});

test('a file that is not UTF-8 is not pushed, and stays as it is', async () => {
  const path = join(folder, 'latin.json');
  const bytes = Buffer.from('{"name": "St\u00f6rungen", "widgets": []}', 'latin1');
  writeFileSync(path, bytes);
  for (const words of [
    ['dashboards', 'push', 'latin.json'],
    ['api', 'PUT', '/v1/x', '--data', '@latin.json'],
  ])
    expect(await run(...words)).toEqual({ code: 2, out: '', err: 'latin.json is not UTF-8.\n' });
  expect(readFileSync(path)).toEqual(bytes);
});

test('a console is opened by the name of its instance, and passes bytes in pipes', async () => {
  const guest = await openGuest((line) => line.write('login: '));
  try {
    const instance = app.demo.instances.eligible;
    const { name } = (await app.ask('GET', `${app.projectPath}/compute/instances/${instance}`)).json;
    await setEndpoint(app, instance, { port: guest.port });
    const console = await portico(['console', name, '--linger', '0.3'], { env, input: 'root\x1d\r' });
    expect(console).toEqual({ code: 0, out: 'login: ', err: `[${name}: connecting]\n[${name}: live]\n\n[${name}: left]\n` });
    expect(guest.heard().toString()).toBe('root\x1d\r');
  } finally {
    await guest.close();
  }
});

test('keys are managed by a session token, and not by one of them', async () => {
  const token = { ...env, PORTICO_CREDENTIAL: app.demo.users.owner.token ?? '' };
  const { out, err } = await portico(['keys', 'create', 'nightly'], { env: token });
  expect(out).toMatch(/^sk-portico-\w+\n$/);
  const [, id = ''] = /^Its id is (\S+)\./.exec(err) ?? [];
  expect((await portico(['keys', 'revoke', id], { env: token })).out).toBe('nightly counts no more.\n');
  expect((await portico(['keys', 'list'], { env: token })).out).toMatch(new RegExp(`^nightly .*… +revoked .* ${id}$`, 'm'));
  expect(await run('keys', 'list')).toMatchObject({ code: 1, err: expect.stringMatching(/An API key manages no keys .*\n$/) });
});

describe('api', () => {
  test('sends any request, and prints why it was refused', async () => {
    const path = '/v1/organizations/{organization_id}/projects/{project_id}/compute/tasks?page_size=1';
    expect(await json('api', 'GET', path)).toEqual((await app.ask('GET', `${app.projectPath}/compute/tasks?page_size=1`)).json);
    const { code, out, err } = await run('api', 'POST', path.replace(/compute.*/, 'monitoring/dashboards'), '--data', '{}');
    expect([code, Object.keys(JSON.parse(out)), err]).toEqual([1, ['name'], expect.stringMatching(/^name: .*\n$/)]);
  });
});

test('logout forgets the key, and commands without one print how to log in', async () => {
  expect((await run('logout')).out).toBe('The profile default is forgotten.\n');
  expect(await run('projects')).toEqual({
    code: 1,
    out: '',
    err: 'There is no profile default: log in with “portico login --url <address>”.\n',
  });
  expect(await run('drop')).toEqual({ code: 2, out: '', err: "error: unknown command 'drop'\n" });
});
