import { createHash } from 'node:crypto';
import { expect } from 'vitest';
import { trialExamples } from '../../../demo/backups.ts';
import { findInstance } from '../../../demo/compute.ts';
import type { TestApp } from '../../support/app.ts';
import { type Attempt, type Case, refusals, type Who } from '../../support/doors.ts';
import { ABSENT_ID, ids } from '../../support/fixtures.ts';

const instanceId = trialExamples.eligible;
const foreignInstanceId = findInstance('shop-01').id;
const sessionId = '11111111-2222-4333-8444-555555555555';

const home = `/v1/organizations/${ids.organization.id}/projects/${ids.project.id}`;
const paths = {
  notifications: `${home}/notifications/ws`,
  console: `${home}/compute/instances/${instanceId}/console/ws`,
};
const ticketTo = (path: string) => ({ ticket: expect.stringMatching(/^[\w-]{43}$/), path, expires_in: 30 });

/** What the database keeps: a hash instead of the ticket, the target, and half a minute. */
async function expectStored({ app }: TestApp, { input }: Attempt, { ticket }: Readonly<Record<string, unknown>>) {
  const ticketHash = Uint8Array.from(createHash('sha256').update(String(ticket)).digest());
  const row = await app.database.prisma.websocketTicket.findUniqueOrThrow({ where: { ticketHash } });
  const isConsole = input?.target === 'console';
  expect(row).toMatchObject({
    target: input?.target,
    instanceId: isConsole ? instanceId : null,
    sessionId: isConsole ? (input?.session_id ?? null) : null,
    usedAt: null,
  });
  expect(row.expires.getTime() - row.created.getTime()).toBe(30_000);
  expect(row.sessionExpires.getTime()).toBeGreaterThan(Date.now() + 23 * 3_600_000);
}

const issued = (name: string, as: Who, input: Case['input'], path: string): Case => ({
  name,
  operation: 'create_websocket_ticket',
  status: 201,
  as,
  input,
  body: ticketTo(path),
  check: expectStored,
});

const invalid = (name: string, input: Case['input'], fields: Case['fields'], rest: Attempt = {}): Case => ({
  name,
  operation: 'create_websocket_ticket',
  status: 400,
  input,
  fields,
  ...rest,
});

const refused = (name: string, status: 403 | 404, as: Who, input: Case['input'], refusal: Case['refusal']): Case => ({
  name,
  operation: 'create_websocket_ticket',
  status,
  as,
  input,
  refusal,
});

const sessionRequired = { detail: 'This action requires a user session.', code: 'session_required' };
const neededForConsole = { instance_id: ['This field is required for a console.'] };
const notUuid = ['Must be a valid UUID.'];

export const ticketCases: readonly Case[] = [
  issued('notifications, by a viewer', 'viewer', { target: 'notifications' }, paths.notifications),
  issued('notifications, by the owner', 'owner', { target: 'notifications' }, paths.notifications),
  issued(
    'ids that a socket of notifications has no use for',
    'viewer',
    { target: 'notifications', instance_id: foreignInstanceId, session_id: sessionId },
    paths.notifications,
  ),
  issued('ids that are null', 'viewer', { target: 'notifications', instance_id: null, session_id: null }, paths.notifications),
  issued('a console, by a member', 'member', { target: 'console', instance_id: instanceId }, paths.console),
  issued(
    'a console session to attach to again',
    'admin',
    { target: 'console', instance_id: instanceId, session_id: sessionId },
    paths.console,
  ),
  issued('an id in upper case', 'member', { target: 'console', instance_id: instanceId.toUpperCase() }, paths.console),

  invalid('no body', undefined, { target: ['This field is required.'] }),
  invalid('an empty body', {}, { target: ['This field is required.'] }),
  invalid('an unknown target', { target: 'ssh' }, { target: ['"ssh" is not a valid choice.'] }),
  invalid('a target in upper case', { target: 'CONSOLE' }, { target: ['"CONSOLE" is not a valid choice.'] }),
  invalid('a target that is null', { target: null }, { target: ['This field may not be null.'] }),
  invalid('a target that is a number', { target: 1 }, { target: ['Not a valid choice.'] }),
  invalid('a target that is a list', { target: ['console'] }, { target: ['Not a valid choice.'] }),
  invalid('a console without an instance', { target: 'console' }, neededForConsole),
  invalid('a console with null for an instance', { target: 'console', instance_id: null }, neededForConsole),
  invalid(
    'a console without an instance, and no id of a session',
    { target: 'console', session_id: 'x' },
    { ...neededForConsole, session_id: notUuid },
  ),
  invalid(
    'everything wrong at once',
    { target: 'shell', instance_id: 'web-01', session_id: 7 },
    { target: ['"shell" is not a valid choice.'], instance_id: notUuid, session_id: notUuid },
  ),
  invalid(
    'malformed ids where they are of no use',
    { target: 'notifications', instance_id: 'web-01', session_id: `{${sessionId}}` },
    { instance_id: notUuid, session_id: notUuid },
  ),
  invalid('fields before the kind of credential', { target: 'console' }, neededForConsole, { as: 'owner by key' }),

  refused('an API key', 403, 'owner by key', { target: 'notifications' }, sessionRequired),
  refused('an API key for a console', 403, 'member by key', { target: 'console', instance_id: instanceId }, sessionRequired),
  refused('a console, by a viewer', 403, 'viewer', { target: 'console', instance_id: instanceId }, refusals.forbidden),
  refused('an instance of another project', 404, 'owner', { target: 'console', instance_id: foreignInstanceId }, refusals.notFound),
  refused('an instance that does not exist', 404, 'owner', { target: 'console', instance_id: ABSENT_ID }, refusals.notFound),
  refused('absence before the kind of credential', 404, 'owner by key', { target: 'console', instance_id: ABSENT_ID }, refusals.notFound),
  refused('access before the fields', 404, 'outsider', { target: 'ssh' }, refusals.notFound),
  refused('access before the fields, a console', 404, 'outsider', { target: 'console' }, refusals.notFound),
  refused('absence before the role', 404, 'viewer', { target: 'console', instance_id: ABSENT_ID }, refusals.notFound),
];
