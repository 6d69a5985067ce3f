import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { type Guest, openConsole, openGuest, setEndpoint } from '../support/console.ts';

let app: TestApp;
let guest: Guest;
beforeAll(async () => {
  app = await startApp();
  guest = await openGuest();
  await setEndpoint(app, app.demo.instances.eligible, { port: guest.port });
});
afterAll(async () => {
  await guest.close();
  await app.close();
});

it('a session without a client ends after a minute, as detached', async () => {
  const console = await openConsole(app, app.demo.instances.eligible);
  await console.opened;
  await guest.called();
  const cut = Date.now();
  console.socket.terminate();
  await expect.poll(() => guest.lines.size, { timeout: 75_000, interval: 200 }).toBe(0);
  expect(Date.now() - cut).toBeGreaterThan(59_000);
  expect(Date.now() - cut).toBeLessThan(65_000);
  const find = () => app.app.database.prisma.consoleSession.findUniqueOrThrow({ where: { id: console.sessionId() } });
  await expect.poll(find).toMatchObject({ ended: expect.any(Date), endReason: 'detached' });
});

it('an idle console is closed, and traffic in either direction keeps it open', async () => {
  const hasty = await startApp({ CONSOLE_IDLE_SECONDS: '3' });
  await setEndpoint(hasty, hasty.demo.instances.eligible, { port: guest.port });
  const console = await openConsole(hasty, hasty.demo.instances.eligible);
  await console.opened;
  await guest.called();
  const began = Date.now();
  for (let round = 0; round < 3; round += 1) {
    await sleep(1_500);
    if (round % 2 === 0) guest.say('.');
    else console.socket.send('x');
  }
  expect(await console.closed).toEqual({ code: 4408, reason: 'idle' });
  expect(Date.now() - began).toBeGreaterThan(7_000);
  expect(Date.now() - began).toBeLessThan(30_000);
  const find = () => hasty.app.database.prisma.consoleSession.findUniqueOrThrow({ where: { id: console.sessionId() } });
  await expect.poll(find).toMatchObject({ endReason: 'idle' });
  await hasty.close();
});
