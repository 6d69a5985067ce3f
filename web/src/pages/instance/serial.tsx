import { FitAddon } from '@xterm/addon-fit';
import { Terminal } from '@xterm/xterm';
import '@xterm/xterm/css/xterm.css';
import type { ConsoleStream } from 'portico-client';
import { attachTerminal } from 'portico-client/xterm';
import { useEffect, useRef } from 'react';

const SCROLLBACK = 5000;
/** A machine chooses its colours for a dark screen: a text with less contrast gets a darker or a lighter one. */
const CONTRAST = 4.5;

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
    const stopFollowing = followTheme(() => {
      opened.options.theme = readStyle(parent).theme;
    });
    opened.focus();
    return () => {
      observer.disconnect();
      stopFollowing();
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
  const settings = { scrollback: SCROLLBACK, fontSize: 13, screenReaderMode: true, minimumContrastRatio: CONTRAST };
  const opened = new Terminal({ ...settings, ...readStyle(parent) });
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

/** Calls back when the page gets another theme: by choice, or with the system. Returns the function that ends it. */
function followTheme(onChange: () => void): () => void {
  const system = matchMedia('(prefers-color-scheme: dark)');
  const choice = new MutationObserver(onChange);
  system.addEventListener('change', onChange);
  choice.observe(document.documentElement, { attributeFilter: ['data-theme'] });
  return () => {
    system.removeEventListener('change', onChange);
    choice.disconnect();
  };
}

/** The page's font and colours, as the terminal can read them: it knows no `light-dark()`. */
function readStyle(parent: HTMLElement) {
  const probe = parent.appendChild(document.createElement('i'));
  const style = getComputedStyle(probe);
  const read = (name: string) => {
    probe.style.color = `var(${name})`;
    return style.color;
  };
  const theme = {
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
  };
  const fontFamily = style.getPropertyValue('--mono').trim();
  probe.remove();
  return { fontFamily, theme };
}
