// node docs/clients/console.mjs [.portico/demo.json]: the serial console of an instance in your terminal. Ctrl-] leaves.
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import WebSocket from 'ws';

/**
 * Opens the serial console of an instance, and goes on with the same session through every break: each byte of the output
 * comes once, as long as the server has it. `onOutput` is told bytes; `onEnd` once, how it ended.
 */
export function openConsole({ baseUrl, getToken, organizationId, projectId, instanceId, onOutput, onEnd }) {
  const project = `${baseUrl}/v1/organizations/${organizationId}/projects/${projectId}`;
  // Which session it is, and how much of its output has come.
  let [sessionId, received, tries, isEnded, socket] = [null, 0, 0, false, null];
  const waiting = [];
  const connect = async () => {
    if (isEnded) return;
    try {
      const response = await fetch(`${project}/websocket-tickets`, {
        method: 'POST',
        headers: { authorization: `Bearer ${await getToken()}`, 'content-type': 'application/json' },
        body: JSON.stringify({ target: 'console', instance_id: instanceId, ...(sessionId && { session_id: sessionId }) }),
      });
      if (response.status >= 400 && response.status < 500) return end({ code: response.status, reason: await response.text() });
      const { path, ticket } = await response.json();
      const after = sessionId ? `&after=${received}` : '';
      socket = new WebSocket(`${baseUrl.replace(/^http/, 'ws')}${path}?ticket=${ticket}${after}`, ['binary']);
      socket.on('upgrade', ({ headers }) => {
        sessionId = headers['x-console-session-id'] ?? null;
        received = Number(headers['x-console-offset'] ?? 0);
      });
      socket.on('open', () => {
        for (const bytes of waiting.splice(0)) socket.send(bytes);
      });
      socket.on('message', (bytes) => {
        tries = 0;
        received += bytes.length;
        onOutput(bytes);
      });
      socket.on('error', () => {});
      socket.on('close', (code, reason) => closed(code, String(reason)));
    } catch {
      again();
    }
  };
  const closed = (code, reason) => {
    // What was missed is gone, or the session is: a new one begins.
    if (['after_not_kept', 'session_gone', 'console_moved'].includes(reason)) sessionId = null;
    else if (![1001, 1006, 1012, 1013, 4403].includes(code) || reason === 'access_lost') return end({ code, reason });
    again();
  };
  const again = () => {
    tries += 1;
    setTimeout(connect, Math.min(100 * 2 ** tries, 10_000) * (0.5 + Math.random() / 2));
  };
  const end = (how) => {
    if (isEnded) return;
    isEnded = true;
    onEnd?.(how);
  };
  connect();
  return {
    type(bytes) {
      if (socket?.readyState === WebSocket.OPEN) socket.send(bytes);
      else waiting.push(bytes);
    },
    close() {
      end({ code: 1000, reason: 'left' });
      socket?.close();
    },
  };
}

function main([file = '.portico/demo.json']) {
  const demo = JSON.parse(readFileSync(file, 'utf8'));
  const { stdin, stdout } = process;
  const console = openConsole({
    baseUrl: demo.base_url,
    getToken: async () => demo.users.member.token,
    organizationId: demo.organization_id,
    projectId: demo.project_id,
    instanceId: demo.instances.console,
    onOutput: (bytes) => stdout.write(bytes),
    onEnd: ({ code, reason }) => {
      process.stderr.write(`\n[${code} ${reason}]\n`);
      // What has been written to a pipe is on its way only.
      stdout.write('', () => process.exit(code === 1000 ? 0 : 1));
    },
  });
  if (stdin.isTTY) stdin.setRawMode(true);
  stdin.on('data', (bytes) => (bytes.includes(0x1d) ? console.close() : console.type(bytes)));
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) main(process.argv.slice(2));
