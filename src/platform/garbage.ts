import { Session } from 'node:inspector';

/**
 * Collects all garbage and gives what is free back to the system. V8 does so by itself only while a process allocates: one
 * that is idle would keep for ever what its start has used. Nothing else runs meanwhile, for some 100 ms.
 */
export async function collectGarbage(): Promise<void> {
  const session = new Session();
  session.connect();
  await new Promise<void>((resolve) => {
    // The session is locked while it answers: to disconnect it there would wait for ever.
    session.post('HeapProfiler.collectGarbage', () => setImmediate(resolve));
  });
  session.disconnect();
}
