// A process of subscribers: sockets that implement just enough of WebSocket to count frames. A library's client would cost
// more than the servers that are measured.
import { randomBytes, randomUUID } from 'node:crypto';
import { connect } from 'node:net';

/**
 * @typedef {{host: string, port: number, path: string, protocol: string | null, tokens: string[], count: number,
 *   first: string | null, second: string | null, ready: 'open' | 'first' | 'second'}} Opening
 */

const AT_ONCE = 50;
/** A placeholder in a message, replaced by an id for each socket, as clients generate them. */
const ID = '$id';
/** The buffer that all sockets read into in turn: one for each would be the largest cost of a client. */
const reading = Buffer.alloc(64 * 1024);
/** @type {import('node:net').Socket[]} */
const sockets = [];
/** The arrival times of frames since the last reset. @type {number[]} */
let arrivals = [];
let received = 0;
let expected = Number.POSITIVE_INFINITY;
let isTimed = false;

/** Milliseconds of a clock that is the same in all processes of the machine. */
const now = () => Number(process.hrtime.bigint()) / 1e6;

process.on('message', async (/** @type {any} */ message) => {
  if (message.open) {
    await openAll(message.open);
    process.send?.({ opened: sockets.length });
  } else if (message.reset) {
    arrivals = [];
    received = 0;
    expected = Number.POSITIVE_INFINITY;
    isTimed = message.reset === 'timed';
    process.send?.({ reset: true });
  } else if (message.expect) {
    expected = message.expect;
    if (received >= expected) report();
    else setTimeout(() => expected < Number.POSITIVE_INFINITY && report(), message.patienceMs).unref();
  }
});

process.on('disconnect', () => process.exit());

/** Sent once, when all frames have arrived: polling would take time from reading them. */
function report() {
  expected = Number.POSITIVE_INFINITY;
  process.send?.({ received, arrivals });
}

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
    const socket = connect({
      port,
      host,
      noDelay: true,
      onread: { buffer: reading, callback: (length) => read(reading.subarray(0, length)) },
    });
    /** The start of an incomplete frame. @type {Buffer | null} */
    let rest = null;
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
    const hear = (/** @type {number} */ opcode, /** @type {Buffer} */ payload) => {
      if (opcode === 9) socket.write(frame(10, payload));
      if (opcode === 8 && stage !== 'ready') reject(new Error(`closed: ${payload.subarray(2)}`));
      if (opcode !== 1) return;
      if (stage === 'open') {
        if (second) socket.write(frame(1, second.replace(ID, randomUUID())));
        reached('first');
      } else reached('second');
    };
    const read = (/** @type {Buffer} */ chunk) => {
      let data = rest ? Buffer.concat([rest, chunk]) : chunk;
      let at = 0;
      if (stage === 'upgrade') {
        const end = data.indexOf('\r\n\r\n');
        if (end < 0) {
          rest = Buffer.from(data);
          return true;
        }
        if (!data.subarray(0, 12).equals(Buffer.from('HTTP/1.1 101'))) {
          reject(new Error(data.toString()));
          socket.destroy();
          return false;
        }
        data = data.subarray(end + 4);
        reached('open');
        if (first) socket.write(frame(1, first));
      }
      const before = received;
      for (let size = sizeOfFrame(data, at); size > 0; size = sizeOfFrame(data, at)) {
        if (stage === 'ready' && data[at] === 0x81) received += 1;
        else hear(Number(data[at]) & 15, payloadOf(data, at, size));
        at += size;
      }
      rest = at < data.length ? Buffer.from(data.subarray(at)) : null;
      if (isTimed && received > before) {
        const moment = now();
        for (let index = before; index < received; index += 1) arrivals.push(moment);
      }
      if (received >= expected) report();
      return true;
    };
    socket.on('error', reject);
    socket.on('close', () => reject(new Error('closed while it opened')));
    sockets.push(socket);
  });
}

/** The size of the frame at this offset, in bytes; 0 if it is incomplete. Frames of servers are not masked. @param {Buffer} data @param {number} at */
function sizeOfFrame(data, at) {
  const left = data.length - at;
  if (left < 2) return 0;
  const short = Number(data[at + 1]) & 127;
  let size = 2 + short;
  if (short === 126) size = left < 4 ? Number.POSITIVE_INFINITY : 4 + data.readUInt16BE(at + 2);
  if (short === 127) size = left < 10 ? Number.POSITIVE_INFINITY : 10 + Number(data.readBigUInt64BE(at + 2));
  return size <= left ? size : 0;
}

/** @param {Buffer} data @param {number} at @param {number} size */
function payloadOf(data, at, size) {
  const short = Number(data[at + 1]) & 127;
  const head = short < 126 ? 2 : short === 126 ? 4 : 10;
  // Copied, as the next read uses the same buffer.
  return Buffer.from(data.subarray(at + head, at + size));
}

/** A short client frame, masked with zeros, which leave the payload unchanged. @param {number} opcode @param {string | Buffer} content */
function frame(opcode, content) {
  const payload = Buffer.from(content);
  const head =
    payload.length < 126
      ? Buffer.from([128 | opcode, 128 | payload.length])
      : Buffer.from([128 | opcode, 128 | 126, payload.length >> 8, payload.length & 255]);
  return Buffer.concat([head, Buffer.alloc(4), payload]);
}
