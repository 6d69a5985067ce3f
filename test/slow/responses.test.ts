import { setImmediate as turn } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { openSocket } from '../support/feed.ts';
import { addLargeRows } from '../support/large.ts';

const MAX_BYTES = 8 * 1024 * 1024;

let app: TestApp;
let ids: string;
let large: string;
beforeAll(async () => {
  app = await startApp();
  ids = `organizationId: "${app.demo.organization_id}", id: "${app.demo.project_id}"`;
  large = await addLargeRows(app);
});
afterAll(() => app.close());

const inProject = (fields: string) => `{ project(${ids}) { ${fields} } }`;
const aliases = (count: number, field: (index: number) => string) => Array.from({ length: count }, (_, index) => field(index)).join(' ');

/** A document that asks for too much, and the place that its refusal names. */
const tooLarge: ReadonlyArray<readonly [string, () => string, string]> = [
  ['one page', () => inProject('dashboards(first: 100) { nodes { description } }'), 'project.dashboards'],
  ['a page by number', () => inProject('dashboardPage(pageSize: 100) { results { description } }'), 'project.dashboardPage'],
  ['a page from the end', () => inProject('dashboards(last: 100) { edges { node { id description } } }'), 'project.dashboards'],
  [
    'a page through a fragment',
    () =>
      `${inProject('dashboards(first: 100) { ...F }')} fragment F on DashboardConnection { nodes { ... on Dashboard { description } } }`,
    'project.dashboards',
  ],
  ['four aliases', () => inProject(aliases(4, (n) => `a${n}: dashboards(first: 100) { nodes { description } }`)), 'project.a0'],
  ['twelve aliases', () => inProject(aliases(12, (n) => `a${n}: dashboards(first: 5) { nodes { description } }`)), 'project.a'],
  [
    '50 aliases of single ones',
    () => inProject(aliases(50, (n) => `a${n}: dashboard(id: "${large}") { widgets description }`)),
    'project.a',
  ],
  [
    '50 aliases of one field',
    () => inProject(`dashboards(last: 2) { nodes { ${aliases(50, (n) => `a${n}: description`)} } }`),
    'project.dashboards.nodes',
  ],
  ['notifications', () => inProject('notifications(first: 100) { nodes { body } }'), 'project.notifications'],
  ['notifications by number', () => inProject('notificationPage(pageSize: 100) { results { data } }'), 'project.notificationPage'],
  ['errors of tasks', () => inProject('tasks(first: 100) { nodes { id error } }'), 'project.tasks.nodes'],
  ['errors of tasks by number', () => inProject('taskPage(pageSize: 100) { results { error } }'), 'project.taskPage.results'],
  ['SSH keys', () => inProject('sshKeys(last: 100) { nodes { publicKey } }'), 'project.sshKeys.nodes'],
];

const smaller: ReadonlyArray<readonly [string, () => string]> = [
  ['the names of all', () => inProject('dashboards(first: 100) { nodes { id name version } }')],
  ['the names of all, twelve times', () => inProject(aliases(12, (n) => `a${n}: dashboards(first: 100) { nodes { id name } }`))],
  [
    'the kinds of tasks, and the hashes of keys',
    () => inProject('tasks(first: 100) { nodes { kind } } sshKeys(last: 100) { nodes { name } }'),
  ],
  ['a few errors', () => inProject('tasks(first: 5) { nodes { error } }')],
  ['ten whole ones', () => inProject('dashboards(last: 10) { nodes { id name description widgets } }')],
  ['what is left out', () => inProject('dashboards(first: 100) { nodes { id description @include(if: false) widgets @skip(if: true) } }')],
  [
    'many lists, of which one is large',
    () =>
      inProject(
        `dashboards(last: 10) { nodes { description } } ${aliases(20, (n) => `a${n}: notifications(first: 100) { nodes { title } }`)}`,
      ),
  ],
];

const refusalOf = (place: string) => new RegExp(`^The response would take more than ${MAX_BYTES} bytes: ask for fewer items of \`${place}`);

/** What a call adds to the memory at its height, in MiB. */
async function measure<Result>(work: () => Promise<Result>): Promise<{ result: Result; growth: number }> {
  const used = () => {
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return (heapUsed + arrayBuffers) / 2 ** 20;
  };
  const before = used();
  let peak = before;
  let isDone = false;
  const watching = (async () => {
    for (; !isDone; await turn()) peak = Math.max(peak, used());
  })();
  const result = await work();
  isDone = true;
  await watching;
  return { result, growth: peak - before };
}

describe('a response that would be too large is refused whole', () => {
  // Three times: the first calls of a document take another way than the later ones.
  it.each(tooLarge)('by GraphQL: %s', async (_what, query, place) => {
    for (let call = 0; call < 3; call += 1) {
      const { result, growth } = await measure(() =>
        app.ask('POST', '/graphql', { headers: { accept: 'application/graphql-response+json' }, body: { query: query() } }),
      );
      const { errors, ...rest } = result.json;
      expect({ status: result.status, rest }).toEqual({ status: 400, rest: {} });
      expect(errors).toEqual([{ message: expect.stringMatching(refusalOf(place)), extensions: { code: 'invalid_request' } }]);
      expect(result.text.length).toBeLessThan(600);
      expect(growth).toBeLessThan(150);
    }
  });

  it.each(tooLarge.filter(([what]) => !what.includes('500 KB')))('on a socket: %s', async (_what, query, place) => {
    const socket = openSocket(app, '/graphql', {
      protocol: 'graphql-transport-ws',
      headers: { authorization: `Bearer ${app.demo.users.owner.token}` },
    });
    socket.socket.on('open', () => socket.socket.send('{"type":"connection_init"}'));
    await socket.until(({ type }) => type === 'connection_ack');
    socket.socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload: { query: query() } }));
    const { type, payload } = await socket.until(({ id }) => id === '1');
    socket.socket.terminate();
    expect({ type, payload }).toEqual({
      type: 'next',
      payload: { errors: [{ message: expect.stringMatching(refusalOf(place)), extensions: { code: 'invalid_request' } }] },
    });
  });

  it.each(tooLarge)('as server-sent events: %s', async (_what, query, place) => {
    const { text } = await app.ask('POST', '/graphql', { headers: { accept: 'text/event-stream' }, body: { query: query() } });
    const [, data = ''] = /^data: (.*)$/m.exec(text) ?? [];
    expect(JSON.parse(data)).toEqual({
      errors: [{ message: expect.stringMatching(refusalOf(place)), extensions: { code: 'invalid_request' } }],
    });
  });

  it.each(['monitoring/dashboards', 'notifications', 'compute/tasks'])('by v1: %s', async (list) => {
    for (let call = 0; call < 3; call += 1) {
      const { result, growth } = await measure(() => app.ask('GET', `${app.projectPath}/${list}?page_size=100`));
      const detail = `The response would take more than ${MAX_BYTES} bytes: ask for a smaller \`page_size\`.`;
      expect({ status: result.status, json: result.json }).toEqual({
        status: 400,
        json: { detail, code: 'invalid_request', error: detail },
      });
      expect(growth).toBeLessThan(150);
    }
  });
});

describe('a smaller request is answered', () => {
  it.each(smaller)('by GraphQL: %s', async (_what, query) => {
    for (let call = 0; call < 3; call += 1) {
      const { status, json } = await app.graphql(query());
      expect({ status, errors: json.errors }).toEqual({ status: 200, errors: undefined });
    }
  });

  it('by v1, also with stored rows beyond the current limits', async () => {
    const { status, json } = await app.ask('GET', `${app.projectPath}/monitoring/dashboards?page_size=10&page=2`);
    expect(status).toBe(200);
    expect(json.results.map(({ description }: { description: string }) => description.length)).toEqual(Array(10).fill(750_000));
    expect((await app.ask('GET', `${app.projectPath}/notifications?page_size=5`)).status).toBe(200);
  });

  it('many times at once, to clients that read: none is ended as stalled', async () => {
    const [byGraphql, byV1] = [
      async () => (await app.graphql(inProject('dashboards(last: 10) { nodes { description } }'))).json.data.project.dashboards.nodes,
      async () => (await app.ask('GET', `${app.projectPath}/monitoring/dashboards?page_size=10&page=2`)).json.results,
    ];
    // The last ones may wait for 20 seconds; more would take longer on a slow machine.
    const responses = await Promise.all(Array.from({ length: 12 }, (_, index) => (index % 2 === 0 ? byGraphql() : byV1())));
    const lengths = responses.map((items: Array<{ description: string }>) => items.map(({ description }) => description.length));
    expect(lengths).toEqual(Array(12).fill(Array(10).fill(750_000)));
  });
});
