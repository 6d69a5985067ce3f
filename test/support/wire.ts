import { connect, type Socket } from 'node:net';

/** The headers with which `curl --http2` offers h2c on a connection without TLS. */
export const offer = ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA'];

export interface WireResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A TCP connection to the server, on which a test writes arbitrary bytes. */
interface Wire {
  readonly socket: Socket;
  write(data: string | Buffer): void;
  /** Waits until `count` responses have arrived or the server has closed; returns all responses so far. */
  receive(count: number): Promise<WireResponse[]>;
  /** Waits until the server has closed the connection. */
  closed(): Promise<void>;
}

export async function openWire(baseUrl: string, { allowHalfOpen = false } = {}): Promise<Wire> {
  const { hostname, port } = new URL(baseUrl);
  const socket = connect({ port: Number(port), host: hostname, allowHalfOpen });
  let received = Buffer.alloc(0);
  let isClosed = false;
  let wake = () => {};
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    wake();
  });
  // A server that closes during a write resets the connection; 'close' handles that.
  socket.on('error', () => {});
  socket.on('close', () => {
    isClosed = true;
    wake();
  });
  await new Promise<void>((resolve) => socket.once('connect', resolve));
  const until = async (isDone: () => boolean) => {
    while (!isDone() && !isClosed) await new Promise<void>((resolve) => (wake = resolve));
  };
  return {
    socket,
    write: (data) => void socket.write(data),
    async receive(count) {
      await until(() => readResponses(received).length >= count);
      return readResponses(received);
    },
    closed: () => until(() => false),
  };
}

/** The complete responses in the bytes. Portico's responses all carry a Content-Length. */
function readResponses(bytes: Buffer): WireResponse[] {
  const responses: WireResponse[] = [];
  for (let rest = bytes; ; ) {
    const end = rest.indexOf('\r\n\r\n');
    if (end < 0) return responses;
    const [statusLine = '', ...lines] = rest.subarray(0, end).toString('latin1').split('\r\n');
    const headers = Object.fromEntries(
      lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
    );
    const length = Number(headers['content-length'] ?? 0);
    const body = rest.subarray(end + 4, end + 4 + length);
    if (body.length < length) return responses;
    responses.push({ status: Number(statusLine.split(' ')[1]), headers, body: body.toString('utf8') });
    rest = rest.subarray(end + 4 + length);
  }
}
