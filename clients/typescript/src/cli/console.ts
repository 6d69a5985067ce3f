import { type Command, InvalidArgumentError } from 'commander';
import type { ConsoleStream } from '../index.ts';
import { describeState } from '../state.ts';
import { CommandFailure } from './failure.ts';
import { confirm } from './input.ts';
import { findInstance } from './instances.ts';
import { type GlobalOptions, openSession } from './options.ts';
import { write } from './output.ts';
import type { Session } from './session.ts';
import { clean } from './text.ts';

/** Ctrl-] */
const LEAVE = 0x1d;
/** How many typed bytes may wait for a connection; the others are dropped. */
const MAX_WAITING = 16 * 1024 * 1024;

export function addConsole(program: Command): void {
  program
    .command('console <instance>')
    .description('open the serial console of an instance, by its name or id; Ctrl-] leaves')
    .option('--take-over', 'end the session of whoever is at the console, without asking; in a pipe it is refused otherwise')
    .option('--linger <seconds>', 'after the end of a pipe: for how long nothing may come before it leaves', readSeconds, 1)
    .action(async (wanted: string, _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<GlobalOptions & { readonly linger: number; readonly takeOver?: boolean }>();
      const session = await openSession(options);
      const instance = await findInstance(session, wanted);
      const isTerminal = Boolean(process.stdin.isTTY);
      if (!options.takeOver && (await isOccupied(session, instance))) await askForIt(isTerminal);
      const client = await session.connect();
      const end = isTerminal ? '\r\n' : '\n';
      const quiet = new Quiet();
      const stream = client.console({
        instance,
        onState(state) {
          quiet.end();
          const leave = state.name === 'live' && isTerminal ? ': Ctrl-] leaves' : '';
          if (state.name !== 'ended') process.stderr.write(`[${clean(`${wanted}: ${describeState(state)}`)}${leave}]${end}`);
        },
      });
      if (isTerminal) process.stdin.setRawMode(true);
      let how = 'lost';
      try {
        const shown = show(stream, quiet).then(() => 'hung up');
        const typed = isTerminal ? type(stream) : pipe(stream, quiet, options.linger * 1000);
        const first = await Promise.race([shown, typed.then(() => 'left')]);
        if (!isTerminal) await stream.flush();
        how = first;
      } finally {
        stream.close();
        if (isTerminal) process.stdin.setRawMode(false);
        process.stdin.destroy();
        process.stderr.write(`${end}[${clean(wanted)}: ${how}]\n`);
      }
    });
}

/** Whether to open the console would end somebody's session. */
async function isOccupied(session: Session, instance: string): Promise<boolean> {
  const document = 'query ($id: ID!) { node(id: $id) { ... on Instance { consoleOccupied } } }';
  const { node } = await session.query<{ node: { consoleOccupied?: boolean } | null }>(document, { id: instance });
  return node?.consoleOccupied === true;
}

/** Asks on a terminal whether to take the console over; throws if the answer is not yes, and in a pipe, where there is nobody to ask. */
async function askForIt(isTerminal: boolean): Promise<void> {
  if (!isTerminal) throw new CommandFailure('Somebody is at this console: with --take-over it is taken from them.');
  if (!(await confirm('Somebody is at this console. Take it over?'))) throw new CommandFailure('The console was not opened.');
}

/** Measures the time since the last activity. */
class Quiet {
  #since = Date.now();

  get ms(): number {
    return Date.now() - this.#since;
  }

  end(): void {
    this.#since = Date.now();
  }
}

/** Prints the output until the console hangs up. */
async function show(stream: ConsoleStream, quiet: Quiet): Promise<void> {
  for await (const bytes of stream.readable) {
    quiet.end();
    await write(bytes);
  }
}

/** Sends what is typed, without waiting for a connection. Resolves on Ctrl-]. */
async function type(stream: ConsoleStream): Promise<void> {
  const writer = stream.writable.getWriter();
  let waiting = 0;
  for await (const part of process.stdin) {
    const bytes = part as Buffer;
    const end = bytes.indexOf(LEAVE);
    const typed = end < 0 ? bytes : bytes.subarray(0, end);
    if (typed.length > 0 && waiting < MAX_WAITING) {
      waiting += typed.length;
      const settle = () => {
        waiting -= typed.length;
      };
      // The reader of the output gets the reason of a failure.
      writer.write(typed).then(settle, settle);
    }
    if (end >= 0) return;
  }
}

/** Sends a pipe unchanged. Resolves after its end, when all has arrived, once there was no output for `lingerMs`. */
async function pipe(stream: ConsoleStream, quiet: Quiet, lingerMs: number): Promise<void> {
  const writer = stream.writable.getWriter();
  // A failed write never settles here: the reader of the output gets the reason.
  const send = (bytes: Uint8Array) => writer.write(bytes).catch(() => new Promise<never>(() => {}));
  for await (const part of process.stdin) await send(part as Buffer);
  await stream.flush();
  quiet.end();
  while (stream.state.name !== 'live' || quiet.ms < lingerMs) await new Promise((resolve) => setTimeout(resolve, 20));
}

function readSeconds(text: string): number {
  if (!/^\d+(\.\d+)?$/.test(text)) throw new InvalidArgumentError('A number of seconds.');
  return Number(text);
}
