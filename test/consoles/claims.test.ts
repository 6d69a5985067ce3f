import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { openProject, type ProjectScope, rebindScope } from '../../src/access/scope.ts';
import { Consoles } from '../../src/consoles/consoles.ts';
import type { Database } from '../../src/platform/database.ts';
import { createLogger } from '../../src/platform/logger.ts';
import { startApp, type TestApp } from '../support/app.ts';
import { type Guest, openGuest, setEndpoint } from '../support/console.ts';

// Several `Consoles` with one database are the processes between which a session moves.
let app: TestApp;
let guest: Guest;
let instance: string;
const processes: Consoles[] = [];
beforeAll(async () => {
  app = await startApp();
  instance = app.demo.instances.eligible;
});
afterAll(() => app.close());
beforeEach(async () => {
  guest = await openGuest();
  await setEndpoint(app, instance, { port: guest.port });
});
afterEach(async () => {
  await closeProcesses();
  await guest.close();
});

function openProcess(): Consoles {
  const watch = { add: () => ({ stop: () => {} }) } as never;
  const { database } = app.app;
  const consoles = new Consoles({ database, watch, log: createLogger('silent'), limits: { perUser: 10, idleMs: 60_000 } });
  processes.push(consoles);
  return consoles;
}

async function closeProcesses(): Promise<void> {
  for (const one of processes.splice(0)) await one.close();
  await expect.poll(() => guest.lines.size).toBe(0);
}

function admit(as: 'admin' | 'member'): Promise<ProjectScope> {
  const { organization_id: organizationId, project_id: projectId, users } = app.demo;
  const credential = { kind: 'session', expires: new Date(Date.now() + 3_600_000) } as const;
  return openProject(
    app.app.database,
    { userId: users[as].id, email: '', name: '', created: new Date(), credential },
    { organizationId, projectId },
  );
}

/** A client that collects the output. */
function createClient() {
  let output = '';
  const send = (bytes: Buffer, onSent: () => void) => {
    output += bytes.toString();
    onSent();
  };
  return { output: () => output, bufferedAmount: 0, send, pause: () => {}, resume: () => {}, close: () => {} };
}

const request = { after: null, clientAddress: '127.0.0.1' };

/** Opens a session in a process, or attaches to one; returns its id. */
async function attach(consoles: Consoles, scope: ProjectScope, sessionId: string | null, client = createClient()): Promise<string> {
  const opening = await consoles.prepare(scope, { ...request, instanceId: instance, sessionId });
  if (typeof opening === 'string') throw new Error(opening);
  const attachment = await opening.attach(client);
  if (typeof attachment === 'string') throw new Error(attachment);
  return opening.sessionId;
}

/** Begins a session that has said something. */
async function begin(consoles: Consoles, scope: ProjectScope): Promise<string> {
  const client = createClient();
  const id = await attach(consoles, scope, null, client);
  await expect.poll(() => guest.lines.size).toBe(1);
  guest.say('before');
  await expect.poll(client.output).toBe('before');
  return id;
}

it('a session goes to its user whoever else asks for it at that moment', async () => {
  const [member, admin] = [await admit('member'), await admit('admin')];
  const id = await begin(openProcess(), member);
  const consoles = openProcess();
  const client = createClient();
  const asked = consoles.prepare(admin, { ...request, instanceId: instance, sessionId: id });
  await Promise.all([expect(asked).resolves.toBe('session_gone'), attach(consoles, member, id, client)]);
  await expect.poll(client.output).toBe('before');
});

it.each(['the same process', 'another process'])(
  'a claim that fails at any statement loses nothing: the next one, of %s, has the output',
  async (whose) => {
    const member = await admit('member');
    let failsAt = 1;
    for (let hasFailed = true; hasFailed; failsAt += 1) {
      const former = openProcess();
      const id = await begin(former, member);
      await former.close();
      let statements = 0;
      const query = (...statement: Parameters<Database['query']>) => {
        statements += 1;
        return statements === failsAt ? Promise.reject(new Error('the connection was lost')) : app.app.database.query(...statement);
      };
      const failing = rebindScope(member, Object.create(app.app.database, { query: { value: query } }) as Database);
      const consoles = openProcess();
      const opening = await consoles
        .prepare(failing, { ...request, instanceId: instance, sessionId: id })
        .catch((failure: Error) => failure.message);
      hasFailed = opening === 'the connection was lost';
      const client = createClient();
      await attach(hasFailed && whose === 'another process' ? openProcess() : consoles, member, id, client);
      await expect.poll(client.output, { message: `statement ${failsAt}` }).toBe('before');
      await closeProcesses();
    }
    expect(failsAt).toBeGreaterThan(4);
  },
);
