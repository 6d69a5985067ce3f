/** What a socket of a console needs to know of a WebSocket. */
export const WebSocketImpl: typeof WebSocket = globalThis.WebSocket;

/** A browser sends no header with an upgrade: a ticket stands for the credential. */
export const takesHeaders: boolean = false;

export const openSocket = (url: string, protocols: string[], _headers: Record<string, string> = {}): WebSocket =>
  new WebSocketImpl(url, protocols);
