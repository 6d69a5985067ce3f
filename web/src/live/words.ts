import type { ConnectionState } from 'portico-client';
import { formatWait } from '../parts/format.ts';

const reasons: Readonly<Record<string, string>> = {
  unreachable: 'The server does not answer.',
  connection_lost: 'The connection was lost.',
  connection_closed: 'The server closed the connection.',
  restart: 'The server starts anew.',
  service_unavailable: 'The database is away.',
  credential_unavailable: 'The identity provider does not answer.',
  rate_limited: 'There were too many requests.',
  too_many_sockets: 'Too many tabs or programs of yours follow a feed.',
  not_found: 'The project is gone, or you may not see it any more.',
  permission_denied: 'Your role does not allow this.',
  access_lost: 'You may not see this project any more.',
};

/** The state of the feed in sentences for people: what it is, and what comes next. */
export function explainState(state: ConnectionState): readonly [what: string, next: string] {
  if (state.name === 'live') {
    const how = state.over === 'websocket' ? 'a WebSocket' : 'server-sent events';
    return [`Live, over ${how}:`, 'what happens is shown as it happens.'];
  }
  if (state.name === 'waiting') {
    const seconds = Math.max(1, Math.ceil(state.delayMs / 1000));
    return [reasonOf(state.error), `Trying again within ${formatWait(seconds)}. What happens meanwhile is shown then.`];
  }
  if (state.name === 'ended') return [state.error ? reasonOf(state.error) : 'The feed has ended.', 'It is not tried again by itself.'];
  return ['Connecting.', 'What has happened meanwhile is shown as soon as it is live.'];
}

const reasonOf = ({ code, message }: { readonly code: string; readonly message: string }) => reasons[code] ?? message;
