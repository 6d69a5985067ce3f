// node besieger.mjs '{"port": …, "addresses": […], "members": [{"address", "key"}], "project": {…}, "seconds": …}'
// Clients that want harm, within every budget: they ask for much and read nothing, or ask for more than a response holds.
// Prints one line of JSON at the end: what they did.
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const { port, addresses, members, project, seconds } = JSON.parse(process.argv[2]);
const deadline = Date.now() + seconds * 1000;
const counts = { connections: 0, ended: 0, requests: 0, sockets: 0, refused: 0, answered: 0, bytesRead: 0 };

/** How long a client holds on to a connection that is not ended by the other side. */
const HOLD_MS = 45_000;
const CONNECTIONS_PER_ADDRESS = 2;

function open(localAddress) {
  const socket = connect({ host: '127.0.0.1', port, localAddress });
  // Nothing is read: not even what Node would read ahead.
  socket.pause();
  socket.on('error', () => {});
  socket.once('close', () => {
    counts.ended += 1;
  });
  counts.connections += 1;
  return socket;
}

const page = `GET /graphql HTTP/1.1\r\nHost: x\r\nAccept: text/html\r\n\r\n`;
const reference = `GET /v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n`;
const refusals = `GET /v1/nothing HTTP/1.1\r\nHost: x\r\n\r\n`;
const volleys = [page.repeat(300), reference.repeat(600), page, refusals.repeat(200)];

/** Sends a volley of requests, reads no response, and comes back when the connection has gone. */
async function refuseToRead(address, lane) {
  await sleep(Math.random() * 3_000);
  for (let round = lane; Date.now() < deadline; round += 1) {
    const socket = open(address);
    socket.write(volleys[round % volleys.length]);
    counts.requests += 1;
    // A write tells whether the other side has gone: nothing is read that could.
    for (const until = Date.now() + HOLD_MS; Date.now() < Math.min(until, deadline) && !socket.destroyed; await sleep(2_000))
      socket.write(reference);
    socket.destroy();
  }
}

const place = `project(organizationId: "${project.organizationId}", id: "${project.id}")`;
const list = 'dashboards(first: 100) { nodes { name description widgets } }';
const questions = [
  `{ ${place} { ${list} } }`,
  `{ ${Array.from({ length: 12 }, (_, index) => `a${index}: ${place} { ${list} }`).join(' ')} }`,
  `{ ${place} { dashboards(first: 40) { nodes { ${Array.from({ length: 40 }, (_, index) => `w${index}: widgets`).join(' ')} } } } }`,
  `{ ${place} { notifications(first: 100) { nodes { title body data } } } }`,
];

/** Asks for more than a response holds; every third time the response is not read. */
async function askForMuch({ address, key }, lane) {
  await sleep(Math.random() * 2_000);
  for (let round = lane; Date.now() < deadline; round += 1) {
    const body = JSON.stringify({ query: questions[round % questions.length] });
    const head = `POST /graphql HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
    const list = `GET /v1/organizations/${project.organizationId}/projects/${project.id}/monitoring/dashboards?page_size=100 HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${key}\r\n\r\n`;
    const socket = open(address);
    socket.write(round % 5 === 4 ? list : head + body);
    counts.requests += 1;
    if (round % 3 !== 0) {
      let isFirst = true;
      socket.on('data', (bytes) => {
        counts.bytesRead += bytes.length;
        if (!isFirst) return;
        isFirst = false;
        if (/^HTTP\/1\.1 [45]/.test(bytes.subarray(0, 20).toString('latin1'))) counts.refused += 1;
        else counts.answered += 1;
      });
      socket.resume();
    }
    await sleep(4_000);
    if (round % 3 !== 0) socket.destroy();
    else setTimeout(() => socket.destroy(), HOLD_MS).unref();
  }
}

/** A text frame of a client: masked, with a mask of zeros. */
function frame(text) {
  const bytes = Buffer.from(text);
  const head =
    bytes.length < 126 ? Buffer.from([0x81, 0x80 | bytes.length]) : Buffer.from([0x81, 0xfe, bytes.length >> 8, bytes.length & 255]);
  return Buffer.concat([head, Buffer.alloc(4), bytes]);
}

/** Opens a socket with as many subscriptions as it may carry, from the beginning of the log, and reads nothing. */
async function followAndSleep({ address, key }) {
  await sleep(Math.random() * 5_000);
  while (Date.now() < deadline) {
    const socket = open(address);
    socket.write(
      `GET /graphql HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n` +
        `Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\nAuthorization: Bearer ${key}\r\n\r\n`,
    );
    await sleep(500);
    socket.write(frame('{"type":"connection_init"}'));
    await sleep(500);
    const query = `subscription ($o: ID!, $p: ID!) { notificationFeed(organizationId: $o, projectId: $p, after: 0) { ... on NotificationAdded { sequence notification { title body data } } } }`;
    const variables = { o: project.organizationId, p: project.id };
    for (let id = 0; id < 50; id += 1)
      socket.write(frame(JSON.stringify({ id: String(id), type: 'subscribe', payload: { query, variables } })));
    counts.sockets += 1;
    for (const until = Date.now() + 4 * HOLD_MS; Date.now() < Math.min(until, deadline) && !socket.destroyed; await sleep(5_000))
      socket.write(frame('{"type":"pong"}'));
    socket.destroy();
  }
}

await Promise.all([
  ...addresses.flatMap((address, index) =>
    Array.from({ length: CONNECTIONS_PER_ADDRESS }, (_, lane) => refuseToRead(address, index + lane)),
  ),
  ...members.map(askForMuch),
  ...members.flatMap((member) => [followAndSleep(member), followAndSleep(member)]),
]);
console.log(JSON.stringify(counts));
process.exit(0);
