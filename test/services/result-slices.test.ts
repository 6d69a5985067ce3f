import type { Duplex } from 'node:stream';
import { setImmediate as nextIteration } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { limitDriverReads } from '../../src/platform/driverreads.ts';
import { needPostgres } from '../support/app.ts';
import { connectTo } from '../support/sql.ts';

/** What Node reads at once, and the slice before it. */
const MOST_BYTES = 128 * 1024;

it('a large result is read in slices, with other work in between', async () => {
  // A client of the driver alone, without the pool: that would find the server silent while this process is held up.
  limitDriverReads();
  const client = await connectTo(needPostgres().server);
  const { stream } = (client as unknown as { connection: { stream: Duplex } }).connection;
  let bytes = 0;
  stream.on('data', (read: Buffer) => {
    bytes += read.length;
  });
  const result = client.query("SELECT repeat('x', 65536) AS text FROM generate_series(1, 512)");
  let isOver = false;
  void result.finally(() => {
    isOver = true;
  });
  await nextIteration();
  // The connection holds as much as it can before any of it is read.
  for (const until = performance.now() + 300; performance.now() < until; );
  const readAtOnce: number[] = [];
  while (!isOver) {
    bytes = 0;
    await nextIteration();
    readAtOnce.push(bytes);
  }
  expect((await result).rows.length).toBe(512);
  expect(readAtOnce.reduce((sum, read) => sum + read)).toBeGreaterThan(16 * 2 ** 20);
  expect(Math.max(...readAtOnce)).toBeLessThanOrEqual(MOST_BYTES);
  await client.end();
});
