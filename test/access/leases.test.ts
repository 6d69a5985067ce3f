import { randomUUID } from 'node:crypto';
import { setImmediate as nextImmediate } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { type Lease, RevocationWatcher } from '../../src/access/revocation.ts';
import type { Viewer } from '../../src/access/viewer.ts';
import type { Database } from '../../src/platform/database.ts';
import { createLogger } from '../../src/platform/logger.ts';
import { startApp, type TestApp } from '../support/app.ts';

/** A second, as in the product, would make every loss of access take as long. */
const POLL_INTERVAL_MS = 50;

let app: TestApp;
let watcher: RevocationWatcher;
beforeAll(async () => {
  app = await startApp();
  watcher = new RevocationWatcher({ database: app.app.database, log: createLogger('silent'), pollIntervalMs: POLL_INTERVAL_MS });
});
afterAll(async () => {
  await watcher.close();
  await app.close();
});

/** What has been revoked so far: the lease's name, and why. */
const revoked: string[] = [];
const leases = new Map<string, Lease>();
afterEach(() => {
  for (const lease of leases.values()) lease.stop();
  leases.clear();
  revoked.length = 0;
});

interface Wanted {
  readonly as?: 'member' | 'viewer' | 'admin';
  readonly credential?: Viewer['credential'];
  readonly project?: { readonly organizationId: string; readonly projectId: string } | undefined;
  readonly leastRole?: 'member';
}

const session = (milliseconds = 3_600_000): Viewer['credential'] => ({ kind: 'session', expires: new Date(Date.now() + milliseconds) });

function add(name: string, { as = 'member', credential = session(), ...wanted }: Wanted): void {
  const { id: userId } = app.demo.users[as];
  const viewer = { userId, email: '', name: '', created: new Date(), credential };
  const project = 'project' in wanted ? wanted.project : { organizationId: app.demo.organization_id, projectId: app.demo.project_id };
  const permission = {
    principal: { viewer, onRevoked: (revocation: string) => void revoked.push(`${name}: ${revocation}`) },
    ...(project && { project }),
    ...(wanted.leastRole && { leastRole: wanted.leastRole }),
    subscription: { end: ({ message }: Error) => void revoked.push(`${name} ends: ${message}`) },
  };
  leases.set(name, watcher.add(permission));
}

async function makeKey(): Promise<string> {
  const { json } = await app.graphql('mutation { createApiKey(input: { name: "leased" }) { apiKey { id } } }', {}, { as: 'member' });
  return json.data.createApiKey.apiKey.id;
}

const bothOf = (...names: string[]) => names.flatMap((name) => [`${name}: access_lost`, `${name} ends: access_lost`]);

/** Resolves when exactly these have been revoked: a poll revokes together all that it finds. */
const expectRevoked = (expected: string[]) => expect.poll(() => [...revoked].sort()).toEqual([...expected].sort());

it('a lost right ends the leases that depend on it, and no other lease of the user', async () => {
  const { apiKey, projectMember, organizationMember } = app.app.database.prisma;
  const { organization_id: organizationId, project_id: projectId, users } = app.demo;
  const userId = users.member.id;
  const [revokedKey, key, expiringKey] = [await makeKey(), await makeKey(), await makeKey()];
  add('a feed by token', {});
  add('a feed by a key', { credential: { kind: 'api_key', id: revokedKey } });
  add('a socket by a key', { credential: { kind: 'api_key', id: expiringKey }, project: undefined });
  add('a console by token', { leastRole: 'member' });
  add('a console by a key', { leastRole: 'member', credential: { kind: 'api_key', id: key } });
  add('a socket by token', { project: undefined });
  add('a feed of a viewer', { as: 'viewer' });
  add('a console of an admin', { as: 'admin', leastRole: 'member' });
  // Of a project in another organization than the lease says, the viewer's role there does not count.
  add('a project elsewhere', { as: 'admin', project: { organizationId: app.demo.foreign.organization_id, projectId } });
  const lost = bothOf('a project elsewhere');
  await expectRevoked(lost);
  await apiKey.update({ where: { id: revokedKey }, data: { revoked: new Date() } });
  await expectRevoked([...lost, ...bothOf('a feed by a key')]);
  lost.push(...bothOf('a feed by a key', 'a socket by a key'));
  await apiKey.update({ where: { id: expiringKey }, data: { expires: new Date() } });
  await expectRevoked(lost);
  await projectMember.update({ where: { projectId_userId: { projectId, userId } }, data: { role: 'viewer' } });
  lost.push(...bothOf('a console by token', 'a console by a key'));
  await expectRevoked(lost);
  await organizationMember.delete({ where: { organizationId_userId: { organizationId, userId } } });
  lost.push(...bothOf('a feed by token'));
  await expectRevoked(lost);
  await app.app.database.prisma.user.update({ where: { id: userId }, data: { disabledAt: new Date() } });
  lost.push(...bothOf('a socket by token'));
  await expectRevoked(lost);
  expect(watcher.size).toBe(2);
});

it('an expired session ends its leases, the newest first, except a stopped one', async () => {
  const expires = session(500);
  for (const name of ['older', 'newer', 'stopped']) add(name, { as: 'viewer', credential: expires });
  add('another', { as: 'viewer' });
  leases.get('stopped')?.stop();
  const ends = (name: string) => [`${name}: credential_expired`, `${name} ends: credential_expired`];
  await expect.poll(() => revoked).toEqual([...ends('newer'), ...ends('older')]);
  expect(watcher.size).toBe(1);
});

it('a closing watcher waits for the current poll', async () => {
  let isPolling = false;
  let answer = () => {};
  const answered = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const query = async (...statement: Parameters<Database['query']>) => {
    isPolling = true;
    await answered;
    return app.app.database.query(...statement);
  };
  const database = Object.create(app.app.database, { query: { value: query } }) as Database;
  const closing = new RevocationWatcher({ database, log: createLogger('silent'), pollIntervalMs: POLL_INTERVAL_MS });
  const viewer = { userId: app.demo.users.member.id, email: '', name: '', created: new Date(), credential: session() };
  closing.add({ principal: { viewer } });
  await expect.poll(() => isPolling).toBe(true);
  let isClosed = false;
  const closed = Promise.resolve(closing.close()).then(() => {
    isClosed = true;
  });
  await nextImmediate();
  expect(isClosed).toBe(false);
  answer();
  await closed;
});

it('a renewed credential is not checked as the one that it replaced during a poll', async () => {
  const { database } = app.app;
  const { id: userId } = app.demo.users.admin;
  const unknownKey = { kind: 'api_key', id: randomUUID() } as const;
  let viewer: Viewer = { userId, email: '', name: '', created: new Date(), credential: unknownKey };
  let polls = 0;
  const query = async (strings: TemplateStringsArray, ...values: never[]) => {
    const rows = await database.query(strings, ...values);
    // A client renews its credential before the answer is read.
    viewer = { ...viewer, credential: session() };
    polls += 1;
    return rows;
  };
  const other = new RevocationWatcher({
    database: { query } as unknown as Database,
    log: createLogger('silent'),
    pollIntervalMs: POLL_INTERVAL_MS,
  });
  const principal = {
    get viewer() {
      return viewer;
    },
    onRevoked: (revocation: string) => void revoked.push(revocation),
  };
  const lease = other.add({ principal });
  await expect.poll(() => polls).toBeGreaterThan(2);
  lease.stop();
  await other.close();
  expect(revoked).toEqual([]);
});
