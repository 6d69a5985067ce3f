import { afterAll, beforeAll } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { runCases } from '../support/doors.ts';
import { refusalCases } from './cases/refusals.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_ANONYMOUS: '1000' });
});
afterAll(() => app.close());

runCases(() => app, refusalCases);
