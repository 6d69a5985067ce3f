import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

const modules = fileURLToPath(new URL('node_modules', import.meta.url));

/** A page with a terminal and a screen of other makers, as they are published: what it opens it is told. */
const page = `<!doctype html><html><head><title>Console</title>
<link rel="stylesheet" href="/@xterm/xterm/css/xterm.css">
<script src="/@xterm/xterm/lib/xterm.js"></script>
<script src="/@xterm/addon-attach/lib/addon-attach.js"></script>
</head><body style="margin:0"><div id="terminal"></div><div id="screen" style="width:800px;height:500px"></div>
<script type="module">
import RFB from '/@novnc/novnc/core/rfb.js';
window.openTerminal = (url) => {
  const socket = new WebSocket(url);
  socket.binaryType = 'arraybuffer';
  const terminal = new Terminal({ cols: 100, rows: 30, scrollback: 5000 });
  terminal.loadAddon(new AttachAddon.AttachAddon(socket));
  terminal.open(document.getElementById('terminal'));
  terminal.focus();
  const closed = new Promise((resolve) => socket.addEventListener('close', ({ code, reason }) => resolve({ code, reason })));
  window.terminal = { terminal, socket, closed };
};
window.readTerminal = () => {
  const { active } = window.terminal.terminal.buffer;
  return Array.from({ length: active.length }, (_, index) => active.getLine(index).translateToString(true)).join('\\n');
};
window.openScreen = (url) => {
  const screen = new RFB(document.getElementById('screen'), url, { wsProtocols: ['binary'] });
  window.screenEvents = [];
  for (const name of ['connect', 'disconnect', 'securityfailure', 'desktopname'])
    screen.addEventListener(name, ({ detail }) => window.screenEvents.push([name, detail]));
  window.vnc = screen;
};
window.readScreen = () => {
  const canvas = document.querySelector('#screen canvas');
  if (!canvas || canvas.width === 0) return { width: 0, height: 0, lit: 0 };
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  let lit = 0;
  for (let index = 0; index < data.length; index += 4) if (data[index] + data[index + 1] + data[index + 2] > 100) lit += 1;
  return { width: canvas.width, height: canvas.height, lit };
};
window.isReady = true;
</script></body></html>`;

const types: Readonly<Record<string, string>> = { js: 'text/javascript', css: 'text/css' };

/** Serves the page and the packages that it loads. */
export async function servePage(): Promise<{ readonly origin: string; close(): Promise<unknown> }> {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost');
    if (pathname === '/') return response.writeHead(200, { 'content-type': 'text/html' }).end(page);
    try {
      const body = readFileSync(join(modules, normalize(pathname)));
      response.writeHead(200, { 'content-type': types[pathname.split('.').at(-1) ?? ''] ?? 'application/octet-stream' }).end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => new Promise((resolve) => server.close(resolve)),
  };
}
