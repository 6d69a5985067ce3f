import { setTimeout as sleep } from 'node:timers/promises';
import type { Shell } from './terminal.ts';

const KERNEL = '6.1.0-29-cloud-amd64';
const MAX_SEQUENCE = 10_000;

interface Machine {
  readonly hostname: string;
  readonly vcpu: number;
  readonly ramMb: number;
  readonly storageGb: number;
  readonly booted: Date;
}

interface Call {
  readonly machine: Machine;
  readonly words: readonly string[];
  readonly write: (text: string) => void;
  readonly interrupted: AbortSignal;
}

interface Command {
  readonly about: string;
  readonly run: (call: Call) => void | Promise<void>;
}

const files: Readonly<Record<string, (machine: Machine) => string>> = {
  '/etc/hostname': ({ hostname }) => `${hostname}\n`,
  '/etc/motd': ({ hostname }) => `This is ${hostname}, a machine of the demo: nothing here is real, and nothing can break.\n`,
  '/etc/os-release': () => 'NAME="Portico demo"\nID=portico-demo\nVERSION_ID="1"\n',
  '/proc/cmdline': () => 'BOOT_IMAGE=/boot/vmlinuz root=/dev/vda1 ro console=ttyS0\n',
  '/proc/loadavg': () => '0.03 0.05 0.01 1/84 412\n',
};

/** The boot log: seconds since boot, and the message. */
const bootLog = ({ vcpu, ramMb }: Machine): ReadonlyArray<readonly [number, string]> => [
  [0, `Linux version ${KERNEL}`],
  [0, `Memory: ${ramMb * 1024}K available`],
  [0.004, `smp: Brought up 1 node, ${vcpu} CPU${vcpu === 1 ? '' : 's'}`],
  [0.211, '00:03: ttyS0 at I/O 0x3f8 (irq = 4, base_baud = 115200) is a 16550A'],
  [0.398, 'virtio_blk virtio1: [vda] new disk'],
  [0.512, 'EXT4-fs (vda1): mounted filesystem with ordered data mode'],
  [1.87, 'systemd[1]: Reached target Multi-User System'],
];

const table = (rows: ReadonlyArray<readonly (string | number)[]>) =>
  rows.map((row) => `${row.map((cell, index) => String(cell).padEnd(index === row.length - 1 ? 0 : 12)).join('')}\n`).join('');

const sinceBoot = ({ booted }: Machine) => Math.floor((Date.now() - booted.getTime()) / 1000);

const commands: Readonly<Record<string, Command>> = {
  cat: {
    about: 'cat <file>: shows a file',
    run({ machine, words, write }) {
      for (const path of words) write(files[path]?.(machine) ?? `cat: ${path}: No such file or directory\n`);
    },
  },
  clear: { about: 'clears the screen', run: ({ write }) => write('\u001b[2J\u001b[H') },
  date: { about: 'shows the time', run: ({ write }) => write(`${new Date().toUTCString()}\n`) },
  df: {
    about: 'shows the disks',
    run: ({ machine: { storageGb }, write }) =>
      write(
        table([
          ['Filesystem', 'Size', 'Used', 'Use%', 'Mounted on'],
          ['/dev/vda1', `${storageGb}G`, '3.1G', `${Math.ceil(310 / storageGb)}%`, '/'],
        ]),
      ),
  },
  dmesg: {
    about: 'shows what the kernel has said',
    run: ({ machine, write }) =>
      write(
        bootLog(machine)
          .map(([at, text]) => `[${at.toFixed(6).padStart(12)}] ${text}\n`)
          .join(''),
      ),
  },
  echo: { about: 'echo <words>: says them', run: ({ words, write }) => write(`${words.join(' ')}\n`) },
  exit: { about: 'logs out, and closes the console', run: () => {} },
  free: {
    about: 'shows the memory, in MiB',
    run: ({ machine: { ramMb }, write }) =>
      write(
        table([
          ['', 'total', 'used', 'free'],
          ['Mem:', ramMb, 212, ramMb - 212],
        ]),
      ),
  },
  help: {
    about: 'lists the commands',
    run: ({ write }) => write(table(Object.entries(commands).map(([name, { about }]) => [name, about]))),
  },
  hostname: { about: 'shows the name of the machine', run: ({ machine, write }) => write(`${machine.hostname}\n`) },
  ls: {
    about: 'lists the files that there are',
    run: ({ write }) => write(`${Object.keys(files).join('\n')}\n`),
  },
  ps: {
    about: 'shows the processes',
    run: ({ write }) =>
      write(
        table([
          ['PID', 'TTY', 'COMMAND'],
          [1, '?', '/sbin/init'],
          [231, '?', 'sshd'],
          [402, 'ttyS0', '-sh'],
          [412, 'ttyS0', 'ps'],
        ]),
      ),
  },
  seq: {
    about: `seq <n>: counts up to n, at most ${MAX_SEQUENCE}`,
    run({ words: [count = '1'], write }) {
      const last = Math.min(Number(count) || 0, MAX_SEQUENCE);
      write(Array.from({ length: Math.max(last, 0) }, (_, index) => `${index + 1}\n`).join(''));
    },
  },
  sleep: {
    about: 'sleep <seconds>: waits; Ctrl-C ends it',
    run: async ({ words: [seconds = '1'], interrupted }) => {
      await sleep(Math.min(Math.max(Number(seconds) || 0, 0), 3_600) * 1000, undefined, { signal: interrupted, ref: false }).catch(
        () => {},
      );
    },
  },
  uname: {
    about: 'shows what system this is; with -a more of it',
    run: ({ machine, words, write }) =>
      write(words.includes('-a') ? `Linux ${machine.hostname} ${KERNEL} #1 SMP x86_64 GNU/Linux\n` : 'Linux\n'),
  },
  uptime: {
    about: 'shows since when the machine is up',
    run({ machine, write }) {
      const seconds = sinceBoot(machine);
      const clock = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60].map((part) => String(part).padStart(2, '0'));
      write(` up ${clock.join(':')}, 1 user, load average: 0.03, 0.05, 0.01\n`);
    },
  },
  whoami: { about: 'shows who is logged in', run: ({ write }) => write('root\n') },
};

/** A shell with a few commands on a simulated machine. */
export function openShell(machine: Machine): Shell {
  return {
    greeting: `\n${files['/etc/motd']?.(machine)}Type help for the commands, exit or Ctrl-D to leave.\n\n`,
    prompt: `root@${machine.hostname}:~# `,
    async run(line, write, interrupted) {
      const [name = '', ...words] = line.split(/\s+/);
      if (name === 'exit') return false;
      const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
      if (command) await command.run({ machine, words, write, interrupted });
      else write(`${name}: command not found\n`);
      return true;
    },
  };
}
