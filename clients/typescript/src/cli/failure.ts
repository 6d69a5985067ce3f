import { PorticoError } from '../error.ts';
import { clean } from './text.ts';

/** The failure of a command: one sentence for people. */
export class CommandFailure extends Error {
  constructor(
    message: string,
    /** 1, or 2 for a usage error. */
    readonly exitCode: 1 | 2 = 1,
  ) {
    super(message);
  }
}

/** The advice on what the user can do about a failure, by code. */
const advice: Readonly<Record<string, string>> = {
  not_authenticated: '“portico login” takes another credential.',
  session_required: 'An API key manages no keys and takes no ticket: log in with a session token (“portico login”).',
};

/** Why a console was closed by the server, by close reason. */
const consoleEnds: Readonly<Record<string, string>> = {
  taken_over: 'Somebody else has opened this console.',
  ended: 'Somebody has ended this console session.',
  idle: 'The console was closed, as nothing passed for too long.',
  instance_gone: 'The instance was deleted or moved.',
  instance_not_running: 'The instance is not running.',
  console_unreachable: 'The instance has no console, or it does not answer.',
  too_many_consoles: 'Too many consoles of yours are open: close one.',
};

/** Whether a write that failed may have been executed: no response came, or one that does not tell. */
export const isUncertain = (failure: unknown): boolean =>
  failure instanceof PorticoError &&
  (failure.code === 'unreachable' ||
    failure.code === 'internal_error' ||
    failure.code === 'service_unavailable' ||
    Number(failure.status) >= 500);

/** Any failure as one line; null for a bug of this program. */
export function describeFailure(failure: unknown): string | null {
  if (failure instanceof CommandFailure) return clean(failure.message);
  // A file system error: `EACCES: permission denied, mkdir '/…'`.
  if (failure instanceof Error && 'syscall' in failure) return clean(`${failure.message}.`);
  if (!(failure instanceof PorticoError)) return null;
  const ended = consoleEnds[failure.code];
  if (ended) return ended;
  const later = failure.retryAfterMs === null ? undefined : `Try again in ${Math.ceil(failure.retryAfterMs / 1000)} s.`;
  return clean([failure.message, advice[failure.code] ?? later].filter(Boolean).join(' '));
}
