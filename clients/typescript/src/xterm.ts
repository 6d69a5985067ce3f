import type { ConsoleStream } from './console.ts';

/** The part of xterm.js' `Terminal` that is used. */
export interface TerminalLike {
  write(data: Uint8Array, callback?: () => void): void;
  onData(listener: (data: string) => void): { dispose(): void };
}

/**
 * Connects a terminal to a console. Resolves when the console ends, or rejects with its `PorticoError`. Output is read only
 * as fast as the terminal displays it.
 */
export async function attachTerminal(terminal: TerminalLike, console: ConsoleStream): Promise<void> {
  const encoder = new TextEncoder();
  const writer = console.writable.getWriter();
  const typing = terminal.onData((text) => {
    writer.write(encoder.encode(text)).catch(() => {});
  });
  try {
    await console.readable.pipeTo(
      new WritableStream({
        write: (bytes) => new Promise<void>((resolve) => terminal.write(bytes, resolve)),
      }),
    );
  } finally {
    typing.dispose();
    writer.releaseLock();
  }
}
