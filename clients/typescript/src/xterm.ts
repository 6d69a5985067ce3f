import type { ConsoleStream } from './console.ts';

/** What is used of a `Terminal` of xterm.js. */
export interface TerminalLike {
  write(data: Uint8Array, callback?: () => void): void;
  onData(listener: (data: string) => void): { dispose(): void };
}

/**
 * Connects a terminal with a console, and resolves when the console ends; rejects with its `PorticoError`. The terminal's own
 * pace is kept: no more is read than it has shown.
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
