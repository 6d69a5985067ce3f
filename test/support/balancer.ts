import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { Replica } from './replicas.ts';

export interface Balancer {
  readonly baseUrl: string;
  readonly port: number;
  /** The connections that are open now. */
  count(): number;
  /** Breaks one open connection, chosen by a number in [0, 1). */
  cutOne(which: number): void;
  close(): Promise<void>;
}

const CHECK_INTERVAL_MS = 250;
const CONNECT_WITHIN_MS = 1_000;

/**
 * A round-robin TCP load balancer for HTTP and WebSocket connections. It polls the replicas' readiness every 250 ms and uses
 * those that are ready, or all of them when none is. When a connection cannot be opened, the next replica is tried.
 */
export async function openBalancer(replicas: ReadonlyArray<Pick<Replica, 'port' | 'isReady'>>): Promise<Balancer> {
  let ready = [...replicas];
  let nextIndex = 0;
  const pairs = new Set<readonly [Socket, Socket]>();
  const check = async () => {
    const states = await Promise.all(replicas.map((replica) => replica.isReady()));
    ready = replicas.filter((_, index) => states[index]);
  };
  const checking = setInterval(check, CHECK_INTERVAL_MS);
  await check();

  const server = createServer({ pauseOnConnect: true }, async (client) => {
    client.on('error', () => {});
    // Other connections advance the index while this one tries its candidates.
    const first = nextIndex++;
    const candidates = ready.length > 0 ? ready : replicas;
    for (let tries = 0; tries < candidates.length; tries += 1) {
      const candidate = candidates[(first + tries) % candidates.length];
      const upstream = candidate && (await open(candidate.port));
      if (!upstream) continue;
      if (client.destroyed) return void upstream.destroy();
      const pair = [client, upstream] as const;
      pairs.add(pair);
      for (const [socket, other] of [pair, [upstream, client] as const]) {
        socket.on('error', () => {});
        socket.once('close', () => {
          pairs.delete(pair);
          other.destroySoon();
        });
      }
      client.pipe(upstream);
      upstream.pipe(client);
      client.resume();
      return;
    }
    client.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const cut = ([client, upstream]: readonly [Socket, Socket]) => {
    client.destroy();
    upstream.destroy();
  };
  return {
    baseUrl: `http://127.0.0.1:${port}`,
    port,
    count: () => pairs.size,
    cutOne(which) {
      const pair = [...pairs][Math.floor(which * pairs.size)];
      if (pair) cut(pair);
    },
    close() {
      clearInterval(checking);
      return new Promise((resolve) => {
        server.close(() => resolve());
        for (const pair of pairs) cut(pair);
      });
    },
  };
}

function open(port: number): Promise<Socket | null> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const timer = setTimeout(() => socket.destroy(), CONNECT_WITHIN_MS);
    socket.once('connect', () => {
      clearTimeout(timer);
      resolve(socket);
    });
    socket.once('error', () => {});
    socket.once('close', () => {
      clearTimeout(timer);
      resolve(null);
    });
  });
}
