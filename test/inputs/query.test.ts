import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { expectRest, expectUnharmed, invalid, notFound } from '../support/inputs.ts';

let app: TestApp;
let notifications: string;
beforeAll(async () => {
  app = await startApp();
  notifications = `${app.projectPath}/notifications`;
});
afterAll(() => app.close());

describe('a query string', () => {
  const integer = (name: string) => ({ [name]: ['A valid integer is required.'] });
  const minimum = (name: string) => ({ [name]: ['Ensure this value is greater than or equal to 1.'] });
  const malformed = invalid('The query string is not valid.');

  it.each<[string, unknown]>([
    ['page=1&page=2', integer('page')],
    ['page=1&page=1', integer('page')],
    ['page=', integer('page')],
    ['page', integer('page')],
    ['page=1e3', integer('page')],
    ['page=0x1', integer('page')],
    ['page=1.0', integer('page')],
    ['page=%2B1', integer('page')],
    ['page=+1', integer('page')],
    ['page=1%20', integer('page')],
    ['page=%EF%BC%91', integer('page')],
    ['page=NaN', integer('page')],
    ['page=Infinity', integer('page')],
    ['page=__proto__', integer('page')],
    ['page=1?page=2', integer('page')],
    ['page=0', minimum('page')],
    ['page=-0', minimum('page')],
    ['page=-1', minimum('page')],
    ['page=-99999999999999999999', minimum('page')],
    ['page_size=0', minimum('page_size')],
    ['page=0&page_size=-1', { ...minimum('page'), ...minimum('page_size') }],
    [
      'page=x&page_size=&unread=2&severity=bad',
      { ...integer('page'), ...integer('page_size'), unread: ['Must be a valid boolean.'], severity: ['"bad" is not a valid choice.'] },
    ],
    ['unread=yes', { unread: ['Must be a valid boolean.'] }],
    ['unread=', { unread: ['Must be a valid boolean.'] }],
    ['unread=constructor', { unread: ['Must be a valid boolean.'] }],
    ['unread=__proto__', { unread: ['Must be a valid boolean.'] }],
    ['unread=true&unread=false', { unread: ['Must be a valid boolean.'] }],
    ['severity=INFO', { severity: ['"INFO" is not a valid choice.'] }],
    ['severity=', { severity: ['"" is not a valid choice.'] }],
    ['severity=info&severity=warning', { severity: ['Not a valid choice.'] }],
    ['kind=a&kind=b', { kind: ['Not a valid string.'] }],
    ['kind=%00', { kind: ['Null characters are not allowed.'] }],
    ['kind=%ff', malformed],
    ['kind=%ed%a0%80', malformed],
    ['kind=50%', malformed],
    ['kind=%zz', malformed],
    ['%ff=1', malformed],
  ])('%s: refused', async (query, body) => {
    expectRest(await app.ask('GET', `${notifications}?${query}`), 400, body);
  });

  it.each([
    ['', {}],
    ['&&&', {}],
    ['=', {}],
    ['page[]=2', {}],
    ['page.0=2', {}],
    ['Page=2', {}],
    ['__proto__=2', {}],
    ['organization_id=x&project_id=x', {}],
    ['page=01', {}],
    ['page=%31', {}],
    ['p%61ge=2', { page: 2 }],
    ['page_size=100', { page_size: 100, total_pages: 2 }],
    ['page_size=101', { page_size: 100, total_pages: 2 }],
    ['page_size=99999999999999999999', { page_size: 100, total_pages: 2 }],
    ['kind=', {}],
    ['kind=a?b', { count: 0, total_pages: 1 }],
    ['kind=%F0%9F%98%80', { count: 0, total_pages: 1 }],
  ])('%s: taken', async (query, expected) => {
    const { status, json } = await app.ask('GET', `${notifications}?${query}`);
    const { count, page, page_size, total_pages } = json;
    expect({ status, count, page, page_size, total_pages }).toEqual({
      status: 200,
      count: 150,
      page: 1,
      page_size: 20,
      total_pages: 8,
      ...expected,
    });
  });

  it.each(['page=9', 'page=2147483648', 'page=99999999999999999999', 'page=2&kind=a?b'])('%s: past the end', async (query) => {
    expectRest(await app.ask('GET', `${notifications}?${query}`), 404, notFound);
  });

  it('counts behind its first question mark, the others are part of it', async () => {
    await app.app.database.prisma.notification.create({
      data: { projectId: app.demo.empty_project_id, kind: 'why?', severity: 'info', title: 'x', data: {} },
    });
    const path = notifications.replace(app.demo.project_id, app.demo.empty_project_id);
    const { json } = await app.ask('GET', `${path}?kind=why?&page_size=1`);
    expect(json).toMatchObject({ count: 1, results: [{ kind: 'why?' }] });
  });

  it('is read on GET alone', async () => {
    const { status, json } = await app.ask('POST', `${app.projectPath}/monitoring/dashboards?name=x&%ff`, { body: {} });
    expect({ status, json }).toEqual({ status: 400, json: { name: ['This field is required.'] } });
  });

  it('of a page’s links is that of the request, with another page', async () => {
    const { json } = await app.ask('GET', `${notifications}?page_size=50&x=a%20b&page=2&x=c`);
    const base = `${app.baseUrl}${notifications}?page_size=50&x=a+b&page=`;
    expect(json).toMatchObject({ next: `${base}3&x=c`, previous: `${base}1&x=c` });
    expect((await app.ask('GET', String(json.next).slice(app.baseUrl.length))).json.page).toBe(3);
  });
});

it('leaves the server unharmed', () => expectUnharmed(app));
