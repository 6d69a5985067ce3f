import { sizeOf } from '../../demo/compute.ts';
import { consoleInstance } from '../../demo/console.ts';
import { openShell } from '../../demo/shell.ts';
import { Terminal } from '../../demo/terminal.ts';
import { isPostgres } from '../support/app.ts';
import { type Guest, openGuest } from '../support/console.ts';
import type { DeskTest } from './support.ts';

/** The demo's machine behind its console: elsewhere than on the embedded database it is not there by itself. */
export async function openMachine(desk: DeskTest): Promise<Guest> {
  const machine = { hostname: consoleInstance.name, ...sizeOf(consoleInstance), booted: new Date() };
  const serial = await openGuest((line) => {
    const terminal = new Terminal({ write: (text) => void line.write(text), end: () => void line.end() }, openShell(machine));
    line.on('data', (bytes) => terminal.take(bytes as Buffer));
    line.on('close', () => terminal.hangUp());
  });
  if (isPostgres) await desk.setConsole(desk.demo.instances.console, { kind: 'serial', port: serial.port });
  return serial;
}
