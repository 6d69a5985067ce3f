// node test/support/follower.mjs URL TOKEN PROJECT FILE: appends the sequence of each notification as a line to FILE and resumes
// from its last line. FILE.states records the states of the feed with their times.
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
  // Handling the event and storing the cursor are one write, so a killed process has done both or neither.
  if (event.type === 'notification') appendFileSync(file, `${event.sequence}\n`);
}
