/** The WebSocket of a browser; `websocket.node.ts` is the variant for Node.js. */
export const WebSocketImpl: typeof WebSocket = globalThis.WebSocket;

/** A browser cannot set headers on an upgrade request: a ticket replaces the credential. */
export const takesHeaders: boolean = false;

export const openSocket = (url: string, protocols: string[], _headers: Record<string, string> = {}): WebSocket =>
  new WebSocketImpl(url, protocols);

export const sendBytes = (socket: WebSocket, bytes: Uint8Array<ArrayBuffer>): void => socket.send(bytes);

/** A browser exposes no pings, only how many bytes it has not given to the network. */
export const countUnreceived = (socket: WebSocket): number => socket.bufferedAmount;

export const closeSocket = (socket: WebSocket, code?: number, reason?: string): void => socket.close(code, reason);
