/** The program in a terminal: it reads lines and writes output. */
export interface Shell {
  /** Written once, before the first prompt. */
  readonly greeting: string;
  readonly prompt: string;
  /** Runs a line. Its output ends lines with `\n`. Returning false logs out. It must return soon after `interrupted` aborts. */
  run(line: string, write: (text: string) => void, interrupted: AbortSignal): Promise<boolean>;
}

interface Line {
  write(text: string): void;
  end(): void;
}

const MAX_LINE = 4_096;
const HISTORY = 100;

/**
 * A terminal on a serial line: it echoes input, supports line editing, and passes whole lines to its shell.
 * Backspace, Ctrl-U (the line), Ctrl-C (the command), Ctrl-D (logs out), Ctrl-L (the screen) and the arrows up and down.
 */
export class Terminal {
  readonly #line: Line;
  readonly #shell: Shell;
  readonly #history: string[] = [];
  #recalled = 0;
  #typed = '';
  /** The part of an escape sequence that was received; null outside of one. */
  #escape: string | null = null;
  #wasReturn = false;
  #running: AbortController | null = null;
  /** Input that arrived while a command was running. */
  #ahead = '';
  #decoder = new TextDecoder();

  constructor(line: Line, shell: Shell) {
    this.#line = line;
    this.#shell = shell;
    this.#write(shell.greeting);
    this.#line.write(shell.prompt);
  }

  take(bytes: Uint8Array): void {
    for (const character of this.#decoder.decode(bytes, { stream: true })) this.#takeCharacter(character);
  }

  /** Interrupts the running command after the connection has closed. */
  hangUp(): void {
    this.#running?.abort();
  }

  #takeCharacter(character: string): void {
    if (this.#running) {
      if (character === '\u0003') this.#running.abort();
      else if (this.#ahead.length < MAX_LINE) this.#ahead += character;
      return;
    }
    const isSecondHalf = this.#wasReturn && character === '\n';
    this.#wasReturn = character === '\r';
    if (isSecondHalf) return;
    if (this.#escape !== null) return this.#takeEscape(character);
    if (character === '\r' || character === '\n') return this.#enter();
    const act = keys[character];
    if (act) return act(this);
    if (character < ' ' || this.#typed.length >= MAX_LINE) return;
    this.#typed += character;
    this.#line.write(character);
  }

  #takeEscape(character: string): void {
    this.#escape += character;
    if (this.#escape === '[' || (this.#escape?.startsWith('[') && /[0-9;]/.test(character))) return;
    if (this.#escape === '[A') this.recall(-1);
    if (this.#escape === '[B') this.recall(1);
    this.#escape = null;
  }

  beginEscape(): void {
    this.#escape = '';
  }

  erase(): void {
    const characters = [...this.#typed];
    if (characters.pop() === undefined) return;
    this.#typed = characters.join('');
    this.#line.write('\b \b');
  }

  eraseAll(): void {
    this.#replace('');
  }

  cancel(): void {
    this.#typed = '';
    this.#line.write(`^C\r\n${this.#shell.prompt}`);
  }

  /** Ctrl-D: logs out if the current line is empty. */
  logOut(): void {
    if (this.#typed === '') this.#end();
  }

  redraw(): void {
    this.#line.write(`\u001b[2J\u001b[H${this.#shell.prompt}${this.#typed}`);
  }

  recall(by: number): void {
    this.#recalled = Math.min(Math.max(this.#recalled + by, 0), this.#history.length);
    this.#replace(this.#history[this.#recalled] ?? '');
  }

  #replace(text: string): void {
    this.#line.write('\b \b'.repeat([...this.#typed].length) + text);
    this.#typed = text;
  }

  #enter(): void {
    const line = this.#typed.trim();
    this.#typed = '';
    this.#line.write('\r\n');
    if (line !== '' && this.#history.at(-1) !== line) this.#history.push(line);
    if (this.#history.length > HISTORY) this.#history.shift();
    this.#recalled = this.#history.length;
    if (line === '') return void this.#line.write(this.#shell.prompt);
    const running = new AbortController();
    this.#running = running;
    this.#shell
      .run(line, (text) => this.#write(text), running.signal)
      .then((goesOn) => {
        this.#running = null;
        if (!goesOn) return this.#end();
        this.#line.write(`${running.signal.aborted ? '^C\r\n' : ''}${this.#shell.prompt}`);
        const ahead = this.#ahead;
        this.#ahead = '';
        for (const character of ahead) this.#takeCharacter(character);
      });
  }

  #end(): void {
    this.#line.write('logout\r\n');
    this.#line.end();
  }

  #write(text: string): void {
    if (text !== '') this.#line.write(text.replaceAll('\n', '\r\n'));
  }
}

/** The actions of control keys, which are not echoed. */
const keys: Readonly<Record<string, (terminal: Terminal) => void>> = {
  '\u0003': (terminal) => terminal.cancel(),
  '\u0004': (terminal) => terminal.logOut(),
  '\b': (terminal) => terminal.erase(),
  '\u007f': (terminal) => terminal.erase(),
  '\u000c': (terminal) => terminal.redraw(),
  '\u0015': (terminal) => terminal.eraseAll(),
  '\u001b': (terminal) => terminal.beginEscape(),
};
