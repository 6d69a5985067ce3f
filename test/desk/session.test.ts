import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { SessionKeeper } from '../../web/src/session/keeper.ts';
import type { Session } from '../../web/src/session/session.ts';

const session = (credential: string, expiresInMs: number): Session => ({
  kind: 'demo',
  credential,
  expires: Date.now() + expiresInMs,
  renewal: { demo: 'ada' },
});
const HOUR_MS = 3_600_000;

let stored: Map<string, string>;
/** Answers each renewal that is under way. */
let answers: ((response: Response) => void)[];

beforeEach(() => {
  vi.useFakeTimers();
  stored = new Map();
  answers = [];
  vi.stubGlobal('sessionStorage', { setItem: (key: string, value: string) => stored.set(key, value) });
  vi.stubGlobal('fetch', () => new Promise<Response>((resolve) => answers.push(resolve)));
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const answer = async (token: string, expiresInMs = HOUR_MS) => {
  answers.shift()?.(Response.json({ token, expires: new Date(Date.now() + expiresInMs) }));
  await vi.advanceTimersByTimeAsync(0);
};

function start(given: Session): SessionKeeper {
  const keeper = new SessionKeeper(given);
  keeper.start();
  return keeper;
}

it('a session is renewed a minute before it expires, again and again', async () => {
  const keeper = start(session('first', HOUR_MS));
  await vi.advanceTimersByTimeAsync(HOUR_MS - 60_001);
  expect(answers).toHaveLength(0);
  await vi.advanceTimersByTimeAsync(1);
  await answer('second');
  expect(keeper.session.credential).toBe('second');
  expect(stored.get('portico:session')).toContain('second');
  await vi.advanceTimersByTimeAsync(HOUR_MS - 60_000);
  expect(answers).toHaveLength(1);
  keeper.close();
});

it('a sign-out during a renewal stays one', async () => {
  const keeper = start(session('first', 0));
  await vi.advanceTimersByTimeAsync(0);
  expect(answers).toHaveLength(1);
  keeper.close();
  await answer('second');
  expect(keeper.session.credential).toBe('first');
  expect([stored.size, vi.getTimerCount()]).toEqual([0, 0]);
});

it('a renewal that fails after the sign-out is not tried again', async () => {
  const keeper = start(session('first', 0));
  await vi.advanceTimersByTimeAsync(0);
  keeper.close();
  answers.shift()?.(Response.json({}, { status: 503 }));
  await vi.advanceTimersByTimeAsync(HOUR_MS);
  expect([answers.length, vi.getTimerCount()]).toEqual([0, 0]);
});

it('a request that was refused after the sign-out gets no new credential', async () => {
  const keeper = start(session('first', HOUR_MS));
  expect(await keeper.credential()).toBe('first');
  const during = keeper.credential();
  keeper.close();
  const after = keeper.credential();
  const rejected = Promise.all([during, after].map((one) => expect(one).rejects.toThrow('the session has ended')));
  await answer('second');
  await rejected;
  expect([answers.length, stored.size]).toEqual([0, 0]);
});

it('credentials that expire within a minute are renewed after a pause', async () => {
  const keeper = start(session('first', 0));
  await vi.advanceTimersByTimeAsync(0);
  await answer('second', 30_000);
  await vi.advanceTimersByTimeAsync(14_999);
  expect(answers).toHaveLength(0);
  await vi.advanceTimersByTimeAsync(1);
  expect(answers).toHaveLength(1);
  keeper.close();
});

it('a session whose user no longer exists is not renewed, and keeps its credential until the server rejects it', async () => {
  const keeper = start(session('first', HOUR_MS));
  expect(await keeper.credential()).toBe('first');
  const again = keeper.credential();
  answers.shift()?.(Response.json({ code: 'not_found', detail: 'Not found.' }, { status: 404 }));
  expect(await again).toBe('first');
  expect(await keeper.credential()).toBe('first');
  await vi.advanceTimersByTimeAsync(2 * HOUR_MS);
  expect([answers.length, vi.getTimerCount(), JSON.parse(stored.get('portico:session') ?? '').renewal]).toEqual([0, 0, null]);
});
