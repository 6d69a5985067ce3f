import { Session } from 'node:inspector';

/**
 * Runs a full garbage collection and returns free memory to the system. V8 does so only while a process allocates: an idle one
 * would keep for ever what its start has used. Blocks the process for some 100 ms.
 */
export async function collectGarbage(): Promise<void> {
  const session = new Session();
  session.connect();
  await new Promise<void>((resolve) => {
    // Disconnecting within the callback would deadlock: the session is locked while it answers.
    session.post('HeapProfiler.collectGarbage', () => setImmediate(resolve));
  });
  session.disconnect();
}
