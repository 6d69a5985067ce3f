import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** One connection through a proxy. */
export interface Link {
  /** Forwards nothing more, in either direction, and closes nothing. */
  freeze(): void;
  /** Goes on forwarding, with all that has come meanwhile. */
  thaw(): void;
  /** Everything from now on comes so much later, each way; 0: as it comes. */
  delay(milliseconds: number): void;
  /** Breaks it. */
  cut(): void;
}

export interface TcpProxy extends Link {
  readonly port: number;
  /** Breaks every connection, and hangs up on new ones at once. */
  cut(): void;
  /** Breaks every connection, and does not listen any more: new ones are refused by the system. */
  refuse(): Promise<void>;
  /** As at the beginning: takes connections, forwards at once. */
  mend(): Promise<void>;
  /** The connections that are open now. */
  links(): Link[];
  close(): Promise<void>;
}

/**
 * A TCP proxy on a port of its own, to come between a server and those that depend on it. What is done to the proxy is
 * done to each of its connections, and to those that come later.
 */
export async function openProxy(target: { host: string; port: number }): Promise<TcpProxy> {
  let isCut = false;
  let isFrozen = false;
  let delayMs = 0;
  const links = new Set<Link>();
  const server = createServer((client) => {
    if (isCut) return void client.destroy();
    const link = forward(client, connect(target.port, target.host), () => links.delete(link));
    links.add(link);
    link.delay(delayMs);
    if (isFrozen) link.freeze();
  });
  const listen = (port: number) => new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  await listen(0);
  const { port } = server.address() as AddressInfo;
  const cutAll = () => {
    for (const link of links) link.cut();
  };
  const stopListening = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      cutAll();
    });
  const thaw = () => {
    isFrozen = false;
    for (const link of links) link.thaw();
  };
  const delay = (milliseconds: number) => {
    delayMs = milliseconds;
    for (const link of links) link.delay(milliseconds);
  };
  return {
    port,
    links: () => [...links],
    freeze() {
      isFrozen = true;
      for (const link of links) link.freeze();
    },
    thaw,
    delay,
    cut() {
      isCut = true;
      cutAll();
    },
    async refuse() {
      if (server.listening) await stopListening();
    },
    async mend() {
      isCut = false;
      thaw();
      delay(0);
      if (!server.listening) await listen(port);
    },
    close: async () => {
      if (server.listening) await stopListening();
      cutAll();
    },
  };
}

function forward(client: Socket, upstream: Socket, onClose: () => void): Link {
  const ways = [openWay(client, upstream), openWay(upstream, client)];
  const cut = () => {
    onClose();
    for (const way of ways) way.close();
    for (const socket of [client, upstream]) socket.destroy();
  };
  for (const socket of [client, upstream]) {
    // What waits for an acknowledgement comes 40 ms late, each way.
    socket.setNoDelay(true);
    socket.on('error', () => {});
  }
  for (const way of ways) way.ended.then(cut);
  return {
    freeze() {
      for (const way of ways) way.freeze();
    },
    thaw() {
      for (const way of ways) way.thaw();
    },
    delay(milliseconds) {
      for (const way of ways) way.delay(milliseconds);
    },
    cut,
  };
}

/** One direction of a connection. */
function openWay(from: Socket, to: Socket) {
  const queue: Array<{ readonly due: number; readonly chunk: Buffer | null }> = [];
  let isFrozen = false;
  let delayMs = 0;
  let timer: NodeJS.Timeout | undefined;
  let end = () => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const flush = () => {
    clearTimeout(timer);
    while (!isFrozen) {
      const [next] = queue;
      if (!next) break;
      const early = next.due - performance.now();
      if (early > 0) {
        timer = setTimeout(flush, early);
        break;
      }
      queue.shift();
      if (to.destroyed) return end();
      if (next.chunk === null) return void to.end(end);
      if (!to.write(next.chunk)) {
        from.pause();
        to.once('drain', () => !isFrozen && from.resume());
      }
    }
  };
  const push = (chunk: Buffer | null) => {
    queue.push({ due: performance.now() + delayMs, chunk });
    flush();
  };
  from.on('data', push);
  from.once('close', () => push(null));
  return {
    ended,
    freeze() {
      isFrozen = true;
      from.pause();
    },
    thaw() {
      isFrozen = false;
      from.resume();
      flush();
    },
    delay(milliseconds: number) {
      delayMs = milliseconds;
    },
    close: () => clearTimeout(timer),
  };
}
