import { connect } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { type Guest, openConsoleSocket, openGuest, setEndpoint, takeConsoleTicket } from '../support/console.ts';

// Whatever a client says, the gateway connects to what an operator has written down, and to nothing else.
let app: TestApp;
let console: Guest;
/** Where a client would like the gateway to connect to. */
let prey: Guest;
let instance: string;
let aims: string[];
beforeAll(async () => {
  app = await startApp({
    RATE_LIMIT_USER: '100000000',
    RATE_LIMIT_ANONYMOUS: '100000000',
    CONSOLES_PER_USER: '1000',
    TRUST_PROXY: 'loopback',
  });
  [console, prey] = [await openGuest((line) => line.write('hello')), await openGuest()];
  instance = app.demo.instances.eligible;
  await setEndpoint(app, instance, { kind: 'vnc', port: console.port });
  // That of another tenant leads where nobody here may get to.
  await setEndpoint(app, app.demo.foreign.instance_id, { kind: 'vnc', port: prey.port });
  aims = [
    `127.0.0.1:${prey.port}`,
    `http://127.0.0.1:${prey.port}/`,
    `//127.0.0.1:${prey.port}`,
    `tcp://127.0.0.1:${prey.port}`,
    `ws://127.0.0.1:${prey.port}`,
    `@127.0.0.1:${prey.port}`,
    `{"host":"127.0.0.1","port":${prey.port}}`,
    `[::ffff:127.0.0.1]:${prey.port}`,
    '/var/run/docker.sock',
    'file:///etc/passwd',
    '169.254.169.254:80',
  ];
});
afterAll(async () => {
  expect(prey.connections()).toBe(0);
  await app.close();
  await Promise.all([console.close(), prey.close()]);
});

/** Whether a socket came to the console of the instance; how it ended otherwise. */
async function open(path: string, options: Parameters<typeof openConsoleSocket>[2] = {}): Promise<string> {
  const socket = openConsoleSocket(app.baseUrl, path, options);
  const outcome = await Promise.race([
    socket.until('hello').then(
      () => 'the console',
      () => new Promise<string>(() => {}),
    ),
    socket.closed.then(({ code, reason }) => `${code} ${reason}`),
    socket.refused.then(({ status }) => String(status)),
  ]);
  socket.socket.terminate();
  return outcome;
}

const header = () => ({ authorization: `Bearer ${app.demo.users.member.token}` });
const place = () => `${app.projectPath}/compute/instances/${instance}/console/ws`;

it('the query: every name that an address could have', async () => {
  const names = [
    'host',
    'port',
    'url',
    'uri',
    'target',
    'endpoint',
    'address',
    'socket',
    'socket_path',
    'path',
    'to',
    'redirect',
    'kind',
    'instance_id',
  ];
  for (const name of names) {
    for (const aim of aims.slice(0, 3)) {
      expect(await open(`${place()}?${name}=${encodeURIComponent(aim)}`, { headers: header() }), name).toBe('the console');
    }
    const { path, ticket } = await takeConsoleTicket(app, instance);
    expect(await open(`${path}?ticket=${ticket}&${name}=${encodeURIComponent(aims[0] ?? '')}`)).toBe('the console');
  }
});

it('the query: session_id, after and ticket', async () => {
  for (const aim of [...aims, app.demo.foreign.instance_id]) {
    const text = encodeURIComponent(aim);
    const isId = aim === app.demo.foreign.instance_id;
    expect(await open(`${place()}?session_id=${text}`, { headers: header() })).toBe(isId ? '4404 session_gone' : '4400 invalid_session_id');
    expect(await open(`${place()}?after=${text}`, { headers: header() })).toBe('4400 invalid_after');
    expect(await open(`${place()}?ticket=${text}`, { headers: header() })).toBe('4401 ticket_unknown');
  }
});

it('the path: in the place of each id, behind it, and above it', async () => {
  const { organization_id, project_id, foreign } = app.demo;
  const at = (organization: string, project: string, of: string, rest = '/console/ws') =>
    `/v1/organizations/${organization}/projects/${project}/compute/instances/${of}${rest}`;
  for (const aim of aims) {
    const text = encodeURIComponent(aim);
    for (const path of [
      at(text, project_id, instance),
      at(organization_id, text, instance),
      at(organization_id, project_id, text),
      at(organization_id, project_id, `${instance}%2f${text}`),
      at(organization_id, project_id, `${instance}@${text}`),
      at(organization_id, project_id, instance, `/console/ws/${text}`),
      at(organization_id, project_id, instance, `/console/${text}/ws`),
    ])
      expect(await open(path, { headers: header() }), path).toBe('404');
  }
  for (const path of [
    at(organization_id, project_id, foreign.instance_id),
    at(organization_id, project_id, `${instance}/../${foreign.instance_id}`),
    at(foreign.organization_id, foreign.project_id, foreign.instance_id),
    at(organization_id, foreign.project_id, foreign.instance_id),
  ])
    expect(await open(path, { headers: header() }), path).toBe('404');
});

it('the request line: a target that is a URL, or not one at all', async () => {
  const { hostname, port } = new URL(app.baseUrl);
  const ask = (target: string) =>
    new Promise<string>((resolve) => {
      let heard = '';
      const socket = connect(Number(port), hostname, () =>
        socket.write(
          [
            `GET ${target} HTTP/1.1`,
            `Host: 127.0.0.1:${prey.port}`,
            'Connection: Upgrade',
            'Upgrade: websocket',
            'Sec-WebSocket-Version: 13',
            'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
            `Authorization: Bearer ${app.demo.users.member.token}`,
            '\r\n',
          ].join('\r\n'),
        ),
      );
      socket.on('data', (bytes) => {
        heard += bytes;
        if (heard.includes('hello') || heard.includes('"code"')) socket.destroy();
      });
      socket.on('close', () => resolve(heard.includes('hello') ? 'the console' : heard.slice(9, 12)));
      socket.on('error', () => {});
    });
  expect(await ask(place())).toBe('the console');
  // The whole URL, as one would tell a proxy: only its path counts.
  expect(await ask(`http://127.0.0.1:${prey.port}${place()}`)).toBe('the console');
  for (const target of [`//127.0.0.1:${prey.port}${place()}`, '//', `127.0.0.1:${prey.port}`, '*', `tcp://127.0.0.1:${prey.port}`])
    expect(['404', '400']).toContain(await ask(target));
});

it('the headers, and the subprotocol', async () => {
  const names = [
    'host',
    'x-forwarded-host',
    'x-forwarded-for',
    'x-forwarded-server',
    'forwarded',
    'x-real-ip',
    'via',
    'referer',
    'x-original-url',
    'x-rewrite-url',
    'x-console-session-id',
  ];
  for (const name of names) {
    for (const aim of aims.slice(0, 2)) {
      const isMalformed = name === 'host' && aim.includes('/');
      expect(await open(place(), { headers: { ...header(), [name]: aim } }), name).toBe(isMalformed ? '400' : 'the console');
    }
  }
  for (const protocol of [`127.0.0.1_${prey.port}`, 'tcp', 'binary']) {
    expect(await open(place(), { headers: header(), protocols: [protocol] })).toBe('the console');
  }
});

it('the request for a ticket', async () => {
  const asked = (body: object) => app.ask('POST', `${app.projectPath}/websocket-tickets`, { as: 'member', body });
  for (const aim of aims) {
    expect((await asked({ target: 'console', instance_id: aim })).json).toEqual({ instance_id: ['Must be a valid UUID.'] });
    expect((await asked({ target: 'console', instance_id: instance, session_id: aim })).json).toEqual({
      session_id: ['Must be a valid UUID.'],
    });
    const { json } = await asked({ target: 'console', instance_id: instance, host: aim, endpoint: aim, path: aim, socket_path: aim });
    expect(await open(`${json.path}?ticket=${json.ticket}`)).toBe('the console');
  }
  expect((await asked({ target: 'console', instance_id: app.demo.foreign.instance_id })).status).toBe(404);
  const foreign = await takeConsoleTicket(app, instance, { sessionId: app.demo.foreign.instance_id });
  expect(await open(`${foreign.path}?ticket=${foreign.ticket}`)).toBe('4404 session_gone');
});

it('the address of a console endpoint is in no API', async () => {
  const types = await app.graphql('{ __schema { types { name fields { name } inputFields { name } } } }');
  const names = JSON.stringify(types.json).toLowerCase();
  for (const name of ['endpoint', 'sockethost', 'socketpath', '"host"', '"port"']) expect(names).not.toContain(name);
  const told = app.logLines.join('');
  expect(told).not.toContain(`:${console.port}`);
});
