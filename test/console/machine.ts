import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { findLowPort } from '../support/ports.ts';

export const qemu = process.env.QEMU ?? '/usr/bin/qemu-system-x86_64';

/** A machine of QEMU without a disk: its firmware finds nothing to boot, says so, and begins again. */
export interface Machine {
  readonly serialPort: number;
  readonly vncPort: number;
  stop(): Promise<void>;
}

const FIRST_VNC_PORT = 5_900;
/** Where the firmware is told to say on the serial line what it says on the screen: the port of COM1, as eight bytes. */
const COM1 = Buffer.from([0xf8, 0x03, 0, 0, 0, 0, 0, 0]);

export async function startMachine(): Promise<Machine> {
  const folder = mkdtempSync(join(tmpdir(), 'portico-machine-'));
  const serialOption = join(folder, 'sercon-port');
  writeFileSync(serialOption, COM1);
  const [serialPort, vncPort] = [await findLowPort(), await findLowPort()];
  const child: ChildProcess = spawn(
    qemu,
    [
      ...['-machine', 'pc,accel=tcg', '-m', '32', '-nodefaults', '-no-user-config', '-vga', 'std', '-boot', 'reboot-timeout=1000'],
      ...['-fw_cfg', `name=etc/sercon-port,file=${serialOption}`],
      ...['-serial', `tcp:127.0.0.1:${serialPort},server=on,wait=off`],
      ...['-vnc', `127.0.0.1:${vncPort - FIRST_VNC_PORT}`],
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  let complaints = '';
  child.stderr?.on('data', (bytes) => {
    complaints += bytes;
  });
  const exit = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  for (let tries = 0; !(await isOpen(vncPort)); tries += 1) {
    if (child.exitCode !== null || tries > 1_200) throw new Error(`the machine does not start: ${complaints}`);
    await sleep(50);
  }
  return {
    serialPort,
    vncPort,
    async stop() {
      child.kill('SIGKILL');
      await exit;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect(port, '127.0.0.1', () => resolve(true)).once('error', () => resolve(false));
    probe.once('connect', () => probe.destroy());
  });
}
