import { type OperationName, operations, type Place } from '../../support/contract.ts';
import { type Case, refusals } from '../../support/doors.ts';
import { ABSENT_ID, ids } from '../../support/fixtures.ts';

/** An input with which nothing is wrong, so that only who asks and where can be refused. */
const soundInputs: Partial<Record<OperationName, Readonly<Record<string, unknown>>>> = {
  create_websocket_ticket: { target: 'notifications' },
  create_dashboard: { name: 'Not made' },
  update_dashboard: { name: 'Not changed' },
  mark_notifications_read: { notification_ids: [ABSENT_ID] },
};

const names = Object.keys(operations) as OperationName[];
const ofAll = (row: Omit<Case, 'operation' | 'status'> & Pick<Case, 'status'>, among: readonly OperationName[] = names) =>
  among.map((operation): Case => ({ ...row, operation, input: soundInputs[operation] }));

const foreign = { organization_id: ids.foreignOrganization.id, project_id: ids.foreignProject.id };
const absentPlaces: Readonly<Record<string, Case['place']>> = {
  'a project of another organization': foreign,
  'a project under an organization that is not its own': { project_id: ids.foreignProject.id },
  'an organization over a project that is not its own': { organization_id: ids.foreignOrganization.id },
  'a project that does not exist': { project_id: ABSENT_ID },
  'an organization that does not exist': { organization_id: ABSENT_ID },
  'a malformed project id': { project_id: 'production' },
  'a malformed organization id': { organization_id: '{019b76da-a800-7f80-b447-2b4165543001}' },
};

const located = (part: keyof Place) => names.filter((name) => operations[name].path.includes(`:${part}`));
const withoutProject = located('organization_id').filter((name) => !located('project_id').includes(name));
const absentOrganizations: Readonly<Record<string, Case['place']>> = {
  'another organization': { organization_id: ids.foreignOrganization.id },
  'an organization that does not exist': { organization_id: ABSENT_ID },
  'a malformed organization id': { organization_id: '{019b76da-a800-7f80-b447-2b4165543001}' },
};
const ofLocated = (part: 'instance_id' | 'dashboard_id', name: string, id: string) =>
  located(part).map(
    (operation): Case => ({
      name,
      operation,
      status: 404,
      place: { [part]: id },
      input: soundInputs[operation],
      refusal: refusals.notFound,
    }),
  );

const notJson = { detail: 'The body is not valid JSON.', code: 'invalid_request' };

/** What every operation refuses alike. */
export const refusalCases: readonly Case[] = [
  ...ofAll({ name: 'no credential', status: 401, as: 'nobody', refusal: refusals.anonymous }),
  ...ofAll({ name: 'a bad credential', status: 401, as: 'garbage', refusal: refusals.garbage }),
  ...ofAll({ name: 'a user of another organization', status: 404, as: 'outsider', refusal: refusals.notFound }, located('organization_id')),
  ...Object.entries(absentPlaces).flatMap(([name, place]) =>
    ofAll({ name, status: 404, place, refusal: refusals.notFound }, located('project_id')),
  ),
  ...Object.entries(absentOrganizations).flatMap(([name, place]) =>
    ofAll({ name, status: 404, place, refusal: refusals.notFound }, withoutProject),
  ),
  ...ofLocated('instance_id', 'an instance that does not exist', ABSENT_ID),
  ...ofLocated('instance_id', 'a malformed instance id', 'web-01'),
  ...ofLocated('dashboard_id', 'a dashboard that does not exist', ABSENT_ID),
  ...ofLocated('dashboard_id', 'a malformed dashboard id', `${ABSENT_ID} `),
  ...names
    .filter((operation) => operations[operation].method !== 'get')
    .map((operation): Case => ({ name: 'a body that is not JSON', operation, status: 400, text: '{"name": ', refusal: notJson })),
];

const throttled = (limit: number, window_seconds: number) => ({
  detail: 'Request was throttled.',
  code: 'rate_limited',
  context: { limit, window_seconds, retry_after_seconds: window_seconds },
});

/** For an app with budgets of one request, both spent, and a clock that stands still. */
export const throttledCases: readonly Case[] = [
  ...ofAll({ name: 'nothing left of the budget of the user', status: 429, refusal: throttled(1, 3600) }),
  ...ofAll({ name: 'nothing left of the budget, by an API key', status: 429, as: 'owner by key', refusal: throttled(1, 3600) }),
  ...ofAll({ name: 'nothing left of the budget of the address', status: 429, as: 'nobody', refusal: throttled(1, 60) }),
  ...ofAll({ name: 'nothing left for a bad credential', status: 429, as: 'garbage', refusal: throttled(1, 60) }),
];
