// node docs/clients/console.mjs [.portico/demo.json]: the serial console of an instance in your terminal. Ctrl-] leaves.
import { readFileSync } from 'node:fs';
import { connect } from 'portico-client';

const { stdin, stdout, stderr } = process;
const demo = JSON.parse(readFileSync(process.argv[2] ?? '.portico/demo.json', 'utf8'));
const client = connect({ url: demo.base_url, credential: demo.users.member.api_key });
let isAway = false;
const terminal = client.console({
  instance: demo.instances.console,
  onState(state) {
    if (state.name === 'waiting' && !isAway) stderr.write(`\r\n[${state.error.message} Trying again; Ctrl-] leaves.]\r\n`);
    isAway = state.name === 'waiting' || (isAway && state.name !== 'live');
  },
});
if (stdin.isTTY) stdin.setRawMode(true);
const typing = terminal.writable.getWriter();
stdin.on('data', (bytes) => (bytes.includes(0x1d) ? terminal.close() : typing.write(bytes).catch(() => {})));
try {
  for await (const bytes of terminal.readable) await new Promise((resolve) => stdout.write(bytes, resolve));
} catch (error) {
  stderr.write(`\n[${error.message}]\n`);
  process.exitCode = 1;
}
// Closing standard input lets the process exit.
stdin.destroy();
