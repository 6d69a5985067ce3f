import { createServer } from 'node:net';

/**
 * Finds a free port below the ephemeral range, from which the system takes the ports of outgoing connections, so that a
 * server that restarts finds its port still free.
 */
export async function findLowPort(): Promise<number> {
  for (;;) {
    const port = 12_000 + Math.floor(Math.random() * 18_000);
    if (await isFree(port)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
      .once('error', () => resolve(false))
      .listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
