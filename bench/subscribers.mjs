// A process full of subscribers: sockets that speak just enough of WebSocket to count what comes. A library's client
// would cost more than the servers that are measured.
import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';

/**
 * @typedef {{host: string, port: number, path: string, protocol: string | null, tokens: string[], count: number,
 *   first: string | null, second: string | null, ready: 'open' | 'first' | 'second'}} Opening
 */

const AT_ONCE = 50;
/** @type {import('node:net').Socket[]} */
const sockets = [];
/** When frames came, since the last question. @type {number[]} */
let arrivals = [];
let received = 0;
let isTimed = false;

/** Milliseconds of a clock that all processes of the machine share. */
const now = () => Number(process.hrtime.bigint()) / 1e6;

process.on('message', async (/** @type {any} */ message) => {
  if (message.open) {
    await openAll(message.open);
    process.send?.({ opened: sockets.length });
  } else if (message.reset) {
    arrivals = [];
    received = 0;
    isTimed = message.reset === 'timed';
    process.send?.({ reset: true });
  } else if (message.report) {
    process.send?.({ received, arrivals });
  }
});
process.on('disconnect', () => process.exit());

/** @param {Opening} opening */
async function openAll(opening) {
  let next = 0;
  const work = async () => {
    for (let index = next; index < opening.count; index = next) {
      next += 1;
      await open(opening, String(opening.tokens[index % opening.tokens.length]));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

/** @param {Opening} opening @param {string} token @returns {Promise<void>} */
function open({ host, port, path, protocol, first, second, ready }, token) {
  return new Promise((resolve, reject) => {
    const socket = connect(port, host).setNoDelay();
    /** @type {Buffer} */
    let rest = Buffer.alloc(0);
    let stage = 'upgrade';
    const reached = (/** @type {string} */ name) => {
      stage = name;
      if (name === ready) {
        stage = 'ready';
        resolve();
      }
    };
    socket.on('connect', () => {
      socket.write(
        [
          `GET ${path} HTTP/1.1`,
          `Host: ${host}:${port}`,
          'Connection: Upgrade',
          'Upgrade: websocket',
          'Sec-WebSocket-Version: 13',
          `Sec-WebSocket-Key: ${randomBytes(16).toString('base64')}`,
          ...(protocol ? [`Sec-WebSocket-Protocol: ${protocol}`] : []),
          `Authorization: Bearer ${token}`,
          '\r\n',
        ].join('\r\n'),
      );
    });
    socket.on('data', (chunk) => {
      let data = rest.length > 0 ? Buffer.concat([rest, chunk]) : chunk;
      if (stage === 'upgrade') {
        const end = data.indexOf('\r\n\r\n');
        if (end < 0) {
          rest = data;
          return;
        }
        if (!data.subarray(0, 12).equals(Buffer.from('HTTP/1.1 101'))) {
          reject(new Error(data.toString()));
          socket.destroy();
          return;
        }
        data = data.subarray(end + 4);
        reached('open');
        if (first) socket.write(frame(1, first));
      }
      rest = readFrames(data, (opcode, payload) => {
        if (opcode === 9) socket.write(frame(10, payload));
        if (opcode === 8 && stage !== 'ready') reject(new Error(`closed: ${payload.subarray(2)}`));
        if (opcode !== 1) return;
        if (stage === 'ready') {
          received += 1;
          if (isTimed) arrivals.push(now());
        } else if (stage === 'open') {
          if (second) socket.write(frame(1, second));
          reached('first');
        } else reached('second');
      });
    });
    socket.on('error', reject);
    socket.on('close', () => reject(new Error('closed while it opened')));
    sockets.push(socket);
  });
}

/** Calls back for every whole frame; returns what is left. Servers do not mask. @param {Buffer} data @param {(opcode: number, payload: Buffer) => void} onFrame */
function readFrames(data, onFrame) {
  let at = 0;
  while (data.length - at >= 2) {
    let length = Number(data[at + 1]) & 127;
    let start = at + 2;
    if (length === 126) {
      if (data.length - at < 4) break;
      length = data.readUInt16BE(at + 2);
      start = at + 4;
    } else if (length === 127) {
      if (data.length - at < 10) break;
      length = Number(data.readBigUInt64BE(at + 2));
      start = at + 10;
    }
    if (data.length < start + length) break;
    onFrame(Number(data[at]) & 15, data.subarray(start, start + length));
    at = start + length;
  }
  return data.subarray(at);
}

/** A short frame of a client: masked with zeros, which leave it as it is. @param {number} opcode @param {string | Buffer} content */
function frame(opcode, content) {
  const payload = Buffer.from(content);
  const head =
    payload.length < 126
      ? Buffer.from([128 | opcode, 128 | payload.length])
      : Buffer.from([128 | opcode, 128 | 126, payload.length >> 8, payload.length & 255]);
  return Buffer.concat([head, Buffer.alloc(4), payload]);
}
