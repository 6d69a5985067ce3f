import { afterAll, beforeAll, vi } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { runCases } from '../support/doors.ts';
import { throttledCases } from './cases/refusals.ts';

let app: TestApp;
beforeAll(async () => {
  vi.useFakeTimers({ toFake: ['Date', 'performance'] });
  app = await startApp({ RATE_LIMIT_ANONYMOUS: '1', RATE_LIMIT_USER: '1', REDIS_URL: '' });
  await app.ask('GET', `${app.projectPath}/compute/overview`);
  await app.ask('GET', `${app.projectPath}/compute/overview`, { as: null });
});
afterAll(async () => {
  vi.useRealTimers();
  await app.close();
});

runCases(() => app, throttledCases);
