import type { ClientOptions } from 'ws';

type WebSocketClass = typeof WebSocket;

// Node.js has a global WebSocket from version 22 on.
const own: WebSocketClass | undefined = globalThis.WebSocket;
const packaged = own ? null : (await import('ws')).WebSocket;

export const WebSocketImpl = (own ?? packaged) as WebSocketClass;

export const takesHeaders: boolean = true;

export function openSocket(url: string, protocols: string[], headers: Record<string, string> = {}): WebSocket {
  if (packaged) return new packaged(url, protocols, { headers } satisfies ClientOptions) as unknown as WebSocket;
  // Node's WebSocket accepts headers in its second argument, which the standard does not.
  return new WebSocketImpl(url, { protocols, headers } as unknown as string[]);
}

/** How long a peer may take to confirm that a socket is closed: a dead one would keep the process alive for half a minute. */
const CLOSING_MS = 1_000;

/** Closes a socket, or aborts its handshake. */
export function closeSocket(socket: WebSocket, code?: number, reason?: string): void {
  socket.close(code, reason);
  if (socket.readyState === WebSocketImpl.CLOSED || !('terminate' in socket)) return;
  const { terminate } = socket as WebSocket & { terminate(): void };
  const timer = setTimeout(() => terminate.call(socket), CLOSING_MS);
  socket.addEventListener('close', () => clearTimeout(timer), { once: true });
}
