import { serverAudits } from 'graphql-http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';

let portico: TestApp;

beforeAll(async () => {
  portico = await startApp();
});
afterAll(() => portico.close());

/** Adds a credential to each request, because the audits send none. */
const fetchWithToken: typeof fetch = (input, init) => {
  const headers = new Headers(init?.headers);
  headers.set('authorization', `Bearer ${portico.demo.users.owner.token}`);
  return fetch(input, { ...init, headers });
};

const audits = serverAudits({ url: () => `${portico.baseUrl}/graphql`, fetchFn: fetchWithToken });

test('there are audits', () => {
  expect(audits.length).toBeGreaterThan(50);
});

test.each(audits)('$name', async ({ fn }) => {
  const result = await fn();
  const { status, reason } = result.status === 'ok' ? { ...result, reason: '' } : result;
  expect({ status, reason }).toEqual({ status: 'ok', reason: '' });
});
