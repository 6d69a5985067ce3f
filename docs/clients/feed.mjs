// node docs/clients/feed.mjs [.portico/demo.json]: the notification feed of the demo, an event a line. Ctrl-C ends it.
import { readFileSync } from 'node:fs';
import { connect, describeState } from 'portico-client';

const demo = JSON.parse(readFileSync(process.argv[2] ?? '.portico/demo.json', 'utf8'));
const client = connect({ url: demo.base_url, credential: demo.users.member.api_key });
const onState = (state) => console.error(`[${describeState(state)}]`);
for await (const event of client.feed({ project: demo.project_id, after: 148, onState })) console.log(JSON.stringify(event));
