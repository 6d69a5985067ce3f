import WebSocket from 'ws';
import type { Frame } from './feed.ts';

export interface PlainFeedOptions {
  readonly baseUrl: string;
  readonly token: string;
  readonly organizationId: string;
  readonly projectId: string;
  /** The last sequence that the subscriber has received. */
  readonly after: number;
  readonly onEvent: (event: Frame) => void;
  /** Called once, with an error that a retry would not fix. */
  readonly onEnd: (why: { readonly code: number; readonly reason: string }) => void;
}

/** Close codes that a retry would get again. */
const FINAL = [4400, 4406, 4409, 4429];

/**
 * Follows a project's feed by ticket and plain JSON, which the client package does not use, and reconnects after every
 * interruption. Returns a function that ends it.
 */
export function followPlainFeed({ baseUrl, token, organizationId, projectId, after, onEvent, onEnd }: PlainFeedOptions): () => void {
  const tickets = `${baseUrl}/v1/organizations/${organizationId}/projects/${projectId}/websocket-tickets`;
  let [cursor, waitMs, isEnded] = [after, 0, false];
  let socket: WebSocket | null = null;
  const connect = async () => {
    if (isEnded) return;
    try {
      const response = await fetch(tickets, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ target: 'notifications' }),
      });
      if (!response.ok) {
        const refusal = { code: response.status, reason: await response.text() };
        // An invalid token, an API key or an absent project would get the same response again.
        return response.status < 500 && response.status !== 429 ? end(refusal) : again();
      }
      const { path, ticket } = await response.json();
      if (isEnded) return;
      socket = new WebSocket(`${baseUrl.replace(/^http/, 'ws')}${path}?ticket=${ticket}&after=${cursor}`);
      socket.on('message', (data) => {
        waitMs = 0;
        const event = JSON.parse(String(data));
        cursor = event.sequence ?? event.to ?? cursor;
        onEvent(event);
      });
      socket.on('close', (code, reason) => (FINAL.includes(code) ? end({ code, reason: String(reason) }) : again()));
      socket.on('error', () => {});
    } catch {
      again();
    }
  };
  const again = () => {
    if (isEnded) return;
    waitMs = Math.min(waitMs * 2 + 100, 10_000);
    setTimeout(connect, waitMs * (0.5 + Math.random() / 2));
  };
  const end = (why: { code: number; reason: string }) => {
    if (isEnded) return;
    isEnded = true;
    onEnd(why);
  };
  connect();
  return () => {
    isEnded = true;
    socket?.close();
  };
}
