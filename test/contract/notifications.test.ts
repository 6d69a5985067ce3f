import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { expandRefusal, refusals, runCases } from '../support/doors.ts';
import { anyMoment, anyUuid, expectExact } from '../support/exact.ts';
import { makeNotifications, makeProject } from '../support/fixtures.ts';
import { markReadCases } from './cases/mark-read.ts';
import { notificationListCases } from './cases/notifications.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.close());

runCases(() => app, notificationListCases);
runCases(() => app, markReadCases);

const pathOf = (projectId: string) => `/v1/organizations/${app.demo.organization_id}/projects/${projectId}/notifications`;
const located = (projectId: string) => ({ organizationId: app.demo.organization_id, projectId });

describe('the query of the list', () => {
  const list = (search: string) => app.ask('GET', `${app.projectPath}/notifications${search}`);

  it('counts a page beyond 32 bits as past the end, and cuts such a page size', async () => {
    const response = await list('?page=99999999999999999999');
    expect([response.status, response.json]).toEqual([404, expandRefusal(refusals.notFound)]);
    const { json } = await list('?page_size=99999999999');
    expect([json.page_size, json.results.length, json.total_pages]).toEqual([100, 100, 2]);
    const below = await list('?page=-99999999999');
    expect([below.status, below.json]).toEqual([400, { page: ['Ensure this value is greater than or equal to 1.'] }]);
  });

  it('refuses a parameter that is given twice', async () => {
    const response = await list('?page=1&page=2&severity=info&severity=info&unread=true');
    expect([response.status, response.json]).toEqual([400, { page: [expect.any(String)], severity: [expect.any(String)] }]);
  });

  it('ignores unknown parameters, and keeps them in the links', async () => {
    const { json } = await list('?utm=a%20b&page_size=60&organization_id=x&project_id=y');
    const link = `${app.baseUrl}${app.projectPath}/notifications?utm=a+b&page_size=60&organization_id=x&project_id=y&page=2`;
    expect([json.count, json.next, json.previous]).toEqual([150, link, null]);
  });

  it('reads booleans in the usual spellings', async () => {
    for (const yes of ['true', 'True', '1']) expect((await list(`?unread=${yes}`)).json.count, yes).toBe(50);
    for (const no of ['false', 'False', '0']) expect((await list(`?unread=${no}`)).json.count, no).toBe(100);
  });

  it('has links that lead through the whole list, there and back', async () => {
    const seen: string[] = [];
    const walk = async (url: string, direction: 'next' | 'previous'): Promise<string> => {
      const { pathname, search, origin } = new URL(url);
      expect(origin).toBe(app.baseUrl);
      const { json } = await app.ask('GET', pathname + search);
      seen.push(...json.results.map(({ id }: { id: string }) => id));
      return json[direction] ? walk(json[direction], direction) : url;
    };
    const newestFirst = [...app.demo.notification_ids].reverse();
    const last = await walk(`${app.baseUrl}${app.projectPath}/notifications?page_size=37`, 'next');
    expect(seen).toEqual(newestFirst);
    expect(await walk(last, 'previous')).toContain('page=1');
    expect(seen.slice(newestFirst.length).sort()).toEqual([...newestFirst].sort());
  });
});

describe('markNotificationsRead through a sequence', () => {
  const document = `mutation ($input: MarkNotificationsReadInput!) { markNotificationsRead(input: $input) { marked unreadCount } }`;
  const markThrough = async (projectId: string, throughSequence: number, rest: object = {}) => {
    const input = { ...located(projectId), throughSequence, ...rest };
    return (await app.graphql(document, { input }, { as: 'viewer' })).json.data.markNotificationsRead;
  };

  it('marks all up to it, once, and nothing beyond', async () => {
    const projectId = await makeProject(app, { viewer: 'viewer' });
    await makeNotifications(app, projectId, 6);
    expect(await markThrough(projectId, 0)).toEqual({ marked: 0, unreadCount: 6 });
    expect(await markThrough(projectId, -1)).toEqual({ marked: 0, unreadCount: 6 });
    expect(await markThrough(projectId, 4)).toEqual({ marked: 4, unreadCount: 2 });
    expect(await markThrough(projectId, 4)).toEqual({ marked: 0, unreadCount: 2 });
    expect(await markThrough(projectId, 2)).toEqual({ marked: 0, unreadCount: 2 });
    expect(await markThrough(projectId, 2_147_483_647, { notificationIds: [] })).toEqual({ marked: 2, unreadCount: 0 });
  });

  it('leaves unread what arrives later, also where the sequence lies ahead of the log', async () => {
    const projectId = await makeProject(app, { viewer: 'viewer' });
    await makeNotifications(app, projectId, 2);
    expect(await markThrough(projectId, 1000)).toEqual({ marked: 2, unreadCount: 0 });
    await makeNotifications(app, projectId, 3);
    const { json } = await app.ask('GET', `${pathOf(projectId)}?unread=true`, { as: 'viewer' });
    expect(json.results.map(({ sequence }: { sequence: number }) => sequence)).toEqual([5, 4, 3]);
  });

  it('does not count single reads twice', async () => {
    const projectId = await makeProject(app, { viewer: 'viewer' });
    const made = await makeNotifications(app, projectId, 5);
    await app.ask('POST', `${pathOf(projectId)}/read`, { as: 'viewer', body: { notification_ids: [made[1], made[3]] } });
    expect(await markThrough(projectId, 3)).toEqual({ marked: 2, unreadCount: 1 });
  });
});

describe('publishNotification', () => {
  const fields = 'id sequence kind severity title body resourceType resourceId data created read';
  const document = `mutation ($input: PublishNotificationInput!) { publishNotification(input: $input) { notification { ${fields} } } }`;
  const publish = (input: object, as: 'owner' | 'admin' | 'member' | 'outsider' | 'viewer' = 'admin') =>
    app.graphql(document, { input }, { as });

  it('appends to the log with the next number, and both APIs show it', async () => {
    const projectId = await makeProject(app, { viewer: 'viewer' });
    await makeNotifications(app, projectId, 2);
    const minimal = await publish({ ...located(projectId), kind: 'deploy.done', severity: 'info', title: 'Done' });
    const head = { id: anyUuid, sequence: 3, kind: 'deploy.done', severity: 'info', title: 'Done', body: '' };
    const plain = { ...head, resourceType: null, resourceId: null, data: {}, created: anyMoment, read: false };
    expectExact(minimal.json, { data: { publishNotification: { notification: plain } } });

    const data = { zebra: [null, { b: 1, a: 2 }], 'ключ 🗝': '', empty: {} };
    const rest = { kind: 'k', severity: 'critical', title: 'T', body: 'B\n', resourceType: 'vpc', resourceId: 'é-1', data };
    const full = await publish({ ...located(projectId), ...rest }, 'owner');
    const { notification } = full.json.data.publishNotification;
    expect(notification).toEqual({ ...rest, id: anyUuid, sequence: 4, created: anyMoment, read: false });

    const { json } = await app.ask('GET', `${pathOf(projectId)}?page_size=1`, { as: 'viewer' });
    const { resourceType: resource_type, resourceId: resource_id, ...same } = notification;
    expect(json.count).toBe(4);
    expect(json.results).toEqual([{ ...same, resource_type, resource_id }]);
    expect(Object.keys(json.results[0].data)).toEqual(Object.keys(data));
  });

  it('refuses fields, then access, as everywhere', async () => {
    const projectId = await makeProject(app, { member: 'member' });
    const sound = { ...located(projectId), kind: 'k', severity: 'info', title: 't' };
    const errorOf = async (...call: Parameters<typeof publish>) => {
      const { json } = await publish(...call);
      expect(json.data ?? { publishNotification: null }).toEqual({ publishNotification: null });
      return json.errors[0].extensions;
    };
    expect(await errorOf({ ...located(projectId), title: '', severity: 'bad', data: null, body: null })).toEqual({
      code: 'validation_failed',
      fields: {
        kind: ['This field is required.'],
        severity: ['"bad" is not a valid choice.'],
        title: ['This field may not be blank.'],
        body: ['This field may not be null.'],
        data: ['This field may not be null.'],
      },
    });
    expect(await errorOf({ ...sound, data: [] })).toEqual({ code: 'validation_failed', fields: { data: ['Must be a JSON object.'] } });
    expect(await errorOf(sound, 'member')).toEqual({ code: 'permission_denied' });
    expect(await errorOf(sound, 'viewer')).toEqual({ code: 'not_found' });
    expect(await errorOf(sound, 'outsider')).toEqual({ code: 'not_found' });
    expect((await app.ask('GET', pathOf(projectId))).json.count).toBe(0);
  });
});

describe('publishNotifications', () => {
  const fields = 'id sequence kind severity title body resourceType resourceId data created read';
  const document = `mutation ($input: PublishNotificationsInput!) {
    publishNotifications(input: $input) { notifications { ${fields} resource { id } project { id } } project { id unreadNotificationCount } }
  }`;
  const publish = (projectId: string, notifications: unknown, as: 'owner' | 'admin' | 'member' | 'outsider' | 'viewer' = 'admin') =>
    app.graphql(document, { input: { ...located(projectId), notifications } }, { as });
  const plain = (title: string) => ({ kind: 'k', severity: 'info', title });
  const countAll = async (projectId: string) => (await app.ask('GET', pathOf(projectId))).json.count;

  it('appends to the log in the order given, and returns the appended notifications with the count of the project', async () => {
    const projectId = await makeProject(app);
    await makeNotifications(app, projectId, 2);
    const full = {
      severity: 'critical',
      body: 'B\n',
      resourceType: 'vpc',
      resourceId: 'é-1',
      data: { z: [null, { b: 1, a: 2 }], '2': '' },
    };
    const given = [plain('\u{1f600}"\\{},NULL'), { ...plain('z'), ...full }, plain('a'), plain('NULL')];
    const { json } = await publish(projectId, given);
    const around = {
      id: anyUuid,
      sequence: 0,
      kind: '',
      severity: '',
      title: '',
      body: '',
      resourceType: null,
      resourceId: null,
      data: {},
    };
    const notifications = given.map((one, index) => ({
      ...{ ...around, created: anyMoment, read: false, resource: null, project: { id: projectId } },
      ...one,
      sequence: 3 + index,
    }));
    expectExact(json, {
      data: { publishNotifications: { notifications, project: { id: projectId, unreadNotificationCount: 6 } } },
    });
    const listed = await app.ask('GET', `${pathOf(projectId)}?page_size=4`);
    const published: Array<{ id: string }> = json.data.publishNotifications.notifications;
    expect(listed.json.results.map(({ id }: { id: string }) => id)).toEqual(published.map(({ id }) => id).reverse());
  });

  it('gives each call consecutive numbers, also of concurrent calls', async () => {
    const projectId = await makeProject(app);
    const sizes = [100, 1, 37, 60, 2, 100, 25, 75];
    const responses = await Promise.all(
      sizes.map((size, call) =>
        publish(
          projectId,
          Array.from({ length: size }, (_, index) => plain(`${call} ${index}`)),
          'owner',
        ),
      ),
    );
    const seen: number[] = [];
    for (const [call, { json }] of responses.entries()) {
      const rows: Array<{ sequence: number; title: string }> = json.data.publishNotifications.notifications;
      const [{ sequence: first } = { sequence: 0 }] = rows;
      expect(rows.map(({ title }) => title)).toEqual(rows.map((_, index) => `${call} ${index}`));
      expect(rows.map(({ sequence }) => sequence)).toEqual(rows.map((_, index) => first + index));
      seen.push(...rows.map(({ sequence }) => sequence));
    }
    expect(seen.sort((a, b) => a - b)).toEqual(Array.from({ length: 400 }, (_, index) => index + 1));
  });

  it('refuses fields with the number of their notification, then access, and publishes none', async () => {
    const projectId = await makeProject(app, { member: 'member' });
    const errorOf = async (...call: Parameters<typeof publish>) => {
      const { json } = await publish(...call);
      expect(json.data ?? { publishNotifications: null }).toEqual({ publishNotifications: null });
      return json.errors[0].extensions;
    };
    const refused = (refusal: Record<string, string[]>) => ({ code: 'validation_failed', fields: refusal });
    expect(await errorOf(projectId, [plain('sound'), { title: '', severity: 'bad', data: null }, plain('x'.repeat(501))])).toEqual(
      refused({
        'notifications.kind': ['Item 2: This field is required.'],
        'notifications.severity': ['Item 2: "bad" is not a valid choice.'],
        'notifications.title': ['Item 2: This field may not be blank.', 'Item 3: Ensure this field has no more than 500 characters.'],
        'notifications.data': ['Item 2: This field may not be null.'],
      }),
    );
    const many = Array.from({ length: 101 }, () => plain('t'));
    expect(await errorOf(projectId, many)).toEqual(refused({ notifications: ['Ensure this field has no more than 100 items.'] }));
    const large = Array.from({ length: 5 }, () => ({ ...plain('t'), data: { x: 'x'.repeat(60_000) } }));
    const tooLarge = refused({ notifications: ['Ensure this field takes no more than 262144 bytes.'] });
    expect(await errorOf(projectId, large)).toEqual(tooLarge);
    expect(await errorOf(projectId, large, 'member')).toEqual(tooLarge);
    expect(await errorOf(projectId, plain('t'))).toEqual(refused({ notifications: ['Expected a list of items.'] }));
    expect(await errorOf(projectId, [plain('t')], 'member')).toEqual({ code: 'permission_denied' });
    expect(await errorOf(projectId, [plain('t')], 'viewer')).toEqual({ code: 'not_found' });
    expect(await errorOf(projectId, [plain('')], 'outsider')).toEqual({ code: 'not_found' });
    expect(await countAll(projectId)).toBe(0);
    expect((await publish(projectId, large.slice(1))).json.errors).toBeUndefined();
    const none = await publish(projectId, []);
    expect(none.json.data).toEqual({ publishNotifications: { notifications: [], project: { id: projectId, unreadNotificationCount: 4 } } });
    expect(await countAll(projectId)).toBe(4);
  });

  it('publishes the largest that may be published alone', async () => {
    const projectId = await makeProject(app);
    const data = { x: 'x'.repeat(65_536 - '{"x":""}'.length) };
    const largest = { ...plain('\u{1f600}'.repeat(500)), body: '\u0001'.repeat(20_000), data };
    const { json } = await publish(projectId, [largest]);
    expect(json.data.publishNotifications.notifications[0]).toMatchObject(largest);
  });
});

it('counts as unread what the list shows as unread, for everyone', async () => {
  const document = `query ($organizationId: ID!, $projectId: ID!) {
    project(organizationId: $organizationId, id: $projectId) { unreadNotificationCount }
  }`;
  for (const [as, unread] of [
    ['owner', 50],
    ['admin', 150],
    ['member', 146],
    ['viewer', 150],
  ] as const) {
    const response = await app.graphql(document, located(app.demo.project_id), { as });
    expect(response.json, as).toEqual({ data: { project: { unreadNotificationCount: unread } } });
  }
});

describe('the demo', () => {
  it('has notifications that agree with its instances', async () => {
    const rows = await app.app.database.prisma.$queryRaw<Array<{ kind: string; status: string; throttled: boolean; placed: boolean }>>`
      SELECT kind, status::text AS status, throttled, hypervisor IS NOT NULL AS placed
      FROM notifications JOIN instances ON instances.id::text = notifications.resource_id AND resource_type = 'instance'`;
    const seen = new Set(rows.map(({ kind }) => kind));
    expect(seen).toContain('backup.completed');
    for (const { kind, status, throttled, placed } of rows) {
      expect([kind, status], kind).not.toContain('deleted');
      if (kind === 'instance.suspended') expect(status).toBe('suspended');
      else expect(placed, kind).toBe(true);
      if (kind === 'instance.throttled') expect(throttled).toBe(true);
      if (kind === 'instance.started' || kind === 'instance.resized') expect(status).toBe('active');
    }
    for (const kind of ['instance.suspended', 'instance.throttled', 'instance.started', 'instance.resized']) expect(seen).toContain(kind);
  });
});
