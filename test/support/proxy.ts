import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface TcpProxy {
  readonly port: number;
  /** Breaks every connection, and refuses new ones. */
  cut(): void;
  /** Takes connections again. */
  mend(): void;
  close(): Promise<void>;
}

/** A TCP proxy on a port of its own, to come between a server and those that depend on it. */
export async function openProxy(target: { host: string; port: number }): Promise<TcpProxy> {
  let isCut = false;
  const pairs = new Set<readonly [Socket, Socket]>();
  const server = createServer((client) => {
    if (isCut) return void client.destroy();
    const upstream = connect(target.port, target.host);
    const pair = [client, upstream] as const;
    pairs.add(pair);
    for (const socket of pair) {
      socket.on('error', () => {});
      socket.on('close', () => {
        pairs.delete(pair);
        for (const other of pair) other.destroy();
      });
    }
    client.pipe(upstream);
    upstream.pipe(client);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    cut() {
      isCut = true;
      for (const pair of pairs) for (const socket of pair) socket.destroy();
    },
    mend() {
      isCut = false;
    },
    close() {
      for (const pair of pairs) for (const socket of pair) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
