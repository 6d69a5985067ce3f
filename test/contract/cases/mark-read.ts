import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import type { TestApp } from '../../support/app.ts';
import type { Case, Who } from '../../support/doors.ts';
import { ABSENT_ID, makeNotifications, makeProject } from '../../support/fixtures.ts';

const COUNT = 5;

/** A project with five notifications, of which the viewer has read the second. */
async function prepare(app: TestApp) {
  const projectId = await makeProject(app, { member: 'member', viewer: 'viewer' });
  const made = await makeNotifications(app, projectId, COUNT);
  await mark(app, projectId, 'viewer', made.slice(1, 2));
  return { projectId, made };
}

async function mark(app: TestApp, projectId: string, role: 'viewer' | 'member', notificationIds: readonly string[]) {
  const { id } = app.demo.users[role];
  await app.app.database.prisma
    .$executeRaw`SELECT mark_notifications_read(${projectId}::uuid, ${id}::uuid, ${notificationIds}::uuid[], NULL::bigint)`;
}

/** Which of them a user has not read, by their place in the log. */
async function unreadOf(app: TestApp, projectId: string, as: Who): Promise<number[]> {
  const path = `/v1/organizations/${app.demo.organization_id}/projects/${projectId}/notifications?unread=true`;
  const { json } = await app.ask('GET', path, { as: as as 'viewer' });
  return json.results.map(({ sequence }: { sequence: number }) => sequence).sort((a: number, b: number) => a - b);
}

/** The viewer marks; what is unread afterwards is looked up, and that nobody else's state has moved. */
const marked = (
  name: string,
  input: Case['input'] | ((made: readonly string[]) => Case['input']),
  { marked, unread }: { readonly marked: number; readonly unread: readonly number[] },
): Case => ({
  name,
  operation: 'mark_notifications_read',
  status: 200,
  as: 'viewer',
  async prepare(app) {
    const { projectId, made } = await prepare(app);
    return {
      place: { project_id: projectId },
      input: typeof input === 'function' ? input(made) : input,
      body: { marked, unread_count: unread.length },
    };
  },
  async check(app, { place }) {
    const projectId = String(place?.project_id);
    expect(await unreadOf(app, projectId, 'viewer')).toEqual(unread);
    expect(await unreadOf(app, projectId, 'member')).toEqual([1, 2, 3, 4, 5]);
  },
});

const all = { marked: 4, unread: [] };
const none = { marked: 0, unread: [1, 3, 4, 5] };
const strangers = (count: number) => Array.from({ length: count }, () => randomUUID());

const invalid = (name: string, notification_ids: unknown, messages: readonly string[]): Case => ({
  name,
  operation: 'mark_notifications_read',
  status: 400,
  as: 'viewer',
  fields: { notification_ids: messages },
  async prepare(app) {
    const { projectId } = await prepare(app);
    return { place: { project_id: projectId }, input: { notification_ids } };
  },
  check: async (app, { place }) => expect(await unreadOf(app, String(place?.project_id), 'viewer')).toEqual(none.unread),
});

export const markReadCases: readonly Case[] = [
  marked('no body marks all', undefined, all),
  marked('an empty body marks all', {}, all),
  marked('null marks all', { notification_ids: null }, all),
  marked('an empty list marks all', { notification_ids: [] }, all),
  marked('those named', ([first, , , fourth]) => ({ notification_ids: [fourth, first] }), { marked: 2, unread: [3, 5] }),
  marked('one that was read before', ([, second]) => ({ notification_ids: [second] }), none),
  marked('repeated ones once', ([, , third]) => ({ notification_ids: [third, third, third?.toUpperCase()] }), {
    marked: 1,
    unread: [1, 4, 5],
  }),
  marked('unknown ones not at all', () => ({ notification_ids: strangers(3) }), none),
  marked('all of them by name', (made) => ({ notification_ids: made }), all),
  marked('two hundred ids', ([first]) => ({ notification_ids: [...strangers(199), first] }), { marked: 1, unread: [3, 4, 5] }),
  {
    name: 'those of another project not at all',
    operation: 'mark_notifications_read',
    status: 200,
    as: 'viewer',
    async prepare(app) {
      const { projectId } = await prepare(app);
      const sibling = await prepare(app);
      const input = { notification_ids: [...sibling.made, app.demo.notification_ids[0]] };
      return { place: { project_id: projectId }, input, body: { marked: 0, unread_count: 4 } };
    },
  },
  {
    name: 'nothing where there is nothing',
    operation: 'mark_notifications_read',
    status: 200,
    prepare: async (app) => ({ place: { project_id: await makeProject(app) } }),
    body: { marked: 0, unread_count: 0 },
  },
  invalid('201 ids', strangers(201), ['Ensure this field has no more than 200 items.']),
  invalid('201 times the same id', Array(201).fill(ABSENT_ID), ['Ensure this field has no more than 200 items.']),
  invalid('what is not a UUID', [ABSENT_ID, 'x', 5], ['Item 2: Must be a valid UUID.', 'Item 3: Must be a valid UUID.']),
  invalid('null in the list', [null, ABSENT_ID], ['Item 1: This field may not be null.']),
  invalid('a list in the list', [[ABSENT_ID]], ['Item 1: Must be a valid UUID.']),
  invalid('a single id', ABSENT_ID, ['Expected a list of items.']),
  invalid('an object', { 0: ABSENT_ID }, ['Expected a list of items.']),
];
