import { FitAddon } from '@xterm/addon-fit';
import { Terminal } from '@xterm/xterm';
import '@xterm/xterm/css/xterm.css';
import type { ConsoleStream } from 'portico-client';
import { attachTerminal } from 'portico-client/xterm';
import { useEffect, useRef } from 'react';

const SCROLLBACK = 5000;

/** A serial console in a terminal with the page's colours. */
export default function Serial({ stream, hasEnded }: { stream: ConsoleStream; hasEnded: boolean }) {
  const element = useRef<HTMLDivElement>(null);
  const terminal = useRef<Terminal>(null);
  const disposal = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => {
    const parent = element.current;
    if (!parent) return;
    clearTimeout(disposal.current);
    const { opened, fit } = terminals.get(stream) ?? open(parent, stream);
    terminal.current = opened;
    const observer = new ResizeObserver(() => fit.fit());
    observer.observe(parent);
    opened.focus();
    return () => {
      observer.disconnect();
      // A stream has one reader for its life. React's Strict Mode runs effects twice, and must find the same terminal.
      disposal.current = setTimeout(() => opened.dispose());
    };
  }, [stream]);
  useEffect(() => {
    if (terminal.current) terminal.current.options.disableStdin = hasEnded;
  }, [hasEnded]);
  return (
    <>
      <div ref={element} className="serial" />
      <p className="none">
        <kbd>Shift</kbd> + <kbd>Esc</kbd> leaves the terminal for the rest of the page.
      </p>
    </>
  );
}

const terminals = new WeakMap<ConsoleStream, { readonly opened: Terminal; readonly fit: FitAddon }>();

function open(parent: HTMLElement, stream: ConsoleStream) {
  const opened = new Terminal({ scrollback: SCROLLBACK, fontSize: 13, screenReaderMode: true, ...readTheme() });
  const fit = new FitAddon();
  opened.loadAddon(fit);
  opened.open(parent);
  opened.attachCustomKeyEventHandler((event) => {
    if (event.key !== 'Escape' || !event.shiftKey) return true;
    opened.blur();
    parent.closest('section')?.querySelector('button')?.focus();
    return false;
  });
  // The page shows why the stream has ended.
  attachTerminal(opened, stream).catch(() => {});
  terminals.set(stream, { opened, fit });
  return { opened, fit };
}

function readTheme() {
  const style = getComputedStyle(document.documentElement);
  const read = (name: string) => style.getPropertyValue(name).trim();
  return {
    fontFamily: read('--mono'),
    theme: {
      background: read('--raised'),
      foreground: read('--ink'),
      cursor: read('--ink'),
      cursorAccent: read('--paper'),
      selectionBackground: read('--accent-shade'),
      green: read('--good'),
      blue: read('--busy'),
      cyan: read('--info'),
      yellow: read('--warning'),
      red: read('--critical'),
    },
  };
}
