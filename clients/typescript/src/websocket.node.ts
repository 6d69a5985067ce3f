import { type ClientOptions, WebSocket as PackagedWebSocket } from 'ws';

// Node.js's own WebSocket, from version 22 on, cannot be ended where the peer has gone silent.
export const WebSocketImpl = PackagedWebSocket as unknown as typeof WebSocket;

export const takesHeaders: boolean = true;

export function openSocket(url: string, protocols: string[], headers: Record<string, string> = {}): WebSocket {
  return new PackagedWebSocket(url, protocols, { headers } satisfies ClientOptions) as unknown as WebSocket;
}

/** How long a peer may take to confirm that a socket is closed: a dead one would keep the process alive for half a minute. */
const CLOSING_MS = 1_000;

/** Closes a socket, or aborts its handshake. */
export function closeSocket(socket: WebSocket, code?: number, reason?: string): void {
  socket.close(code, reason);
  if (socket.readyState === WebSocketImpl.CLOSED) return;
  const timer = setTimeout(() => (socket as unknown as PackagedWebSocket).terminate(), CLOSING_MS);
  socket.addEventListener('close', () => clearTimeout(timer), { once: true });
}
