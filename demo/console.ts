import { type AddressInfo, createServer } from 'node:net';
import type { Database } from '../src/platform/database.ts';
import { findInstance, sizeOf } from './compute.ts';
import { openShell } from './shell.ts';
import { Terminal } from './terminal.ts';

/** The instance of the main project that has a working console. */
export const consoleInstance = findInstance('web-02');

/** The maximum number of concurrent connections. */
const MAX_LINES = 50;

/**
 * Starts the console of one instance of the demo, on a loopback port, and stores its address in the database. It does not
 * keep the process alive.
 */
export async function openDemoConsole(database: Database): Promise<void> {
  const machine = { hostname: consoleInstance.name, ...sizeOf(consoleInstance), booted: new Date() };
  const server = createServer({ noDelay: true }, (line) => {
    const terminal = new Terminal({ write: (text) => void line.write(text), end: () => void line.end() }, openShell(machine));
    line.unref();
    line.on('data', (bytes) => terminal.take(bytes));
    line.on('error', () => {});
    line.on('close', () => terminal.hangUp());
  });
  server.maxConnections = MAX_LINES;
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve));
  server.unref();
  const address = { kind: 'serial' as const, host: '127.0.0.1', port: (server.address() as AddressInfo).port, socketPath: null };
  const instanceId = consoleInstance.id;
  await database.prisma.consoleEndpoint.upsert({ where: { instanceId }, create: { instanceId, ...address }, update: address });
}
