import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { graphqlDoors, verdictOf } from '../support/graphql-doors.ts';
import { expectUnharmed } from '../support/inputs.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.close());

const place = () => `organizationId: "${app.demo.organization_id}", projectId: "${app.demo.project_id}"`;
const ticket = (fields: string) => `createWebsocketTicket(input: {${place()}, ${fields}}) { path }`;
/** A write before the ticket, which must not be carried out. */
const dashboard = (name = '"before"') => `a: createDashboard(input: {${place()}, name: ${name}}) { dashboard { id } }`;
const both = (fields: string, variables = '') => `mutation ${variables} { ${dashboard()} b: ${ticket(fields)} }`;
const whole = () => ({ organizationId: app.demo.organization_id, projectId: app.demo.project_id });

const needed = ['This field is required for a console.'];

describe.each(Object.entries(graphqlDoors))('an instance that a console requires, through %s,', (_door, send) => {
  it.each<[string, () => string, object | undefined, object]>([
    ['literals', () => both('target: console'), undefined, { instanceId: needed }],
    ['a literal null', () => both('target: console, instanceId: null'), undefined, { instanceId: needed }],
    ['a literal target and an absent variable', () => both('target: console, instanceId: $i', '($i: UUID)'), {}, { i: needed }],
    ['a literal target and a variable of null', () => both('target: console, instanceId: $i', '($i: UUID)'), { i: null }, { i: needed }],
    ['a default of null', () => both('target: console, instanceId: $i', '($i: UUID = null)'), {}, { i: needed }],
    ['a target by variable alone', () => both('target: $t', '($t: TicketTarget!)'), { t: 'console' }, { instanceId: needed }],
    [
      'a target by variable and a literal null',
      () => both('target: $t, instanceId: null', '($t: TicketTarget!)'),
      { t: 'console' },
      { instanceId: needed },
    ],
    ['a target by default alone', () => both('target: $t', '($t: TicketTarget! = console)'), {}, { instanceId: needed }],
    [
      'a target by default and a variable',
      () => both('target: $t, instanceId: $i', '($t: TicketTarget! = console, $i: UUID)'),
      {},
      { i: needed },
    ],
    ['two variables', () => both('target: $t, instanceId: $i', '($t: TicketTarget!, $i: UUID)'), { t: 'console' }, { i: needed }],
    [
      'an input by its default',
      () =>
        `mutation ($input: CreateWebsocketTicketInput! = {${place()}, target: console}) { ${dashboard()} createWebsocketTicket(input: $input) { path } }`,
      {},
      { instanceId: needed },
    ],
    [
      'a fragment',
      () =>
        `mutation ($t: TicketTarget!, $i: UUID) { ${dashboard()} ...F } fragment F on Mutation { b: ${ticket('target: $t')} c: ${ticket('target: console, instanceId: $i')} }`,
      { t: 'console' },
      { instanceId: needed, i: needed },
    ],
    [
      'literals beside other errors',
      () =>
        `mutation ($n: Name!) { ${dashboard('""')} d: createDashboard(input: {${place()}, name: $n}) { dashboard { id } } ${ticket('target: console')} }`,
      { n: ' ' },
      { name: ['This field may not be blank.'], n: ['This field may not be blank.'], instanceId: needed },
    ],
  ])('is missed before the execution: %s', async (_label, query, variables, fields) => {
    const count = () => app.app.database.prisma.dashboard.count();
    const before = await count();
    expect(verdictOf(await send(app, { query: query(), variables }))).toEqual(fields);
    expect(await count()).toBe(before);
  });

  it('is missed in a variable of the whole input', async () => {
    const query = `mutation ($input: CreateWebsocketTicketInput!) { ${dashboard()} createWebsocketTicket(input: $input) { path } }`;
    const result = await send(app, { query, variables: { input: { ...whole(), target: 'console' } } });
    expect(verdictOf(result)).toEqual({ instanceId: needed });
  });

  it.each<[string, string, string, () => object]>([
    ['notifications, by literal', 'target: notifications', '', () => ({})],
    ['notifications, by variable', 'target: $t', '($t: TicketTarget! = console)', () => ({ t: 'notifications' })],
    ['a console, by literal and variable', 'target: console, instanceId: $i', '($i: UUID)', () => ({ i: app.demo.instances.eligible })],
  ])('is not missed: %s', async (_label, fields, variables, values) => {
    const query = `mutation ${variables} { ${ticket(fields)} }`;
    expect(verdictOf(await send(app, { query, variables: values() }))).toEqual({
      data: { createWebsocketTicket: { path: expect.stringMatching(/\/ws$/) } },
    });
  });

  it('is not missed where the variable has it by its default', async () => {
    const query = `mutation ($t: TicketTarget!, $i: UUID = "${app.demo.instances.eligible}") { ${ticket('target: $t, instanceId: $i')} }`;
    const path = expect.stringMatching(/console\/ws$/);
    expect(verdictOf(await send(app, { query, variables: { t: 'console' } }))).toEqual({ data: { createWebsocketTicket: { path } } });
  });
});

it('harms nobody', () => expectUnharmed(app));
