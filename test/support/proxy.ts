import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** One connection through a proxy. */
export interface Link {
  /** Stops forwarding in both directions without closing the connection. */
  freeze(): void;
  /** Resumes forwarding, beginning with the data received meanwhile. */
  thaw(): void;
  /** Delays all data from now on, in each direction; 0 forwards immediately. */
  delay(milliseconds: number): void;
  /** Destroys the connection. */
  cut(): void;
}

export interface TcpProxy extends Link {
  readonly port: number;
  /** Destroys every connection, and new ones as soon as they are accepted. */
  cut(): void;
  /** Destroys every connection and stops listening, so that the system refuses new ones. */
  refuse(): Promise<void>;
  /** Restores the initial state: accepts connections and forwards immediately. */
  mend(): Promise<void>;
  /** Forwards new connections to another port, and destroys the open ones. */
  retarget(port: number): void;
  /** The open connections. */
  links(): Link[];
  close(): Promise<void>;
}

/**
 * Opens a TCP proxy on its own port, to be placed between a server and its clients. A fault set on the proxy applies to each
 * open connection and to later ones.
 */
export async function openProxy(target: { host: string; port: number }): Promise<TcpProxy> {
  let targetPort = target.port;
  let isCut = false;
  let isFrozen = false;
  let delayMs = 0;
  const links = new Set<Link>();
  const server = createServer((client) => {
    if (isCut) return void client.destroy();
    const link = forward(client, connect(targetPort, target.host), () => links.delete(link));
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
    retarget(port) {
      targetPort = port;
      cutAll();
    },
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
  const directions = [openDirection(client, upstream), openDirection(upstream, client)];
  const cut = () => {
    onClose();
    for (const direction of directions) direction.close();
    for (const socket of [client, upstream]) socket.destroy();
  };
  for (const socket of [client, upstream]) {
    // Nagle's algorithm, which waits for acknowledgements, would add 40 ms in each direction.
    socket.setNoDelay(true);
    socket.on('error', () => {});
  }
  for (const direction of directions) direction.ended.then(cut);
  return {
    freeze() {
      for (const direction of directions) direction.freeze();
    },
    thaw() {
      for (const direction of directions) direction.thaw();
    },
    delay(milliseconds) {
      for (const direction of directions) direction.delay(milliseconds);
    },
    cut,
  };
}

/** One direction of a connection. */
function openDirection(from: Socket, to: Socket) {
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
