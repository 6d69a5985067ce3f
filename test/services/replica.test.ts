import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { type DemoFile, refreshDemoFile } from '../../demo/file.ts';
import { type App, createApp } from '../../src/app.ts';
import { readConfig } from '../../src/config.ts';
import { createLogger } from '../../src/platform/logger.ts';
import { type Cluster, openCluster } from '../support/cluster.ts';
import { openSocket } from '../support/feed.ts';
import { execute } from '../support/sql.ts';
import { openStandby, positionOf, type Standby } from '../support/standby.ts';

/** The time that a read waits for a standby that lags before it goes to the primary. */
const PATIENCE_MS = 200;
/** The time within which a standby that does not lag has everything, also on a busy machine. */
const SURELY_MS = 60_000;

interface Gateway {
  readonly app: App;
  readonly baseUrl: string;
}

const dataDir = mkdtempSync(join(tmpdir(), 'portico-test-'));
let cluster: Cluster;
let standby: Standby;
/** A gateway on the primary, and one on the standby. */
let here: Gateway;
let there: Gateway;
let demo: DemoFile;
beforeAll(async () => {
  cluster = await openCluster();
  here = await openGateway(cluster.url);
  const written = await refreshDemoFile({ ...here.app, baseUrl: here.baseUrl, path: join(dataDir, 'demo.json') });
  if (!written) throw new Error('the database has no demo');
  demo = written;
  standby = await openStandby(cluster);
  there = await openGateway(standby.url);
});
afterEach(async () => {
  await standby.resume();
  expect(await standby.reaches(await positionOf(cluster.url), SURELY_MS)).toBe(true);
});
afterAll(async () => {
  await there?.app.close();
  await standby?.close();
  await here?.app.close();
  await cluster?.close();
  rmSync(dataDir, { recursive: true, force: true });
});

async function openGateway(databaseUrl: string): Promise<Gateway> {
  const config = readConfig({ DATA_DIR: dataDir, DATABASE_URL: databaseUrl, DRAIN_SECONDS: '0' });
  const app = await createApp(config, { log: createLogger('silent') });
  const { port } = await app.listen(0, '127.0.0.1');
  return { app, baseUrl: `http://127.0.0.1:${port}` };
}

const projectPath = () => `/v1/organizations/${demo.organization_id}/projects/${demo.project_id}`;
const headersOf = (user: 'owner' | 'viewer') => ({ authorization: `Bearer ${demo.users[user].token}`, 'content-type': 'application/json' });

async function publish(title: string): Promise<number> {
  const query = 'mutation ($input: PublishNotificationInput!) { publishNotification(input: $input) { notification { sequence } } }';
  const input = { organizationId: demo.organization_id, projectId: demo.project_id, kind: 'test.lag', severity: 'info', title };
  const body = JSON.stringify({ query, variables: { input } });
  const response = await fetch(`${here.baseUrl}/graphql`, { method: 'POST', headers: headersOf('owner'), body });
  return (await response.json()).data.publishNotification.notification.sequence;
}

async function readNewest({ baseUrl }: Gateway): Promise<string> {
  const response = await fetch(`${baseUrl}${projectPath()}/notifications?page_size=1`, { headers: headersOf('owner') });
  return (await response.json()).results[0].title;
}

/** The gateway at which a client can read its writes up to a position: the standby's, or the primary's if the standby lags too far. */
const placeFor = async (position: string, patienceMs: number) => ((await standby.reaches(position, patienceMs)) ? there : here);

it('a standby that keeps up has the latest write', async () => {
  await publish('told at once');
  const place = await placeFor(await positionOf(cluster.url), SURELY_MS);
  expect(place).toBe(there);
  expect(await readNewest(place)).toBe('told at once');
});

it('a lagging standby lacks the client’s write, whose position leads the read to the primary', async () => {
  await publish('before the lag');
  expect(await standby.reaches(await positionOf(cluster.url), SURELY_MS)).toBe(true);
  await standby.pause();
  await publish('behind the lag');
  const position = await positionOf(cluster.url);
  expect(await readNewest(there)).toBe('before the lag');
  const place = await placeFor(position, PATIENCE_MS);
  expect(place).toBe(here);
  expect(await readNewest(place)).toBe('behind the lag');
});

it('a read that waits for the position finds the write on the standby', async () => {
  await standby.pause();
  await publish('waited for');
  const reached = standby.reaches(await positionOf(cluster.url), SURELY_MS);
  await standby.resume();
  expect(await reached).toBe(true);
  expect(await readNewest(there)).toBe('waited for');
});

it('a lagging standby still admits a user who has lost a project, so that access must be read from the primary', async () => {
  const open = ({ baseUrl }: Gateway) => fetch(`${baseUrl}${projectPath()}/compute/overview`, { headers: headersOf('viewer') });
  const ofViewer = `project_id = '${demo.project_id}' AND user_id = '${demo.users.viewer.id}'`;
  await standby.pause();
  const [member] = await execute(cluster.url, `DELETE FROM project_members WHERE ${ofViewer} RETURNING role`);
  expect((await open(here)).status).toBe(404);
  expect((await open(there)).status).toBe(200);
  await standby.resume();
  expect(await standby.reaches(await positionOf(cluster.url), SURELY_MS)).toBe(true);
  expect((await open(there)).status).toBe(404);
  await execute(
    cluster.url,
    `INSERT INTO project_members (project_id, user_id, role) VALUES ('${demo.project_id}', '${demo.users.viewer.id}', '${member?.role}')`,
  );
});

it('a feed on a lagging standby delivers a gap and a repeated entry, so that positions must be read from the primary', async () => {
  await standby.pause();
  const sequence = await publish('known to the client');
  const path = `${projectPath()}/notifications/ws?after=${sequence}`;
  const [primary, lagging] = [here, there].map((gateway) => openSocket(gateway, path, { headers: headersOf('owner') }));
  await primary?.until(({ type }) => type === 'ready');
  expect(primary?.frames.map(({ type }) => type)).toEqual(['ready']);
  await lagging?.until(({ type }) => type === 'ready');
  expect(lagging?.frames[0]).toMatchObject({ type: 'gap', from: sequence, to: sequence });
  await standby.resume();
  await lagging?.until((frame) => frame.type === 'notification' && frame.sequence === sequence);
  for (const feed of [primary, lagging]) feed?.socket.close();
});
