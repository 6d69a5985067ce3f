// node test/support/follower.mjs URL TOKEN PROJECT FILE: writes the sequence of each notification into a line of a file, which is also
// where it goes on from. Beside it lies what state the feed was in, and when.
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { connect, describeState } from 'portico-client';

const [url, credential, project, file] = process.argv.slice(2);
const load = () => {
  const lines = existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : [];
  return lines.length > 0 ? Number(lines.at(-1)) : 0;
};
const onState = (state) => appendFileSync(`${file}.states`, `${new Date().toISOString()} ${process.pid} ${describeState(state)}\n`);
for await (const event of connect({ url, credential }).feed({ project, store: { load, save() {} }, onState })) {
  if (event.type === 'gap') throw new Error(`a gap from ${event.from} to ${event.to}`);
  // What is done with the event and the cursor are one write: whoever is killed has both, or neither.
  if (event.type === 'notification') appendFileSync(file, `${event.sequence}\n`);
}
