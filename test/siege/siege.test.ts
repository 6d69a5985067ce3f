import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { constants, setPriority } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import WebSocket from 'ws';
import { foreignOrganization, foreignProject, organization, project } from '../../demo/people.ts';
import { generateKey } from '../../src/access/apikey.ts';
import { copyTemplate } from '../support/app.ts';
import { type Crowd, openCrowd, type Sending } from '../support/crowd.ts';
import { type Fleet, findInternalErrors, openFleet, type Replica } from '../support/replicas.ts';
import { execute } from '../support/sql.ts';
import { ask, describeOutcome, isGood, type Outcome, percentile, warmUp } from '../support/traffic.ts';

const SIEGE_SECONDS = Number(process.env.SIEGE_SECONDS ?? 300);
const CALM_SECONDS = Math.min(30, SIEGE_SECONDS / 2);
const HONEST_CLIENTS = 50;
/** Each honest client asks so often. */
const INTERVAL_MS = 500;
/** One reads a large response so often. */
const READ_INTERVAL_MS = 4_000;
const LARGE_BYTES = 8_000_000;
const MAX_RESIDENT_MIB = 450;
const LIMIT_BYTES = 512 * 2 ** 20;

interface Person {
  readonly address: string;
  readonly key: string;
}

let databaseUrl: string;
let fleet: Fleet;
let crowds: Crowd[];
let honest: Person[];
let members: Person[];
let reader: Person;
const cage = openCage();

beforeAll(async () => {
  databaseUrl = await copyTemplate();
  honest = await makePeople('honest', HONEST_CLIENTS, organization.id, project.id);
  members = await makePeople('besieger', 10, foreignOrganization.id, foreignProject.id);
  [reader] = (await makePeople('reader', 1, foreignOrganization.id, foreignProject.id)) as [Person];
  await fillProject();
  // The budgets are the default ones: what is asked here is within them.
  // Its connections are its own: through the fleet's proxy, all that it reads would pass through the clients' process.
  const env = { LOG_LEVEL: 'error', RATE_LIMIT_USER: '5000', RATE_LIMIT_ANONYMOUS: '60', DATABASE_URL: databaseUrl };
  fleet = await openFleet({ count: 1, databaseUrl, redisUrl: null, env });
  cage?.confine(Number(replica().pid));
  crowds = honest.map(({ address }) => openCrowd(replica().baseUrl, address, 4));
}, 120_000);
afterAll(async () => {
  for (const crowd of crowds ?? []) crowd.close();
  await fleet?.close();
  await sleep(500);
  cage?.remove();
}, 60_000);

function replica(): Replica {
  return fleet.replicas[0] as Replica;
}

/** A control group that ends what takes more than a small machine has; null where the system has none to give. */
function openCage(): { confine(pid: number): void; remove(): void } | null {
  const name = `portico-siege-${process.pid}`;
  const kinds = [
    { root: '/sys/fs/cgroup/memory', file: 'memory.limit_in_bytes' },
    { root: '/sys/fs/cgroup', file: 'memory.max' },
  ];
  for (const { root, file } of kinds) {
    const folder = `${root}/${name}`;
    try {
      mkdirSync(folder);
      if (!existsSync(`${folder}/${file}`)) {
        rmdirSync(folder);
        continue;
      }
      writeFileSync(`${folder}/${file}`, String(LIMIT_BYTES));
      return {
        confine: (pid) => writeFileSync(`${folder}/cgroup.procs`, String(pid)),
        remove: () => rmdirSync(folder),
      };
    } catch {}
  }
  return null;
}

const networks = { honest: '127.1.0', besieger: '127.2.0', reader: '127.4.0' };

/** People with a key each, who are admins of an organization. */
async function makePeople(name: keyof typeof networks, count: number, organizationId: string, projectId: string): Promise<Person[]> {
  const people: Person[] = [];
  for (let index = 0; index < count; index += 1) {
    const { key, secretHash, hint } = generateKey();
    const hex = Buffer.from(secretHash).toString('hex');
    await execute(
      databaseUrl,
      `WITH person AS (INSERT INTO users (email, name) VALUES ('${name}-${index}@siege.example', '${name} ${index}') RETURNING id),
        member AS (INSERT INTO organization_members (organization_id, user_id, role) SELECT '${organizationId}', id, 'admin' FROM person)
      INSERT INTO api_keys (user_id, name, hint, secret_hash) SELECT id, 'siege', '${hint}', decode('${hex}', 'hex') FROM person`,
    );
    people.push({ address: `${networks[name]}.${index + 1}`, key });
  }
  expect(projectId).toMatch(/^[0-9a-f-]{36}$/);
  return people;
}

/** The largest things that a project may hold: 100 dashboards and 300 notifications that cannot be compressed. */
async function fillProject(): Promise<void> {
  const random = (bytes: number) =>
    `(SELECT string_agg(md5(random()::text || n || block), '') FROM generate_series(1, ${Math.floor(bytes / 32)}) AS block)`;
  await execute(
    databaseUrl,
    `INSERT INTO dashboards (project_id, created_by, name, description, widgets, is_public)
     SELECT '${foreignProject.id}', (SELECT user_id FROM organization_members WHERE organization_id = '${foreignOrganization.id}' LIMIT 1),
       'Large ' || n, ${random(9_984)}, to_json(${random(250_000)}), true FROM generate_series(1, 100) AS n`,
  );
  await execute(
    databaseUrl,
    `INSERT INTO notifications (project_id, kind, severity, title, body, data)
     SELECT '${foreignProject.id}', 'siege', 'info', 'Large ' || n, ${random(19_968)}, json_build_object('text', ${random(60_000)})
     FROM generate_series(1, 300) AS n`,
  );
}

const { projectPath, questions } = (() => {
  const projectPath = `/v1/organizations/${organization.id}/projects/${project.id}`;
  const place = `project(organizationId: "${organization.id}", id: "${project.id}")`;
  const graphql = (query: string): Sending => ({
    method: 'POST',
    path: '/graphql',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query }),
  });
  const questions: readonly Sending[] = [
    { path: `${projectPath}/compute/overview` },
    { path: `${projectPath}/monitoring/dashboards?page_size=10` },
    { path: `${projectPath}/notifications?page_size=20` },
    graphql(`{ ${place} { name unreadNotificationCount computeOverview { instancesTotal } } }`),
    graphql(`{ ${place} { notifications(first: 20) { nodes { sequence title body data } } } }`),
    { method: 'POST', path: `${projectPath}/notifications/read`, headers: { 'content-type': 'application/json' }, body: '{}' },
  ];
  return { projectPath, questions };
})();

function signed({ key }: Person, sending: Sending): Sending {
  return { ...sending, headers: { ...sending.headers, authorization: `Bearer ${key}` } };
}

/** Has every honest client ask in its turn, for so long. */
async function work(seconds: number): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  const deadline = Date.now() + seconds * 1000;
  const lane = async (person: Person, index: number) => {
    await sleep((INTERVAL_MS * index) / HONEST_CLIENTS);
    for (let turn = index; Date.now() < deadline; turn += 1) {
      const began = Date.now();
      outcomes.push(await ask(crowds[index] as Crowd, signed(person, questions[turn % questions.length] as Sending)));
      await sleep(Math.max(0, INTERVAL_MS - (Date.now() - began)));
    }
  };
  await Promise.all(honest.map(lane));
  return outcomes;
}

interface Reading {
  readonly at: string;
  readonly ms: number;
  readonly size: number;
  readonly status: number | undefined;
  readonly failure: string | undefined;
}

/** Has an honest client ask for nearly as much as a response holds, and read it. */
async function readMuch(seconds: number): Promise<Reading[]> {
  const place = `project(organizationId: "${foreignOrganization.id}", id: "${foreignProject.id}")`;
  const body = JSON.stringify({ query: `{ ${place} { notifications(first: 100) { nodes { title body data } } } }` });
  const headers = { authorization: `Bearer ${reader.key}`, 'content-type': 'application/json', connection: 'close' };
  const options = { method: 'POST', path: '/graphql', port: replica().port, localAddress: reader.address, headers };
  const readings: Reading[] = [];
  for (const deadline = Date.now() + seconds * 1000; Date.now() < deadline; await sleep(READ_INTERVAL_MS)) {
    let size = 0;
    let status: number | undefined;
    let failure: string | undefined;
    const began = performance.now();
    await new Promise<void>((resolve) => {
      const asking = request({ host: '127.0.0.1', ...options }, (response) => {
        status = response.statusCode;
        response.on('data', (bytes: Buffer) => (size += bytes.length));
      });
      asking.on('error', ({ message }) => (failure = message)).once('close', resolve);
      asking.end(body);
    });
    readings.push({ at: new Date().toISOString(), ms: performance.now() - began, size, status, failure });
  }
  return readings;
}

/** An honest feed: every number in order. */
function follow({ key, address }: Person): { readonly sequences: number[]; readonly closes: number[]; close(): void } {
  const sequences: number[] = [];
  const closes: number[] = [];
  const socket = new WebSocket(`${replica().baseUrl.replace('http', 'ws')}${projectPath}/notifications/ws`, {
    headers: { authorization: `Bearer ${key}` },
    localAddress: address,
  });
  socket.on('message', (data) => {
    const event = JSON.parse(String(data));
    if (event.type === 'notification') sequences.push(event.sequence);
  });
  socket.on('error', () => {});
  socket.on('close', (code) => closes.push(code));
  return { sequences, closes, close: () => socket.terminate() };
}

async function besiege(seconds: number): Promise<Record<string, number>> {
  const addresses = Array.from({ length: 200 }, (_, index) => `127.3.${Math.floor(index / 100)}.${(index % 100) + 1}`);
  const plan = {
    port: replica().port,
    addresses,
    members,
    project: { organizationId: foreignOrganization.id, id: foreignProject.id },
    seconds,
  };
  const program = fileURLToPath(new URL('./besieger.mjs', import.meta.url));
  const child = spawn(process.execPath, [program, JSON.stringify(plan)], { stdio: ['ignore', 'pipe', 'inherit'] });
  // Besiegers come from elsewhere: what they compute themselves is not to take the processor from what is measured.
  setPriority(child.pid as number, constants.priority.PRIORITY_LOW);
  let printed = '';
  child.stdout.on('data', (bytes) => {
    printed += bytes;
  });
  await new Promise((resolve) => child.once('close', resolve));
  return JSON.parse(printed);
}

it(`serves honest clients through ${SIEGE_SECONDS} s of clients that request much and do not read, within 512 MiB`, {
  timeout: (SIEGE_SECONDS + CALM_SECONDS) * 1000 + 240_000,
}, async () => {
  await warmUp(
    [crowds[0] as Crowd],
    questions.map((question) => signed(honest[0] as Person, question)),
  );
  const pid = replica().pid;
  const [calm] = await Promise.all([work(CALM_SECONDS), readMuch(CALM_SECONDS)]);
  const before = replica().memory();
  const feeds = honest.map(follow);
  let peak = before;
  let isGone = false;
  const watching = setInterval(() => {
    try {
      peak = Math.max(peak, replica().memory());
    } catch {
      isGone = true;
    }
  }, 100);
  let published = 0;
  const publishing = setInterval(() => {
    published += 1;
    const insert = `INSERT INTO notifications (project_id, kind, severity, title) VALUES ('${project.id}', 'siege', 'info', 'Number ${published}')`;
    execute(databaseUrl, insert).catch(() => {});
  }, 2_000);
  // The first seconds are the besiegers' alone: what is measured is a siege under way.
  const besieging = besiege(SIEGE_SECONDS + 5);
  await sleep(5_000);
  const [siege, readings] = await Promise.all([work(SIEGE_SECONDS), readMuch(SIEGE_SECONDS)]);
  clearInterval(publishing);
  const counts = await besieging;
  clearInterval(watching);
  await sleep(3_000);
  const p99 = (outcomes: readonly Outcome[]) =>
    percentile(
      outcomes.map(({ took }) => took),
      0.99,
    );
  const p50 = (outcomes: readonly Outcome[]) =>
    percentile(
      outcomes.map(({ took }) => took),
      0.5,
    );
  console.log(
    `resident ${before.toFixed(0)} → at most ${peak.toFixed(0)} MiB; honest requests ${calm.length} calm, ${siege.length} besieged; ` +
      `median ${p50(calm).toFixed(1)} → ${p50(siege).toFixed(1)} ms, p99 ${p99(calm).toFixed(1)} → ${p99(siege).toFixed(1)} ms; ` +
      `${readings.length} large responses; besiegers: ${JSON.stringify(counts)}; ${cage ? 'confined to 512 MiB' : 'not confined: no control group'}`,
  );
  expect({ isGone, pid: replica().pid }).toEqual({ isGone: false, pid });
  expect(siege.filter((outcome) => !isGood(outcome)).map(describeOutcome)).toEqual([]);
  expect(readings.filter(({ size }) => size < LARGE_BYTES)).toEqual([]);
  expect(findInternalErrors(fleet)).toEqual([]);
  for (const { sequences, closes } of feeds) {
    expect(closes).toEqual([]);
    expect(sequences.length).toBeGreaterThanOrEqual(published - 1);
    expect(sequences).toEqual(sequences.map((_sequence, index) => (sequences[0] ?? 0) + index));
  }
  for (const { close } of feeds) close();
  expect(peak).toBeLessThanOrEqual(MAX_RESIDENT_MIB);
  // Of a short run the slowest hundredth is a matter of luck.
  if (SIEGE_SECONDS >= 300) expect(p99(siege)).toBeLessThanOrEqual(2 * p99(calm));
});
