import { memberReads, notificationRows, ownerReadThrough } from '../../../demo/notifications.ts';
import type { DemoRole } from '../../../demo/people.ts';
import type { TestApp } from '../../support/app.ts';
import { type Case, refusals, type Who } from '../../support/doors.ts';
import { ids, seededAt } from '../../support/fixtures.ts';

interface Body {
  readonly id: string;
  readonly sequence: number;
  readonly kind: string;
  readonly severity: string;
  readonly read: boolean;
}

/** Who has read what, as the demo has it. */
const hasRead: Readonly<Record<string, (sequence: number, id: string) => boolean>> = {
  owner: (sequence) => sequence <= ownerReadThrough,
  member: (_, id) => memberReads.includes(id),
};

/** The whole log of the main project as a user sees it, the newest first, with the fields in their order. */
async function demoLog(app: TestApp, who: Who): Promise<Body[]> {
  const role = who.split(' ')[0] as DemoRole;
  const rows = notificationRows(await seededAt(app)).filter(({ projectId }) => projectId === ids.project.id);
  return rows
    .map((row, index) => ({
      id: String(row.id),
      sequence: index + 1,
      kind: row.kind,
      severity: row.severity,
      title: row.title,
      body: row.body,
      resource_type: row.resourceType,
      resource_id: row.resourceId,
      data: row.data,
      created: (row.created as Date).toISOString(),
      read: hasRead[role]?.(index + 1, String(row.id)) ?? false,
    }))
    .reverse();
}

type Query = Readonly<Record<string, unknown>> & { readonly page?: number; readonly page_size?: number };

/** A page of the log: the rows that are kept, cut as the query says, with links that differ in nothing but the page. */
const listed = (name: string, input: Query | undefined, keep: (row: Body) => boolean = () => true, as: Who = 'owner'): Case => ({
  name,
  operation: 'list_notifications',
  status: 200,
  as,
  input,
  async prepare(app) {
    const rows = (await demoLog(app, as)).filter(keep);
    const page = input?.page ?? 1;
    const pageSize = Math.min(input?.page_size ?? 20, 100);
    const totalPages = Math.max(1, Math.ceil(rows.length / pageSize));
    const link = (target: number) => {
      const search = new URLSearchParams(Object.entries({ ...input, page: target }).map(([key, value]) => [key, String(value)]));
      return `${app.baseUrl}${app.projectPath}/notifications?${search}`;
    };
    return {
      body: {
        count: rows.length,
        next: page < totalPages ? link(page + 1) : null,
        previous: page > 1 ? link(page - 1) : null,
        page,
        page_size: pageSize,
        total_pages: totalPages,
        results: rows.slice((page - 1) * pageSize, page * pageSize),
      },
    };
  },
});

const invalid = (input: Case['input'], fields: Case['fields']): Case => ({
  name: `the query ${JSON.stringify(input)}`,
  operation: 'list_notifications',
  status: 400,
  input,
  fields,
});

const absent = (input: Case['input']): Case => ({
  name: `past the end: ${JSON.stringify(input)}`,
  operation: 'list_notifications',
  status: 404,
  input,
  refusal: refusals.notFound,
});

const atLeastOne = ['Ensure this value is greater than or equal to 1.'];
const notInteger = ['A valid integer is required.'];
const notBoolean = ['Must be a valid boolean.'];

export const notificationListCases: readonly Case[] = [
  listed('twenty a page', undefined),
  listed('to a viewer, who has read nothing', undefined, undefined, 'viewer'),
  listed('to a member, who has read a few', { page_size: 100 }, undefined, 'member by key'),
  listed('a page in the middle', { page: 2, page_size: 50 }),
  listed('a page that is not full', { page: 8, page_size: 20 }),
  listed('one at a time', { page: 150, page_size: 1 }),
  listed('a hundred at the most', { page_size: 1000 }),
  listed('a hundred at the most, from the second page on', { page: 2, page_size: 101 }),
  listed('what is unread', { unread: true, page_size: 30 }, ({ read }) => !read),
  listed('what has been read', { unread: false, page: 3, page_size: 40 }, ({ read }) => read),
  listed('what a member has not read', { unread: true, page: 2, page_size: 100 }, ({ read }) => !read, 'member'),
  listed('what a member has read', { unread: false }, ({ read }) => read, 'member'),
  listed('what is critical', { severity: 'critical' }, ({ severity }) => severity === 'critical'),
  listed('one kind', { kind: 'volume.nearly_full', page: 2, page_size: 5 }, ({ kind }) => kind === 'volume.nearly_full'),
  listed(
    'all filters together',
    { unread: true, severity: 'warning', kind: 'instance.throttled' },
    ({ read, severity, kind }) => !read && severity === 'warning' && kind === 'instance.throttled',
  ),
  listed('a kind that there is not', { kind: 'no.such_kind' }, () => false),
  listed('a kind is taken as it is', { kind: "x' OR '1'='1 & page=2 %" }, () => false),
  {
    name: 'an empty project has a first page',
    operation: 'list_notifications',
    status: 200,
    place: { project_id: ids.emptyProject.id },
    body: { count: 0, next: null, previous: null, page: 1, page_size: 20, total_pages: 1, results: [] },
  },
  absent({ page: 9 }),
  absent({ page: 3, page_size: 1000 }),
  absent({ page: 2, kind: 'no.such_kind' }),
  absent({ page: 2_147_483_647, page_size: 100 }),
  invalid({ page: 0 }, { page: atLeastOne }),
  invalid({ page: -3, page_size: -1 }, { page: atLeastOne, page_size: atLeastOne }),
  invalid({ page: 'x', page_size: '', unread: 'maybe' }, { page: notInteger, page_size: notInteger, unread: notBoolean }),
  invalid({ page: '1.0' }, { page: notInteger }),
  invalid({ page_size: '0x10' }, { page_size: notInteger }),
  invalid({ severity: 'fatal' }, { severity: ['"fatal" is not a valid choice.'] }),
  invalid({ page: 0, severity: 'INFO', unread: '' }, { page: atLeastOne, severity: ['"INFO" is not a valid choice.'], unread: notBoolean }),
];
