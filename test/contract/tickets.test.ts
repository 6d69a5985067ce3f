import { afterAll, beforeAll, expect, it } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { runCases } from '../support/doors.ts';
import { ticketCases } from './cases/tickets.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.close());

runCases(() => app, ticketCases);

it('writes ids in lower case into the path, however the caller spells them', async () => {
  const path = app.projectPath.replace(app.demo.organization_id, app.demo.organization_id.toUpperCase());
  const response = await app.ask('POST', `${path}/websocket-tickets`, { body: { target: 'notifications' } });
  expect(response.json.path).toBe(`${app.projectPath}/notifications/ws`);
});

it('reads only its own fields from a body', async () => {
  const { foreign, instances } = app.demo;
  const body = { target: 'console', instance_id: instances.eligible, project_id: foreign.project_id, organization_id: 5, expires_in: 9e9 };
  const response = await app.ask('POST', `${app.projectPath}/websocket-tickets`, { body });
  expect(response.json).toEqual({
    ticket: expect.any(String),
    path: `${app.projectPath}/compute/instances/${instances.eligible}/console/ws`,
    expires_in: 30,
  });
});

it('issues a new ticket each time, and writes none of them to the log or the statements', async () => {
  const tickets: string[] = [];
  for (let turn = 0; turn < 5; turn += 1) {
    const response = await app.ask('POST', `${app.projectPath}/websocket-tickets`, { body: { target: 'notifications' } });
    tickets.push(response.json.ticket);
  }
  expect(new Set(tickets).size).toBe(5);
  const kept = [...app.logLines, ...app.statements].join('\n');
  expect(kept).toContain('websocket_tickets');
  for (const ticket of tickets) expect(kept).not.toContain(ticket);
});
